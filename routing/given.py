"""Numbers of the events that a client of a durable sink has been given, as a few intervals.

Law: what comes again on another link is left out as far as the client has had it; a session that is
started anew has had nothing. Fires 4 to 6 came, and the link broke: of 4 to 8, which come again, it
gives the application 7 and 8.
"""

from __future__ import annotations

from collections import deque

from matcher.model import Bools, Int64s

INTERVALS_MAX = 4_096
"""Of a sink that clients share: what one of them has had has gaps."""


class Given:
    """The numbers; the oldest are forgotten where there are too many intervals."""

    def __init__(self) -> None:
        self._intervals: deque[tuple[int, int]] = deque(maxlen=INTERVALS_MAX)

    def add(self, first: int, last: int) -> None:
        """Note that these have come."""
        if self._intervals and first <= self._intervals[-1][1] + 1 and last >= first:
            low, high = self._intervals[-1]
            if first >= low:
                self._intervals[-1] = low, max(high, last)
                return
        self._intervals.append((first, last))

    def new(self, numbers: Int64s) -> Bools:
        """bool[n]: whether each number has not come."""
        is_new: Bools = numbers > 0
        for low, high in self._intervals:
            is_new &= (numbers < low) | (numbers > high)
        return is_new
