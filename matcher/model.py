"""The event model: typed events, moved in columns (tesla.md E1 to E5; decision 3).

Rule 1: an :class:`EventBatch` holds events of one type as columns. No per-event Python stands on
a hot path, so every operation here works on whole columns; :class:`Event`, one event as a row,
is for the borders: clients that publish one at a time, printing, the oracle.

Rule 2: strings are dictionary-encoded (:class:`StringColumn`). What is computed on a string is
computed once per distinct value.

Rule 3: an event is known by its source and its id (tesla.md E1). The id is, in this order of
preference, a 128-bit digest (composite events), a text that came from outside, or the decimal
form of its sequence number at the source. The sequence number orders the simultaneous events of
one source (E4) whatever the id is. An id is *explicit* where the event came with it: a text, or,
with ``given``, a number; other numbers are given by whoever counts the events.

Rule 4: batches are values. Their arrays are never written to after construction.

Rule 5: an optional attribute (``value: float?``) is two columns: its values, and its *presence*, a
bool attribute ``value?`` behind all that are declared, false where the value is null (tesla.md S9).
There the value is its kind's blank (``BLANKS``), so that equal events have equal columns. Rules and
filters are checked into conditions on both, so whatever stores, sends, sorts or matches events
knows of no nulls; where events are read, made or shown, nulls come and go.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from matcher.errors import SchemaError
from matcher.spelling import spelled

Int64s: TypeAlias = npt.NDArray[np.int64]
Int32s: TypeAlias = npt.NDArray[np.int32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = int | float | bool | str
Datum: TypeAlias = Value | None
"""An attribute's content where events are rows: a value, or null."""

TIME_MIN = -(2**63)
"""Before every event: the mark of a source that has promised nothing."""
TIME_MAX = 2**63 - 1
"""After every event: the mark of a source that has closed."""
MICROSECONDS = 1_000_000
"""Ticks of event time in a second (tesla.md E2)."""


ATTRIBUTES_MAX = 256
"""Attributes of an event type that rules declare or links carry."""


class Kind(enum.Enum):
    """The type of an attribute (tesla.md E1)."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    STRING = "string"

    @property
    def is_number(self) -> bool:
        """Whether values of this kind compare and compute as numbers."""
        return self is Kind.INT or self is Kind.FLOAT


DTYPES: Mapping[Kind, npt.DTypeLike] = {
    Kind.INT: np.int64,
    Kind.FLOAT: np.float64,
    Kind.BOOL: np.bool_,
    Kind.STRING: np.int32,  # codes into the column's dictionary
}


BLANKS: Mapping[Kind, Value] = {
    Kind.INT: 0,
    Kind.FLOAT: 0.0,
    Kind.BOOL: False,
    Kind.STRING: "",
}
"""The content of a column where the value is null (Rule 5)."""
OPTIONAL = "?"
"""A suffix of the kind of an optional attribute, and of the name of its presence."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named, typed place in an event type."""

    name: str
    kind: Kind

    def __str__(self) -> str:
        return f"{spelled(self.name)}: {self.kind.value}"


@dataclass(frozen=True, slots=True)
class EventType:
    """A schema: a name and its attributes in their fixed order (tesla.md E1).

    ``attributes`` are those of the columns: the declared ones, then the presences of those that
    are optional (Rule 5). Raises SchemaError when two attributes share a name.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The attributes' names, in order."""
    declared: tuple[Attribute, ...] = field(init=False, repr=False, compare=False)
    """The attributes without presences, as they were declared."""
    presences: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """For each declared attribute the place of its presence, -1 where it is never null."""
    has_optional: bool = field(init=False, repr=False, compare=False)
    """Whether an attribute may be null."""

    def __post_init__(self) -> None:
        names = tuple(attribute.name for attribute in self.attributes)
        if len(set(names)) < len(names):
            name = next(name for name in names if names.count(name) > 1)
            raise SchemaError(f"event {self.name}: attribute {name} is declared twice")
        object.__setattr__(self, "names", names)
        presences = _presences(self.attributes)
        object.__setattr__(self, "presences", presences)
        object.__setattr__(self, "declared", self.attributes[: len(presences)])
        object.__setattr__(self, "has_optional", len(presences) < len(self.attributes))

    def __hash__(self) -> int:
        # Schemas are keys of much that is remembered; equal ones have equal names.
        return hash(self.name)

    @classmethod
    def of(cls, name: str, /, **kinds: str) -> EventType:
        """``EventType.of("Temp", area="string", value="float?")``."""
        declared = [Attribute(key, Kind(kind.rstrip(OPTIONAL))) for key, kind in kinds.items()]
        nullable = [key for key, kind in kinds.items() if kind.endswith(OPTIONAL)]
        return cls(name, with_presences(declared, nullable))

    def kind_text(self, place: int) -> str:
        """The kind of a declared attribute as it is written: ``float``, or ``float?``."""
        kind = self.attributes[place].kind.value
        return kind if self.presences[place] < 0 else kind + OPTIONAL

    def data(self, values: Sequence[Value]) -> dict[str, Datum]:
        """One event's attributes by name, as declared, from the values of its columns."""
        if not self.has_optional:
            return dict(zip(self.names, values, strict=True))
        return {
            self.names[place]: values[place] if presence < 0 or values[presence] else None
            for place, presence in enumerate(self.presences)
        }

    def index(self, name: str) -> int | None:
        """The place of attribute ``name``, or None."""
        for place, attribute in enumerate(self.attributes):
            if attribute.name == name:
                return place
        return None

    def __str__(self) -> str:
        said = (
            f"{spelled(one.name)}: {self.kind_text(place)}"
            for place, one in enumerate(self.declared)
        )
        return f"{spelled(self.name)}({', '.join(said)})"


