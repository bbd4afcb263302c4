"""Events of a durable sink in the hands of threads and tasks that share its subscriber."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from broker.log import log

Worker: TypeAlias = "threading.Thread | asyncio.Task[object]"
"""A worker is given events, and deals with them."""


def this_thread() -> Worker:
    """The worker of a client that threads share."""
    return threading.current_thread()


def this_task() -> Worker:
    """The worker of a client that tasks share."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    return task


class Lot:
    """Events that are given together: one, or those of a delivery."""

    __slots__ = ("is_dealt_with", "positions")

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = positions
        self.is_dealt_with = False


class Told(NamedTuple):
    """A position that is dealt with; ``all``: and so is whatever came before."""

    position: int
    all: bool


class Hands:
    """The lots that have come and are not dealt with. ``is_auto``: by what workers ask for; else
    the program says so itself, and here is known who has which event alone.

    An event is dealt with when whoever was given it asks for the next one. Two workers have events
    7 and 8; the second asks: 8 is dealt with, and 7 is not. A task that has failed, or was
    cancelled, has not dealt with its event, and a thread that has ended is not known to have: these
    come again, to the next client. A task that has ended well has dealt with it.
    """

    def __init__(self, worker: Callable[[], Worker], *, is_auto: bool) -> None:
        self._worker = worker
        self._is_auto = is_auto
        self._open: deque[Lot] = deque()
        """In the order in which they came; those behind the first may be dealt with."""
        self._held: dict[Worker, Lot] = {}
        self._left: list[Lot] = []
        """Lots of threads that have ended."""
        self._last = 0

    def take_in(self, positions: Sequence[int]) -> Lot:
        """Events have come that are given together, now or later."""
        lot = Lot(positions)
        if self._is_auto:
            self._open.append(lot)
        return lot

    def give(self, lot: Lot) -> None:
        """The worker that calls is given a lot."""
        self._held[self._worker()] = lot
        self._last = lot.positions[-1]

    @property
    def position(self) -> int:
        """The position of the event that the calling worker was given last; if it has none, of the
        last that was given at all.
        """
        lot = self._held.get(self._worker())
        return self._last if lot is None else lot.positions[-1]

    def ask(self) -> None:
        """The worker that calls asks for the next event; others may do so meanwhile."""
        lot = self._held.pop(self._worker(), None)
        if lot is not None:
            lot.is_dealt_with = True
        for worker in filter(_has_ended, list(self._held)):
            self._let_go(worker, self._held.pop(worker, None))

    def close(self) -> None:
        """All is dealt with that was given, but for tasks that have failed or were cancelled."""
        for worker, lot in self._held.items():
            lot.is_dealt_with = not (_has_ended(worker) and _has_failed(worker))
        for lot in self._left:
            lot.is_dealt_with = True

    def take_told(self) -> Iterator[Told]:
        """The positions that are dealt with, and were not given here before, in the order in which
        their events came: up to the first that is open one position for all, behind it each by
        itself.
        """
        last = 0
        while self._open and self._open[0].is_dealt_with:
            last = self._open.popleft().positions[-1]
        if last:
            yield Told(last, all=True)
        done = [lot for lot in self._open if lot.is_dealt_with]
        if done:
            self._open = deque([lot for lot in self._open if not lot.is_dealt_with])
        for lot in done:
            for position in lot.positions:
                yield Told(position, all=False)

    def _let_go(self, worker: Worker, lot: Lot | None) -> None:
        if lot is None:
            return
        if isinstance(worker, threading.Thread):
            self._left.append(lot)
        else:
            lot.is_dealt_with = not _has_failed(worker)


def _has_ended(worker: Worker) -> bool:
    if isinstance(worker, threading.Thread):
        return not worker.is_alive()
    return worker.done()


def _has_failed(worker: Worker) -> bool:
    """Whether a worker that has ended is a task that has not ended well, which is logged."""
    if isinstance(worker, threading.Thread):
        return False
    error = None if worker.cancelled() else worker.exception()
    if error is not None:
        fields = {"task": worker.get_name(), "error": repr(error)}
        log("warning", "a task has failed with an event in hand", fields, "client")
    return worker.cancelled() or error is not None
