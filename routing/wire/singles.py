"""One event as bytes: the columns of :mod:`routing.wire.columns`, each of length one, in one go.

The bytes are those that the columns would give, and what is refused is refused alike. Only the way
is shorter: one pattern of :mod:`struct` for each event type in the place of an array for each
attribute.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from operator import itemgetter
from typing import Any, TypeAlias

from matcher.model import EventType, Kind, Value
from matcher.single import Row
from routing.errors import WireError

_LETTERS = {Kind.INT: "q", Kind.FLOAT: "d", Kind.BOOL: "B"}
"""How a value lies in the body; strings are in the header."""

Picker: TypeAlias = Callable[[Sequence[Any]], tuple[Any, ...]]
"""Gives the values at certain places, as a tuple."""


@dataclass(frozen=True, slots=True)
class SingleForm:
    """How an event of one type lies in a body.

    ``body`` packs time, sequence number and what ``numbers`` picks from the row's values;
    ``strings`` picks the others. What is taken out of a body, with the strings behind it, is a
    line: ``floats`` and ``bools`` are the places of those kinds in it, and ``values`` picks the
    row's values from it.
    """

    body: struct.Struct
    numbers: Picker
    strings: Picker
    floats: tuple[int, ...]
    bools: tuple[int, ...]
    values: Picker

    @classmethod
    def of(cls, event_type: EventType) -> SingleForm:
        """The form of a type."""
        kinds = [attribute.kind for attribute in event_type.attributes]
        words = [place for place, kind in enumerate(kinds) if kind.is_number]
        bools = [place for place, kind in enumerate(kinds) if kind is Kind.BOOL]
        strings = [place for place, kind in enumerate(kinds) if kind is Kind.STRING]
        letters = "".join(_LETTERS[kinds[place]] for place in (*words, *bools))
        # A line starts with time and sequence number.
        lies = {place: at for at, place in enumerate((*words, *bools, *strings), start=2)}
        return cls(
            struct.Struct(f"<qq{letters}{-len(bools) % 8}x"),
            _picker([*words, *bools]),
            _picker(strings),
            tuple(lies[place] for place in words if kinds[place] is Kind.FLOAT),
            tuple(lies[place] for place in bools),
            _picker([lies[place] for place in range(len(kinds))]),
        )

    def encode(self, row: Row) -> tuple[tuple[tuple[str, ...], ...], bytes]:
        """The dictionaries of the strings, and the body."""
        values = row.values
        body = self.body.pack(row.time, row.sequence, *self.numbers(values))
        return tuple(zip(self.strings(values))), body

    def decode(
        self, body: bytes | bytearray | memoryview, start: int, strings: Sequence[tuple[str, ...]]
    ) -> tuple[int, int, tuple[Value, ...]]:
        """Time, sequence number and values; WireError for anything that is not an event.

        ``strings`` has a dictionary for each attribute that is a string.
        """
        if start + self.body.size > len(body):
            expected = start + self.body.size
            raise WireError(f"the body ends after {len(body)} bytes; expected {expected} or more")
        line = self.body.unpack_from(body, start)
        if strings:
            texts = tuple(chain.from_iterable(strings))
            if len(texts) != len(strings) or not all(strings):
                texts = tuple(map(only, strings))  # says which of them it is
            line += texts
        for place in self.floats:
            if not isfinite(line[place]):
                raise WireError("a float that is not finite (tesla.md E1)")
        if self.bools:
            line = self._with_bools(line)
        return line[0], line[1], self.values(line)

    def _with_bools(self, line: tuple[Any, ...]) -> tuple[Any, ...]:
        checked = list(line)
        for place in self.bools:
            if line[place] > 1:
                raise WireError("a truth value that is neither 0 nor 1")
            checked[place] = bool(line[place])
        return tuple(checked)


def only(dictionary: tuple[str, ...]) -> str:
    """The string of one row; WireError unless its dictionary has just that."""
    if len(dictionary) != 1:
        raise WireError(f"a dictionary of {len(dictionary)} strings for 1 rows, or a repeat")
    return dictionary[0]


def _picker(places: Sequence[int]) -> Picker:
    """A function that gives the values at ``places``, without a step of Python for each."""
    if len(places) > 1:
        return itemgetter(*places)
    start = places[0] if places else 0
    return itemgetter(slice(start, start + len(places)))  # of a tuple it gives a tuple
