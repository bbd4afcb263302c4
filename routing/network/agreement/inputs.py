"""At the root: since when inputs are open that nobody speaks for, and when they are closed.

Law: an input is a type at a broker. It is open, or closed: its sources have said goodbye, or were
lost for too long, which their broker says; or nobody there has spoken for it for ``forget_s``. A
type that nobody publishes has no input yet, and is closed once too much has waited for one. T at
b3, which is out of reach from 40 s on, is closed at 3,640 s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


class Inputs:
    """The brokers with such inputs, and the types that are to be closed."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._since: dict[str, float] = {}
        self._unpublished: set[str] = set()
        self.is_due = False
        """Whether ``due_at`` has come."""

    @property
    def due_at(self) -> float | None:
        """When the next are to be closed; None when that is not yet known, or has come."""
        if self.is_due or not self._since:
            return None
        return min(self._since.values()) + self._forget_s

    @property
    def has_work(self) -> bool:
        """Whether something is to be closed."""
        return self.is_due or bool(self._unpublished)

    def ask(self, types: Iterable[str]) -> None:
        """Rules have waited in vain for these types."""
        self._unpublished.update(types)

    def take_unpublished(self) -> set[str]:
        """Such types, since this was last asked."""
        types, self._unpublished = self._unpublished, set()
        return types

    def overdue(self, brokers: Collection[str], now: float) -> list[str]:
        """Give those of these brokers whose inputs nobody has spoken for for too long."""
        since = self._since
        return [one for one in brokers if one in since and since[one] + self._forget_s <= now]

    def keep(self, brokers: Collection[str], now: float) -> None:
        """Nobody speaks for inputs of these brokers, and of no others."""
        self._since = {one: self._since.get(one, now) for one in brokers}
        self.is_due = False

    def clear(self) -> None:
        """Another broker is the root."""
        self._since.clear()
        self._unpublished.clear()
        self.is_due = False
