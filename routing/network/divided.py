"""Rules and events of a broker that evaluates its part of the rules (7.3.5, 7.3.6).

Law 1: what comes from local sources goes to the station; while the rules are being divided anew
it is held, and so are the sources' promises.

Law 2: composite events, and the marks that they wait for, go from the broker that evaluates their
rule to all who want them, up and down the tree. Where rules of several brokers are wanted every
mark is told, since each rule's events may wait for the marks of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matcher.model import TIME_MIN, EventBatch, EventType, Int64s
from routing.deployment import Deployed
from routing.detection import Detection
from routing.network.branch import Marks
from routing.network.detection import NetworkDetection
from routing.network.router import CLOSED, Router, joined
from routing.network.station import Division, Station
from routing.order import greatest_time
from routing.sources import Source, Standing
from rules.engine.engine import NOTHING, Detections
from rules.pattern import TIMER, RuleSet


class DividedRouter(Router):
    """A Router in whose tree composite events come from anywhere."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._origins: dict[str, str] = {}
        """The neighbour from whose side each rule's marks come."""

    def route_detected(self, detections: Detections, marks: Mapping[str, int]) -> None:
        """Send what was detected here to all who want it, with the marks of the rules here."""
        order = detections.order if len(detections) else None
        self._pass(detections.batches, order, marks, None)

    def pass_detected(
        self, batches: tuple[EventBatch, ...], order: Int64s | None, sender: str
    ) -> None:
        """Composite events have come from a neighbour."""
        self.keep_detected(batches, order)
        self._pass(batches, order, {}, sender)

    def pass_marks(self, marks: Marks, sender: str) -> None:
        """Marks have come from a neighbour, behind the events that they follow."""
        self.has_news = True
        for name, mark in marks:
            self._origins[name] = sender
            self.marks[name] = max(mark, self.marks.get(name, TIME_MIN))
        self._pass((), None, {name: self.marks[name] for name, _ in marks}, sender)

    def repeat_marks(self) -> None:
        """Tell what others have told to those who have not wanted it before."""
        for sender in sorted(set(self._origins.values())):
            names = [name for name, origin in self._origins.items() if origin == sender]
            self._pass((), None, {name: self.marks[name] for name in names}, sender)

    def forget(self) -> None:
        """Rules are evaluated elsewhere from now on."""
        self._origins.clear()

    def _pass(
        self,
        batches: Sequence[EventBatch],
        order: Int64s | None,
        marks: Mapping[str, int],
        sender: str | None,
    ) -> None:
        for branch in self.branches.values():
            if branch.neighbour != sender:
                branch.offer_detected(batches, order, marks, every_mark=len(branch.rules) > 1)


