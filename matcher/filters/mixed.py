"""Events and filters as arrays, whatever their types: compressed rows of named values.

Typed events are columns (:mod:`matcher.model`). Where every event may have other attributes, and
for filters, which name what they please, the same law holds in another shape: no Python for each
event or filter on a hot path. :class:`Cells` are the named values of many rows, one row after the
other; :class:`MixedEvents` are rows of which each is an event, :class:`FilterBatch` rows of which
each is a filter, its cells having operators too.

A cell's value is a number of 64 bits that its kind explains: an int, the bits of a float, 0 or 1
of a bool, or the code of a text in a dictionary, in which one text may stand more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from struct import Struct
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from matcher.filters.constraint import INT_MAX, INT_MIN, Constraint, Filter, Operator
from matcher.model import (
    AnyArray,
    Bools,
    Datum,
    EventBatch,
    EventType,
    Int64s,
    Kind,
    StringColumn,
    Value,
)
from matcher.single import Single

UInt8s: TypeAlias = npt.NDArray[np.uint8]
KINDS: tuple[Kind, ...] = (Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.STRING)
"""The kinds of cells by their numbers."""
INT, FLOAT, BOOL, STRING = range(4)
_KIND_OF_TYPE: Mapping[type, int] = {int: INT, float: FLOAT, bool: BOOL, str: STRING}


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The named values of n rows: those of row i at ``offsets[i]:offsets[i + 1]``.

    ``offsets`` int64[n + 1]; ``names`` StringColumn[m]; ``kinds`` uint8[m], places in KINDS;
    ``values`` int64[m]; ``texts``, the dictionary of the values of kind STRING.
    """

    offsets: Int64s
    names: StringColumn
    kinds: UInt8s
    values: Int64s
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, rows: Sequence[Sequence[tuple[str, Value]]]) -> Cells:
        """The cells of rows of names and values; ValueError for an int beyond 64 bits."""
        flat = list(chain.from_iterable(rows))
        lengths = list(map(len, rows))
        return cls.of_flat(lengths, [name for name, _ in flat], [value for _, value in flat])

    @classmethod
    def of_flat(cls, lengths: Sequence[int], names: list[str], values: list[Value]) -> Cells:
        """The same of rows of these lengths, their names and values one row after the other."""
        kinds = np.array([_KIND_OF_TYPE[type(value)] for value in values], np.uint8)
        words, texts = np.empty(len(values), np.int64), tuple[str, ...]()
        for kind in np.flatnonzero(np.bincount(kinds)).tolist():
            places = np.flatnonzero(kinds == kind)
            own: list[Any] = list(compress(values, (kinds == kind).tolist()))
            if kind == STRING:
                column = StringColumn.from_strings(own)
                words[places], texts = column.codes, column.values
            elif kind == FLOAT:
                words[places] = np.array(own, np.float64).view(np.int64)
            else:
                words[places] = _ints(own)
        return cls(offsets_of(lengths), StringColumn.from_strings(names), kinds, words, texts)

    def value(self, place: int) -> Value:
        """The value of one cell."""
        word, kind = self.values[place], KINDS[self.kinds[place]]
        if kind is Kind.STRING:
            return self.texts[int(word)]
        if kind is Kind.FLOAT:
            return float(word.view(np.float64))
        return bool(word) if kind is Kind.BOOL else int(word)

    def take(self, rows: slice) -> Cells:
        """A run of rows; the dictionaries are shared."""
        first, last, _ = rows.indices(len(self))
        offsets = self.offsets[first : max(first, last) + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        return Cells(
            offsets - offsets[0],
            self.names.take(part),
            self.kinds[part],
            self.values[part],
            self.texts,
        )


class _Form(NamedTuple):
    """Of one event of a type, all that depends on the type alone."""

    type: EventType
    offsets: Int64s
    names: StringColumn
    kinds: UInt8s
    types: StringColumn


_FLOAT, _FLOAT_AS_INT = Struct("<d").pack, Struct("<q").unpack
_last: _Form | None = None
"""Of the last event: most come in runs of a type."""


def _form_of(event_type: EventType) -> _Form:
    global _last
    form = _last
    if form is None or form.type is not event_type:
        width = len(event_type.attributes)
        form = _last = _Form(
            event_type,
            np.array([0, width], np.int64),
            StringColumn(np.arange(width, dtype=np.int32), event_type.names),
            np.array([KINDS.index(one.kind) for one in event_type.attributes], np.uint8),
            StringColumn.constant(event_type.name, 1),
        )
    return form


@dataclass(frozen=True, slots=True, eq=False)
class MixedEvents:
    """n events, each with attributes of its own; ``types`` StringColumn[n], or None: untyped.

    An attribute that is null is none, so that no constraint on it is true.
    """

    cells: Cells
    types: StringColumn | None = None

    def __len__(self) -> int:
        return len(self.cells)

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Datum]], types: Sequence[str] | None = None
    ) -> MixedEvents:
        """Events by their attributes, and their types where they have any."""
        values: list[Any] = list(chain.from_iterable(row.values() for row in rows))
        if None in values:
            there = [[pair for pair in row.items() if pair[1] is not None] for row in rows]
            cells = Cells.of(cast(Sequence[Sequence[tuple[str, Value]]], there))
        else:
            cells = Cells.of_flat(list(map(len, rows)), list(chain.from_iterable(rows)), values)
        return cls(cells, None if types is None else StringColumn.from_strings(types))

    @classmethod
    def of_batch(cls, batch: EventBatch) -> MixedEvents:
        """The events of a typed batch."""
        if isinstance(batch, Single) and not batch.type.has_optional:
            return cls._of_single(batch)
        width, count = len(batch.columns), len(batch)
        texts = tuple[str, ...]()
        names, kinds = np.empty((count, width), np.int32), np.empty((count, width), np.uint8)
        words = np.empty((count, width), np.int64)
        names[:] = np.arange(width)
        kinds[:] = [KINDS.index(attribute.kind) for attribute in batch.type.attributes]
        for place, column in enumerate(batch.columns):
            if isinstance(column, StringColumn):
                np.add(column.codes, len(texts), out=words[:, place])
                texts += column.values
            else:
                is_float = column.dtype == np.float64
                words[:, place] = column.view(np.int64) if is_float else column
        there = _there(batch)
        cells = Cells(
            np.arange(count + 1, dtype=np.int64) * width
            if there is None
            else offsets_of(there.sum(1)),
            StringColumn(_chosen(names, there), batch.type.names),
            _chosen(kinds, there),
            _chosen(words, there),
            texts,
        )
        return cls(cells, StringColumn.constant(batch.type.name, count))

    @classmethod
    def _of_single(cls, event: Single) -> MixedEvents:
        """One event, whose columns nobody has made yet, of a type without optional attributes."""
        form, words, texts = _form_of(event.type), list[int](), list[str]()
        for value in event.row.values:
            match value:
                case str():
                    words.append(len(texts))
                    texts.append(value)
                case float():
                    words.append(_FLOAT_AS_INT(_FLOAT(value))[0])
                case _:
                    words.append(value)
        values = np.array(words, np.int64)
        cells = Cells(form.offsets, form.names, form.kinds, values, tuple(texts))
        return cls(cells, form.types)

    def data(self, place: int) -> dict[str, Value]:
        """One event's attributes: for the borders, never for hot paths."""
        cells = self.cells
        return {
            cells.names[cell]: cells.value(cell)
            for cell in range(int(cells.offsets[place]), int(cells.offsets[place + 1]))
        }

    def type_of(self, place: int) -> str | None:
        """One event's type."""
        return None if self.types is None else self.types[place]

    def take(self, rows: slice) -> MixedEvents:
        """A run of events."""
        types = None if self.types is None else self.types.take(rows)
        return MixedEvents(self.cells.take(rows), types)


