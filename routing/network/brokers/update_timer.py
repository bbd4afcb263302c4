"""Timer by which a broker tells others what has changed with it.

What changes at about the same time is told together, ``gather_s`` after the first of it.
"""

from __future__ import annotations

from routing.serving.moment import Moment

_UNSEEN = -1


class UpdateTimer:
    """The time at which a broker tells its news, and the version of what is wanted that it told."""

    def __init__(self, moment: Moment, gather_s: float) -> None:
        self._moment = moment
        self._gather_s = gather_s
        self.tell_at: float | None = None
        """When something is told next."""
        self.seen = _UNSEEN
        """The version of what this broker's sinks want in which it was last looked at."""

    def tell_soon(self) -> None:
        """Something has changed."""
        if self.tell_at is None:
            self.tell_at = self._moment.now + self._gather_s

    def look_again(self) -> None:
        """Look again at what is wanted, or known: it may have changed."""
        self.seen = _UNSEEN
