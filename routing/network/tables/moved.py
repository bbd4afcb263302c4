"""When each neighbour below has last moved the mark of a type, for who asks what rules wait for.

This is written with nearly every mark that comes, and read when somebody asks for the status;
so writing costs one look-up a mark.
"""

from __future__ import annotations

from collections.abc import Iterable


class Moved:
    """Owner of these times, in seconds of the host's clock."""

    def __init__(self) -> None:
        self._times: dict[str, dict[str, float]] = {}
        """By neighbour and type."""

    def hear(self, neighbour: str, marks: Iterable[tuple[str, int]], now: float) -> None:
        """A neighbour speaks of types."""
        times = self._times.get(neighbour)
        if times is None:
            times = self._times[neighbour] = {}
        for name, _ in marks:
            times[name] = now

    def last(self, neighbour: str, name: str) -> float:
        """When it has spoken of that type; 0 for never."""
        return self._times.get(neighbour, {}).get(name, 0.0)
