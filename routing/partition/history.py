"""The events that a forwarder keeps, by row: which of them pass, and which have been sent.

Rows are numbered as they come. A batch goes when all of its events are past every use; to find
that out costs a look at each batch, which is taken only once as many have come as there were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from matcher.model import Bools, EventBatch, Int64s
from routing.order import greatest_time

BATCHES_LEAST = 64
"""So many batches are kept without asking whether they are of use."""


@dataclass(slots=True, eq=False)
class Stored:
    """A batch, the number of its first row, and which of its events pass and have been sent.

    ``fresh`` until ``take_passing`` is called next, if it was added so. ``came``: when the events
    came, where that is what counts instead of their times.
    """

    batch: EventBatch
    first: int
    latest: int
    passing: Bools
    sent: Bools
    fresh: bool = False
    came: Int64s | None = None

    def times(self, places: Int64s) -> Int64s:
        """The times of some of the events."""
        return (self.batch.time if self.came is None else self.came)[places]


class History:
    """Batches in the order in which they came."""

    def __init__(self) -> None:
        self._stored: list[Stored] = []
        self._firsts: list[int] = []
        self.touched: dict[int, Stored] = {}
        """By first row, the batches of which something may pass."""
        self._rows = 0
        self._due = BATCHES_LEAST

    def __len__(self) -> int:
        return sum(len(stored.batch) for stored in self._stored)

    def __iter__(self) -> Iterator[Stored]:
        """Every batch; its ``passing`` may be changed."""
        for stored in self._stored:
            self.touched[stored.first] = stored
            yield stored

    def add(self, batch: EventBatch, *, fresh: bool = False, came: Int64s | None = None) -> Stored:
        """Keep a batch; its ``passing`` may be changed until ``take_passing``."""
        count = len(batch)
        passing, sent = np.zeros(count, bool), np.zeros(count, bool)
        latest = greatest_time(batch) if came is None else int(came.max())
        stored = Stored(batch, self._rows, latest, passing, sent, fresh, came)
        self._stored.append(stored)
        self._firsts.append(stored.first)
        self.touched[stored.first] = stored
        self._rows += count
        return stored

    def let_pass(self, rows: Iterable[int]) -> None:
        """Let events pass, unless they have been sent."""
        for row in rows:
            stored = self._stored[bisect_right(self._firsts, row) - 1]
            stored.passing[row - stored.first] = True
            self.touched[stored.first] = stored

    def touch(self, stored: Iterable[Stored]) -> None:
        """The ``passing`` of these has changed."""
        for one in stored:
            self.touched[one.first] = one

    def take_passing(self) -> Iterator[tuple[EventBatch, bool, Int64s | None]]:
        """The events that pass and have not been sent, in the order in which they came.

        With each batch: whether it is fresh; if not, when its events came, if that is what counts.
        """
        for _, stored in sorted(self.touched.items()):
            new = stored.passing & ~stored.sent
            if new.any():
                stored.sent |= new
                batch = stored.batch if new.all() else stored.batch.take(new)
                came = None if stored.came is None or stored.fresh else stored.came[new]
                yield batch, stored.fresh, came
            stored.fresh = False
        self.touched.clear()

    @property
    def is_due(self) -> bool:
        """Whether it is time to forget."""
        return len(self._stored) >= self._due

    def forget(self, horizons: Mapping[str, int]) -> None:
        """Drop batches all of whose events are earlier than the horizon of their type.

        A type without one is of no use any more. What passes must have been taken.
        """
        self._stored = [
            stored
            for stored in self._stored
            if (horizon := horizons.get(stored.batch.type.name)) is not None
            and stored.latest >= horizon
        ]
        self._firsts = [stored.first for stored in self._stored]
        self._due = max(BATCHES_LEAST, 2 * len(self._stored))
