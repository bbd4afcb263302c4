"""The frame of all operators: batches in, outputs out, two of them under way at a time.

Law: given its state and a batch, an operator gives the outputs of its sequential definition
(:mod:`rules.operators.naive`), and has that definition's state then; on the processor and on a
device alike, however the stream was cut into batches, and however many are under way.

A batch's work has two halves: its kernels, which count, and what is done once the counts are known.
:meth:`Operator.stream` begins the copies of a batch, then finishes the first half of the one
before, and only then begins this one's; so nothing of one reads what the other may still write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from rules.operators.places import Place, Turn, Words
from rules.operators.texts import TEXTS_MAX, Texts

Taken = TypeVar("Taken")
Made = TypeVar("Made", covariant=True)


class Work(Protocol[Made]):
    """One batch under way."""

    def settle(self) -> None:
        """Wait for the first half, and begin the second; nothing where that was done."""

    def result(self) -> Made:
        """The outputs, once all is done."""


class Done(Generic[Made]):
    """One that is done."""

    def __init__(self, made: Made) -> None:
        self._made = made

    def settle(self) -> None:
        """Nothing is left."""

    def result(self) -> Made:
        """The outputs."""
        return self._made


class Operator(ABC, Generic[Taken, Made]):
    """A function of a stream of batches."""

    def __init__(self, place: Place, texts: Texts) -> None:
        self.place = place
        self._texts = texts
        self._turns = (place.turn(), place.turn())
        self._under_way: deque[Work[Made]] = deque()
        self._number = 0

    @property
    def device(self) -> str:
        """Where it computes: ``cpu``, or the name of the device."""
        return self.place.name

    def push(self, batch: Taken) -> Made:
        """The outputs of one batch.

        Raises ValueError for a batch of another type, or out of order; then nothing has changed.
        """
        self._begin(batch)
        return self._end()

    def stream(self, batches: Iterable[Taken]) -> Iterator[Made]:
        """The outputs of one batch after another; each is told when the next has begun."""
        for batch in batches:
            self._begin(batch)
            if len(self._under_way) == len(self._turns):
                yield self._end()
        while self._under_way:
            yield self._end()

    def _begin(self, batch: Taken) -> None:
        self._check(batch)
        if len(self._texts.values) > self._texts_max():
            self._forget()
        turn = self._turns[self._number % len(self._turns)]
        sent = self._send(turn, batch)
        if self._under_way:
            self._under_way[-1].settle()
        self._under_way.append(self._work(turn, batch, sent))
        self._number += 1

    def _end(self) -> Made:
        work = self._under_way.popleft()
        work.settle()
        return work.result()

    def _texts_max(self) -> int:
        """So many texts are remembered before some are forgotten: twice what was kept before."""
        return max(TEXTS_MAX, 2 * self._texts.kept)

    @abstractmethod
    def _check(self, batch: Taken) -> None:
        """Raise where a batch cannot be taken in, before anything has changed."""

    @abstractmethod
    def _send(self, turn: Turn, batch: Taken) -> Any:
        """Bring a batch's words to the place."""

    @abstractmethod
    def _work(self, turn: Turn, batch: Taken, sent: Any) -> Work[Made]:
        """Begin the first half."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget the texts that nothing holds; nothing must be under way that reads codes."""

    def _finish_all(self) -> None:
        """Have what is under way done, and its texts read."""
        for place, work in enumerate(self._under_way):
            work.settle()
            self._under_way[place] = Done(work.result())

    def _results(self, turn: Turn) -> tuple[Words, int]:
        """What is known of texts, for kernels."""
        texts = self._texts
        return turn.latest("results", texts.results, texts.version), texts.width
