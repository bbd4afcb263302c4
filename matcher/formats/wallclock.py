"""Local times that clocks show twice, told apart by the order of rows (tesla.md E2).

Times of one file, or of one frame, go up. A time is of the second hour if it were earlier
than the row before in the first hour, and is not in the second. If rows have gone back by some
seconds before, as those of several loggers do, only a longer step back says so.

If no row has come less than an hour after the one before, a time that is repeated is of the
second hour. So the hours of a meter are told apart, though none of them goes back.

Any other time is of the first hour. It counts as undecided, unless a time of the second hour
follows before a time that is shown once.
"""

from __future__ import annotations

import numpy as np

from matcher.formats.timeform import Read
from matcher.model import MICROSECONDS, Int64s

_DISORDER_MAX = 1800 * MICROSECONDS
"""A longer step back begins other rows, those of another sensor, say."""
_NO_STEP = int(np.iinfo(np.int64).max)


def undecided_text(count: int, zone: str | None) -> str:
    """How many times of a file are undecided, for people."""
    noun = "1 time" if count == 1 else f"{count} times"
    return (
        f"{noun} that clocks of {zone} show twice taken for the first: the order of rows does not "
        f"tell which is meant, offsets would"
    )


class WallClock:
    """The course of the rows of one reading; they come piece by piece.

    ``undecided``: how many times clocks show twice, and no row says which is meant.
    """

    def __init__(self) -> None:
        self.undecided = 0
        self._last: int | None = None
        self._least_step = _NO_STEP
        self._pending = 0
        """The undecided times since the last time that is shown once."""

    def told(self, read: Read) -> Int64s:
        """The times of the next rows."""
        if read.second is None:
            self._pass(read.times)
            return read.times
        times, begin = read.times.copy(), 0
        for place in np.flatnonzero(read.second != times).tolist():
            self._pass(times[begin:place])
            times[place] = self._chosen(int(times[place]), int(read.second[place]))
            begin = place + 1
        self._pass(times[begin:])
        return times

    def _chosen(self, first: int, second: int) -> int:
        time = second if self._is_second(first, second) else first
        if time == second:
            self.undecided -= self._pending
            self._pending = 0
        else:
            self.undecided += 1
            self._pending += 1
        if self._last is not None and time - self._last >= -_DISORDER_MAX:
            self._least_step = min(self._least_step, time - self._last)
        self._last = time
        return time

    def _is_second(self, first: int, second: int) -> bool:
        if self._last is None:
            return False
        step = first - self._last
        is_back = step < min(self._least_step, 0)
        is_repeated = step == 0 and second - first <= self._least_step < _NO_STEP
        return (is_back or is_repeated) and second - self._last >= -_DISORDER_MAX

    def _pass(self, times: Int64s) -> None:
        """Go over times that are shown once."""
        if not len(times):
            return
        self._pending = 0
        steps = np.diff(times) if self._last is None else np.diff(times, prepend=self._last)
        near = steps[steps >= -_DISORDER_MAX]
        self._least_step = int(near.min(initial=self._least_step))
        self._last = int(times[-1])
