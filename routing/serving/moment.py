"""The time of what a broker is just doing: said with every input, the same for all its parts."""

from __future__ import annotations


class Moment:
    """``now``: seconds of the host's clock at the input that is being taken in, and set there
    alone.
    """

    __slots__ = ("now",)

    def __init__(self, now: float) -> None:
        self.now = now
