"""Rules and events of a broker of many trees: on the single one, and on each for sinks (7.3.2).

Law 1: what comes from local sources is kept once, and goes to each tree whose rules use it. A tree
that begins is sent all that is kept and may still matter to it; one that goes on,
what was held while the network paused. So both have all that matters, and nothing twice.

Law 2: own types (routing.network.ways.sink_trees) come to sinks from the broker's own tree, all
others from the single one. So of rules of own types this broker has what its own tree has given,
however far the single one, which may evaluate them for the sake of others, has come. When such a
type is routed they are to be found once more from there on (brokers.trees, Law 5).

Law 3: a rule that is evaluated nowhere is due from where the sources of this broker have promised
to be: who subscribes later gets its composite events from there on. Types whose sources have closed
count only where nobody publishes any of the others, since rules go on without them. But if it waits
for a type that nobody publishes or has published, it is due from the beginning: it has not come
anywhere. One that goes by the clock alone is due from where that is, at the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MIN, EventBatch
from routing.delivery.joining import joined
from routing.messages import Plan, SinkTree
from routing.network.recovery.dues import chosen, closed_at
from routing.network.stations.divided import DividedDetection, packed_parts
from routing.network.stations.grove import Grove
from routing.network.stations.processing import Generation, Processing
from routing.network.stations.relaying import DividedRouter
from routing.network.stations.station import Station
from routing.network.tables.router import CLOSED
from routing.network.ways.places import Division
from routing.network.ways.sink_trees import Kinds
from routing.serving.deployment import Deployed
from routing.serving.detection import Basis
from rules.engine.engine import Detections
from rules.pattern import TIMER

Planned = tuple[SinkTree, Generation, Division]
"""A tree, its generation, and how its rules are divided."""


class SinkTreesDetection(DividedDetection):
    """A DividedDetection with a Processing for each tree of a broker with sinks."""

    def __init__(self, name: str, router: DividedRouter, basis: Basis) -> None:
        super().__init__(name, router, basis)
        self.grove = Grove()
        """The trees, and which of them have news."""
        self._clock: int | None = None
        """The mark of Timer when trees were last told it."""
        self._now = 0.0
        """When it last advanced, in seconds."""
        self._begun: frozenset[str] = frozenset()
        """The roots of the trees that have begun with the last plan."""
        self._kinds = Kinds(frozenset(), frozenset())
        self._single: frozenset[str] = frozenset()
        """The rules that are evaluated on the single tree."""
        self._routed: frozenset[str] = frozenset()
        """Rules of them whose composite events come along it."""
        self._mixed: tuple[str, ...] = ()
        """The roots of trees for sinks whose sinks get composite events of the single one, too."""
        """The rules that only trees evaluate in which this broker takes no part."""
        self.idle: tuple[str, ...] = ()
        """The rules that no tree evaluates."""
        self._waiting: frozenset[str] = frozenset()
        """Rules of them that wait for a type."""

    @property
    def trees(self) -> Mapping[str, Processing]:
        """The trees that stand, by root."""
        return self.grove.trees

    @property
    def own(self) -> Processing | None:
        """The tree of this broker's own sinks."""
        return self.trees.get(self._name)

    @property
    def stations(self) -> Sequence[Station]:
        """The broker's part in each tree."""
        return (self.station, *[tree.station for tree in self.trees.values()])

    @property
    def _fed(self) -> Sequence[Station]:
        return (self.station, *[tree.station for tree in self.grove.news])

    def due_mark(self, deployed: Deployed) -> int:
        """Up to where a rule's composite events have come, and are complete (Law 2)."""
        tree = self._own_tree_of(deployed.rule.name)
        if tree is None or self._by_arrival:
            return super().due_mark(deployed)
        return tree.due_mark(deployed.rule.name)

    def _mark_of(self, name: str) -> int:
        tree = self._own_tree_of(name)
        return super()._mark_of(name) if tree is None else tree.mark_of(name)

    def _own_tree_of(self, name: str) -> Processing | None:
        """The own tree, if this broker's sinks get the rule's composite events from there."""
        tree, deployed = self.own, self._deployments.find(name)
        if tree is None or deployed is None or deployed.rule.defines.name not in self._kinds.own:
            return None
        found = tree.rules.get(name)  # mostly the same object, which compares in no time
        return tree if found is deployed or found == deployed else None

    def due_of(self, wanted: Iterable[str]) -> dict[str, int]:
        """Up to where this broker has composite events, for all of its trees; and Law 3."""
        names = set(wanted)
        found = super().due_of(names & self._routed)
        for name, mark in self._dues_of_trees(names):
            found[name] = min(mark, found.get(name, CLOSED))
        return found

    def _dues_of_trees(self, wanted: set[str]) -> Iterator[tuple[str, int]]:
        for station in self.stations:
            for name in station.rules:
                yield name, station.outlook(name)
        own = self.own
        if own is not None:
            for name in sorted(wanted & own.wanted):
                if not own.has_ended(name):
                    yield name, own.mark_of(name)
        published = self.publishers.types
        clock = self._time(self._now) if self._router.is_root else None
        for name in self.idle:
            if self._deployments.find(name) is None:
                continue
            if name in self._waiting:
                yield name, TIME_MIN
            elif clock is not None and self._deployments.needs(name) == {TIMER.name}:
                yield name, clock
            else:
                for needed in self._deployments.needs(name).intersection(published):
                    mark = self.publishers.marks.get(needed, TIME_MIN)
                    if mark == CLOSED:
                        yield closed_at(name, self._beyond_closed(needed))
                    else:
                        yield name, mark

    def _beyond_closed(self, name: str) -> int:
        """Where sources begin that come back to a type whose own sources have closed, unless others
        have come further: beyond its last event here.
        """
        mark, front = self.station.type_marks.get(name, TIME_MIN), self._advertisements.front(name)
        return mark if front is None else max(mark, front + 1)

    def hear_awaited(self, types: Iterable[tuple[str, int]]) -> None:
        """As DividedDetection."""
        super().hear_awaited(types)
        self.grove.touch_users([name for name, _ in types])

    # --- division ---

    def follow_trees(
        self, plan: Plan, trees: Sequence[Planned], kinds: Kinds, division: Division
    ) -> Mapping[str, int]:
        """Set the trees that stand from now on, beside the single one with its division.

        ``follow`` or ``begin_anew`` must come next. Gives, by source, from when on the composite
        events come again that this broker's sinks want.
        """
        before, reached, due = self.trees, self._reached(), dict(plan.due)
        standing: dict[str, Processing] = {}
        for planned, generation, divided in trees:
            root, filters, mixed = planned.root, planned.filters, planned.mixed
            old = before.get(root)
            if old is None or old.generation != generation:
                station = self._station_of(old)
                parts = (filters, mixed, divided, station, due, plan.front, self._router.matching)
                old = Processing(self._name, root, generation, *parts)
            standing[root] = old
        self.grove.plant(standing)
        self._begun = frozenset(
            root for root, tree in self.trees.items() if before.get(root) is not tree
        )
        self._kinds = kinds
        self._mixed = tuple(tree.root for tree in plan.trees if tree.mixed)
        self._single = frozenset(one.rule.name for one in division.rules)
        self._routed = frozenset(
            one.rule.name for one in division.rules if one.rule.defines.name in kinds.routed
        )
        evaluated = self._single.union(*(tree.rules for tree in self.trees.values()))
        names = [one.rule.name for one in self._deployments.rules]
        self.idle = tuple(name for name in names if name not in evaluated)
        self._waiting = self._waiting_in(division)
        for name in self._routed.intersection(reached):
            self._router.reach(name, reached[name])
        self._router.aside = self._single - self._routed
        own = self.own
        return own.resume(reached) if own is not None and self._name in self._begun else {}

    def _waiting_in(self, division: Division) -> frozenset[str]:
        known = frozenset({TIMER.name}).union(*division.published.values())
        return frozenset(name for name in self.idle if not self._deployments.needs(name) <= known)

    def _station_of(self, old: Processing | None) -> Station:
        """A station for a tree; by arrival, what goes on goes on (arrival, Law 3)."""
        if self._by_arrival and old is not None:
            return old.station
        station = self._new_station()
        if old is not None:
            station.lagging = old.station.lagging
        return station

    def _reached(self) -> Mapping[str, int]:
        """How far this broker has the composite events of the rules that its sinks want."""
        rules = self._deployments.rules
        marks = {one.rule.name: self._mark_of(one.rule.name) for one in rules}
        return {name: mark for name, mark in marks.items() if mark > TIME_MIN}

    def follow(self, division: Division) -> None:
        """Evaluate what this broker has to from now on; what was held goes on (Law 1)."""
        self._feed_trees()
        super().follow(division)

    def begin_anew(
        self, division: Division, due: Mapping[str, int], front: int, *, is_lost: bool = True
    ) -> Mapping[str, int]:
        """The same, but on the single tree all that is kept is sent and evaluated once more."""
        if not self._by_arrival:  # else it is just followed
            self._feed_trees()
        single = {name: time for name, time in due.items() if name in self._single}
        again = super().begin_anew(division, single, front, is_lost=is_lost)
        routed = {RULE_SOURCE + name for name in self._routed}
        return {source: time for source, time in again.items() if source in routed}

    def _keep_reached(self) -> None:
        """``follow_trees`` has seen to it, by the kinds that types had before (Law 2)."""

    @property
    def _company(self) -> Sequence[str]:
        return self._mixed

    @property
    def front(self) -> int:
        """The greatest mark of a rule that is evaluated, or was told of, here."""
        front: int = super().front
        own = self.own
        return front if own is None else max([front, *map(own.mark_of, own.wanted)])

    def tell_all_marks(self) -> None:
        """Tell all marks, whether anybody waits for them or not."""
        super().tell_all_marks()
        for tree in self.trees.values():
            tree.tell_all_marks()
        self.grove.touch_all()

    def _feed_trees(self) -> None:
        self.grove.touch_all()
        begun = frozenset() if self._by_arrival else self._begun.intersection(self.trees)
        kept = packed_parts(self.ledger.fitting(self._advertisements.schemas)) if begun else ()
        held = packed_parts(self._held or ())
        for root, tree in self.trees.items():
            if root in begun:
                tree.begin(kept)
                continue
            for batches in held:
                tree.push(batches)
        self._begun = frozenset()

    # --- events ---

    def _emit(self, batches: Sequence[EventBatch]) -> None:
        super()._emit(batches)
        self.grove.touch_users([batch.type.name for batch in batches])
        for tree in self.grove.news:
            tree.push(batches)

    def _hear_publishers(self) -> None:
        before, marks = self.publishers.marks, self.publishers.say()
        if marks is not None:
            names = marks.keys() | before.keys()
            self.grove.touch_users([one for one in names if marks.get(one) != before.get(one)])

    def advance(self, now: float) -> Detections | None:
        """Advance; gives detections for this broker's sinks, from here and elsewhere (Law 2)."""
        self._now = now
        routed = super().advance(now)
        found = [] if routed is None else [self._only_routed(routed)]
        before, self._clock = self._clock, self._time(now)
        if self._clock is not None or before is not None:
            self.grove.touch_all()
        for tree in self.grove.news:
            if self.is_at_work:
                own = tree.advance(self.publishers.marks, self._clock, round(now * MICROSECONDS))
            else:
                own = tree.relay()
            if own is not None:
                found.append(own)
        return joined(found) if found else None

    def _only_routed(self, detections: Detections) -> Detections:
        own = self._kinds.own
        return chosen(detections, lambda batch: batch.type.name not in own)
