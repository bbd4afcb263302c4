"""Where rules may go in a network, and what lies on their way: what ways are weighed over.

Law: all of this follows from the facts, and not from the ways that are in force; nor does it depend
on the order of sets, since sums of floats do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from matcher.model import EventType
from routing.messages import Ways
from routing.network.ways.forecast import Forecast
from routing.network.ways.sizes import event_bytes, mark_bytes
from routing.partition.choosing import Weights
from routing.partition.placement import Tree, is_unbounded
from routing.partition.pulling import Pull, masters_of, pull_of
from rules.pattern import TIMER, Rule

Found = Mapping[str, tuple[float, float]]
"""By rule: bytes of composite events a second, and batches."""
Carried = Mapping[tuple[str, str], set[str]]
"""By source and the broker below a link: the types that go up it unasked."""
OPEN = 1 - 1 / math.e
"""How much of the time windows are open around masters of which one comes in a window."""


@dataclass(frozen=True)
class Facts:
    """What the root knows of its network.

    ``trees``: those that brokers whose sinks want composite events would have; ``published``: by
    broker; ``rates``: events a second, by type, measured over so many ``seconds``, and ``age`` the
    seconds for which events have come; ``wants``: the types that each broker's sinks want;
    ``time``: that of marks by now, in microseconds.
    """

    single: Tree
    trees: Mapping[str, Tree]
    published: Mapping[str, frozenset[str]]
    schemas: Mapping[str, EventType]
    rules: Sequence[Rule]
    rates: Mapping[str, float]
    found: Found
    wants: Mapping[str, frozenset[str]]
    seconds: float
    age: float
    time: int


@dataclass(frozen=True, slots=True)
class Along:
    """What goes along one tree: types whose rules are evaluated there, and where; how these are
    pulled, by name, and at which brokers each is pushed (Ways).
    """

    tree: Tree
    types: Set[str]
    places: Mapping[str, str]
    pulls: Mapping[str, Pull]
    pushed: Mapping[str, frozenset[str]]


class Terrain:
    """What is where, by the facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in facts.rules:
            self._rules[rule.defines.name].append(rule)
        self._by_name = {rule.name: rule for rule in facts.rules}
        self._defines = {rule.name: rule.defines.name for rule in facts.rules}
        self._pulls_known: dict[tuple[str, int], Pull | None] = {}
        self._uses = {
            name: sorted({one.name for rule in own for one in rule.used_types} - {TIMER.name})
            for name, own in self._rules.items()
        }
        self._homes: dict[str, list[str]] = defaultdict(list)
        for broker, names in sorted(facts.published.items()):
            for name in names:
                self._homes[name].append(broker)
        self._rate = {
            name: facts.rates.get(name, 0.0) / len(homes) for name, homes in self._homes.items()
        }
        self._often = {
            broker: sum(self._rate[name] for name in sorted(names))
            for broker, names in facts.published.items()
        }
        self._paths = {
            (tree.root, name): tree.path(name)
            for tree in (facts.single, *facts.trees.values())
            for name in tree.depths
        }
        rates = {name: facts.rates.get(name, 0.0) for name in sorted(self._homes)}
        self._forecast = Forecast(rates, facts.seconds, facts.age)
        self._growth = {rule.name: self._forecast.growth(rule) for rule in facts.rules}
        self._beyond_known: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {}
        self._places_known: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._own_places = {
            root: self._places(tree, self._rules) for root, tree in facts.trees.items()
        }

    @property
    def paths(self) -> int:
        """How many brokers there are in all trees together."""
        return len(self._paths)

    # --- which rules go which way ---

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types that rules define, in order."""
        return tuple(sorted(self._rules))

    @cached_property
    def movable(self) -> tuple[str, ...]:
        """Those that need not be at the root."""
        return tuple(name for name in self.types if not self._is_unbounded(name))

    @cached_property
    def ownable(self) -> tuple[str, ...]:
        """Those that sinks can find along their own trees (sink_trees, Law 1)."""
        published = set(self.types) & self._homes.keys()
        routed = self._above(published | (set(self.types) - set(self.movable)))
        return tuple(name for name in self.types if name not in routed)

    def defined_by(self, rule: str) -> str:
        """The type that a rule defines."""
        return self._defines[rule]

    def _is_unbounded(self, name: str) -> bool:
        return any(map(is_unbounded, self._rules[name]))

    def _above(self, names: set[str]) -> set[str]:
        """These types, and all whose rules use any of them."""
        found = set(names)
        while more := {name for name, used in self._uses.items() if found & set(used)} - found:
            found |= more
        return found

    def _below(self, names: Iterable[str]) -> set[str]:
        """The types of these whose rules are known, and those that they use."""
        found: set[str] = set()
        waiting = set(names) & self._rules.keys()
        while waiting:
            found |= waiting
            used = {one for name in waiting for one in self._uses[name]}
            waiting = (used & self._rules.keys()) - found
        return found

    def _split(self, ways: Ways) -> tuple[set[str], dict[str, set[str]]]:
        """The types that come along the single tree, and by broker those that its sinks find along
        its own.
        """
        routed = self._above(set(self.types) - (set(ways.own) & set(self.ownable)))
        own = set(self.types) - routed
        found = {root: own & self.facts.wants.get(root, frozenset()) for root in self.facts.trees}
        return routed, {root: wanted for root, wanted in found.items() if wanted}

    def _places(self, tree: Tree, deep: Iterable[str]) -> dict[str, str]:
        """Where each type's rules are evaluated, if those of ``deep`` go as deep as they can."""
        places: dict[str, str] = {}
        chosen = set(deep)

        def place(name: str) -> str:
            if name in places:
                return places[name]
            places[name] = tree.root  # which a cycle keeps
            if name in chosen and not self._is_unbounded(name):
                nodes = {home for used in self._uses[name] for home in self._homes.get(used, ())}
                nodes |= {place(used) for used in self._uses[name] if used in self._rules}
                places[name] = self._meeting(tree, nodes & tree.depths.keys())
            return places[name]

        for name in self.types:
            place(name)
        return places

    def _single_places(self, ways: Ways) -> Mapping[str, str]:
        """Where each type's rules are evaluated on the single tree."""
        if ways.deep not in self._places_known:
            self._places_known[ways.deep] = self._places(self.facts.single, ways.deep)
        return self._places_known[ways.deep]

    def _meeting(self, tree: Tree, nodes: Iterable[str]) -> str:
        paths = [self._paths[tree.root, node] for node in nodes]
        if not paths:
            return tree.root
        common = set(paths[0]).intersection(*paths[1:])
        return next(node for node in paths[0] if node in common)

    # --- ways through trees ---

    def _events(self, types: Iterable[str]) -> float:
        """The bytes of all events of some types that one home publishes in a second."""
        schemas = self.facts.schemas
        return sum(self._rate[name] * event_bytes(schemas[name]) for name in sorted(types))

    def _up(self, tree: Tree, low: str, high: str) -> Iterator[str]:
        """The brokers from one up to the one below another."""
        for node in self._paths[tree.root, low]:
            if node == high:
                return
            yield node

    def _height(self, tree: Tree, low: str, high: str) -> int:
        """How many links there are from one broker up to another."""
        return tree.depths[low] - tree.depths[high]

    def _way(self, tree: Tree, start: str, end: str) -> Iterator[tuple[str, str]]:
        """The links from one broker to another."""
        top = self._meeting(tree, (start, end))
        yield from ((node, tree.fathers[node]) for node in self._up(tree, start, top))
        yield from ((tree.fathers[node], node) for node in self._up(tree, end, top))

    def _steps(
        self, tree: Tree, names: Iterable[str], place: str
    ) -> Iterator[tuple[str, str, str]]:
        """What is published of some types and goes up a tree to a place: what, from where, and over
        the link above which broker.
        """
        for name in names:
            for home in self._homes.get(name, ()):
                if (tree.root, home) in self._paths:
                    for node in self._up(tree, home, place):
                        yield name, home, node

    def _carried(self, along: Along) -> dict[tuple[str, str], set[str]]:
        """What goes up a tree unasked."""
        tree, carried = along.tree, defaultdict[tuple[str, str], set[str]](set)
        for name in sorted(along.types):
            unasked = self._unasked(name, along.pulls)
            for used, source, node in self._steps(tree, unasked, along.places[name]):
                carried[source, node].add(used)
        for rule, nodes in along.pushed.items():
            for (source, node), types in self._asked(along, rule).items():
                if node in nodes:
                    carried[source, node] |= types
        return carried

    def _asked(self, along: Along, rule: str) -> dict[tuple[str, str], set[str]]:
        """What a rule that is pulled would ask for up a tree if it were pushed nowhere."""
        asked: dict[tuple[str, str], set[str]] = defaultdict(set)
        slaves, place = sorted(along.pulls[rule].slaves), along.places[self._defines[rule]]
        for used, source, node in self._steps(along.tree, slaves, place):
            asked[source, node].add(used)
        return asked

    def _awoken(self, along: Along, carried: Carried) -> float:
        """The bytes of the events that are asked for, beside what is carried unasked, a second."""
        total = 0.0
        for name, pull in along.pulls.items():
            place = along.places[self._defines[name]]
            for around in pull.around:
                share = self._forecast.awake(pull.master.type.name, around.before + around.after)
                for used, source, node in self._steps(along.tree, (around.type,), place):
                    if used not in carried.get((source, node), ()):
                        total += share * self._events((used,))
        return total

    def _unasked(self, name: str, pulls: Mapping[str, Pull]) -> list[str]:
        """What the rules of a type have sent unasked."""
        own = self._rules[name]
        if all(rule.name in pulls for rule in own):
            return [pulls[rule.name].master.type.name for rule in own]
        return self._uses[name]

    @cached_property
    def _sources_of(self) -> Mapping[str, frozenset[str]]:
        """By type, the brokers whose sources its marks depend on."""
        return {
            name: frozenset(
                home
                for below in self._below((name,))
                for used in self._uses[below]
                for home in self._homes.get(used, ())
            )
            for name in self.types
        }

    def _tellers(self, names: Iterable[str]) -> list[str]:
        """The brokers whose sources move the marks that sinks of these types wait for (outlook)."""
        return sorted({one for name in names for one in self._tellers_of[name]})

    @cached_property
    def _tellers_of(self) -> Mapping[str, frozenset[str]]:
        return {
            name: frozenset(
                home
                for rule in self._rules[name]
                for opening in rule.opening
                for home in (
                    *self._homes.get(opening.name, ()),
                    *self._sources_of.get(opening.name, ()),
                )
            )
            for name in self.types
        }

    def _beyond(self, tree: Tree, link: tuple[str, str]) -> tuple[frozenset[str], frozenset[str]]:
        """The brokers on the far side of a link of the single tree, and what their sinks want."""
        found = self._beyond_known.get(link)
        if found is None:
            start, end = link
            is_down = tree.fathers.get(end) == start
            low = end if is_down else start
            brokers = frozenset(
                one for one in tree.depths if (low in self._paths[tree.root, one]) == is_down
            )
            wants = (self.facts.wants.get(one, frozenset()) for one in brokers)
            wanted = frozenset(self._rules.keys() & frozenset().union(*wants))
            found = self._beyond_known[link] = brokers, wanted
        return found

    # --- marks ---

    @cached_property
    def _mark_bytes(self) -> Mapping[str, int]:
        """By type and by rule."""
        names = self._homes.keys() | self._by_name.keys()
        return {name: mark_bytes(name, self.facts.time) for name in names}

    def _marks(self, types: Iterable[str]) -> int:
        """The bytes of a mark of each of these types."""
        return sum(map(self._mark_bytes.__getitem__, types))

    # --- what may be pulled ---

    @cached_property
    def masters(self) -> Mapping[str, int]:
        """The masters of choosing, if all rules are on the single tree, as deep as they can be."""
        facts = self.facts
        rates = {name: self._forecast.rate(name) for name in self._homes}
        return Weights(facts.single, facts.published, facts.rules, rates).choose()

    def _along_single(self, ways: Ways, routed: Iterable[str]) -> Along:
        """What goes along the single tree, where these types and what they need do."""
        types, places = self._below(routed), self._single_places(ways)
        return self._along(ways, self.facts.single, types, places, types & set(ways.deep))

    def _along_own(self, ways: Ways, root: str, wanted: Iterable[str]) -> Along:
        """The same along the tree of a broker whose sinks find these types for themselves."""
        types, places = self._below(wanted), self._own_places[root]
        return self._along(ways, self.facts.trees[root], types, places, types)

    def _along(
        self,
        ways: Ways,
        tree: Tree,
        types: Set[str],
        places: Mapping[str, str],
        pulled: Container[str],
    ) -> Along:
        pulls = {}
        for name, number in ways.masters:
            if self._defines.get(name) in pulled:  # it may have been removed
                pull = self._pull_of(name, number)
                if pull is not None:
                    pulls[name] = pull
        tops = sorted(ways.pushed_along(tree.root).items())
        pushed = {name: tree.within(own) for name, own in tops if name in pulls}
        return Along(tree, types, places, pulls, pushed)

    @cached_property
    def rarest(self) -> Mapping[str, int]:
        """The rarest master of each rule, where windows are rather shut than open."""
        found = {}
        for rule in self.facts.rules:
            awake = {
                number: self._forecast.awake_for(pull)
                for number in masters_of(rule, self.types)
                if (pull := self._pull_of(rule.name, number)) is not None
            }
            rarest = min(awake, key=awake.__getitem__, default=None)
            if rarest is not None and awake[rarest] < OPEN:
                found[rule.name] = rarest
        return found

    def _pull_of(self, name: str, number: int) -> Pull | None:
        if (name, number) not in self._pulls_known:
            rule = self._by_name[name]
            can_be = number in masters_of(rule, self.types)  # unless it was replaced
            self._pulls_known[name, number] = pull_of(rule, number) if can_be else None
        return self._pulls_known[name, number]