def with_presences(
    declared: Sequence[Attribute], nullable: Collection[str] = ()
) -> tuple[Attribute, ...]:
    """The attributes of the columns of a type: those declared, and the presences of the optional
    ones, which ``nullable`` names. Raises SchemaError where one is called as another's presence.
    """
    names = {one.name for one in declared}
    for name in names:
        if name + OPTIONAL in names:
            raise SchemaError(
                f"attribute {spelled(name + OPTIONAL)} beside {spelled(name)}: so is called what "
                f"tells whether that is there; give it another name, or declare the event without"
            )
    nulls = frozenset(nullable)
    optional = [one.name for one in declared if one.name in nulls]
    return (*declared, *(Attribute(name + OPTIONAL, Kind.BOOL) for name in optional))


def _presences(attributes: tuple[Attribute, ...]) -> tuple[int, ...]:
    """The presence of each attribute that is none itself: see :func:`with_presences`."""
    places = {one.name: place for place, one in enumerate(attributes)}
    count, before = len(attributes), len(attributes)
    found: dict[int, int] = {}
    while count:
        last = attributes[count - 1]
        own = places.get(last.name[:-1]) if last.name.endswith(OPTIONAL) else None
        if own is None or last.kind is not Kind.BOOL or own >= before:
            break
        count, before = count - 1, own
        found[own] = count
    # Only those in front of all presences can have one.
    return tuple(found.get(place, -1) for place in range(count))


