"""The words that filters use, numbered: terms, and tests of texts (:mod:`matcher.filters.texts`);
and events in these numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

import numpy as np

from matcher.filters.constraint import Operator, Sort
from matcher.filters.encoded import EncodedEvents, type_order
from matcher.filters.mixed import Events, MixedEvents
from matcher.filters.numbering import Numbering
from matcher.filters.texts import KnownTexts
from matcher.kernels.encoding import encode
from matcher.model import AnyArray, EventBatch, Int64s
from runtime.growing import with_room

TYPE_SORT = 3
"""The sort of the terms that stand for types, beside those of :class:`Sort`."""
SORTS = 4


class Vocabulary:
    """Terms and tests in use, and the texts that have passed by.

    A *term* is a name together with the sort of its value, or a type by its name: so an event in
    which an attribute is absent, or of another kind, lacks the term. What no filter uses any more
    is forgotten. A new term or test makes encoded events stale, since they were encoded without it;
    the *generation* counts these changes.
    """

    def __init__(self) -> None:
        self.terms: Numbering[tuple[str, int]] = Numbering()
        self._texts = KnownTexts()
        self.generation = 0
        self._lock = Lock()
        self.ranks: AnyArray = np.zeros(16, np.int64)
        """By term: its place in the order of terms, rarest first (matcher.methods.indexed)."""
        self.sorts: AnyArray = np.zeros(16, np.int64)
        """By term: the sort of its values."""
        empty = np.empty(0, np.int64)
        self._last_names: tuple[tuple[str, ...], int, Int64s] = ((), -1, empty)
        self._next_rank = 0

    @property
    def tests(self) -> Numbering[tuple[Operator, str]]:
        """The tests of texts in use."""
        return self._texts.tests

    # --- what filters use ---------------------------------------------------------------------

    def use_term(self, name: str, sort: int, times: int = 1) -> int:
        """The number of a term, used so many times more; a new one ranks first: it is rare."""
        number, new = self.terms.use((name, sort), times)
        if new:
            self.generation += 1
            self.ranks = with_room(self.ranks, number + 1)
            self.sorts = with_room(self.sorts, number + 1)
            self.sorts[number] = sort
            self._next_rank -= 1
            self.ranks[number] = self._next_rank
        return number

    def use_test(self, operator: Operator, operand: str, times: int = 1) -> int:
        """The number of the test behind an operator on texts, used so many times more."""
        number, new = self._texts.use(operator, operand, times)
        self.generation += new
        return number

    def release_term(self, number: int) -> None:
        """Use a term once less."""
        self.terms.release(number)

    def release_test(self, number: int) -> None:
        """Use a test once less."""
        self._texts.release(number)

    def hold_tests(self, numbers: Iterable[int]) -> None:
        """Keep tests in use, with their numbers and ranks, until ``release_tests``."""
        for number in numbers:
            self._texts.tests.hold(number)

    def release_tests(self, numbers: Iterable[int]) -> None:
        """Use tests once less, though events may be encoded meanwhile."""
        with self._lock:
            for number in numbers:
                self._texts.release(number)

    # --- events in these numbers --------------------------------------------------------------

    def encode(self, events: Events) -> EncodedEvents:
        """Events in the numbers of now; what no filter asks for is left out.

        Several threads may encode at once. A float that is a whole number within 64 bits is encoded
        as that int, so equal numbers have equal codes, and an int and a float compare exactly
        (tesla.md S10).
        """
        with self._lock:
            return self._encode(events)

    def _encode(self, events: Events) -> EncodedEvents:
        mixed = MixedEvents.of_batch(events) if isinstance(events, EventBatch) else events
        cells = mixed.cells
        texts = self._texts.numbers_of(cells.texts)
        if mixed.types is None:
            types = np.full(len(mixed), -1, np.int64)
        else:
            numbers = [self._term(name, TYPE_SORT) for name in mixed.types.values]
            types = np.array(numbers, np.int64)[mixed.types.codes]
        rows = type_order(types)
        offsets, encoded = encode(
            cells.offsets,
            cells.names.codes,
            cells.kinds,
            cells.values,
            self._terms_of(cells.names.values),
            texts,
            types,
            self.ranks,
            np.arange(len(mixed)) if rows is None else rows,
        )
        return EncodedEvents(offsets, encoded, self.generation, self._texts.arrays, rows)

    def ranked(self) -> Int64s:
        """By test of order: the rank of its operand, those of all that are in use."""
        return self._texts.ranked()

    def _terms_of(self, names: tuple[str, ...]) -> Int64s:
        """int64[names, sorts]: the terms of the names, -1 where no filter uses them.

        Batches of one origin share their dictionary, so the last answer is kept.
        """
        known, generation, terms = self._last_names
        if known is not names or generation != self.generation:
            terms = np.array(
                [[self._term(name, sort) for sort in range(len(Sort))] for name in names],
                np.int64,
            ).reshape(-1, len(Sort))
            self._last_names = (names, self.generation, terms)
        return terms

    def _term(self, name: str, sort: int) -> int:
        number = self.terms.number((name, sort))
        return -1 if number is None else number
