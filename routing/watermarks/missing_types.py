"""Types that nobody publishes or has published, though rules that are evaluated here need them."""

from __future__ import annotations

from collections.abc import Iterable


class MissingTypes:
    """The types that are missing at one evaluator.

    What these rules use waits with them. Once more than ``waiting_events_max`` events have come for
    them, the types are given up, each once: nothing more comes of them, as if their sources had
    closed. In a network the root is asked to, which publishes them itself with its next plan. fire
    waits for Temp, and 1,000,001 Smokes have come: Temp is closed.
    """

    def __init__(self, waiting_events_max: int) -> None:
        self._waiting_events_max = waiting_events_max
        self.waiting: dict[str, int] = {}
        """The types that rules here wait with, and how many events of each have come."""
        self.absent: frozenset[str] = frozenset()
        """The types that rules here wait for, but for those that have been given up."""

    def configure(self, waiting_events_max: int) -> None:
        """Take over the limit."""
        self._waiting_events_max = waiting_events_max

    def arrange(self, here: Iterable[tuple[frozenset[str], frozenset[str]]]) -> None:
        """Set for each rule that is evaluated here from now on the types that it uses, and those
        that it waits for, be it through others.
        """
        waiting = [(uses, names) for uses, names in here if names]
        self.absent = frozenset[str]().union(*(names for _, names in waiting))
        used = frozenset[str]().union(*(uses for uses, _ in waiting))
        self.waiting = {name: self.waiting.get(name, 0) for name in used}

    def count(self, name: str, events: int) -> None:
        """So many events of a type have come, which is one of ``waiting``."""
        self.waiting[name] += events

    def take_unpublished(self) -> tuple[str, ...]:
        """Give up the types, if it is time to, and give them."""
        if not self.absent or sum(self.waiting.values()) <= self._waiting_events_max:
            return ()
        unpublished, self.absent = self.absent, frozenset()
        return tuple(sorted(unpublished))