@dataclass(frozen=True, slots=True, eq=False)
class StringColumn:
    """Dictionary-encoded strings: ``codes`` int32[n] into ``values``.

    The dictionary may hold values that no code uses (a slice keeps its parent's dictionary) but
    no value twice.
    """

    codes: Int32s
    values: tuple[str, ...]

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> StringColumn:
        """Encode a sequence of strings, numbering them by first appearance."""
        values = tuple(dict.fromkeys(strings))
        if len(values) == len(strings):  # no two alike, as names are
            return cls(np.arange(len(values), dtype=np.int32), values)
        numbers = {text: code for code, text in enumerate(values)}
        codes = np.fromiter(map(numbers.__getitem__, strings), np.int32, len(strings))
        return cls(codes, values)

    @classmethod
    def constant(cls, text: str, length: int) -> StringColumn:
        """``length`` times the same string."""
        return cls(np.zeros(length, np.int32), (text,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: int) -> str:
        return self.values[int(self.codes[place])]

    def take(self, places: AnyArray | slice) -> StringColumn:
        """The column at ``places`` (indices, mask or slice); the dictionary is shared."""
        return StringColumn(self.codes[places], self.values)

    def compact(self) -> StringColumn:
        """The same strings with a dictionary of just the values in use."""
        own = self.codes
        if len(own) and (np.diff(own) > 0).all():  # distinct ones, as names are
            is_slice = own[-1] - own[0] == len(own) - 1
            values = (
                self.values[int(own[0]) : int(own[-1]) + 1]
                if is_slice
                else tuple(map(self.values.__getitem__, own.tolist()))
            )
            return StringColumn(np.arange(len(own), dtype=np.int32), values)
        used, codes = np.unique(own, return_inverse=True)
        return StringColumn(
            codes.astype(np.int32), tuple(self.values[code] for code in used.tolist())
        )

    def tolist(self) -> list[str]:
        """The strings themselves."""
        values = self.values
        return [values[code] for code in self.codes.tolist()]

    @staticmethod
    def concatenate(columns: Sequence[StringColumn]) -> StringColumn:
        """One column after another, under one dictionary."""
        if columns and all(column.values == columns[0].values for column in columns):
            return StringColumn(np.concatenate([one.codes for one in columns]), columns[0].values)
        numbers: dict[str, int] = {}
        parts = []
        for column in columns:
            mapping = np.fromiter(
                (numbers.setdefault(text, len(numbers)) for text in column.values),
                np.int32,
                len(column.values),
            )
            parts.append(mapping[column.codes])
        codes = np.concatenate(parts) if parts else np.empty(0, np.int32)
        return StringColumn(codes, tuple(numbers))


Column: TypeAlias = Int64s | npt.NDArray[np.float64] | Bools | StringColumn


@dataclass(frozen=True, slots=True, eq=False)
class EventIds:
    """The ids of n events (Rule 3).

    ``source`` StringColumn[n]; ``sequence`` int64[n]; ``text`` StringColumn[n] or None;
    ``digest`` uint64[n, 2] (high, low) or None. The printed id is the digest as 32 hexadecimal
    digits, else the text, else the sequence number in decimal. ``given``: the events came with
    these numbers as their ids (Rule 3).
    """

    source: StringColumn
    sequence: Int64s
    text: StringColumn | None = None
    digest: UInt64s | None = None
    given: bool = False

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def are_explicit(self) -> bool:
        """Whether a repeat of one is compared with what bore it before (tesla.md E1)."""
        return self.digest is None and (self.given or self.text is not None)

    def take(self, places: AnyArray | slice) -> EventIds:
        """The ids at ``places``."""
        return EventIds(
            self.source.take(places),
            self.sequence[places],
            None if self.text is None else self.text.take(places),
            None if self.digest is None else self.digest[places],
            self.given,
        )

    def printed(self) -> list[str]:
        """The ids as they are printed (tesla.md E3, section 4)."""
        if self.digest is not None:
            return digest_texts(self.digest)
        if self.text is not None:
            return self.text.tolist()
        return list(map(str, self.sequence.tolist()))


def digest_texts(digests: UInt64s) -> list[str]:
    """Each of uint64[n, 2] digests (high, low) as 32 hexadecimal digits."""
    digits = digests.astype(">u8").tobytes().hex()
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Provenance of n composite events (tesla.md section 4), in compressed rows.

    The causes of composite event ``i`` are ``ids`` at ``offsets[i]:offsets[i + 1]``, terminator
    first. Their printed ids are kept as columns: a cause is primitive (a sequence number or a
    text) or composite (a digest), so ``ids.text`` and ``ids.digest`` may both be present;
    ``is_digest`` bool[m] says which causes the digest names, and ``has_text`` bool[m] which ones
    the text does.
    """

    offsets: Int64s
    ids: EventIds
    is_digest: Bools
    has_text: Bools

    def take(self, places: Int64s) -> Causes:
        """The provenance of the composite events at ``places`` (indices)."""
        starts, ends = self.offsets[places], self.offsets[places + 1]
        lengths = ends - starts
        offsets = np.zeros(len(places) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        rows = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Causes(offsets, self.ids.take(rows), self.is_digest[rows], self.has_text[rows])

    def printed(self, place: int) -> list[str]:
        """The printed ids of the causes of one composite event."""
        return [self._printed_at(row) for row in self._rows(place)]

    def printed_full(self, place: int) -> list[str]:
        """The same as ``source#id``."""
        source = self.ids.source
        return [f"{source[row]}#{self._printed_at(row)}" for row in self._rows(place)]

    def printed_rows(self, *, full: bool = False) -> list[list[str]]:
        """The printed ids of the causes of every composite event; ``source#id`` if ``full``."""
        ids = self.ids
        texts = np.array(list(map(str, ids.sequence.tolist())), object)
        if ids.text is not None:
            texts[self.has_text] = ids.text.take(self.has_text).tolist()
        if ids.digest is not None:
            texts[self.is_digest] = digest_texts(ids.digest[self.is_digest])
        printed: list[str] = texts.tolist()
        if full:
            pairs = zip(ids.source.tolist(), printed, strict=True)
            printed = [f"{source}#{text}" for source, text in pairs]
        bounds = self.offsets.tolist()
        return [printed[start:end] for start, end in itertools.pairwise(bounds)]

    def _rows(self, place: int) -> range:
        return range(int(self.offsets[place]), int(self.offsets[place + 1]))

    def _printed_at(self, row: int) -> str:
        ids = self.ids
        if ids.digest is not None and self.is_digest[row]:
            high, low = ids.digest[row].tolist()
            return f"{high:016x}{low:016x}"
        if ids.text is not None and self.has_text[row]:
            return ids.text[row]
        return str(int(ids.sequence[row]))


class Event(Struct, frozen=True, eq=False, gc=False):
    """One event as a row: for the borders, never for hot paths (Rule 1).

    Equal events have the same values, whatever the sources of their causes and their traces.
    Example: ``Event("Temp", 10, "s1", "7", {"value": 51.5}, 7)``.

    ``time`` is in microseconds since the epoch; ``data`` maps attribute names to values, None for
    null, in the schema's order; ``cause`` holds printed ids, and is empty for primitive events.
    ``traces``: the trace contexts (W3C) that it belongs to, where it was delivered.
    """

    type: str
    time: int
    source: str
    id: str
    data: Mapping[str, Datum]
    sequence: int = 0
    cause: tuple[str, ...] = ()
    cause_full: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return _compared(self) == _compared(other) if type(other) is Event else NotImplemented


def _compared(event: Event) -> tuple[object, ...]:
    return event.type, event.time, event.source, event.id, event.data, event.sequence, event.cause


@dataclass(frozen=True, slots=True, eq=False)
class EventBatch:
    """n events of one type, as columns (Rule 1).

    ``time`` int64[n], microseconds since the epoch; ``ids`` of length n; ``columns`` one per
    attribute of ``type``, in its order: int64, float64, bool or StringColumn, of length n;
    ``causes`` of composite events, else None. The events need not be in order of time.
    """

    type: EventType
    time: Int64s
    ids: EventIds
    columns: tuple[Column, ...]
    causes: Causes | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def is_composite(self) -> bool:
        """Whether an engine made these events (tesla.md section 4)."""
        return self.causes is not None or self.ids.digest is not None

    def column(self, name: str) -> Column:
        """The column of attribute ``name``; KeyError when the type lacks it."""
        place = self.type.index(name)
        if place is None:
            raise KeyError(name)
        return self.columns[place]

    def take(self, places: AnyArray | slice) -> EventBatch:
        """The events at ``places`` (indices, mask or slice)."""
        if isinstance(places, slice):
            indices = np.arange(len(self))[places]
        else:
            indices = np.flatnonzero(places) if places.dtype == np.bool_ else places
        return EventBatch(
            self.type,
            self.time[places],
            self.ids.take(places),
            tuple(
                column.take(places) if isinstance(column, StringColumn) else column[places]
                for column in self.columns
            ),
            None if self.causes is None else self.causes.take(indices),
        )

    def with_ids(self, ids: EventIds) -> EventBatch:
        """The same events with other ids."""
        return EventBatch(self.type, self.time, ids, self.columns, self.causes)

    def event(self, place: int) -> Event:
        """One event as a row."""
        return next(self.take(slice(place, place + 1)).events())

    def presence(self, place: int) -> Bools | None:
        """bool[n]: which events have a declared attribute; None where it is never null."""
        presence = self.type.presences[place]
        return None if presence < 0 else cast(Bools, self.columns[presence])

    def lists(self) -> list[list[Any]]:
        """The values of each declared attribute, None where they are null."""
        lists = []
        for place in range(len(self.type.presences)):
            values: list[Any] = self.columns[place].tolist()
            presence = self.presence(place)
            if presence is not None:
                for row in np.flatnonzero(~presence).tolist():
                    values[row] = None
            lists.append(values)
        return lists

    def events(self) -> Iterator[Event]:
        """The events as rows, in the batch's order."""
        sources, ids = self.ids.source.tolist(), self.ids.printed()
        columns = self.lists()
        name, names = self.type.name, self.type.names[: len(columns)]
        rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True)
        whens, numbers, causes = self.time.tolist(), self.ids.sequence.tolist(), self.causes
        for place, (time, source, id_, number, row) in enumerate(
            zip(whens, sources, ids, numbers, rows if columns else repeat(()), strict=False)
        ):
            data = dict(zip(names, row, strict=True))
            if causes is None:
                yield Event(name, time, source, id_, data, number)
            else:
                cause, full = causes.printed(place), causes.printed_full(place)
                yield Event(name, time, source, id_, data, number, tuple(cause), tuple(full))
