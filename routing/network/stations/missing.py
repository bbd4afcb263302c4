"""Types that nobody publishes or has published, though rules that are evaluated here need them.

Law: what these rules use waits with them. Once more than ``waiting_events_max`` events have come
for them, the root is asked to close the types, each once: with its next plan it publishes them
itself, and nothing more comes of them. fire waits for Temp, and 10,001 Smokes have come: the root
closes Temp.
"""

from __future__ import annotations

from collections.abc import Iterable

from routing.network.ways.places import Division
from routing.serving.deployment import Deployed


class Missing:
    """The types that are missing at one station."""

    def __init__(self, waiting_events_max: int) -> None:
        self._waiting_events_max = waiting_events_max
        self.waiting: dict[str, int] = {}
        """The types that rules here wait with, and how many events of each have come."""
        self.absent: frozenset[str] = frozenset()
        """The types that rules here wait for, but for those that the root was asked to close."""
        self._division: Division | None = None

    def configure(self, waiting_events_max: int) -> None:
        """Take over the limit."""
        self._waiting_events_max = waiting_events_max

    def arrange(self, here: Iterable[Deployed], division: Division) -> None:
        """Set the rules that are evaluated here from now on."""
        self._division = division
        absent = [(one.rule, division.absent_for(one.rule.name)) for one in here]
        self.absent = frozenset[str]().union(*(names for _, names in absent))
        self.waiting = {
            used.name: self.waiting.get(used.name, 0)
            for rule, names in absent
            if names
            for used in rule.used_types
        }

    def waits(self, rule: str) -> bool:
        """Whether a rule of the tree waits for such types, be it through others."""
        division = self._division
        return division is not None and bool(division.absent_for(rule))

    def count(self, name: str, events: int) -> None:
        """So many events of a type have come, which is one of ``waiting``."""
        self.waiting[name] += events

    def take_unpublished(self) -> tuple[str, ...]:
        """The types to be closed, each once."""
        if not self.absent or sum(self.waiting.values()) <= self._waiting_events_max:
            return ()
        unpublished, self.absent = self.absent, frozenset()
        return tuple(sorted(unpublished))