class DividedDetection(NetworkDetection):
    """A Detection that evaluates the rules that its broker's station has."""

    _router: DividedRouter

    def __init__(self, name: str, router: DividedRouter, *arguments: Any, **named: Any) -> None:
        super().__init__(router, *arguments, **named)
        self._name = name
        self.station = Station(name, self._engine)
        self._own: dict[str, dict[str, Source]] = {}
        """The local sources that publish a type, or have, by name."""
        self._held: list[EventBatch] | None = None
        """What waits for the rules to be divided anew; None while they are not."""
        self._own_marks: Mapping[str, int] = {}
        self._expected: list[str] = []
        """Types that a local source has asked to publish, each once for every request."""
        self.fronts: Mapping[str, int] = {}
        self.type_marks: Mapping[str, int] = {}
        self.rule_marks: Mapping[str, int] = {}
        """At the root, what was last found in the whole network: see messages.Paused."""

    @property
    def is_held(self) -> bool:
        """Whether local sources are held (Law 1)."""
        return self._held is not None

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark, as far as it is known here."""
        return {one.rule.name: self._mark_of(one.rule.name) for one in self._deployments.rules}

    def due_mark(self, deployed: Deployed) -> int:
        """Up to where a rule's composite events have come, and are complete."""
        name = deployed.rule.name
        if name in self.station.rules and self.station.has_ended(name):
            return CLOSED
        return self._mark_of(name)

    def _mark_of(self, name: str) -> int:
        if name in self.station.rules:
            return self.station.mark(name)
        return self._router.marks.get(name, TIME_MIN)

    # --- local sources ---

    def advertise(self, source: Source, types: Sequence[EventType]) -> Mapping[str, int]:
        """At the root: take a source's types over; gives their floors, beyond all marks."""
        super().advertise(source, types)
        floors = {one.name: self.type_marks.get(one.name, TIME_MIN) for one in types}
        for name, floor in floors.items():
            source.floors[name] = max(floor, source.floors[name])
        return {name: source.floors[name] for name in floors}

    def add_own(self, source: Source, names: Sequence[str]) -> None:
        """A local source publishes these types: its events lie beyond the marks given here."""
        for name in names:
            self._own.setdefault(name, {})[source.name] = source
            floor = self.station.type_marks.get(name, TIME_MIN)
            source.floors[name] = max(floor, source.floors[name])

    def expect(self, names: Sequence[str]) -> None:
        """A local source has asked whether it may publish these types; until then they wait."""
        self._expected += names

    def expect_no_more(self, names: Sequence[str]) -> None:
        """It was answered."""
        for name in names:
            self._expected.remove(name)

    def expect_nothing(self) -> None:
        """No answer will come."""
        self._expected.clear()

    @property
    def published(self) -> Sequence[str]:
        """The types that local sources publish, or have published."""
        return sorted(self._own)

    def publishers(self, name: str) -> Iterable[Source]:
        """The local sources that publish a type, or have."""
        return self._own.get(name, {}).values()

    def push(self, batches: Sequence[EventBatch]) -> list[str]:
        """Events of local sources."""
        for batch in batches:
            known = self._advertisements[batch.type.name]
            greatest = greatest_time(batch)
            known.front = greatest if known.front is None else max(known.front, greatest)
            known.events += len(batch)
        if self._held is None:
            self.station.push(batches)
        else:
            self._held += batches
        return []

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        source.keep_promise(mark, now)

    def is_waited_for(self, source: Source, now: float) -> bool:
        """Whether events wait for a local source's promise."""
        return any(
            source.name in self._own.get(name, ()) and source.mark(name) <= self.station.front
            for name in source.floors
        )

    def _marks_said(self) -> Mapping[str, int]:
        said = {
            name: min(
                (one.mark(name) for one in sources.values() if one.is_open and name in one.floors),
                default=CLOSED,
            )
            for name, sources in self._own.items()
        }
        return {**said, **dict.fromkeys(self._expected, TIME_MIN)}

    # --- division ---

    def hold(self) -> None:
        """Hold local sources."""
        if self._held is None:
            self._held = []

    def follow(self, division: Division) -> None:
        """Evaluate what this broker has to from now on; what was held goes on."""
        self._router.forget()
        self.station.follow(division)
        held, self._held = self._held, None
        self.station.push(held or ())

    def forget_rules(self) -> None:
        """Take every rule out of the engine: the network is another."""
        super().forget_rules()
        self.station = Station(self._name, self._engine)
        self.fronts, self.type_marks, self.rule_marks = {}, {}, {}

    def beyond(self, names: Sequence[str]) -> int | None:
        """An instant beyond all that was published of these types, and all of their marks."""
        return self._beyond(names)

    def _beyond(self, names: Any) -> int | None:
        bounds = [self.fronts[name] + 1 for name in names if name in self.fronts]
        if not bounds:
            return None
        return max([*bounds, *(self.type_marks[one] for one in names if one in self.type_marks)])

    def _install(self, rules: RuleSet, since: int | None, version: int) -> None:
        """The plan that follows says where."""

    def _uninstall(self, name: str) -> None:
        """The plan that follows lacks it."""

    def _mark_at_end(self, name: str) -> int:
        return self.rule_marks.get(name, TIME_MIN)

    # --- evaluation ---

    def advance(self, now: float) -> Detections | None:
        """What was detected here, and what has come from elsewhere."""
        if self._held is None:
            self._own_marks = self._marks_said()
        clock = self.watermarks.mark(TIMER.name, now) if self.watermarks.ticks else None
        detected = self.station.advance(self._own_marks, clock)
        if detected is not None and self.station.rules:
            self.tell(detected)
        elsewhere = self._router.take_detected()
        found = [one for one in (detected, elsewhere) if one is not None]
        return joined(found) if found else None

    def tell(self, detections: Detections) -> None:
        """Send composite events, and what marks they wait for, to who wants them."""
        rules = self._deployments
        known = [one for name in self.station.rules if (one := rules.find(name)) is not None]
        self._router.route_detected(
            detections, {one.rule.name: self.due_mark(one) for one in known}
        )

    def tell_marks(self) -> None:
        """Somebody may want marks who has not heard them."""
        self.tell(NOTHING)
        self._router.repeat_marks()

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more; one that has closed, nothing at all."""
        Detection.withdraw(self, source, names)
        if not self._router.is_root and source.standing is Standing.CLOSED:
            self._router.promise(source.name, CLOSED)
