"""The words that filters use, numbered: terms and tests of texts, and events in these numbers.

Law 1: a *term* is a name together with the sort of its value, or a type by its name. To compare
an attribute that is absent or of another kind is then one thing: the event lacks the term.

Law 2: whatever is asked of a text is a *test* (equal to, prefix, suffix, contained, order), and
each test is made once per distinct text, never once per filter. A text that has passed by is
remembered with its *hits*, the tests that it passes: it is looked up among the operands by its
own prefixes, suffixes and pieces of the lengths that operands have, so that the work does not
follow the number of operands. Texts are ordered by a *rank* among the operands that order asks
for, which makes order a comparison of integers.

Law 3: what no filter uses any more is forgotten. A new term or test makes encoded events stale,
because they were encoded without it; the *generation* counts these changes.

Law 4: a float that is a whole number within 64 bits is encoded as that int, so that equal
numbers have equal codes. What remains a float is then a fraction, huge, infinite or NaN, which
is what lets an int and a float compare exactly (tesla.md S10).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from matcher.constraint import Operator, Sort
from matcher.encoded import EncodedEvents, type_order
from matcher.growing import SHARDS, TOGETHER_MAX, Growing, with_room
from matcher.kernels.encoding import encode
from matcher.matcher import Events
from matcher.mixed import MixedEvents
from matcher.model import AnyArray, EventBatch, Int64s

TEXTS_MAX = 2**20
"""Distinct texts remembered; beyond them all are forgotten and learnt anew."""
CHANGES_MAX = 64
"""Operands of order that come or go one by one; where more have, all are sorted anew."""
TYPE_SORT = 3
"""The sort of the terms that stand for types, beside those of :class:`Sort`."""
SORTS = 4
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

Word = TypeVar("Word", bound=Hashable)


class Numbering(Generic[Word]):
    """Words in use and their numbers; the number of a word no longer used is used again.

    A dictionary moves all that it has whenever it doubles. So what comes beyond TOGETHER_MAX words
    is spread over many.
    """

    def __init__(self) -> None:
        self._numbers: dict[Word, int] = {}
        self._beyond: list[dict[Word, int]] = []
        self.words: list[Word | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """The numbers ever used, free ones included."""
        return len(self.words)

    def __iter__(self) -> Iterator[Word]:
        return chain(self._numbers, *self._beyond)

    def number(self, word: Word) -> int | None:
        """The number of a word in use."""
        number = self._numbers.get(word)
        if number is None and self._beyond:
            return self._beyond[hash(word) % SHARDS].get(word)
        return number

    def use(self, word: Word, times: int = 1) -> tuple[int, bool]:
        """A word's number, used so many times more, and whether the word is new."""
        number = self.number(word)
        if number is not None:
            self._uses[number] += times
            return number, False
        if self._free:
            number = self._free.pop()
            self.words[number], self._uses[number] = word, times
        else:
            number = len(self.words)
            self.words.append(word)
            self._uses.append(times)
        self._room(word)[word] = number
        return number, True

    def hold(self, number: int) -> None:
        """Use the number of a word in use once more."""
        self._uses[number] += 1

    def release(self, number: int) -> Word | None:
        """Use a number once less; the word, if that was its last use."""
        self._uses[number] -= 1
        if self._uses[number]:
            return None
        word = self.words[number]
        assert word is not None
        self.words[number] = None
        if self._numbers.pop(word, None) is None:
            del self._beyond[hash(word) % SHARDS][word]
        self._free.append(number)
        return word

    def _room(self, word: Word) -> dict[Word, int]:
        """The dictionary for a new word."""
        if len(self._numbers) < TOGETHER_MAX:
            return self._numbers
        if not self._beyond:
            self._beyond = [{} for _ in range(SHARDS)]
        return self._beyond[hash(word) % SHARDS]


