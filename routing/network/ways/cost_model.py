"""Bytes a second over all links that a division of the rules costs, by what was measured (7.3.8).

Law 1: an event of a source moves the marks of all that the source publishes. So on each link on
which a tree forwards any of it goes one message, with the marks, and with the event if its type is
forwarded there. Where types are looked at together before they go up, an event of one moves the
marks of all of them. What the trees of sinks have on a link goes as one message. s publishes Temp
and Wind: with each Temp goes a message, and the mark of Wind.

Law 2: composite events cross each link between the rule and who wants them once. Their marks go
behind them; but over a link beyond which other results come from elsewhere, too, they go whenever
they move (deferred_watermarks), since a sink there waits for both. Fires are found at b1 and wanted
at b2 and b3 beyond: each crosses two links.

Law 3: of a rule that is pulled the master is sent as it comes. The other types are asked for, and
go in the share of the time in which windows around masters are open. Who has seen ``k`` events in
``t`` seconds expects ``(k + 1/2) / t`` a second: a type that was not seen yet may still come.
Windows of 5 s around a Smoke every 50 s: a tenth of the Temps goes.

Law 4: windows are no fuller than events are old. Of what is selected ``each`` finds as many times
more in a full one as it is longer, ``first`` and ``last`` one event if there is any. Windows of a
minute, events since 10 s: ``each`` will find six times more.

Conditions are not looked into: a type is sent whole, or not at all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from matcher.model import MICROSECONDS, EventType
from routing.partition.placement import Tree
from routing.partition.places import Division
from routing.wire.sizes import ASKING_BYTES, MESSAGE, PART, answer_bytes, event_bytes, mark_bytes
from rules.pattern import Policy, Rule, Selected

UNSEEN = 0.5
"""The events that are expected beside those that were counted (Law 3)."""
DirectedLink = tuple[str, str]
"""Two brokers: from the first to the second."""


@dataclass(frozen=True)
class Measured:
    """Findings of two checkpoints. ``seconds``: between them; ``age``: since when events come;
    ``rates``: events a second by type; ``found``: by rule, bytes of composite events a second, and
    batches; ``time``: that of marks by now, in microseconds.
    """

    seconds: float
    age: float
    rates: Mapping[str, float]
    found: Mapping[str, tuple[float, float]]
    time: int


@dataclass(frozen=True)
class DividedTree:
    """A tree over which rules are divided. ``wants``: of its brokers, the types that come along it
    to their sinks; ``mixed``: those to whose sinks others come along other trees.
    """

    tree: Tree
    division: Division
    wants: Mapping[str, frozenset[str]]
    mixed: frozenset[str]

    @cached_property
    def places(self) -> Mapping[str, str]:
        """Where each type that rules define is evaluated."""
        places = self.division.partition.places
        return {one.rule.defines.name: places[one.rule.name] for one in self.division.rules}

    @cached_property
    def unasked(self) -> Mapping[str, frozenset[str]]:
        """By broker, the types that it forwards as they come."""
        return {
            node: frozenset[str]().union(
                *(one.forwards - (one.pull.slaves if one.pull else set()) for one in own.values())
            )
            for node, own in self.division.partition.fragments.items()
        }

    def bound_to(self, node: str, types: Set[str]) -> Set[str]:
        """Of what a broker forwards, the types that it looks at together with some of these."""
        fragments = self.division.partition.fragments[node].values()
        bound = frozenset[str]().union(*(one.binds for one in fragments if one.binds & types))
        return bound & self.unasked[node]

    def way(self, start: str, end: str) -> Iterator[DirectedLink]:
        """The links from one broker to another."""
        tree = self.tree
        up, down = self.above[start], self.above[end]
        top = next(node for node in up if node in down)
        yield from ((node, tree.fathers[node]) for node in up[: up.index(top)])
        yield from ((tree.fathers[node], node) for node in down[: down.index(top)])

    @cached_property
    def above(self) -> Mapping[str, tuple[str, ...]]:
        """By broker, the way up to the root."""
        return {node: self.tree.path(node) for node in self.tree.depths}

    def beyond(self, link: DirectedLink) -> Set[str]:
        """The brokers on the far side of a link."""
        start, end = link
        if self.tree.fathers.get(end) == start:
            return {end, *self.tree.below(end)}
        return self.tree.depths.keys() - {start, *self.tree.below(start)}


@dataclass(slots=True)
class _Messages:
    """Messages over one link whenever one broker's sources publish something."""

    parts: int = 0
    marks: int = 0
    types: set[str] = field(default_factory=set)


