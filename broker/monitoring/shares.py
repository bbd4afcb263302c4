"""Shares of what is scarce at the pages: requests under way, streams.

Law: nobody takes the last of it. A holder, an address or a user, has another share while it holds
fewer than are free: of 64 streams alice has 32, then bob 16, and whoever comes next finds some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class NoShare(Exception):
    """A holder has its share already."""


class Shares:
    """``most`` things, and their holders."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def held(self, *holders: str) -> Iterator[None]:
        """One thing for these holders together, as long as the context lasts. Raises NoShare."""
        if any(self._held[one] >= self._most - self._total for one in holders):
            raise NoShare
        self._total += 1
        self._held.update(holders)
        try:
            yield
        finally:
            self._total -= 1
            self._held.subtract(holders)
            self._held += Counter()  # those who hold nothing are forgotten
