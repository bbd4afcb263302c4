"""Shares of what is scarce at the pages: requests under way, bytes of their bodies, streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class NoShare(Exception):
    """A holder has its share already."""


class Shares:
    """``most`` things, and their holders. A holder, an address or a user, may have as much as it
    leaves free: of 64 streams alice has 32, then bob 16, and whoever comes next finds some.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def held(self, *holders: str, count: int = 1) -> Iterator[None]:
        """``count`` things for these holders together, as long as the context lasts. Raises
        NoShare.
        """
        free = self._most - self._total - count
        if any(self._held[holder] + count > free for holder in holders):
            raise NoShare
        taken = dict.fromkeys(holders, count)
        self._total += count
        self._held.update(taken)
        try:
            yield
        finally:
            self._total -= count
            self._held.subtract(taken)
            self._held += Counter()  # those who hold nothing are forgotten
