"""Filters packed into flat arrays, as the kernels read them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matcher.errors import FilterError
from matcher.filters.constraint import OPERATORS, SPELLING, Constraint, Filter, Operator, Sort
from matcher.filters.mixed import FLOAT, STRING, FilterBatch
from matcher.filters.numbering import Numbering, Places
from matcher.filters.texts import ORDER, TEST_OF
from matcher.filters.vocabulary import SORTS, TYPE_SORT, Vocabulary
from matcher.kernels.layout import (
    APART,
    BY_FLOAT,
    BY_INT,
    BY_PRESENCE,
    BY_RANK,
    BY_TEST,
    GREATER,
    LESS,
    SAME,
    TERM_MASK,
)
from matcher.model import AnyArray, Int64s
from runtime.growing import Growing

RELATIONS = {
    Operator.EQUAL: SAME,
    Operator.UNEQUAL: LESS | GREATER | APART,
    Operator.LESS: LESS,
    Operator.LESS_EQUAL: LESS | SAME,
    Operator.GREATER: GREATER,
    Operator.GREATER_EQUAL: GREATER | SAME,
    Operator.PREFIX: SAME,
    Operator.SUFFIX: SAME,
    Operator.CONTAINS: SAME,
}
"""The relations of value to operand that satisfy each operator."""
_RELATIONS = np.array([RELATIONS[operator] for operator in Operator], np.int64)
_TEST_OF = np.array([TEST_OF[operator] for operator in Operator], np.int64)
_SORT_OF_KIND = np.array([Sort.NUMBER, Sort.NUMBER, Sort.BOOL, Sort.TEXT], np.int64)
_FITS = np.array([[operator in OPERATORS[sort] for operator in Operator] for sort in Sort])

START, COUNT, INTERFACE = range(3)
"""Columns of ``filters``: a filter's rows, how many, and the place of its interface."""
ROWS_MAX = 2**31 - 1
"""Rows of all filters together: 32 bits say where a filter's begin."""


