"""What a change of ways costs: what begins anew is sent once more (planning, Law 2).

Law: the single tree begins anew when a rule comes to another place there; the tree of a broker with
sinks when they find something else along it, or it is pulled otherwise (trees, Law 2). All that its
rules reach back goes over it again, of what is pulled as much as is asked for. Of a rule on the
single tree that loses its master, or gets another, what has waited goes, which is as much. That is
laid upon as long a time as events have come by now: whoever changes soon changes cheaply, and
nobody changes often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from matcher.model import MICROSECONDS
from routing.messages import Ways
from routing.network.ways.terrain import NONE_PULLED, Pulling, Terrain
from routing.partition.placement import Tree
from routing.partition.windows import Distances

Places = frozenset[tuple[str, str]]
"""Types, and where their rules are evaluated."""
Masters = frozenset[tuple[str, int, frozenset[str]]]
"""Rules, their masters, and where they are pushed all the same."""


class Repeating(Terrain):
    """What goes once more in a network when ways change."""

    def price(self, now: Ways, then: Ways) -> float:
        """Bytes over all links, a second."""
        single = self.facts.single
        before, after = self._split(now), self._split(then)
        total = 0.0
        places = self._single_places(then)
        if self._laid(after[0], places) - self._laid(before[0], self._single_places(now)):
            names = self._below(after[0])
            pulling = self._pulling(then, single, names & set(then.deep))
            total += self._load(single, names, places, pulling)
        else:
            pulled = self._masters(now, single, before[0]) - self._masters(then, single, after[0])
            freed = {self.defined_by(rule) for rule, *_ in pulled} & self._below(after[0])
            total += self._load(single, freed, places, NONE_PULLED)
        for root, wanted in after[1].items():
            tree, places = self.facts.trees[root], self._own_places[root]
            is_same = before[1].get(root) == wanted
            if not is_same or self._masters(now, tree, wanted) != self._masters(then, tree, wanted):
                names = self._below(wanted)
                total += self._load(tree, names, places, self._pulling(then, tree, names))
        return total * min(1.0, self._reach_s / self.facts.age)

    def _laid(self, types: Iterable[str], places: Mapping[str, str]) -> Places:
        return frozenset((name, places[name]) for name in self._below(types))

    def _masters(self, ways: Ways, tree: Tree, wanted: Iterable[str]) -> Masters:
        pulling = self._pulling(ways, tree, self._below(wanted))
        return frozenset(
            (name, pull.number, pulling.pushed.get(name, frozenset()))
            for name, pull in pulling.pulls.items()
        )

    def _load(
        self,
        tree: Tree,
        types: Iterable[str],
        places: Mapping[str, str],
        pulling: Pulling,
    ) -> float:
        """The bytes of the events that go up a tree for the rules of some types, in a second."""
        carried = self._carried(tree, types, places, pulling)
        total = sum(self._events(carried[link]) for link in sorted(carried))
        return total + self._awoken(tree, places, pulling, carried)

    @cached_property
    def _reach_s(self) -> float:
        """How far back rules reach, at most, in seconds."""
        far = max((Distances.of(rule).longest for rule in self.facts.rules), default=0)
        return far / MICROSECONDS
