"""The frame of all operators: batches in, outputs out, two of them under way at a time.

Law: given its state and a batch, an operator gives the outputs of its sequential definition
(:mod:`studies.operators.naive`), and has that definition's state then; on the processor and on a
device alike, however the stream was cut into batches, and however many are under way.

A batch's work has two halves: its kernels, which count, and what is done once the counts are known.
:meth:`Operator.stream` begins the copies of a batch, then finishes the first half of the one
before, and only then begins this one's; so nothing of one reads what the other may still write.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from matcher.trials import Choice
from studies.operators.places import (
    AUTO,
    HOST,
    Place,
    Turn,
    Words,
    device_there,
    may_be_there,
    place_of,
)
from studies.operators.texts import TEXTS_MAX, Texts
from studies.operators.windows import Ring

_log = logging.getLogger(__name__)
Told = TypeVar("Told")
Taken = TypeVar("Taken")
Made = TypeVar("Made", covariant=True)


class Work(Protocol[Made]):
    """One batch under way."""

    def settle(self) -> None:
        """Wait for the first half, and begin the second; nothing where that was done."""

    def result(self) -> Made:
        """The outputs, once all is done."""


def _result(work: Work[Made]) -> Made:
    return work.result()


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
    """A function of a stream of batches.

    Where a device fails in mid-stream the processor goes on, with the same outputs: what the
    windows held is entered again from the batches that brought it, and what was under way begins
    anew. The log says so, and so do ``device`` and ``failure``. With ``auto`` an operator moves in
    the same way to where its batches take less time (:mod:`matcher.trials`).
    """

    def __init__(
        self,
        device: str | Place,
        texts: Texts,
        again: Callable[[Place], Operator[Taken, Made]],
    ) -> None:
        """``device``: a place, ``cpu``, ``gpu`` or ``auto``; ``again`` makes the same operator on
        another place.
        """
        place = place_of(device)
        self.place, self.asked = place, device
        self._choice = Choice(HOST, device_there) if device == AUTO and may_be_there() else None
        self._keeps = place.is_device or self._choice is not None
        """Whether batches are kept that windows hold, to enter them elsewhere."""
        self._failure: str | None = None
        self._texts = texts
        self._turns = (place.turn(), place.turn())
        self._under_way: deque[tuple[Taken, Work[Made]]] = deque()
        self._number = 0
        self._again = again
        self._instead: Operator[Taken, Made] | None = None
        self._entered: deque[tuple[Taken, tuple[int, ...]]] = deque()
        """Batches, on a device, that may have brought what windows hold; ends of these then."""

    @property
    def device(self) -> str:
        """The place where it computes: ``cpu``, or the name of the device."""
        return self.place.name if self._instead is None else self._instead.device

    @property
    def failure(self) -> str | None:
        """The error of the device that failed, if one did."""
        if self._failure is None and self._instead is not None:
            return self._instead.failure
        return self._failure

    def push(self, batch: Taken) -> Made:
        """The outputs of one batch.

        Raises ValueError for a batch of another type, or out of order; then nothing has changed.
        """
        choice = self._choice
        if choice is None:
            self._begin(batch)
            return self._end(_result)
        begun = choice.clock()
        self._begin(batch)
        made = self._end(_result)
        if choice.note(self._size(batch), choice.clock() - begun):
            self._move(choice)
        return made

    def enter(self, batch: Taken) -> None:
        """Let events in without outputs: those that came before there was an operator."""
        self.push(batch)

    def stream(self, batches: Iterable[Taken]) -> Iterator[Made]:
        """The outputs of one batch after another; each is told when the next has begun."""
        choice, under_way = self._choice, 0
        for batch in batches:
            begun = 0.0 if choice is None else choice.clock()
            self._begin(batch)
            under_way += 1
            if under_way < len(self._turns):
                continue
            under_way -= 1
            made = self._end(_result)
            moves = choice is not None and choice.note(self._size(batch), choice.clock() - begun)
            yield made
            if moves and choice is not None:
                for _ in range(under_way):
                    yield self._end(_result)
                under_way = 0
                self._move(choice)
        for _ in range(under_way):
            yield self._end(_result)

    def _size(self, batch: Any) -> int:
        """The number of its events."""
        return len(batch)

    def _move(self, choice: Choice[Place]) -> None:
        """Go on in another place. Nothing is under way."""
        begun, last = choice.clock(), self._last()
        if self.failure is not None:
            choice.stay()
            return
        try:
            other = self._again(choice.place)
            other._keeps = True
            for batch, _ in last._entered:
                other.enter(batch)
            last._hand_over(other)
        except Exception as error:
            _log.warning("%s stays on %s: %s", type(self).__name__, last.place.name, error)
            choice.stay()
            return
        self._instead = other
        last._entered.clear()
        choice.moved(choice.clock() - begun)

    def _last(self) -> Operator[Taken, Made]:
        """The operator that computes: itself, or the one that does so instead."""
        return self if self._instead is None else self._instead._last()

    def _begin(self, batch: Taken) -> None:
        if self._instead is not None:
            self._instead._begin(batch)
            return
        self._check(batch)
        try:
            self._begin_here(batch)
        except Exception as error:
            self._go_on(error, [*self._under_way, (batch, None)])

    def _begin_here(self, batch: Taken) -> None:
        if len(self._texts.values) > self._texts_max():
            self._forget()
        turn = self._turns[self._number % len(self._turns)]
        sent = self._send(turn, batch)
        if self._under_way:
            self._under_way[-1][1].settle()
        self._under_way.append((batch, self._work(turn, batch, sent)))
        self._number += 1

    def _end(self, read: Callable[[Work[Made]], Told]) -> Told:
        """The result of ``read`` on the oldest batch that is under way, which ends."""
        if self._instead is not None:
            return self._instead._end(read)
        batch, work = self._under_way[0]
        try:
            work.settle()
            told = read(work)
        except Exception as error:
            self._go_on(error, list(self._under_way))
            return self._end(read)
        self._under_way.popleft()
        if self._keeps:
            self._remember(batch)
        return told

    def _remember(self, batch: Taken) -> None:
        """Keep a batch that is done for as long as windows may hold events of it."""
        rings = self._rings()
        self._entered.append((batch, tuple(ring.end for ring in rings)))
        while self._entered and all(
            end <= ring.held for end, ring in zip(self._entered[0][1], rings, strict=True)
        ):
            self._entered.popleft()

    def _go_on(self, error: Exception, under_way: list[tuple[Taken, Work[Made] | None]]) -> None:
        """Have the processor go on where a device has failed; raises the error of a processor."""
        if not self.place.is_device:
            raise error
        self._failure = f"{type(error).__name__}: {error}"
        _log.warning(
            "%s on %s failed, the processor goes on: %s",
            type(self).__name__,
            self.place.name,
            self._failure,
        )
        other = self._again(HOST)
        for batch, _ in self._entered:
            other.enter(batch)
        self._hand_over(other)
        for batch, work in under_way:
            if isinstance(work, Done):
                other.enter(batch)
                other._under_way.append((batch, work))
            else:
                other._begin(batch)
        self._instead = other
        self._under_way.clear()
        self._entered.clear()

    def _hand_over(self, other: Operator[Taken, Made]) -> None:
        """Give another operator what is counted over all batches."""

    def _rings(self) -> Sequence[Ring]:
        """Its windows."""
        return ()

    def _texts_max(self) -> int:
        """The number of texts beyond which some are forgotten: twice what was kept before."""
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
        for place, (batch, work) in enumerate(self._under_way):
            work.settle()
            self._under_way[place] = (batch, Done(work.result()))

    def _results(self, turn: Turn) -> tuple[Words, int]:
        """The results of questions about texts, for kernels."""
        texts = self._texts
        return turn.latest("results", texts.results, texts.version), texts.width
