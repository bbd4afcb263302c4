"""How long one end of a link waits for an acknowledgement before it sends again."""

from __future__ import annotations

_MEAN, _DEVIATION = 1 / 8, 1 / 4
"""The weights of the last packet in what is expected, after Jacobson."""


class RetransmissionTimer:
    """All times are in seconds. ``lasts_s`` says how long to wait now."""

    def __init__(self, least_s: float, most_s: float) -> None:
        self._least_s, self._most_s = least_s, most_s
        self._mean_s: float | None = None
        self._deviation_s = 0.0
        self.lasts_s = least_s

    def note(self, took_s: float) -> None:
        """A packet that was sent once was acknowledged after so long. The timer lasts as long as
        acknowledgements have taken lately, and four times as long as that varied (Jacobson,
        *Congestion avoidance and control*, 1988), within bounds: on a slow link whoever sends again
        too early makes it slower still.
        """
        if self._mean_s is None:
            self._mean_s, self._deviation_s = took_s, took_s / 2
        else:
            error_s = took_s - self._mean_s
            self._mean_s += _MEAN * error_s
            self._deviation_s += _DEVIATION * (abs(error_s) - self._deviation_s)
        self.begin()

    def begin(self) -> None:
        """The link is back: wait as if nothing had been in vain."""
        expected_s = 0.0 if self._mean_s is None else self._mean_s + 4 * self._deviation_s
        self.lasts_s = min(max(expected_s, self._least_s), self._most_s)

    def double(self) -> None:
        """Wait twice as long: sending was in vain, until something is acknowledged that was sent
        once. What was sent again may be acknowledged for either time, so it says nothing of how
        long that took (Karn and Partridge, *Improving round-trip time estimates*, 1987).
        """
        self.lasts_s = min(2 * self.lasts_s, self._most_s)
