"""The way of composite events, and of the marks that they wait for, through one broker of a tree.

They go from the broker that evaluates their rule to all who want them, up and down the tree. What
is wanted beyond a neighbour comes there from here, or from brokers that lie beyond themselves; the
marks that are told go by that (owed, Laws 1 and 2).

Law 1: a broker remembers up to where it has every rule's composite events. When rules begin anew,
what it had beyond that is dropped, for it comes again; and what comes again of what lies before is
dropped, too (brokers.md section 5).

Law 2: of rules that are *aside*, sinks here get composite events from a tree of their own (divided,
Law 2). What is told of them is passed on as ever, but says nothing of what this broker has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from matcher.identity import RULE_SOURCE
from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import TIME_MIN, EventBatch, Int64s
from routing.network.recovery.dues import from_due_on
from routing.network.stations.station import Station
from routing.network.tables.branch import Branch
from routing.network.tables.owed import RuleWatermarks
from routing.network.tables.router import CLOSED, Router
from routing.network.ways.places import Division
from routing.overlay.trees import LocalTree
from routing.serving.deployment import Deployed
from rules.engine.engine import Detections


class DividedRouter(Router):
    """A Router in whose tree composite events come from anywhere.

    ``marks`` is what Law 1 speaks of. What is told of marks on the way is what was said since
    rules began anew, and that may be less.
    """

    def __init__(self, name: str, matching: Matching = ON_PROCESSOR) -> None:
        super().__init__(name, matching)
        self._told: dict[str, int] = {}
        self._ways: Mapping[str, str | None] = {}
        """By rule, the neighbour on whose side it is evaluated; None for here."""
        self._has_others: dict[str, tuple[tuple[Deployed, ...], bool]] = {}
        """By neighbour: for the rules wanted there, whether some are evaluated beyond it."""
        self._company: frozenset[str | None] = frozenset()
        """The neighbours beyond which sinks get composite events along other trees, too."""
        self.partners: frozenset[str] = frozenset()
        """The neighbours that follow the same plan; events go to no others."""
        self._has_strangers: bool | None = None
        self.ended: set[str] = set()
        """The rules for which nobody publishes anything any more."""
        self._due: dict[str, int] = {}
        """By rule: from when on its composite events are news."""
        self.aside: Collection[str] = ()
        """The rules that Law 2 speaks of."""

    def follow(self, tree: LocalTree | None) -> bool:
        """The tree may have changed; whether what was sent to the root may be lost."""
        before, self._has_strangers = self.epoch, None
        return super().follow(tree) or self.epoch != before

    def join(self, partners: Iterable[str]) -> None:
        """Begin with these neighbours, which follow the same plan."""
        self.partners, self._has_strangers = frozenset(partners), None

    @property
    def has_strangers(self) -> bool:
        """Whether neighbours in the tree follow no plan, or another. It is asked with each message,
        and changes with trees and plans.
        """
        if self._has_strangers is None:
            self._has_strangers = not self.branches.keys() <= self.partners
        return self._has_strangers

    def route_down(
        self, batches: Sequence[EventBatch], order: Int64s | None, sender: str | None
    ) -> None:
        """Send published events on to the children that want them."""
        for branch in self.children_wanting(batches):
            if branch.neighbour != sender and branch.neighbour in self.partners:
                branch.offer(batches, order)

    def route_found(
        self, detections: Detections, marks: Mapping[str, int], ended: Collection[str]
    ) -> None:
        """Send what was detected here to all who want it, with the marks of the rules here."""
        order = detections.order if len(detections) else None
        self._pass(detections.batches, order, marks, ended, None)

    def tell(
        self,
        station: Station,
        detections: Detections,
        rules: Collection[str],
        due: Mapping[str, int],
    ) -> None:
        """Send a station's composite events, and what marks they wait for, to who wants them."""
        marks = {name: station.outlook(name) for name in rules}
        ended = {name for name in rules if station.has_ended(name)}
        self.route_found(from_due_on(detections, due), marks, ended)

    def tell_found(
        self, station: Station, detected: Detections, due: Mapping[str, int], *, marked: bool = True
    ) -> Detections | None:
        """Tell what a station has detected, or what marks have moved; gives what is news here."""
        if not (detected.batches or station.news):
            return None
        self.tell(station, detected, station.news if marked else (), due)
        return self.news(detected)

    def pass_detected(
        self, batches: tuple[EventBatch, ...], order: Int64s | None, sender: str
    ) -> None:
        """Composite events have come from a neighbour."""
        self.keep_detected(batches, order)
        self._pass(batches, order, {}, (), sender)

    def take_detected(self) -> Detections | None:
        """Composite events for this broker's sinks; None when no mark has come either."""
        found = super().take_detected()
        return None if found is None else self.news(found)

    def news(self, detections: Detections) -> Detections:
        """Composite events that have not been here before (Law 1)."""
        return from_due_on(detections, self._due)

    def pass_marks(self, marks: RuleWatermarks, sender: str) -> None:
        """Marks have come from a neighbour, behind the events that they follow."""
        self.has_news = True
        for name, mark in marks:
            if mark == CLOSED:
                self.ended.add(name)
                continue
            self.ended.discard(name)
            self._told[name] = max(mark, self._told.get(name, TIME_MIN))
            if name not in self.aside:
                self.reach(name, mark)
        self._pass_told({name for name, _ in marks}, sender)

    def reach(self, name: str, mark: int) -> None:
        """The broker has a rule's composite events up to a mark."""
        self.marks[name] = max(mark, self.marks.get(name, TIME_MIN))

    def count_on(self, names: Iterable[str], marks: Mapping[str, int]) -> None:
        """The broker is to have composite events of these rules, from where they have come to."""
        self.has_news = True
        for name in names:
            self.marks.setdefault(name, marks.get(name, TIME_MIN))

    def forget(self, name: str) -> None:
        """A name means no rule any more, or another than before."""
        for known in (self.marks, self._told, self._due):
            known.pop(name, None)
        self.ended.discard(name)
        for branch in self.branches.values():
            branch.owed.forget(name)

    def tell_all(self) -> None:
        """Tell all marks, whether anybody waits for them or not."""
        for branch in self.branches.values():
            if branch.neighbour in self.partners:
                branch.tell_all()

    def repeat_marks(self) -> None:
        """Tell what others have told to those who have not wanted it before."""
        known = self._told.keys() | self.ended
        for sender in sorted({side for side in self._ways.values() if side is not None}):
            names = {name for name in known if self._ways.get(name) == sender}
            self._pass_told(names, sender)

    def follow_division(self, division: Division, company: Collection[str] = ()) -> None:
        """Rules are divided in this way from now on.

        ``company``: brokers whose sinks get composite events along other trees, too, which may wait
        for every mark of this one.
        """
        sides: dict[str, str | None] = {}
        for broker in {*division.partition.places.values(), *company}:
            sides[broker] = division.side(self._name, broker)
        self._ways = {name: sides[place] for name, place in division.partition.places.items()}
        self._has_others.clear()
        self._company = frozenset(sides[broker] for broker in company)
        self.has_news = True

    def begin_anew(
        self, rules: Collection[str], due: Mapping[str, int], front: int
    ) -> Mapping[str, int]:
        """Rules begin anew; gives from when on their composite events are news, by source.

        ``front`` as in Owed.begin_anew.
        """
        for branch in self.branches.values():
            branch.owed.begin_anew(front)
        self._told.clear()
        self.ended.clear()
        self._detected.clear()
        self.marks = {name: mark for name, mark in self.marks.items() if name in rules}
        for name, mark in due.items():
            self.reach(name, mark)
        self._due = dict(self.marks)
        return {RULE_SOURCE + name: self._due.get(name, TIME_MIN) for name in rules}

    def _pass_told(self, names: Collection[str], sender: str) -> None:
        marks = {name: self._told.get(name, TIME_MIN) for name in sorted(names)}
        self._pass((), None, marks, self.ended & set(names), sender)

    def _pass(
        self,
        batches: Sequence[EventBatch],
        order: Int64s | None,
        marks: Mapping[str, int],
        ended: Collection[str],
        sender: str | None,
    ) -> None:
        for branch in self.branches.values():
            if not (branch.rules or batches):
                continue  # common in processing trees, where all goes to the father
            if branch.neighbour != sender and branch.neighbour in self.partners:
                every = branch.neighbour in self._company or self._others_beyond(branch)
                branch.offer_detected(batches, order, marks, every_mark=every, ended=ended)

    def _others_beyond(self, branch: Branch) -> bool:
        """Whether some of what is wanted beyond a neighbour comes from there."""
        known = self._has_others.get(branch.neighbour)
        if known is None or known[0] is not branch.rules:
            sides = (self._ways.get(one.rule.name) for one in branch.rules)
            known = branch.rules, branch.neighbour in sides
            self._has_others[branch.neighbour] = known
        return known[1]
