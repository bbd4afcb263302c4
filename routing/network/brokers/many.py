"""A broker of a network with a processing tree for each broker that has sinks (thesis 7.3.2).

Law 1: the single tree carries what is decided. In its answer to a pause each broker says what its
sinks want; the root's plan names the brokers that have trees, with what they want of them, and the
links that count. What follows from that each broker works out (division, sink_trees).

Law 2: a tree goes on under its number while its plan is the same for all of its brokers, whatever
else a plan changes. Otherwise it begins anew, under the number of the plan.

Law 3: a broker whose sinks want something else asks for a plan; so does one at the end of a link
that is lost, or is back, and belongs to a tree: what was under way there may be lost. A link that
is not there according to the link states belongs to no tree.

Law 4: a tree that uses a type begins anew when a source of it joins at a broker where nobody
published it any more: others there have been told that nothing more would come, and may be beyond
where that source begins.

Law 5: a subscription is confirmed once it is in force on the single tree, and once a plan has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from routing.messages import (
    Awakening,
    Confirmed,
    Forward,
    Need,
    Needed,
    Opened,
    Pause,
    Plan,
    Shared,
    SinkTree,
)
from routing.network.agreement.rounds import Round
from routing.network.brokers.dividing import DividingBroker
from routing.network.setup import Setup
from routing.network.stations.detecting import Planned, SinkTreesDetection
from routing.network.stations.overview import SinkTreesOverview, tree_facts
from routing.network.stations.processing import Generation, Processing
from routing.network.tables.covering import maximal
from routing.network.tables.sharing import ForTree, Keeper, Sharer
from routing.network.tables.wanting import type_named
from routing.network.ways.division import choice_of, divided_for_sinks
from routing.network.ways.places import Division
from routing.network.ways.sink_trees import Kinds, kinds_of
from routing.network.ways.sink_trees import Link as Edge
from routing.overlay.channel import Down, Up
from routing.overlay.graph import Part
from routing.partition.asking import Asked
from routing.serving.link import Link


class SinkTreesBroker(DividingBroker):
    """A DividingBroker in trees for sinks beside the single one."""

    _detecting = SinkTreesDetection
    _overviewing = SinkTreesOverview
    _detection: SinkTreesDetection

    def __init__(self, setup: Setup) -> None:
        self._needs_trees = False
        """At the root: whether somebody has asked for a plan because of trees."""
        self._lost: set[frozenset[str]] = set()
        """At the root: the links of trees that were lost since the last plan."""
        self._looked_at: Part | None = None
        """At the root: the network in which the links of trees were looked for last."""
        self._asked_for: tuple[str, ...] | None = None
        """What this broker has asked to get of its own tree, since the last plan."""
        self._unplanned: list[tuple[Link, Confirmed]] = []
        """The subscriptions that wait for a plan (Law 5)."""
        self._returned: set[str] = set()
        """At the root: the types that Law 4 speaks of, since the last plan."""
        self._openings: dict[tuple[str, str], tuple[Generation, int]] = {}
        """What neighbours have opened last, by neighbour and root."""
        self._last_mark = 0
        self._sharers: dict[str, Sharer] = {}
        self._keepers: dict[str, Keeper] = {}
        """By neighbour: what both ends know of the events that go over the link (sharing)."""
        super().__init__(setup)

    def status(self, now: float) -> Mapping[str, Any]:
        """What StatusRequest is answered with: here also of the trees for sinks."""
        facts = dict(super().status(now))
        trees = [tree_facts(tree) for _, tree in sorted(self._detection.trees.items())]
        facts["network"] = {**facts["network"], "sink_trees": trees}
        facts["forwards_for"] = {
            root: tree.station.forwards
            for root, tree in sorted(self._detection.trees.items())
            if tree.station.forwards
        }
        return facts

    # --- what sinks want ---

    @property
    def _kinds(self) -> Kinds:
        return kinds_of(self._known, self._choice.own)

    @property
    def _all_filters(self) -> list[str]:
        return [one.text for sink in self._sinks for one in sink.interests]

    @property
    def _own_filters(self) -> Sequence[str]:
        """What this broker's sinks want of the single tree."""
        own = self._kinds.own
        return [
            one.text for sink in self._sinks for one in sink.interests if one.type_name not in own
        ]

    @property
    def _is_wanted_planned(self) -> bool:
        """Whether the own tree gives what this broker's sinks want of it."""
        tree = self._detection.own
        return self._wanted_of_tree == (() if tree is None else tree.filters)

    @property
    def _wanted_of_tree(self) -> tuple[str, ...]:
        return self._kinds.own_filters(self._all_filters, self._advertisements.schemas)

    def _know(self) -> None:
        super()._know()
        self._ask_for_tree()

    def _ask_for_tree(self) -> None:
        """Law 3, of sinks."""
        wanted = self._wanted_of_tree
        if self._is_planned and not self._is_wanted_planned and wanted != self._asked_for:
            self._asked_for = wanted
            self._need(Need(Needed.TREES))

    def _confirm_subscription(self, link: Link, answer: Confirmed) -> None:
        if self._is_wanted_planned:
            super()._confirm_subscription(link, answer)
        else:
            self._unplanned.append((link, answer))

    def _confirm_planned(self) -> None:
        if self._is_wanted_planned:
            waiting, self._unplanned = self._unplanned, []
            for link, answer in waiting:
                if self._links.find(link.peer) is link:
                    super()._confirm_subscription(link, answer)

    # --- needs ---

    @property
    def _has_work(self) -> bool:
        return self._needs_trees or super()._has_work

    def _need(self, need: Need) -> None:
        if need.what is Needed.TREES and self._router.is_root:
            self._needs_trees = True
            if need.names:
                self._lost.add(frozenset(need.names))
            self._tell_soon()
        else:
            super()._need(need)

    def _note_link(self, change: Up | Down) -> None:
        """Law 3, of links: nothing goes on over what may have lost something."""
        for key in [key for key in self._openings if key[0] == change.name]:
            del self._openings[key]
        self._sharers.pop(change.name, None)
        self._keepers.pop(change.name, None)
        own = self.overlay.name
        trees = [one for one in self._detection.trees.values() if one.has_link(own, change.name)]
        for tree in trees:
            tree.close(change.name)
        if trees:
            self._need(Need(Needed.TREES, (own, change.name)))

    def _follow_overlay(self, now: float) -> None:
        if self._router.is_root and self._looked_at is not self.overlay.part:
            self._looked_at = self.overlay.part
            if self._plan is not None and not _pairs(self._plan.links) <= _pairs(
                self._standing_links(self._plan)
            ):
                self._needs_trees = True
        super()._follow_overlay(now)

    # --- plans (Law 1) ---

    def _carry_out_due(self, homes: dict[str, set[str]]) -> None:
        before = self._publishing
        super()._carry_out_due(homes)
        self._returned = {name for _, name in self._publishing - before}

    @property
    def _publishing(self) -> set[tuple[str, str]]:
        """At the root: brokers, and the types that somebody publishes there."""
        return {
            (self._visitors.home(source.name) or self.overlay.name, name)
            for source in self._sources
            if source.is_open
            for name in source.floors
        }

    def _pause(self, pause: Pause) -> None:
        if self._router.is_root:
            self._needs_trees = False
        super()._pause(pause)

    def _answer_for_itself(self, found: Round) -> None:
        super()._answer_for_itself(found)
        wanted = maximal(self._all_filters, self._advertisements.schemas)
        if wanted:
            found.wants.append((self.overlay.name, wanted))

    def _with_trees(self, plan: Plan, found: Round) -> Plan:
        before = None if found.pause.introduce else self._plan
        links = self._standing_links(plan)
        if before is not None and _pairs(links) == _pairs(before.links):
            links = before.links  # delays that are measured a little otherwise move no tree
        due = tuple(sorted(self._due_in(found).items()))
        plan = replace(plan, links=links, due=due)
        schemas = self._advertisements.schemas
        trees = []
        for root, texts in sorted(found.wants):
            filters = self._kinds.own_filters(texts, schemas)
            if filters:
                mixed = any(type_named(text) in self._kinds.routed for text in texts)
                tree = SinkTree(root, plan.number, filters, mixed)
                if before is not None and self._goes_on(tree, plan):
                    number = self._detection.trees[root].generation.number
                    tree = SinkTree(root, number, filters, mixed)
                trees.append(tree)
        self._lost.clear()
        return replace(plan, trees=tuple(trees))

    def _goes_on(self, tree: SinkTree, plan: Plan) -> bool:
        """Whether a plan changes nothing for a tree (Law 2)."""
        old = self._detection.trees.get(tree.root)
        return (
            old is not None
            and (old.generation.centre, old.generation.epoch) == (plan.root, plan.epoch)
            and (old.filters, old.mixed) == (tree.filters, tree.mixed)
            and not any(old.has_link(*link) for link in self._lost)
            and not any(map(old.uses, self._returned))
            and old.division == self._divided_for(tree, plan)
        )

    def _standing_links(self, plan: Plan) -> tuple[Edge, ...]:
        """The links between the brokers of a plan; those of the single tree in any case."""
        names = {name for name, _, _ in plan.nodes}
        single = [(name, father) for name, father, _ in plan.nodes if father]
        found = {frozenset(pair): (*sorted(pair), _UNKNOWN_US) for pair in single}
        for one, other, delay in self.overlay.part.edges:
            pair = frozenset((one, other))
            if pair <= names and (pair in found or pair not in self._lost):
                found[pair] = (one, other, delay)
        return tuple(sorted(found.values()))  # type: ignore[arg-type]

    def _divided_for(self, tree: SinkTree, plan: Plan) -> Division:
        kind, ordering = type(self._strategy), self._config.ordering
        return divided_for_sinks(
            kind,
            ordering,
            tree.root,
            tree.filters,
            plan.nodes,
            plan.links,
            plan.absent,
            self._known,
            choice_of(plan),
        )

    @property
    def _divisions(self) -> Iterator[tuple[str, Division]]:
        yield from super()._divisions
        if self._plan is not None:
            for tree in self._plan.trees:
                yield tree.root, self._divided_for(tree, self._plan)

    def _follow_trees(self, plan: Plan, division: Division) -> Mapping[str, int]:
        before = dict(self._detection.trees)
        planned = [self._planned(tree, plan) for tree in plan.trees]
        again = self._detection.follow_trees(
            planned, self._kinds, division, dict(plan.due), plan.front
        )
        new = [tree for root, tree in self._detection.trees.items() if before.get(root) is not tree]
        self._open(new)
        self._asked_for = None
        self._told_version = -1  # what is wanted may be another than this plan has
        self._confirm_planned()
        return again

    def _planned(self, tree: SinkTree, plan: Plan) -> Planned:
        generation = Generation(plan.root, plan.epoch, tree.number)
        return tree, generation, self._divided_for(tree, plan)

    def _open(self, trees: Iterable[Processing]) -> None:
        """Tell children what may come, and see what fathers have said (processing, Law 3)."""
        self._last_mark += 1
        children: dict[str, list[Processing]] = {}
        for tree in trees:
            tree.mark = self._last_mark
            for child in sorted(tree.children):
                children.setdefault(child, []).append(tree)
            if tree.father is not None:
                self._look_whether_open(tree)
        for child, own in sorted(children.items()):
            generation = own[0].generation
            roots = tuple((tree.root, tree.generation.number) for tree in own)
            anew = child not in self._keepers
            opened = Opened(generation.centre, generation.epoch, roots, self._last_mark, anew)
            self.overlay.send(child, opened, self._now)

    def _hear_opened(self, neighbour: str, opened: Opened) -> None:
        if opened.anew or neighbour not in self._sharers:
            self._sharers[neighbour] = Sharer()
        for root, number in opened.trees:
            generation = Generation(opened.centre, opened.epoch, number)
            self._openings[neighbour, root] = generation, opened.mark
            tree = self._detection.trees.get(root)
            if tree is not None and tree.father == neighbour:
                self._look_whether_open(tree)

    def _look_whether_open(self, tree: Processing) -> None:
        generation, mark = self._openings.get((tree.father or "", tree.root), (None, 0))
        if generation == tree.generation:
            tree.opened = mark

    # --- events ---

    def _hear_shared(self, neighbour: str, shared: Shared) -> None:
        self._check_schemas(shared.batches)
        if shared.first == 0:
            self._keepers[neighbour] = Keeper()
        keeper = self._keepers.get(neighbour)
        if keeper is None:
            return  # from before this broker has lost count, as has every tree over the link
        for root, mark, message in keeper.take(shared):
            tree = self._detection.trees.get(root)
            if tree is not None and neighbour in tree.children and mark == tree.mark:
                tree.take(neighbour, message)
                if isinstance(message, Forward):
                    moved = ((neighbour, name) for name, _ in message.marks)
                    self._moved.update(dict.fromkeys(moved, self._now))

    def _settle(self) -> None:
        super()._settle()
        up: dict[str, list[ForTree]] = {}
        for tree in self._detection.trees.values():
            if tree.father is not None and tree.opened is not None:
                to_father = up.setdefault(tree.father, [])
                if tree.has_messages:
                    for message in tree.take_messages():
                        to_father.append((tree.root, tree.opened, message))
        for father, messages in up.items():
            for shared in self._sharers[father].share(messages) if messages else ():
                self.overlay.send(father, shared, self._now)

    def _ask_below(self) -> None:
        single = self._asked_along_tree()
        others: dict[str, list[tuple[str, int, Asked]]] = {}
        for tree in self._detection.trees.values():
            for child, asked in tree.take_asked().items() if tree.station.is_pulling else ():
                others.setdefault(child, []).append((tree.root, tree.mark, asked))
        for child in sorted(single.keys() | others.keys()):
            message = Awakening(single.get(child, ()), tuple(others.get(child, ())))
            self.overlay.send(child, message, self._now)

    def _hear_awakening(self, neighbour: str, message: Awakening) -> None:
        super()._hear_awakening(neighbour, message)
        for root, mark, asked in message.trees:
            tree = self._detection.trees.get(root)
            if tree is not None and tree.father == neighbour and tree.opened == mark:
                tree.station.awake(asked)

    @property
    def _fathers(self) -> Iterator[str]:
        yield from super()._fathers
        for tree in self._detection.trees.values():
            if tree.father is not None:
                yield tree.father


def _pairs(links: Iterable[Edge]) -> set[frozenset[str]]:
    return {frozenset((one, other)) for one, other, _ in links}


_UNKNOWN_US = 1_000
"""The delay of a link of the single tree that the link states do not have yet."""

SinkTreesBroker.heard = {
    **DividingBroker.heard,
    Awakening: SinkTreesBroker._hear_awakening,
    Opened: SinkTreesBroker._hear_opened,
    Shared: SinkTreesBroker._hear_shared,
}
