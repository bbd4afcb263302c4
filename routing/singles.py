"""One event as bytes: the columns of :mod:`routing.columns`, each of length one, in one stroke.

Law 1: the bytes are those that the columns would give (Law 1 there), and what is refused is
refused alike. Only the way is shorter: one pattern of :mod:`struct` for each event type in the
place of an array for each attribute.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matcher.model import EventType, Kind, Value
from matcher.single import Row
from routing.errors import WireError

_LETTERS = {Kind.INT: "q", Kind.FLOAT: "d", Kind.BOOL: "B"}
"""How a value lies in the body; strings are in the header."""


@dataclass(frozen=True, slots=True)
class SingleForm:
    """How an event of one type lies in a body.

    ``body`` packs time, sequence number and the values at ``places`` of the row; ``floats``,
    ``bools`` and ``strings`` are the places of those kinds.
    """

    body: struct.Struct
    places: tuple[int, ...]
    floats: tuple[int, ...]
    bools: tuple[int, ...]
    strings: tuple[int, ...]

    @classmethod
    def of(cls, event_type: EventType) -> SingleForm:
        """The form of a type."""
        kinds = [attribute.kind for attribute in event_type.attributes]
        words = [place for place, kind in enumerate(kinds) if kind.is_number]
        bools = [place for place, kind in enumerate(kinds) if kind is Kind.BOOL]
        letters = "".join(_LETTERS[kinds[place]] for place in (*words, *bools))
        return cls(
            struct.Struct(f"<qq{letters}{-len(bools) % 8}x"),
            (*words, *bools),
            tuple(place for place, kind in enumerate(kinds) if kind is Kind.FLOAT),
            tuple(bools),
            tuple(place for place, kind in enumerate(kinds) if kind is Kind.STRING),
        )

    def encode(self, row: Row) -> tuple[tuple[tuple[str, ...], ...], bytes]:
        """The dictionaries of the strings, and the body."""
        values: Sequence[Any] = row.values
        numbers = [values[place] for place in self.places]
        strings = tuple([(values[place],) for place in self.strings])
        return strings, self.body.pack(row.time, row.sequence, *numbers)

    def decode(
        self, body: bytearray, start: int, strings: Sequence[tuple[str, ...]]
    ) -> tuple[int, int, tuple[Value, ...]]:
        """Time, sequence number and values; WireError for anything that is not an event.

        ``strings`` has a dictionary for each attribute that is a string.
        """
        if start + self.body.size > len(body):
            expected = start + self.body.size
            raise WireError(f"the body ends after {len(body)} bytes; expected {expected} or more")
        time, sequence, *numbers = self.body.unpack_from(body, start)
        values: list[Any] = [None] * (len(self.places) + len(self.strings))
        for place, number in zip(self.places, numbers, strict=True):
            values[place] = number
        for place in self.floats:
            if not math.isfinite(values[place]):
                raise WireError("a float that is not finite (tesla.md E1)")
        for place in self.bools:
            if values[place] > 1:
                raise WireError("a truth value that is neither 0 nor 1")
            values[place] = bool(values[place])
        for place, dictionary in zip(self.strings, strings, strict=True):
            values[place] = only(dictionary)
        return time, sequence, tuple(values)


def only(dictionary: tuple[str, ...]) -> str:
    """The string of one row; WireError unless its dictionary has just that."""
    if len(dictionary) != 1:
        raise WireError(f"a dictionary of {len(dictionary)} strings for 1 rows, or a repeat")
    return dictionary[0]
