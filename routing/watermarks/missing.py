"""Types that nobody publishes or has published, though rules that are evaluated here need them.

Law: what these rules use waits with them. Once more than ``waiting_events_max`` events have come
for them, the types are given up, each once: nothing more comes of them, as if their sources had
closed. In a network the root is asked to, which publishes them itself with its next plan. fire
waits for Temp, and 1,000,001 Smokes have come: Temp is closed.
"""

from __future__ import annotations

from collections.abc import Iterable

from rules.pattern import Rule


class Missing:
    """The types that are missing at one station."""

    def __init__(self, waiting_events_max: int) -> None:
        self._waiting_events_max = waiting_events_max
        self.waiting: dict[str, int] = {}
        """The types that rules here wait with, and how many events of each have come."""
        self.absent: frozenset[str] = frozenset()
        """The types that rules here wait for, but for those that have been given up."""

    def configure(self, waiting_events_max: int) -> None:
        """Take over the limit."""
        self._waiting_events_max = waiting_events_max

    def arrange(self, here: Iterable[tuple[Rule, frozenset[str]]]) -> None:
        """Set the rules that are evaluated here from now on, with the types they wait for, be it
        through others.
        """
        waiting = [(rule, names) for rule, names in here if names]
        self.absent = frozenset[str]().union(*(names for _, names in waiting))
        self.waiting = {
            used.name: self.waiting.get(used.name, 0)
            for rule, _ in waiting
            for used in rule.used_types
        }

    def count(self, name: str, events: int) -> None:
        """So many events of a type have come, which is one of ``waiting``."""
        self.waiting[name] += events

    def take_unpublished(self) -> tuple[str, ...]:
        """Give up the types, if it is time to, and give them."""
        if not self.absent or sum(self.waiting.values()) <= self._waiting_events_max:
            return ()
        unpublished, self.absent = self.absent, frozenset()
        return tuple(sorted(unpublished))