Events: TypeAlias = EventBatch | MixedEvents


@dataclass(frozen=True, slots=True, eq=False)
class FilterBatch:
    """n filters to deploy at once.

    ``identifiers`` int64[n], distinct; ``interfaces`` int64[n], who exposes each; ``cells`` their
    constraints' names and operands, ``operators`` uint8[m] (:class:`Operator`); ``types``
    StringColumn[n] with ``""`` where a filter asks for no type, or None where none does.
    """

    identifiers: Int64s
    interfaces: Int64s
    cells: Cells
    operators: UInt8s
    types: StringColumn | None = None

    def __len__(self) -> int:
        return len(self.identifiers)

    @classmethod
    def of(cls, filters: Iterable[tuple[int, int, Filter]]) -> FilterBatch:
        """Filters given as (identifier, interface, filter)."""
        rows = list(filters)
        constraints = [filter_.constraints for _, _, filter_ in rows]
        types = [filter_.type or "" for _, _, filter_ in rows]
        return cls(
            np.array([identifier for identifier, _, _ in rows], np.int64),
            np.array([interface for _, interface, _ in rows], np.int64),
            Cells.of([[(one.name, one.operand) for one in row] for row in constraints]),
            np.array([one.operator for row in constraints for one in row], np.uint8),
            StringColumn.from_strings(types) if any(types) else None,
        )

    def filter(self, place: int) -> Filter:
        """One of the filters: for the borders, never for hot paths."""
        cells = self.cells
        constraints = tuple(
            Constraint(cells.names[cell], Operator(int(self.operators[cell])), cells.value(cell))
            for cell in range(int(cells.offsets[place]), int(cells.offsets[place + 1]))
        )
        return Filter(constraints, (self.types[place] or None) if self.types else None)


def _there(batch: EventBatch) -> Bools | None:
    """bool[n, columns]: which values are not null; None where all are."""
    there = None
    for place, presence in enumerate(batch.type.presences):
        if presence >= 0:
            there = np.ones((len(batch), len(batch.columns)), np.bool_) if there is None else there
            there[:, place] = batch.columns[presence]
    return there


def _chosen(cells: AnyArray, there: Bools | None) -> AnyArray:
    return cells.ravel() if there is None else cells[there]


def offsets_of(lengths: Sequence[int] | AnyArray) -> Int64s:
    """Where rows of these lengths begin, and the end of the last: int64[n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _ints(values: list[int]) -> Int64s:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        beyond = next(value for value in values if not INT_MIN <= value <= INT_MAX)
        raise ValueError(f"an int beyond 64 bits: {beyond}") from None
