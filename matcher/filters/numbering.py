"""Numbers of words and places of identifiers, in dictionaries that grow by one without a pause."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

SHARDS = 1_024
"""Dictionaries that what comes one by one is spread over."""
TOGETHER_MAX = 2**14
"""Words in one dictionary: to double it takes a third of a millisecond."""

Word = TypeVar("Word", bound=Hashable)


class Numbering(Generic[Word]):
    """Words in use and their numbers; the number of a word no longer used is used again."""

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


class Places:
    """Places by identifier.

    What comes at once is in one dictionary, what comes one by one in another one and, beyond
    TOGETHER_MAX, in SHARDS others. A dictionary moves all that it has whenever it doubles; so no
    shard has much to move.
    """

    def __init__(self) -> None:
        self._at_once: dict[int, int] = {}
        self._together: dict[int, int] = {}
        self._one_by_one: list[dict[int, int]] = [{} for _ in range(SHARDS)]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, identifier: int) -> bool:
        return (
            identifier in self._at_once
            or identifier in self._together
            or identifier in self._shard(identifier)
        )

    def __getitem__(self, identifier: int) -> int:
        place = self._together.get(identifier)
        if place is None:
            place = self._shard(identifier).get(identifier)
        return self._at_once[identifier] if place is None else place

    def __iter__(self) -> Iterator[int]:
        """The places, in no order."""
        every = (self._at_once, self._together, *self._one_by_one)
        return chain.from_iterable(map(dict.values, every))

    def add(self, identifier: int, place: int) -> None:
        """Add an identifier that is not there."""
        few = len(self._together) < TOGETHER_MAX
        (self._together if few else self._shard(identifier))[identifier] = place
        self._size += 1

    def add_all(self, identifiers: Sequence[int], places: Iterable[int]) -> None:
        """Add identifiers that are not there."""
        self._at_once.update(zip(identifiers, places, strict=True))
        self._size += len(identifiers)

    def pop(self, identifier: int) -> int:
        """Take an identifier out; KeyError when it is not there."""
        place = self._together.pop(identifier, None)
        if place is None:
            place = self._shard(identifier).pop(identifier, None)
        if place is None:
            place = self._at_once.pop(identifier)
        self._size -= 1
        return place

    def _shard(self, identifier: int) -> dict[int, int]:
        return self._one_by_one[identifier % SHARDS]
