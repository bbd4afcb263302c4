"""Turns of those who ask: each has one request done at a time, whatever else it has asked for."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary


class Turns:
    """The locks of those who ask, each kept while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def of(self, asker: str) -> asyncio.Lock:
        """Return the lock to hold while a request of ``asker`` is done."""
        lock = self._locks.get(asker)
        if lock is None:
            lock = self._locks[asker] = asyncio.Lock()
        return lock