class Vocabulary:
    """Terms and tests in use, and the texts that have passed by."""

    def __init__(self) -> None:
        self.terms: Numbering[tuple[str, int]] = Numbering()
        self.tests: Numbering[tuple[Operator, str]] = Numbering()
        self.generation = 0
        self._lock = Lock()
        self.ranks: AnyArray = np.zeros(16, np.int64)
        """By term: its place in the order of terms, rarest first (matcher.indexed)."""
        self.sorts: AnyArray = np.zeros(16, np.int64)
        """By term: the sort of its values."""
        empty = np.empty(0, np.int64)
        self._last_names: tuple[tuple[str, ...], int, Int64s] = ((), -1, empty)
        self._last_texts: tuple[tuple[str, ...], int, Int64s]
        self._next_rank = 0
        self._lengths: dict[Operator, Counter[int]] = {
            operator: Counter()
            for operator in (Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS)
        }
        # The operands of order, ascending, their tests, and which have come (True) or gone since.
        self._ordered: list[str] = []
        self._order_tests = empty
        self._changes: list[tuple[bool, str, int]] = []
        self.test_ranks: Int64s = np.zeros(1, np.int64)
        self._forget()

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
        word = (TEST_OF[operator], operand)
        number, new = self.tests.use(word, times)
        if new:
            self.generation += 1
            self._stale = True
            if word[0] in self._lengths:
                self._lengths[word[0]][len(operand)] += 1
            elif word[0] is ORDER:
                self._changes.append((True, operand, number))
        return number

    def release_term(self, number: int) -> None:
        """Use a term once less."""
        self.terms.release(number)

    def release_test(self, number: int) -> None:
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

    def hold_tests(self, numbers: Iterable[int]) -> None:
        """Keep tests in use, with their numbers and ranks, until ``release_tests``."""
        for number in numbers:
            self.tests.hold(number)

    def release_tests(self, numbers: Iterable[int]) -> None:
        """Use tests once less, though events may be encoded meanwhile."""
        with self._lock:
            for number in numbers:
                self.release_test(number)

    # --- events in these numbers --------------------------------------------------------------

    def encode(self, events: Events) -> EncodedEvents:
        """Events in the numbers of now; what no filter asks for is left out.

        Several threads may encode at once.
        """
        with self._lock:
            return self._encode(events)

    def _encode(self, events: Events) -> EncodedEvents:
        mixed = MixedEvents.of_batch(events) if isinstance(events, EventBatch) else events
        cells = mixed.cells
        texts = self._numbers_of_texts(cells.texts)
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
        grown = (self._hit_offsets, self._hits, self._text_ranks)
        hit_offsets, hits, ranks = (array.rows[: array.size] for array in grown)
        about = (hit_offsets, hits, ranks, self.test_ranks)
        return EncodedEvents(offsets, encoded, self.generation, about, rows)

    def ranked(self) -> Int64s:
        """By test of order: the rank of its operand, those of all that are in use."""
        if self._stale:
            self._forget()
        return self.test_ranks

    @property
    def texts_known(self) -> int:
        """How many texts are remembered: at most TEXTS_MAX, or those of one batch."""
        return len(self._numbers)

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

    # --- texts --------------------------------------------------------------------------------

    def _numbers_of_texts(self, texts: tuple[str, ...]) -> Int64s:
        if self._stale or len(self._numbers) + len(texts) > TEXTS_MAX:
            self._forget()
        last, generation, numbers = self._last_texts
        if last is not texts or generation != self.generation:
            known = self._numbers
            new = [text for text in texts if text not in known]
            if new:
                self._learn(new)
            numbers = np.array([known[text] for text in texts], np.int64)
            self._last_texts = (texts, self.generation, numbers)
        return numbers

    def _forget(self) -> None:
        """Start anew with no texts; what was encoded with them keeps them."""
        self._numbers: dict[str, int] = {}
        self._hit_offsets, self._hits, self._text_ranks = (Growing(np.int64) for _ in range(3))
        self._hit_offsets.reserve(1)
        self._stale = False
        self._last_texts = ((), -1, np.empty(0, np.int64))
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
        self.test_ranks = np.zeros(len(self.tests) + 1, np.int64)
        self.test_ranks[self._order_tests] = 2 * np.arange(len(self._ordered)) + 1

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
        self._text_ranks.extend(np.array([self._rank_of(text) for text in texts], np.int64))
        first = len(self._numbers)
        self._numbers.update((text, first + place) for place, text in enumerate(texts))

    def _rank_of(self, text: str) -> int:
        place = bisect_left(self._ordered, text)
        return 2 * place + (place < len(self._ordered) and self._ordered[place] == text)

    def _hits_of(self, text: str) -> set[int]:
        """The tests other than those of order that a text passes."""
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
        """What a text may contain of the operands: its pieces of their lengths, or the operands
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
