"""When a broker tells others what has changed with it.

What changes at about the same time is told together, ``gather_s`` after the first of it. What
neighbours have not confirmed REPEAT_S later is told again: they were not in the same tree yet.
"""

from __future__ import annotations

from routing.serving.moment import Moment

REPEAT_S = 1.0
"""Seconds after which what a neighbour has not confirmed is told again."""
_UNSEEN = -1


class Agenda:
    """The times at which work is due."""

    def __init__(self, moment: Moment, gather_s: float) -> None:
        self._moment = moment
        self._gather_s = gather_s
        self.tell_at: float | None = None
        """When something is told next."""
        self.repeat_at: float | None = None
        """When what is not confirmed by then is told again."""
        self.seen = _UNSEEN
        """The version of what this broker's sinks want in which it was last looked at."""

    def tell_soon(self) -> None:
        """Something has changed."""
        if self.tell_at is None:
            self.tell_at = self._moment.now + self._gather_s

    def repeat_later(self) -> None:
        """Something was told, and is not confirmed. What is told after that puts nothing off:
        neighbours that tell again might put each other off for ever.
        """
        if self.repeat_at is None:
            self.repeat_at = self._moment.now + REPEAT_S

    def look_again(self) -> None:
        """Look again at what is wanted, or known: it may have changed."""
        self.seen = _UNSEEN
