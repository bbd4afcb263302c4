"""What a change of ways costs: what begins anew is sent once more (planning, Law 2).

Law: the single tree begins anew when a rule comes to another place there; the tree of a broker with
sinks when they find something else along it, or it is pulled otherwise (trees, Law 2). All that its
rules reach back goes over it again, of what is pulled as much as is asked for. Of a rule on the
single tree that loses its master, or gets another, what has waited goes, which is as much. That is
laid upon as long a time as events have come by now: whoever changes soon changes cheaply, and
nobody changes often.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from matcher.model import MICROSECONDS
from routing.messages import Ways
from routing.network.ways.terrain import Along, Terrain
from routing.partition.windows import Distances

Places = frozenset[tuple[str, str]]
"""Types, and where their rules are evaluated."""
Masters = frozenset[tuple[str, int, frozenset[str]]]
"""Rules, their masters, and where they are pushed all the same."""


class Repeating(Terrain):
    """What goes once more in a network when ways change."""

    def price(self, now: Ways, then: Ways) -> float:
        """Bytes over all links, a second."""
        before, after = self._split(now), self._split(then)
        total = 0.0
        along, was = self._along_single(then, after[0]), self._along_single(now, before[0])
        if _laid(along) - _laid(was):
            total += self._load(along)
        else:
            pulled = self._masters(now, was) - self._masters(then, along)
            freed = {self.defined_by(rule) for rule, *_ in pulled} & along.types
            total += self._load(replace(along, types=freed, pulls={}, pushed={}))
        for root, wanted in after[1].items():
            along = self._along_own(then, root, wanted)
            is_same = before[1].get(root) == wanted
            if not is_same or self._masters(now, along) != self._masters(then, along):
                total += self._load(along)
        return total * min(1.0, self._reach_s / self.facts.age)

    def _masters(self, ways: Ways, along: Along) -> Masters:
        """The masters along a tree, with those of rules at its root, where none is heeded."""
        every = self._along(ways, along.tree, along.types, along.places, along.types)
        return frozenset(
            (name, pull.number, every.pushed.get(name, frozenset()))
            for name, pull in every.pulls.items()
        )

    def _load(self, along: Along) -> float:
        """The bytes of the events that go up a tree, in a second."""
        carried = self._carried(along)
        total = sum(self._events(carried[link]) for link in sorted(carried))
        return total + self._awoken(along, carried)

    @cached_property
    def _reach_s(self) -> float:
        """How far back rules reach, at most, in seconds."""
        far = max((Distances.of(rule).longest for rule in self.facts.rules), default=0)
        return far / MICROSECONDS


def _laid(along: Along) -> Places:
    return frozenset((name, along.places[name]) for name in along.types)