class FilterTable:
    """Filters by slot.

    ``rows`` int64[.., 2]: all rows (:mod:`matcher.kernels.layout`); ``filters`` int32[slots, 3];
    ``identifiers`` int64[slots]; ``interfaces`` int64[places], -1 where there is none now.

    The table owns the filters, their places (*slots*) and those of their interfaces; a matcher
    built on it keeps slots alone. A slot, and the run of rows that a filter had, are used again.
    Operands are in the form in which events are encoded. Many filters are packed as arrays, one
    filter without any: both give the same rows.
    """

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self.rows = Growing(np.int64, 2)
        self.filters = Growing(np.int32, 3)
        self.identifiers = Growing(np.int64)
        self.interfaces = Growing(np.int64)
        self.live_interfaces = 0
        self.changes = 0
        """How often filters have come or gone: until it is more, all arrays are where they are."""
        self._numbering: Numbering[int] = Numbering()  # of interfaces
        self._slots = Places()
        self._free_slots: list[int] = []
        self._free_runs: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def slots(self) -> Int64s:
        """The slots of all filters."""
        return np.fromiter(self._slots, np.int64, len(self._slots))

    def slot(self, identifier: int) -> int:
        """The slot of a filter; KeyError when there is none of this identifier."""
        return self._slots[identifier]

    def rows_of(self, slot: int) -> Int64s:
        """A filter's rows."""
        start, count = self.filters.rows[slot, START], self.filters.rows[slot, COUNT]
        rows: Int64s = self.rows.rows[start : start + count]
        return rows

    def ranked_tests(self, slots: Int64s) -> list[int]:
        """The tests of order that filters ask for."""
        starts, counts = self.filters.rows[slots, START], self.filters.rows[slots, COUNT]
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(starts - ends + counts, counts)
        rows = self.rows.rows[places]
        tests: list[int] = rows[rows[:, 0] >> 36 == BY_RANK, 1].tolist()
        return tests

    # --- one filter ---------------------------------------------------------------------------

    def add(self, identifier: int, interface: int, filter_: Filter) -> int:
        """Add one filter; its slot. ValueError for an identifier that is taken."""
        if identifier in self._slots:
            raise ValueError(f"there is a filter {identifier} already")
        self._check_rows(len(filter_.constraints) + 1)
        self.changes += 1
        packed = [self._row(constraint) for constraint in filter_.constraints]
        if filter_.type is not None:
            term = self.vocabulary.use_term(filter_.type, TYPE_SORT)
            packed.append((word_of(term, SAME, BY_PRESENCE), 0))
        start = self._run(len(packed))
        rows = self.rows.rows
        for place, row in enumerate(packed, start):  # sooner done than all at once
            rows[place] = row
        slot = self._free_slots.pop() if self._free_slots else self._new_slots(1)
        self._slots.add(identifier, slot)
        self.identifiers.rows[slot] = identifier
        place = self._interface(interface, 1)
        self.filters.rows[slot] = (start, len(packed), place)
        return slot

    def remove(self, identifier: int) -> None:
        """Forget a filter, which no matcher uses any more."""
        self.changes += 1
        slot = self._slots.pop(identifier)
        start, count, place = self.filters.rows[slot].tolist()
        for word, operand in self.rows.rows[start : start + count].tolist():
            self.vocabulary.release_term(word & TERM_MASK)
            if word >> 36 in (BY_TEST, BY_RANK):
                self.vocabulary.release_test(operand)
        self._free_runs.setdefault(count, []).append(start)
        self._free_slots.append(slot)
        self.filters.rows[slot, COUNT] = -1
        if self._numbering.release(place) is not None:
            self.interfaces.rows[place] = -1
            self.live_interfaces -= 1

    def _row(self, constraint: Constraint) -> tuple[int, int]:
        operand, relations = constraint.operand, RELATIONS[constraint.operator]
        term = self.vocabulary.use_term(constraint.name, constraint.sort)
        if isinstance(operand, str):
            test = self.vocabulary.use_test(constraint.operator, operand)
            how = BY_RANK if TEST_OF[constraint.operator] is ORDER else BY_TEST
            return word_of(term, relations, how), test
        if isinstance(operand, float) and not (
            operand.is_integer() and -(2.0**63) <= operand < 2.0**63
        ):
            bits = int(np.float64(operand).view(np.int64))
            return word_of(term, relations, BY_FLOAT), bits
        return word_of(term, relations, BY_INT), int(operand)

    def _run(self, count: int) -> int:
        free = self._free_runs.get(count)
        return free.pop() if free else self.rows.reserve(count)

    def _new_slots(self, count: int) -> int:
        self.identifiers.reserve(count)
        return self.filters.reserve(count)

    def _interface(self, interface: int, times: int) -> int:
        place, new = self._numbering.use(interface, times)
        if new:
            self.live_interfaces += 1
            if place == self.interfaces.size:
                self.interfaces.reserve(1)
            self.interfaces.rows[place] = interface
        return place

    # --- many filters -------------------------------------------------------------------------

    def add_all(self, batch: FilterBatch) -> Int64s:
        """Add many; their slots. Raises before anything is added (ValueError, FilterError)."""
        self._check(batch)
        self.changes += 1
        count, offsets = len(batch), batch.cells.offsets
        rows, lengths = self._pack(batch), np.diff(offsets)
        starts = self.rows.size + offsets[:-1]
        if batch.types is not None:
            rows, lengths, starts = self._with_types(batch, rows, lengths)
        self.rows.extend(rows)
        slots = self._new_slots(count) + np.arange(count)
        self.identifiers.rows[slots] = batch.identifiers
        self._slots.add_all(batch.identifiers.tolist(), slots.tolist())
        self.filters.rows[slots, START] = starts
        self.filters.rows[slots, COUNT] = lengths
        interfaces, inverse, times = np.unique(
            batch.interfaces, return_inverse=True, return_counts=True
        )
        places = [
            self._interface(interface, used)
            for interface, used in zip(interfaces.tolist(), times.tolist(), strict=True)
        ]
        self.filters.rows[slots, INTERFACE] = np.array(places, np.int64)[inverse]
        return slots

    def _check(self, batch: FilterBatch) -> None:
        identifiers = batch.identifiers
        if len(self):
            taken = filter(self._slots.__contains__, identifiers.tolist())
            first = min(taken, default=None)
            if first is not None:
                raise ValueError(f"there is a filter {first} already")
        if not (identifiers[1:] > identifiers[:-1]).all():  # as they mostly are
            identifiers = np.sort(identifiers)
        if (identifiers[1:] == identifiers[:-1]).any():
            raise ValueError("two filters have the same identifier")
        cells = batch.cells
        self._check_rows(len(cells.values) + len(batch))
        unfit = ~_FITS[_SORT_OF_KIND[cells.kinds], batch.operators]
        floats = cells.kinds == FLOAT
        unfit |= floats & np.isnan(np.where(floats, cells.values, 0).view(np.float64))
        for cell in np.flatnonzero(unfit).tolist():
            operator = Operator(int(batch.operators[cell]))
            Constraint(cells.names[cell], operator, cells.value(cell))
            raise FilterError(f"{cells.names[cell]} {SPELLING[operator]}: refused")

    def _check_rows(self, more: int) -> None:
        if self.rows.size > ROWS_MAX - more:
            raise ValueError(f"all filters together may have {ROWS_MAX} constraints, types counted")

    def _pack(self, batch: FilterBatch) -> Int64s:
        """The rows of all constraints, in the batch's order."""
        cells, operators = batch.cells, batch.operators
        terms = self._terms(batch)
        how = np.full(len(terms), BY_INT, np.int64)
        operands = cells.values.astype(np.int64)
        floats = np.flatnonzero(cells.kinds == FLOAT)
        numbers = operands[floats].view(np.float64)
        with np.errstate(invalid="ignore"):
            whole = (np.floor(numbers) == numbers) & (numbers >= -(2.0**63)) & (numbers < 2.0**63)
        operands[floats[whole]] = numbers[whole].astype(np.int64)
        how[floats[~whole]] = BY_FLOAT
        texts = np.flatnonzero(cells.kinds == STRING)
        tests = _TEST_OF[operators[texts]]
        how[texts] = np.where(tests == ORDER, BY_RANK, BY_TEST)
        width = len(Operator)
        words = operands[texts] * width + tests
        numbers_of = np.zeros(len(cells.texts) * width + 1, np.int64)
        for word, times in _counted(words, len(numbers_of)):
            text, test = cells.texts[word // width], Operator(word % width)
            numbers_of[word] = self.vocabulary.use_test(test, text, times)
        operands[texts] = numbers_of[words]
        words_of = terms | _RELATIONS[operators] << 32 | how << 36
        return np.stack((words_of, operands), 1)

    def _terms(self, batch: FilterBatch) -> Int64s:
        """The terms of all constraints; the rarest are numbered last, so that they rank first."""
        cells = batch.cells
        words = cells.names.codes * np.int64(SORTS) + _SORT_OF_KIND[cells.kinds]
        return self._used(words, cells.names.values, 0)

    def _with_types(
        self, batch: FilterBatch, rows: Int64s, lengths: Int64s
    ) -> tuple[Int64s, Int64s, Int64s]:
        """The rows with those of the types behind each filter's; lengths and starts of them."""
        assert batch.types is not None
        typed = np.array([bool(name) for name in batch.types.values])[batch.types.codes]
        terms = self._used(batch.types.codes[typed].astype(np.int64), batch.types.values, TYPE_SORT)
        places = batch.cells.offsets[1:][typed]
        words = terms | SAME << 32 | BY_PRESENCE << 36
        rows = np.insert(rows, places, np.stack((words, np.zeros_like(words)), 1), axis=0)
        lengths = lengths + typed
        return rows, lengths, self.rows.size + np.cumsum(lengths) - lengths

    def _used(self, words: Int64s, names: tuple[str, ...], type_sort: int) -> Int64s:
        """The terms of words, ``name * SORTS + sort``, or names alone that are those of types."""
        width = 1 if type_sort else SORTS
        numbers = np.zeros(len(names) * width + 1, np.int64)
        for word, times in sorted(_counted(words, len(numbers)), key=lambda pair: -pair[1]):
            sort = type_sort or word % width
            numbers[word] = self.vocabulary.use_term(names[word // width], sort, times)
        return numbers[words]


def word_of(term: int, relations: int, how: int) -> int:
    """The first word of a row."""
    return term | relations << 32 | how << 36


def _counted(words: AnyArray, length: int) -> Iterable[tuple[int, int]]:
    """Each of the small numbers ``words`` that occurs, and how often."""
    counts = np.bincount(words, minlength=length)
    used = np.flatnonzero(counts)
    return zip(used.tolist(), counts[used].tolist(), strict=True)
