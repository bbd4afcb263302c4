"""One part of rules that are spread over several engines: see :mod:`rules.engine.threads.parts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from matcher.model import EventBatch, Int64s
from rules.engine.cdp import CdpEngine
from rules.engine.engine import Detections
from rules.engine.order.catalogue import Deployed
from rules.pattern import Rule, RuleSet

Group: TypeAlias = tuple[Rule, ...]
"""Rules that have to stay together."""
TYPE_WEIGHT = 4
"""To take in the events of a type, as a multiple of what a clause of a rule takes."""


class Part:
    """One engine, and its rules by name.

    ``used`` counts its rules by the names of the types that they use, ``defined`` by those that
    they define. A part costs what its rules do, and what it takes to take in the types that none of
    its rules has used so far: so rules that look at the same events belong together.
    """

    def __init__(self, engine: CdpEngine) -> None:
        engine.trust_ids()
        self.engine = engine
        self.rules: dict[str, Rule] = {}
        self.defined: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self._work = 0
        self._entered = 0  # before the last advance
        self._steps = 0
        self._effort = 1.0  # what an event took at the last advance: see ``expected``

    # --- rules -----------------------------------------------------------------------------

    def load(self, group: Iterable[Rule] = ()) -> int:
        """How much there is to do, roughly, for its rules and others."""
        group = tuple(group)
        types = self.used.keys() | types_of(group)
        return self._work + sum(map(weight, group)) + TYPE_WEIGHT * len(types)

    @staticmethod
    def alone(group: Iterable[Rule]) -> int:
        """The load of rules without any others."""
        group = tuple(group)
        return sum(map(weight, group)) + TYPE_WEIGHT * len(types_of(group))

    def deploy(self, rules: RuleSet, since: int, version: int) -> None:
        """Add rules."""
        self.engine.deploy(rules, since=since, version=version)
        for rule in rules.rules:
            self._count(rule)

    def _count(self, rule: Rule) -> None:
        self.rules[rule.name] = rule
        self.defined[rule.defines.name] += 1
        self.used.update(used_by(rule))
        self._work += weight(rule)

    def remove(self, name: str) -> None:
        """Remove a rule."""
        self.engine.remove(name)
        rule = self.rules.pop(name)
        self.defined -= Counter([rule.defines.name])
        self.used -= Counter(used_by(rule))
        self._work -= weight(rule)

    def is_tied(self, group: Sequence[Rule]) -> bool:
        """Whether rules have to do with its composite events, or it with theirs."""
        defined = {rule.defines.name for rule in group}
        used = types_of(group)
        mine = self.defined.keys()
        return not (mine.isdisjoint(defined | used) and defined.isdisjoint(self.used.keys()))

    def tied(self, group: Sequence[Rule]) -> tuple[Rule, ...]:
        """The rules that would have to stay with others, directly or through others."""
        names = {rule.name for rule in group}
        for one in together([*self.rules.values(), *group]):
            if any(rule.name in names for rule in one):
                return tuple(rule for rule in one if rule.name not in names)
        return ()

    def join(self, other: Part, moved: Sequence[Rule], rules: Sequence[Deployed]) -> None:
        """Take over rules of another part; ``rules`` are all that there will be, by place (E4)."""
        self.engine = self.engine.joined([other.engine], rules)
        self.engine.trust_ids()
        for rule in moved:
            self._count(rule)

    def places(self, in_order: Sequence[str]) -> Int64s:
        """For the places that its rules have in the engine, those that they have ``in_order``."""
        found = {
            self.engine.place_of(name): place
            for place, name in enumerate(in_order)
            if name in self.rules
        }
        places = np.zeros(1 + max(found, default=0), np.int64)
        places[list(found)] = list(found.values())
        return places

    # --- events ----------------------------------------------------------------------------

    def push(self, batches: Iterable[EventBatch]) -> None:
        """Let the engine take events."""
        for batch in batches:
            self.engine.push(batch)

    def begin(self, marks: int | Mapping[str, int]) -> bool:
        """The first step of an advance: see :meth:`CdpEngine.begin`."""
        self._entered, self._steps = self.engine.entered, self.engine.evaluated
        return self.engine.begin(marks)

    def expected(self) -> float:
        """How much the advance that has begun has to do at most: events that enter, terminators
        that are evaluated and what is written for them, as many for each event as last time.
        """
        return self.engine.due * self._effort

    def evaluate(self) -> None:
        """The second step."""
        self.engine.evaluate()

    def finish(self) -> Detections:
        """The third step."""
        found = self.engine.finish()
        if entered := self.engine.entered - self._entered:
            steps = self.engine.evaluated - self._steps + len(found)
            self._effort = 1.0 + steps / entered
        return found


def together(rules: Sequence[Rule]) -> list[Group]:
    """Rules that have to do with each other's composite events, those with most to do first."""
    import networkx as nx  # heavy, and not needed by one engine

    ties: nx.Graph[str] = nx.Graph()
    defined = {rule.defines.name for rule in rules}
    ties.add_nodes_from(defined)
    for rule in rules:
        ties.add_edges_from((rule.defines.name, used) for used in used_by(rule) & defined)
    number_of = {
        name: number for number, names in enumerate(nx.connected_components(ties)) for name in names
    }
    groups: dict[int, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(number_of[rule.defines.name], []).append(rule)
    return sorted(
        map(tuple, groups.values()), key=lambda group: (-sum(map(weight, group)), group[0].name)
    )


def alike(groups: Iterable[Group]) -> list[list[Group]]:
    """Groups of rules by the types that they use, in the groups' order."""
    found: dict[frozenset[str], list[Group]] = {}
    for group in groups:
        found.setdefault(types_of(group), []).append(group)
    return list(found.values())


def types_of(rules: Iterable[Rule]) -> frozenset[str]:
    """The names of the types that rules use."""
    return frozenset[str]().union(*map(used_by, rules))


def used_by(rule: Rule) -> frozenset[str]:
    """The names of the types that a rule uses."""
    return frozenset(type_.name for type_ in rule.used_types)


def weight(rule: Rule) -> int:
    """How much a rule has to do, roughly."""
    return 1 + len(rule.clauses)
