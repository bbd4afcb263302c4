"""The texts that have passed by, and the tests that they pass."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import compress

import numpy as np

from matcher.filters.constraint import Operator
from matcher.filters.encoded import Texts
from matcher.filters.numbering import Numbering
from matcher.model import Int64s
from runtime.growing import Growing

TEXTS_MAX = 2**20
"""Distinct texts remembered; beyond them all are forgotten and learnt anew."""
CHANGES_MAX = 64
"""Operands of order that come or go one by one; where more have, all are sorted anew."""
ORDER = Operator.LESS
"""Under which operator the operands of all four order operators are kept."""
TEST_OF: dict[Operator, Operator] = {
    Operator.EQUAL: Operator.EQUAL,
    Operator.UNEQUAL: Operator.EQUAL,
    Operator.LESS: ORDER,
    Operator.LESS_EQUAL: ORDER,
    Operator.GREATER: ORDER,
    Operator.GREATER_EQUAL: ORDER,
    Operator.PREFIX: Operator.PREFIX,
    Operator.SUFFIX: Operator.SUFFIX,
    Operator.CONTAINS: Operator.CONTAINS,
}
"""The test behind each operator on texts."""


class KnownTexts:
    """Tests in use, and the texts that have passed by.

    Whatever is asked of a text is a *test* (equal to, prefix, suffix, contained, order), made once
    per distinct text, never once per filter. A text that has passed by is remembered with its
    *hits*, the tests that it passes. Order compares *ranks* among the operands that order asks for,
    which are ints. A new test makes the texts remembered so far stale: they are learnt anew, each
    when it comes again, and what was encoded with the old ones keeps their arrays.
    """

    def __init__(self) -> None:
        self.tests: Numbering[tuple[Operator, str]] = Numbering()
        self._lengths: dict[Operator, Counter[int]] = {
            operator: Counter()
            for operator in (Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS)
        }
        # The operands of order, ascending, their tests, and which have come (True) or gone since.
        self._ordered: list[str] = []
        self._order_tests: Int64s = np.empty(0, np.int64)
        self._changes: list[tuple[bool, str, int]] = []
        self._test_ranks: Int64s = np.zeros(1, np.int64)
        self._last: tuple[tuple[str, ...] | None, Int64s]  # and their numbers
        self._forget()

    def __len__(self) -> int:
        """How many texts are remembered: at most TEXTS_MAX, or those of one batch."""
        return len(self._numbers)

    # --- tests --------------------------------------------------------------------------------

    def use(self, operator: Operator, operand: str, times: int = 1) -> tuple[int, bool]:
        """The number of the test behind an operator, used so many times more; whether it is new."""
        word = (TEST_OF[operator], operand)
        number, new = self.tests.use(word, times)
        if new:
            self._stale = True
            if word[0] in self._lengths:
                self._lengths[word[0]][len(operand)] += 1
            elif word[0] is ORDER:
                self._changes.append((True, operand, number))
        return number, new

    def release(self, number: int) -> None:
        """Use a test once less."""
        word = self.tests.release(number)
        if word is None:
            return
        operator, operand = word
        if operator in self._lengths:
            lengths = self._lengths[operator]
            lengths[len(operand)] -= 1
            lengths += Counter()  # drops lengths that none has any more
        elif operator is ORDER:
            self._changes.append((False, operand, number))

    def ranked(self) -> Int64s:
        """By test of order: the rank of its operand, those of all that are in use."""
        if self._stale:
            self._forget()
        return self._test_ranks

    # --- texts --------------------------------------------------------------------------------

    def numbers_of(self, texts: tuple[str, ...]) -> Int64s:
        """The numbers of texts, which are learnt where they are new.

        Batches of one origin share their dictionary, so the last answer is kept.
        """
        if self._stale or len(self._numbers) + len(texts) > TEXTS_MAX:
            self._forget()
        last, numbers = self._last
        if last is not texts:
            found = list(map(self._numbers.get, texts))
            if None in found:
                self._learn([*dict.fromkeys(compress(texts, (one is None for one in found)))])
                found = list(map(self._numbers.get, texts))
            numbers = np.array(found, np.int64)
            self._last = (texts, numbers)
        return numbers

    @property
    def arrays(self) -> Texts:
        """The texts remembered so far, as kernels read them."""
        grown = (self._hit_offsets, self._hits, self._ranks)
        hit_offsets, hits, ranks = (array.rows[: array.size] for array in grown)
        return hit_offsets, hits, ranks, self._test_ranks

    def _forget(self) -> None:
        """Start anew with no texts."""
        self._numbers: dict[str, int] = {}
        self._hit_offsets, self._hits, self._ranks = (Growing(np.int64) for _ in range(3))
        self._hit_offsets.reserve(1)
        self._stale = False
        self._last = None, np.empty(0, np.int64)
        self._arrange()

    def _arrange(self) -> None:
        """Bring the operands of order up to date, and the ranks of their tests."""
        if not self._changes:
            return
        if len(self._changes) > CHANGES_MAX:
            self._ordered = sorted(text for operator, text in self.tests if operator is ORDER)
            numbers = [self.tests.number((ORDER, text)) for text in self._ordered]
            self._order_tests = np.array(numbers, np.int64)
        else:
            for comes, text, number in self._changes:
                self._change(comes, text, number)
        self._changes.clear()
        self._test_ranks = np.zeros(len(self.tests) + 1, np.int64)
        self._test_ranks[self._order_tests] = 2 * np.arange(len(self._ordered)) + 1

    def _change(self, comes: bool, text: str, number: int) -> None:
        place = bisect_left(self._ordered, text)
        if comes:
            self._ordered.insert(place, text)
            self._order_tests = np.insert(self._order_tests, place, number)
        else:
            del self._ordered[place]
            self._order_tests = np.delete(self._order_tests, place)

    def _learn(self, texts: list[str]) -> None:
        rows = [sorted(self._hits_of(text)) for text in texts]
        lengths = np.array([len(row) for row in rows], np.int64)
        self._hit_offsets.extend(self._hits.size + np.cumsum(lengths))
        self._hits.extend(np.array([number for row in rows for number in row], np.int64))
        self._ranks.extend(np.array([self._rank_of(text) for text in texts], np.int64))
        first = len(self._numbers)
        self._numbers.update((text, first + place) for place, text in enumerate(texts))

    def _rank_of(self, text: str) -> int:
        place = bisect_left(self._ordered, text)
        return 2 * place + (place < len(self._ordered) and self._ordered[place] == text)

    def _hits_of(self, text: str) -> set[int]:
        """The tests other than those of order that a text passes. A text is looked up among the
        operands by its own prefixes, suffixes and pieces of the lengths that operands have, so the
        work does not follow the number of operands.
        """
        words = [(Operator.EQUAL, text)]
        size = len(text)
        for length in self._lengths[Operator.PREFIX]:
            if length <= size:
                words.append((Operator.PREFIX, text[:length]))
        for length in self._lengths[Operator.SUFFIX]:
            if length <= size:
                words.append((Operator.SUFFIX, text[size - length :]))
        words.extend((Operator.CONTAINS, piece) for piece in self._pieces(text))
        numbers = map(self.tests.number, words)
        return {number for number in numbers if number is not None}

    def _pieces(self, text: str) -> Iterator[str]:
        """Pieces of a text that may be operands: those of their lengths, or the operands
        themselves where they are fewer.
        """
        lengths = self._lengths[Operator.CONTAINS]
        if len(lengths) * len(text) > len(self.tests):
            yield from (
                piece
                for operator, piece in self.tests
                if operator is Operator.CONTAINS and piece in text
            )
            return
        for length in lengths:
            for start in range(len(text) - length + 1):
                yield text[start : start + length]
