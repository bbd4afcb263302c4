"""What the ways of rules cost, in bytes a second over all links, by what was measured (7.3.8).

The law of the model: a source's event moves the marks of all that the source publishes, so on each
link on which any of it is forwarded for a tree there goes one message, with the event if a rule
beyond needs it, and with the marks. What several trees for sinks have on a link goes as one.
Composite events go where they are wanted; their marks go with them, and over links with whatever
moves them where others come from the far side (owed). Conditions are not looked into: a type
is sent whole, or not at all. What is pulled is sent in windows around masters, which come by
chance; while a window is open that lies ahead, an answer goes wherever a mark would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from routing.messages import Ways
from routing.network.ways.frontiers import Frontiers
from routing.network.ways.sizes import ASKING, MESSAGE, PART, answer_bytes
from routing.network.ways.terrain import Along, Carried
from routing.partition.placement import Tree


@dataclass(slots=True)
class _Traffic:
    """What crosses one link whenever one broker's sources publish something."""

    parts: int = 0
    marks: int = 0
    types: set[str] = field(default_factory=set)


class Weighing(Frontiers):
    """What ways cost in a network."""

    # --- what it costs ---

    def cost(self, ways: Ways) -> float:
        """Bytes a second over all links."""
        routed, roots = self._split(ways)
        wants = self.facts.wants
        company = [root for root in roots if not routed.isdisjoint(wants.get(root, frozenset()))]
        total = self.composites(ways) + self._single(routed, ways, company)
        if roots:
            total += self._trees(roots, routed, ways)
        return total

    def composites(self, ways: Ways) -> float:
        """What composite events take of that."""
        routed, roots = self._split(ways)
        places = self._single_places(ways)
        total = self._served(self.facts.single, routed, places)
        for name, links in self._routes(routed, places).items():
            total += self._composite(name) * len(links)
        for root, wanted in roots.items():
            tree, places = self.facts.trees[root], self._own_places[root]
            total += self._served(tree, wanted, places)
            for name in sorted(wanted):
                total += self._composite(name) * self._height(tree, places[name], root)
        return total

    def _single(self, routed: set[str], ways: Ways, company: Collection[str]) -> float:
        along = self._along_single(ways, routed)
        carried = self._carried(along)
        total = self._pulled(along, carried)
        for (source, _), types in carried.items():
            total += self._often[source] * (MESSAGE + self._marks(types)) + self._events(types)
        return total + self._flows(routed, along.places, company)

    def _flows(
        self, routed: set[str], places: Mapping[str, str], company: Collection[str]
    ) -> float:
        """The marks that go from where rules are evaluated to who wants them.

        ``company``: brokers whose sinks get composite events along trees of their own, too.
        """
        tree, total = self.facts.single, 0.0
        over: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, links in self._routes(routed, places).items():
            for link in links:
                over[link].append(name)
        for link, names in over.items():
            beyond, wanted = self._beyond(tree, link)
            others = (one for one in wanted if one in routed and places[one] in beyond)
            if not beyond.isdisjoint(company) or any(others):
                at: dict[str, list[str]] = defaultdict(list)
                for name in names:
                    at[places[name]].append(name)
                total += sum(map(self._moves, at.values()))
            else:
                total += self._behind(names)
        return total

    def _trees(self, roots: Mapping[str, set[str]], routed: set[str], ways: Ways) -> float:
        total = 0.0
        links: dict[tuple[str, str, str], _Traffic] = defaultdict(_Traffic)
        for root, wanted in roots.items():
            along = self._along_own(ways, root, wanted)
            carried = self._carried(along)
            total += self._pulled(along, carried)
            for (source, node), types in carried.items():
                traffic = links[source, node, along.tree.fathers[node]]
                traffic.parts += 1
                traffic.marks += self._marks(types)
                traffic.types |= types
            total += self._found_for(root, wanted, routed, links)
        for (source, _, _), traffic in links.items():
            size = MESSAGE + PART * traffic.parts + traffic.marks
            total += self._often[source] * size + self._events(traffic.types)
        return total

    def _found_for(
        self,
        root: str,
        wanted: set[str],
        routed: set[str],
        links: dict[tuple[str, str, str], _Traffic],
    ) -> float:
        """The marks that go up to the root of a tree from where its rules are evaluated."""
        tree, places, total = self.facts.trees[root], self._own_places[root], 0.0
        is_mixed = bool(routed & self.facts.wants.get(root, frozenset()))
        away = [name for name in sorted(wanted) if places[name] != root]
        over: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name in away:
            for node in self._up(tree, places[name], root):
                over[node, tree.fathers[node]].append(name)
        for (node, father), names in over.items():
            if not is_mixed and len(names) == len(wanted):
                total += self._behind(names)
                continue
            for source in self._tellers(names):
                traffic = links[source, node, father]
                traffic.parts += 1
                traffic.marks += self._rule_marks(self._told_by(source, names))
        return total

    def _pulled(self, along: Along, carried: Carried) -> float:
        """What is asked for, and asking and answering, of rules that are pulled."""
        total, forecast = self._awoken(along, carried), self._forecast
        awaited: dict[tuple[str, str], float] = {}
        for name, pull in along.pulls.items():
            master, pushed = pull.master.type.name, along.pushed.get(name, frozenset())
            asked = {
                link: types
                for link, types in self._asked(along, name).items()
                if link[1] not in pushed
            }
            total += forecast.rate(master) * ASKING * len({node for _, node in asked})
            for link, types in asked.items():
                share = forecast.awake(master, pull.after(types))
                total += share * self._often[link[0]] * answer_bytes(name, self.facts.time)
                awaited[link] = max(share, awaited.get(link, 0.0))
        alone = awaited.keys() - carried.keys()
        return total + MESSAGE * sum(awaited[link] * self._often[link[0]] for link in sorted(alone))

    # --- parts of it ---

    def _served(self, tree: Tree, types: Iterable[str], places: Mapping[str, str]) -> float:
        """What the composite events cost that go up a tree for the rules of some types."""
        return sum(
            self._composite(used) * self._height(tree, places[used], places[name])
            for name in sorted(self._below(types))
            for used in self._uses[name]
            if used in self._rules
        )

    def _routes(
        self, routed: Iterable[str], places: Mapping[str, str]
    ) -> Mapping[str, list[tuple[str, str]]]:
        """The links that the composite events of each type cross along the single tree."""
        tree, wants = self.facts.single, self.facts.wants
        reached = {one: wanted for one, wanted in wants.items() if one in tree.depths}
        return {
            name: sorted(
                {
                    link
                    for broker, wanted in reached.items()
                    if name in wanted
                    for link in self._way(tree, places[name], broker)
                }
            )
            for name in sorted(routed)
        }

    def _composite(self, name: str) -> float:
        """What the composite events of a type cost over one link."""
        return sum(size + MESSAGE * batches for size, batches in self._found_of(name))

    def _batches(self, name: str) -> float:
        return sum(batches for _, batches in self._found_of(name))

    def _found_of(self, name: str) -> Iterator[tuple[float, float]]:
        """Of each rule that defines a type, the bytes and batches that it will find in a second."""
        for rule in self._rules[name]:
            size, batches = self.facts.found.get(rule.name, (0.0, 0.0))
            growth = self._growth[rule.name]
            yield size * growth, batches * growth

    def _behind(self, names: Sequence[str]) -> float:
        """The marks that go over a link behind composite events of some types: each as often as any
        of these come, and no more often than it moves (owed, Law 1).
        """
        often = sum(map(self._batches, names))
        return sum(min(often, self._moved[name]) * self._rule_marks((name,)) for name in names)

    @cached_property
    def _moved(self) -> Mapping[str, float]:
        """By type, how often the marks of its rules move that sinks wait for, in a second."""
        often = self._often
        return {name: sum(often[one] for one in self._tellers((name,))) for name in self.types}

    def _moves(self, names: Sequence[str]) -> float:
        """What the marks of some types that are evaluated at one broker cost over one link."""
        total = 0.0
        for source in self._tellers(names):
            moved = self._rule_marks(self._told_by(source, names))
            total += self._often[source] * (MESSAGE + moved)
        return total

    def _told_by(self, source: str, names: Iterable[str]) -> Iterator[str]:
        """The types whose marks the sources of a broker move."""
        return (name for name in names if source in self._tellers_of[name])

    def _rule_marks(self, types: Iterable[str]) -> int:
        """The same of each rule that defines one of these types."""
        return sum(self._mark_bytes[rule.name] for name in types for rule in self._rules[name])
