"""Rules and events of a broker that evaluates its part of the rules (7.3.5, 7.3.6).

Law 1: what comes from local sources is kept in the ledger, and goes to the station and to those
below that want it. While there is no plan for the tree as it is, it waits; so do the sources'
promises.

Law 2: composite events, and the marks that they wait for, go from the broker that evaluates their
rule to all who want them, up and down the tree. Where rules of several brokers are wanted every
mark is told, since each rule's events may wait for the marks of the others; those of one broker
come in order.

Law 3: a broker remembers up to where it has every rule's composite events. When rules begin anew,
what it had beyond that is dropped, for it comes again; and what comes again of what lies before is
dropped, too (architecture.md 4.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MIN, EventBatch, EventType, Int64s
from routing.config import Ordering
from routing.deployment import Deployed
from routing.detection import Detection
from routing.network.arrival import ArrivalStation
from routing.network.branch import Branch, Marks
from routing.network.ledger import Ledger
from routing.network.outbox import parts_of
from routing.network.recovery import from_due_on, horizons
from routing.network.router import CLOSED, Router, joined
from routing.network.station import Division, Station
from routing.order import greatest_time, in_sequence
from routing.overlay.trees import Tree
from routing.sources import Source, Standing
from rules.engine.engine import NOTHING, Detections
from rules.pattern import TIMER, RuleSet


class DividedRouter(Router):
    """A Router in whose tree composite events come from anywhere.

    ``marks`` is what Law 3 speaks of. What is told of marks on the way is what was said since
    rules began anew, and that may be less.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._origins: dict[str, str] = {}
        """The neighbour from whose side each rule's marks come."""
        self._told: dict[str, int] = {}
        self._places: Mapping[str, str] = {}
        self._mixed: dict[str, tuple[tuple[Deployed, ...], bool]] = {}
        """By neighbour: for the rules wanted there, whether several brokers evaluate them."""
        self.has_company = False
        """Whether what sinks get along other trees, too, waits for all marks of this one."""
        self.partners: set[str] = set()
        """The neighbours that follow the same plan; events go to no others."""
        self.ended: set[str] = set()
        """The rules for which nobody publishes anything any more."""
        self._due: dict[str, int] = {}
        """By rule: from when on its composite events are news."""

    def follow(self, tree: Tree | None) -> bool:
        """The tree may have changed; whether what was sent to the root may be lost."""
        before = self.epoch
        return super().follow(tree) or self.epoch != before

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
        marks = {name: station.mark(name) for name in rules}
        ended = {name for name in rules if station.has_ended(name)}
        self.route_found(from_due_on(detections, due), marks, ended)

    def tell_found(
        self, station: Station, detected: Detections, due: Mapping[str, int], *, marked: bool = True
    ) -> Detections | None:
        """Tell what a station has detected, or what marks have moved; gives what is news here."""
        if len(detected):
            self.tell(station, detected, station.rules if marked else (), due)
        elif station.news:
            self.tell(station, NOTHING, station.news if marked else (), due)
        else:
            return None
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
        """Composite events that have not been here before (Law 3)."""
        return from_due_on(detections, self._due)

    def pass_marks(self, marks: Marks, sender: str) -> None:
        """Marks have come from a neighbour, behind the events that they follow."""
        self.has_news = True
        for name, mark in marks:
            self._origins[name] = sender
            if mark == CLOSED:
                self.ended.add(name)
                continue
            self.ended.discard(name)
            self._told[name] = max(mark, self._told.get(name, TIME_MIN))
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

    def repeat_marks(self) -> None:
        """Tell what others have told to those who have not wanted it before."""
        for sender in sorted(set(self._origins.values())):
            names = {name for name, origin in self._origins.items() if origin == sender}
            self._pass_told(names, sender)

    def follow_places(self, places: Mapping[str, str]) -> None:
        """Rules are evaluated at these brokers from now on."""
        self._origins.clear()
        self._places = places
        self._mixed.clear()
        self.has_news = True

    def begin_anew(self, rules: Collection[str], due: Mapping[str, int]) -> Mapping[str, int]:
        """Rules begin anew; gives from when on their composite events are news, by source."""
        for branch in self.branches.values():
            branch.begin_anew()
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
            if branch.neighbour != sender and branch.neighbour in self.partners:
                every = self.has_company or self._is_mixed(branch)
                branch.offer_detected(batches, order, marks, every_mark=every, ended=ended)

    def _is_mixed(self, branch: Branch) -> bool:
        known = self._mixed.get(branch.neighbour)
        if known is None or known[0] is not branch.rules:
            names = [one.rule.name for one in branch.rules]
            places = {self._places[name] for name in names if name in self._places}
            known = self._mixed[branch.neighbour] = branch.rules, len(places) > 1
        return known[1]


