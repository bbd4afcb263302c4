"""The last lines of a broker's log, kept for operators who cannot read its standard error.

``LINES_MAX`` lines are kept, each of ``LINE_MAX`` characters at most, as they are written: crowds
do not push the others out (broker.log).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from io import StringIO

from broker.log import LOGGER, Bounded

LINES_MAX, LINE_MAX = 200, 2_000


class _Ring(StringIO):
    """A stream that keeps the last lines written to it, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LINES_MAX)

    def write(self, text: str) -> int:
        self.lines.append(text.rstrip("\n")[:LINE_MAX])
        return len(text)


def keep_lines() -> Callable[[], Sequence[str]]:
    """Keep the lines that are logged from now on; gives a function that returns the last ones."""
    ring = _Ring()
    handler = Bounded(ring)
    handler.setFormatter(LOGGER.handlers[0].formatter)
    LOGGER.addHandler(handler)

    def last() -> Sequence[str]:
        handler.acquire()  # any thread may write
        try:
            return list(ring.lines)
        finally:
            handler.release()

    return last
