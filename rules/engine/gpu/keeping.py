"""Events of one type that may have to be given to an engine again, when a rule moves."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import chain
from typing import TypeAlias

from matcher.model import TIME_MIN, EventBatch
from rules.engine.gpu.ordering import joined

TOGETHER = 1_024
"""Batches of fewer events are put together until they have as many."""


_Waiting: TypeAlias = tuple[int, int, int, EventBatch]
"""Events that wait: their least time, a number to tell them apart, and their greatest time."""


class Kept:
    """Owner of the events of a type: those that its mark has not passed yet, which *wait*, and
    those that it has *passed* and rules may still see. Nothing is looked at anew for each event
    that is kept.
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []  # a heap
        self._passed: deque[tuple[int, EventBatch]] = deque()  # with greatest times
        self._few: list[EventBatch] = []  # that have been passed, too
        self._greatest_of_few, self._count_of_few = TIME_MIN, 0
        self._number = 0
        self.waiting_count = self.passed_count = 0

    @property
    def waiting(self) -> list[EventBatch]:
        """The events that no mark has passed."""
        return [batch for *_, batch in self._waiting]

    @property
    def passed(self) -> list[EventBatch]:
        """The events that a mark has passed; some may be older than any rule looks back."""
        return [*(batch for _, batch in self._passed), *self._few]

    def recent(self, count: int) -> EventBatch | None:
        """About so many of the last events that a mark has passed; None if there are none."""
        found: list[EventBatch] = []
        for batch in chain(reversed(self._few), (one for _, one in reversed(self._passed))):
            if count <= 0 or (found and _form(batch) != _form(found[0])):
                break
            found.append(batch.take(slice(max(0, len(batch) - count), len(batch))))
            count -= len(batch)
        return joined(found[::-1]) if found else None

    def push(self, batch: EventBatch, times: tuple[int, int]) -> None:
        """Add events; ``times`` are their least and their greatest one."""
        self._number += 1
        heappush(self._waiting, (times[0], self._number, times[1], batch))
        self.waiting_count += len(batch)

    def rise(self, mark: int, horizon: int) -> None:
        """Let a mark pass the events before it; forget those that it has passed, as far as all of
        a batch are before the horizon.
        """
        while self._waiting and self._waiting[0][0] < mark:
            _, _, greatest, batch = heappop(self._waiting)
            self.waiting_count -= len(batch)
            if greatest >= mark:
                is_passed = batch.time < mark
                rest, batch = batch.take(~is_passed), batch.take(is_passed)
                self.push(rest, (int(rest.time.min()), greatest))
                greatest = int(batch.time.max())
            self._pass(batch, greatest)
        while self._passed and self._passed[0][0] < horizon:
            self.passed_count -= len(self._passed.popleft()[1])
        if self._few and self._greatest_of_few < horizon:
            self.passed_count -= self._count_of_few
            self._forget_few()

    def _pass(self, batch: EventBatch, greatest: int) -> None:
        self.passed_count += len(batch)
        if len(batch) >= TOGETHER:
            self._passed.append((greatest, batch))
            return
        if self._few and _form(self._few[0]) != _form(batch):
            self._put_together()
        self._few.append(batch)
        self._greatest_of_few = max(self._greatest_of_few, greatest)
        self._count_of_few += len(batch)
        if self._count_of_few >= TOGETHER:
            self._put_together()

    def _put_together(self) -> None:
        self._passed.append((self._greatest_of_few, joined(self._few)))
        self._forget_few()

    def _forget_few(self) -> None:
        self._few, self._greatest_of_few, self._count_of_few = [], TIME_MIN, 0


def _form(batch: EventBatch) -> tuple[bool, ...]:
    """The form of its ids; batches of one form can be joined."""
    ids = batch.ids
    return ids.text is None, ids.digest is None, ids.given, batch.causes is None