class DividedDetection(Detection):
    """A Detection that evaluates the rules that its broker's station has."""

    def __init__(self, name: str, router: DividedRouter, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._name = name
        self._router = router
        self._by_arrival = self._config.ordering is Ordering.ARRIVAL
        kind = ArrivalStation if self._by_arrival else Station
        self.station = kind(name, self._engine.fresh(), self._config.waiting_events_max)
        self.ledger = Ledger(self._config.retained_events_max)
        self._own: dict[str, dict[str, Source]] = {}
        """The local sources that publish a type, or have, by name."""
        self._held: list[Sequence[EventBatch]] | None = []
        """What waits for the rules to be divided; None while they are."""
        self._leaving: list[str] = []
        """The local sources that have closed, and of which the root has not been told so."""
        self.is_at_work = False
        """Whether there is a plan for the tree as it is, and no other one is under way."""
        self._own_marks: Mapping[str, int] = {}
        self._is_said_anew = True
        """Whether local sources may say something else than ``_own_marks``."""
        self._expected: list[str] = []
        """Types that a local source has asked to publish, each once for every request."""
        self._due: Mapping[str, int] = {}
        """From when on composite events of rules have to be found, since they began anew."""
        self.fronts: dict[str, int] = {}
        self.type_marks: dict[str, int] = {}
        self.rule_marks: dict[str, int] = {}
        """At the root, what was last found in the whole network: see messages.Paused."""

    @property
    def stations(self) -> Sequence[Station]:
        """The broker's part in each tree."""
        return (self.station,)

    @property
    def is_held(self) -> bool:
        """Whether local sources are held (Law 1)."""
        return self._held is not None

    @property
    def held_types(self) -> Iterable[EventType]:
        """The types of the events that are held, each once."""
        return {batch.type.name: batch.type for one in self._held or () for batch in one}.values()

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark, as far as it is known here."""
        return {one.rule.name: self._mark_of(one.rule.name) for one in self._deployments.rules}

    @property
    def duplicates(self) -> int:
        """Events that the engine dropped as repeats (E1)."""
        return sum(station.duplicates for station in self.stations)

    @property
    def parts(self) -> Sequence[int]:
        """How many rules each part of the engine evaluates, for all trees."""
        return [sum(counts) for counts in zip(*(one.parts for one in self.stations), strict=True)]

    def due_mark(self, deployed: Deployed) -> int:
        """Up to where a rule's composite events have come, and are complete."""
        if self._by_arrival:
            return CLOSED  # nothing waits
        name = deployed.rule.name
        here = name in self.station.rules
        if self.station.has_ended(name) if here else name in self._router.ended:
            return CLOSED
        return self._mark_of(name)

    def _mark_of(self, name: str) -> int:
        before = self._router.marks.get(name, TIME_MIN)
        return max(before, self.station.mark(name)) if name in self.station.rules else before

    def due_of(self, wanted: Iterable[str]) -> dict[str, int]:
        """Up to where this broker has the composite events of rules that are evaluated or wanted
        here; of those that it was told something about, and that may still give some.
        """
        names = {name for name in wanted if name in self._router.marks}
        names -= self._router.ended
        names |= self.station.rules.keys()
        return {name: self._mark_of(name) for name in sorted(names)}

    def count_on(self, names: Iterable[str], marks: Mapping[str, int]) -> None:
        """These rules' composite events are due here, from these times on where they are known."""
        self._router.count_on(names, marks)

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
        self._is_said_anew = True
        for name in names:
            self._own.setdefault(name, {})[source.name] = source
            floor = self.station.type_marks.get(name, TIME_MIN)
            source.floors[name] = max(floor, source.floors[name])

    def expect(self, names: Sequence[str]) -> None:
        """A local source has asked whether it may publish these types; until then they wait."""
        self._expected += names
        self._is_said_anew = True

    def expect_no_more(self, names: Sequence[str]) -> None:
        """It was answered."""
        self._is_said_anew = True
        for name in names:
            self._expected.remove(name)

    def expect_nothing(self) -> None:
        """No answer will come."""
        self._expected.clear()
        self._is_said_anew = True

    @property
    def published(self) -> Sequence[str]:
        """The types that local sources publish, or have published."""
        return sorted(self._own)

    def publishers(self, name: str) -> Iterable[Source]:
        """The local sources that publish a type, or have."""
        return self._own.get(name, {}).values()

    @property
    def open_sources(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """The local sources that publish, and their types."""
        sources = {name: one for own in self._own.values() for name, one in own.items()}
        for name, source in sorted(sources.items()):
            if source.is_open and source.floors:
                yield name, tuple(sorted(source.floors))

    def push(self, batches: Sequence[EventBatch]) -> list[str]:
        """Events of local sources."""
        for batch in batches:
            known = self._advertisements[batch.type.name]
            greatest = greatest_time(batch)
            known.front = greatest if known.front is None else max(known.front, greatest)
            known.events += len(batch)
        if not self._by_arrival:
            self.ledger.add(batches)
        if self._held is None:
            self._emit(batches)
        else:
            self._held.append(batches)
        return []

    def _emit(self, batches: Sequence[EventBatch]) -> None:
        self._send_along(batches)

    def _send_along(self, batches: Sequence[EventBatch]) -> None:
        """Send events of local sources along the single tree."""
        self._router.route_down(batches, in_sequence(batches), None)
        self.station.push(batches)

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        if source.keep_promise(mark, now):
            self._is_said_anew = True

    def is_waited_for(self, source: Source, now: float) -> bool:
        """Whether events wait for a local source's promise."""
        return any(
            source.name in self._own.get(name, ()) and source.mark(name) <= self._front_of(name)
            for name in source.floors
        )

    def _front_of(self, name: str) -> int:
        """The greatest time of an event that a type's mark may hold up here."""
        return self.station.front

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more; one that has closed, nothing at all."""
        Detection.withdraw(self, source, names)
        self._is_said_anew = True
        if not self._router.is_root and source.standing is Standing.CLOSED:
            self._leaving.append(source.name)

    def take_leaving(self) -> list[str]:
        """The local sources that have closed and of which nothing is held; the root has to hear it
        after the last of their events.
        """
        if self._held is not None:
            return []
        leaving, self._leaving = self._leaving, []
        return leaving

    def _touch(self, source: Source) -> None:
        super()._touch(source)
        self._is_said_anew = True

    def _marks_said(self) -> Mapping[str, int]:
        said = dict.fromkeys(self._own, CLOSED)
        for name, sources in self._own.items():
            for one in sources.values():
                if name in one.floors and one.is_open and (mark := one.mark(name)) < said[name]:
                    said[name] = mark
        for name in self._expected:
            said[name] = TIME_MIN
        return said

    # --- division ---

    def hold(self) -> None:
        """Hold local sources."""
        if self._held is None:
            self._held = []

    def follow(self, division: Division) -> None:
        """Evaluate what this broker has to from now on; what was held goes on."""
        self._router.follow_places(division.partition.places)
        self.station.follow(division)
        self._release(self._held or ())

    def begin_anew(
        self, division: Division, due: Mapping[str, int], *, is_lost: bool = True
    ) -> Mapping[str, int]:
        """The same, but all that is kept is sent and evaluated once more (Law 3).

        ``is_lost``: what was under way may be; else what is sent again is for rules alone, since
        whoever wanted it has got it. Gives, by source, from when on composite events come again.
        By arrival, nothing does.
        """
        if self._by_arrival:
            self.follow(division)
            return {}
        for name in self.station.rules:
            self._router.reach(name, self.station.mark(name))
        rules = [one.rule.name for one in division.rules]
        again = self._router.begin_anew(rules, due)
        self._router.follow_places(division.partition.places)
        self._due = dict(due)
        self.station.begin_anew()
        self.station.follow(division)
        self.ledger.begin_anew()
        kept = list(self.ledger)
        held = len(self._held or ())  # the last of what is kept
        came = 0 if is_lost else max(len(kept) - held, 0)
        for part in _parts(kept[:came]):
            self.station.push(part, fresh=False)
        self._release(_parts(kept[came:]))
        return again

    def _release(self, held: Iterable[Sequence[EventBatch]]) -> None:
        self._held, self.is_at_work = None, True
        for batches in held:
            self._send_along(batches)

    def give_up(self, names: Collection[str]) -> None:
        """Rules wait for these types no longer."""
        for station in self.stations:
            station.give_up(names)

    def take_hopeless(self) -> tuple[str, ...]:
        """The types that rules here have waited for too long, each once."""
        found = [name for station in self.stations for name in station.take_hopeless()]
        return tuple(sorted(set(found))) if found else ()

    def commit(self, due: Mapping[str, int]) -> None:
        """Composite events have arrived up to these times: what nobody needs can go."""
        self.ledger.commit(horizons(self._deployments.rules, due))

    def beyond(self, names: Sequence[str]) -> int | None:
        """An instant beyond all that was published of these types, and all of their marks."""
        return self._beyond(names)

    def _beyond(self, names: Any) -> int | None:
        if self._by_arrival:
            return None  # the broker that evaluates a rule says from when on it holds
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
        if not self.is_at_work:
            return None
        if self._held is None and self._is_said_anew:
            self._own_marks, self._is_said_anew = self._marks_said(), False
        clock = self.watermarks.mark(TIMER.name, now) if self.watermarks.ticks else None
        detected = self.station.advance(self._own_marks, clock, round(now * MICROSECONDS))
        if detected is not None:
            marked = not self._by_arrival
            detected = self._router.tell_found(self.station, detected, self._due, marked=marked)
        elsewhere = self._router.take_detected() if self._router.has_news else None
        if detected is None or elsewhere is None:
            return elsewhere if detected is None else detected
        return joined((detected, elsewhere))

    def tell_marks(self) -> None:
        """Somebody may want marks who has not heard them."""
        if self.is_at_work:
            rules = () if self._by_arrival else self.station.rules
            self._router.tell(self.station, NOTHING, rules, self._due)
            self._router.repeat_marks()


def _parts(kept: Iterable[Sequence[EventBatch]]) -> list[tuple[EventBatch, ...]]:
    """What is kept of several messages, in parts that fit into one."""
    return list(parts_of(batch for batches in kept for batch in batches))