_NONE = _Messages()
_OnLinks = defaultdict[tuple[str, DirectedLink], _Messages]
"""By the broker of the sources, and by link."""


class CostModel:
    """Costs in a network in which this was measured, and in which brokers publish these types."""

    def __init__(
        self,
        measured: Measured,
        published: Mapping[str, frozenset[str]],
        schemas: Mapping[str, EventType],
        rules: Iterable[Rule],
    ) -> None:
        self._measured = measured
        self._schemas = schemas
        self._rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            self._rules[rule.defines.name].append(rule)
        self._homes: dict[str, list[str]] = defaultdict(list)
        for broker, names in sorted(published.items()):
            for name in names:
                self._homes[name].append(broker)
        self._rate = {
            name: measured.rates.get(name, 0.0) / len(homes) for name, homes in self._homes.items()
        }
        self._often = {
            broker: sum(self._rate[name] for name in sorted(names))
            for broker, names in published.items()
        }
        self._homes_known: dict[str, frozenset[str]] = {}

    def cost(self, single: DividedTree, own: Sequence[DividedTree] = ()) -> float:
        """Bytes a second along the single tree, and along those of brokers with sinks."""
        total = self._of_trees([single], 0)
        return total + self._of_trees(own, PART) if own else total

    def _of_trees(self, trees: Sequence[DividedTree], part: int) -> float:
        """Bytes a second along trees that share messages, in parts of so many bytes.

        Along the single tree, where nothing is shared, marks of rules go as messages of their own.
        """
        on_links: _OnLinks = defaultdict(_Messages)
        results = on_links if part else _OnLinks(_Messages)
        total = 0.0
        for tree in trees:
            for (source, link), types in self._unasked(tree).items():
                moved = types | tree.bound_to(link[0], types)
                self._add(on_links[source, link], self._marks(moved), types)
            total += self._composites(tree) + self._result_marks(tree, results)
        total += sum(self._pulled(tree, on_links) for tree in trees)
        messages = [*on_links.items(), *(() if results is on_links else results.items())]
        for (source, _), one in messages:
            total += self._often[source] * (MESSAGE + part * one.parts + one.marks)
            total += self._events(one.types)
        return total

    @staticmethod
    def _add(messages: _Messages, marks: int, types: Set[str] = frozenset()) -> None:
        messages.parts += 1
        messages.marks += marks
        messages.types |= types

    # --- published events (Law 1) ---

    def _unasked(self, tree: DividedTree) -> Mapping[tuple[str, DirectedLink], set[str]]:
        """The types that go up a tree as they come, by publishing broker and by link."""
        found = {}
        for source, published in tree.division.published.items():
            for node in tree.above.get(source, ())[:-1]:
                if types := set(published & tree.unasked.get(node, frozenset())):
                    found[source, (node, tree.tree.fathers[node])] = types
        return found

    def _events(self, types: Iterable[str]) -> float:
        """Bytes a second of the events of some types that one broker's sources publish."""
        return sum(self._rate[name] * event_bytes(self._schemas[name]) for name in sorted(types))

    def _marks(self, names: Iterable[str]) -> int:
        """Bytes of a mark of each of these types or rules."""
        return sum(mark_bytes(name, self._measured.time) for name in names)

    # --- composite events (Law 2) ---

    def _composites(self, tree: DividedTree) -> float:
        """Bytes a second of composite events, to sinks and to rules that use them."""
        users: dict[str, set[str]] = defaultdict(set)
        for broker, names in tree.wants.items():
            for name in names:
                users[name].add(broker)
        for name, place in tree.places.items():
            for used in {one.name for rule in self._rules[name] for one in rule.used_types}:
                users[used].add(place)
        total = 0.0
        for name, place in sorted(tree.places.items()):
            links = {link for user in users[name] for link in tree.way(place, user)}
            size, batches = self._found((name,))
            total += (size + MESSAGE * batches) * len(links)
        return total

    def _found(self, names: Iterable[str]) -> tuple[float, float]:
        """Bytes and batches a second that the rules of some types find."""
        size = batches = 0.0
        for rule in (rule for name in names for rule in self._rules[name]):
            found = self._measured.found.get(rule.name, (0.0, 0.0))
            growth = math.prod(map(self._growth, rule.selected))
            size, batches = size + growth * found[0], batches + growth * found[1]
        return size, batches

    def _growth(self, one: Selected) -> float:
        """How many times as often an event is selected once windows are full (Law 4)."""
        watched, window = self._measured.seconds, one.window.duration / MICROSECONDS
        filled = max(self._measured.age - watched / 2, watched / 2)
        if filled >= window:
            return 1.0
        if one.policy is Policy.EACH:
            return window / filled
        rate = self._measured.rates.get(one.type.name, 0.0)
        return math.expm1(-rate * window) / math.expm1(-rate * filled) if rate else 1.0

    def _result_marks(self, tree: DividedTree, results: _OnLinks) -> float:
        """Bytes a second of marks behind composite events; others are added to ``results``."""
        over: dict[DirectedLink, set[str]] = defaultdict(set)
        for broker, wanted in tree.wants.items():
            for name in wanted:
                for link in tree.way(tree.places[name], broker):
                    over[link].add(name)
        total = 0.0
        for link, names in sorted(over.items()):
            beyond = tree.beyond(link)
            awaited = {name for broker in beyond for name in tree.wants.get(broker, ())}
            if beyond & tree.mixed or any(tree.places[name] in beyond for name in awaited):
                for source in sorted(
                    {one for name in names for one in self._terminator_homes(name)}
                ):
                    moved = [name for name in names if source in self._terminator_homes(name)]
                    self._add(results[source, link], self._rule_marks(moved))
            else:
                _, batches = self._found(sorted(names))
                for name in sorted(names):
                    moves = sum(self._often[one] for one in sorted(self._terminator_homes(name)))
                    total += min(batches, moves) * self._rule_marks((name,))
        return total

    def _rule_marks(self, names: Iterable[str]) -> int:
        """Bytes of a mark of each rule of these types."""
        return self._marks(rule.name for name in names for rule in self._rules[name])

    def _terminator_homes(self, name: str) -> frozenset[str]:
        """The brokers whose sources move the marks of a type: those of terminators."""
        if name not in self._homes_known:
            found = self._homes_known[name] = frozenset(self._homes.get(name, ()))  # in a cycle
            below = {one.name for rule in self._rules.get(name, ()) for one in rule.opening}
            self._homes_known[name] = found.union(*map(self._terminator_homes, sorted(below)))
        return self._homes_known[name]

    # --- what is pulled (Law 3) ---

    def _pulled(self, tree: DividedTree, on_links: _OnLinks) -> float:
        """Bytes a second of what is asked for, and of asking and answering."""
        asleep: dict[tuple[str, DirectedLink, str], float] = defaultdict(lambda: 1.0)
        waiting: dict[tuple[str, DirectedLink], float] = defaultdict(lambda: 1.0)
        total, time = 0.0, self._measured.time
        partition = tree.division.partition
        for rule, pull in sorted(partition.pulls.items()):
            master = pull.master.type.name
            asked = set[str]()
            for source, published in sorted(tree.division.published.items()):
                for node in tree.above.get(source, ())[:-1]:
                    fragment = partition.fragments_of(node).get(rule)
                    types = published & (fragment.forwards if fragment else frozenset())
                    windows = {
                        around.type: self._awake(master, around.before + around.after)
                        for around in pull.around
                        if around.type in types
                    }
                    if windows:
                        asked.add(node)
                        link = node, tree.tree.fathers[node]
                        ahead = self._awake(master, pull.after(windows))
                        total += ahead * self._often[source] * answer_bytes(rule, time)
                        waiting[source, link] *= 1 - ahead
                        for name, share in windows.items():
                            asleep[source, link, name] *= 1 - share
            total += self._expected(master) * ASKING_BYTES * len(asked)
        for (source, link, name), share in asleep.items():
            if name not in on_links.get((source, link), _NONE).types:
                total += (1 - share) * self._events((name,))
        for (source, link), share in waiting.items():
            if (source, link) not in on_links:
                total += (1 - share) * self._often[source] * MESSAGE
        return total

    def _expected(self, name: str) -> float:
        """Events of a type to be expected in a second."""
        return self._measured.rates.get(name, 0.0) + UNSEEN / self._measured.seconds

    def _awake(self, name: str, window: int) -> float:
        """The share of the time in which windows of so many microseconds around events of a type
        are open, the mean over all rates that the type may have (gamma distributed, Law 3).
        """
        watched, seconds = self._measured.seconds, window / MICROSECONDS
        shut: float = (watched / (watched + seconds)) ** (self._expected(name) * watched)
        return 1 - shut
