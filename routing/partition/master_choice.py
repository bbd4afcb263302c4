"""The choice of each rule's master, by how often events of each type come (thesis 7.3.8).

The thesis chooses the rarest; this weighs what crosses links, in events. A rule whose types are all
sent as they come costs their events on every link up to where it is evaluated. One with a master
costs the master's events, the part of the others that lies in windows around masters, and for each
master what is asked and answered. A type that is sent for the sake of another rule costs nothing
more. So a rule may also be better off without a master.

Law: the choice is a function of the tree, of what is published where, of the rules and of the
rates, and of nothing else. Rules are looked at in turn, each given what the others have, until
nothing changes or ``ROUNDS_MAX`` times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from matcher.model import MICROSECONDS
from routing.partition.masters import Pull, masters_of, pull_of
from routing.partition.placement import Tree, partition
from rules.pattern import TIMER, Rule

ROUNDS_MAX = 4
ASKING_EVENTS = 1.5
"""The cost of asking and answering over one link, in events."""


@dataclass(slots=True, eq=False)
class _Choice:
    """One rule: how it may be pulled, by master, and how it is (None: everything is sent)."""

    name: str
    types: tuple[str, ...]
    hops: Mapping[str, float]
    edges: float
    pulls: Mapping[int, Pull]
    master: int | None = None

    def sent(self, master: int | None) -> tuple[str, ...]:
        """The types that are sent unasked."""
        return self.types if master is None else (self.pulls[master].master.type.name,)


@dataclass(slots=True, eq=False)
class Weights:
    """The cost of masters in a network. ``rates``: events a second, by type; others do not come."""

    tree: Tree
    advertised: Mapping[str, frozenset[str]]
    rules: Sequence[Rule]
    rates: Mapping[str, float]
    _choices: list[_Choice] = field(init=False)
    _sent: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        places = partition(self.tree, self.advertised, self.rules).places
        defined = {rule.defines.name for rule in self.rules}
        homes: dict[str, set[str]] = {}
        for node, names in self.advertised.items():
            for name in names:
                homes.setdefault(name, set()).add(node)
        for rule in self.rules:
            homes.setdefault(rule.defines.name, set()).add(places[rule.name])
        self._choices = [
            self._choice(rule, places[rule.name], homes, defined)
            for rule in sorted(self.rules, key=lambda rule: rule.name)
        ]
        self._sent = Counter()

    def _choice(
        self, rule: Rule, place: str, homes: Mapping[str, set[str]], defined: Iterable[str]
    ) -> _Choice:
        depths, top = self.tree.depths, self.tree.depths[place]
        hops, edges = {}, set()
        names = tuple(one.name for one in rule.used_types if one != TIMER)
        for name in names:
            nodes = homes.get(name, set())
            hops[name] = sum(depths[node] - top for node in nodes) / max(1, len(nodes))
            edges |= {one for node in nodes for one in self.tree.path(node) if depths[one] > top}
        found = {master: pull_of(rule, master) for master in masters_of(rule, set(defined))}
        pulls = {master: pull for master, pull in found.items() if pull is not None}
        return _Choice(rule.name, names, hops, len(edges), pulls)

    def choose(self) -> dict[str, int]:
        """The masters by rule; a rule that it lacks has none."""
        for one in self._choices:
            one.master = None
        self._sent = Counter(name for one in self._choices for name in one.sent(None))
        for _ in range(ROUNDS_MAX):
            before = [one.master for one in self._choices]
            for one in self._choices:
                self._sent.subtract(one.sent(one.master))
                options = [None, *sorted(one.pulls)]
                one.master = min(options, key=lambda master: self._cost(one, master))
                self._sent.update(one.sent(one.master))
            if before == [one.master for one in self._choices]:
                break
        return {one.name: one.master for one in self._choices if one.master is not None}

    def _cost(self, one: _Choice, master: int | None) -> float:
        """The cost that a rule adds to that of the others."""
        unasked = (name for name in one.sent(master) if self._sent[name] <= 0)
        return sum(self._rate(name) * one.hops[name] for name in unasked) + self._asked(one, master)

    def _asked(self, one: _Choice, master: int | None) -> float:
        if master is None:
            return 0.0
        pull = one.pulls[master]
        often = self._rate(pull.master.type.name)
        total = ASKING_EVENTS * often * one.edges
        for around in pull.around:
            if self._sent[around.type] <= 0:
                seconds = (around.before + around.after) / MICROSECONDS
                share = 1 - math.exp(-often * seconds)
                total += self._rate(around.type) * one.hops[around.type] * share
        return total

    def _rate(self, name: str) -> float:
        return self.rates.get(name, 0.0)
