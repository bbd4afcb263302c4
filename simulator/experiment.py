"""One run of a scenario: what it is made of, the order in which it starts, when it is over.

The clock of a run is that of its events: simulated seconds are seconds since the epoch, so an
event of time t is published at t, where its source's clock is right, and what is delivered at
t + d took d. Brokers start ``lead_s`` before the first event is published; clients come once the
overlay has had time to settle, first sources, then the rules, then sinks. Without a duration a run
is over when all sources have published and closed, nothing but signs of life has been sent for
``QUIET_S``, and no link is behind with what it has to carry. With one it ends in the midst of
things: whoever checks it lets it go on to the same end (``Outcome.concluded``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import rules.engine
from matcher.errors import EventError
from matcher.identity import RULE_SOURCE
from matcher.matching import ON_PROCESSOR
from matcher.model import MICROSECONDS, EventBatch, EventType
from routing.config import NodeConfig, Ordering
from routing.messages import Confirmed
from routing.network import strategy
from routing.network.brokers.broker import Broker
from routing.network.making import make_broker
from routing.overlay.config import OverlayConfig
from rules.collector import collector_patient
from rules.subscription import check_filter, parse_subscription
from rules.syntax.parser import parse_filter
from simulator import recordings
from simulator import scenario as scenario_file
from simulator.changes import RuleBook, checked, declared, steps_of
from simulator.clients import Client, Manager, Move, Place, Sink, Source
from simulator.faults import Places, ahead_s, arrange, before_s, behind_s
from simulator.generation import Generated, generate
from simulator.hosts import FREE, BrokerHost, Costs, Pricing, join
from simulator.lanes import Frames, Lane, Quality
from simulator.moments import Moments, Publications
from simulator.paging import use_large_pages
from simulator.recordings import Recording
from simulator.scenario import Scenario, ScenarioError
from simulator.simulation import Simulation, Trace
from simulator.watching import Watch

SOURCES_AT, RULES_AT, SINKS_AT, READY_AT = 0.4, 0.6, 0.8, 0.95
"""When the clients come, and the network is as large as it gets: shares of the time from the
brokers' start to the first event."""
AHEAD_MAX_S = 1e10
"""Recordings know what is to come, and promise it: some 300 years ahead of the clock."""
QUIET_S = 5.0
"""Seconds without news after which a run is over."""
BEHIND_S = 1.0
"""A link that is so far behind with what it has to carry may bring news later than that."""
SETTLED_MAX_S = 3_600.0
"""Seconds after the last event's time after which a run is over in any case."""
AT_HAND = Quality(delay_s=0.0)
"""Clients are where their broker is (7.4 looks at links between brokers only)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. ``settled``: it ended because nothing more was to come."""

    experiment: Experiment
    ended_at: float
    settled: bool

    @property
    def digest(self) -> str:
        """The trace's digest."""
        return self.experiment.simulation.trace.digest

    def concluded(self) -> Outcome:
        """The same run at its end: one that ``duration_s`` ended goes on until it has settled, so
        that what was under way arrives. That changes its figures, and is traced nowhere.
        """
        is_cut = self.experiment.scenario.duration_s is not None and not self.settled
        return self.experiment.go_on() if is_cut else self


class Experiment:
    """A scenario, built and ready to run. Raises ScenarioError, EventError, RuleErrors, OSError,
    and NoDevice where a broker needs a GPU.

    ``keeps_deliveries``: sinks keep what they are delivered, for checkers and whoever writes it;
    ``is_watched``: brokers are looked at while they run, for checkers.
    """

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace | None = None,
        *,
        keeps_deliveries: bool = True,
        is_watched: bool = True,
    ) -> None:
        self.scenario = scenario
        made = self._generated()
        self._steps = steps_of(scenario, made.rules if made else "")
        self._names: dict[str, str] = {}
        """What a scenario calls the sources that files name."""
        self.recordings = [*self._read_recordings(), *(made.recordings if made else ())]
        known = {schema.name: schema for _, one in self.recordings for schema in one.types}
        self._rulesets = list(checked(self._steps, known))
        self._refuse_bad_filters(known)
        self.book = RuleBook()
        start = self.first_time - before_s(scenario.faults) - scenario.lead_s
        self.simulation = Simulation(scenario.seed, start, trace)
        self.brokers: dict[str, BrokerHost] = {
            name: self._broker(name) for name in scenario.brokers
        }
        self.lanes: dict[frozenset[str], tuple[Lane, Lane]] = {
            frozenset(link.between): self._join(*link.between, link.quality)
            for link in scenario.links
        }
        self.sources = [self._source(broker, recording) for broker, recording in self.recordings]
        self._comes_s = {one.name: one.at_s for one in scenario.sources}
        self._refuse_faults_of_nobody()
        self._subscribers = (*scenario.sinks, *_subscribers(made))
        by_arrival = scenario.ordering == "arrival"
        publications = Publications(lambda: self.batches) if by_arrival else None
        self.sinks = {
            sink.name: Sink(
                self._place(sink.broker),
                sink.name,
                sink.subscribe,
                Moments(publications),
                keeps=keeps_deliveries,
            )
            for sink in self._subscribers
        }
        self.managers = list(self._managers())
        self.watch = Watch(self) if is_watched else None

    @property
    def first_time(self) -> float:
        """The first event's time, in seconds."""
        return min((one.least_time for _, one in self.recordings), default=0) / MICROSECONDS

    @property
    def last_time(self) -> float:
        """The last event's time, in seconds."""
        return max((one.greatest_time for _, one in self.recordings), default=0) / MICROSECONDS

    @property
    def measured_from(self) -> float:
        """When the warm-up is over."""
        return self.first_time + self.scenario.warm_up_s

    @property
    def clients(self) -> Iterator[Client]:
        """All clients."""
        yield from self.sources
        yield from self.managers
        yield from self.sinks.values()

    @property
    def batches(self) -> list[EventBatch]:
        """All events that are published."""
        return [batch for _, recording in self.recordings for batch in recording.batches]

    def ahead_s(self, source: str) -> float:
        """By how many seconds the clock of the source that events name is ahead at most."""
        return ahead_s(self.scenario.faults, self._names.get(source, source))

    def comes_s(self, source: str) -> float | None:
        """When the source that events name comes; None: before the first event."""
        return self._comes_s.get(self._names.get(source, source))

    # --- running ---

    @collector_patient()
    def run(self) -> Outcome:
        """Run to the end."""
        simulation, start = self.simulation, self.simulation.start
        for host in self.brokers.values():
            simulation.at(start, host.start)
        if self.watch is not None:
            self.watch.start()
        self._begin(0)
        for source in self.sources:
            simulation.at(self._moment(self.comes_s(source.name), SOURCES_AT), source.start)
        for one in self._subscribers:
            simulation.at(self._moment(one.at_s, SINKS_AT), self.sinks[one.name].start)
            if one.for_s is not None:
                gone_s = (one.at_s or 0.0) + one.for_s
                simulation.at(self.first_time + gone_s, self.sinks[one.name].leave)
            for then in one.then:
                turn = partial(self.sinks[one.name].turn, then.subscribe, then.unsubscribe)
                simulation.at(self.first_time + then.at_s, turn)
        if self.scenario.warm_up_s:
            simulation.at(self.measured_from, self._count_anew)
        arrange(self.scenario.faults, simulation, self.first_time, self._places())
        simulation.at(self._moment(None, READY_AT), use_large_pages)
        if self.scenario.duration_s is not None:
            simulation.run(self.first_time + self.scenario.duration_s)
            return Outcome(self, simulation.now, False)
        return self._run_until_settled()

    @collector_patient()
    def go_on(self) -> Outcome:
        """Run on to where nothing more is to come, with a new trace."""
        self.simulation.trace = Trace()
        return self._run_until_settled()

    def _begin(self, place: int) -> None:
        """Let a step come that changes the rules, when its time has come."""
        if place < len(self._steps):
            moment = self._moment(self._steps[place].at_s, RULES_AT)
            self.simulation.at(moment, self.managers[place].start)

    def _moment(self, at_s: float | None, share: float) -> float:
        """So many seconds after the first event's time; or at a share of the time before it."""
        if at_s is None:
            return self.simulation.start + share * self.scenario.lead_s
        return self.first_time + at_s

    def _answer(self, place: int, answer: Confirmed | None) -> None:
        """A step is done, or refused."""
        if answer is not None:
            self.book.note(self._rulesets[place], answer, self.simulation.now)
        self._begin(place + 1)

    def _count_anew(self) -> None:
        for pair in self.lanes.values():
            for lane in pair:
                lane.count_anew()

    def _run_until_settled(self) -> Outcome:
        simulation = self.simulation
        due = [fault.at_s + (fault.for_s or 0.0) for fault in self.scenario.faults]
        due += [change.at_s for change in self.scenario.changes]
        due += [one.at_s or 0.0 for one in self.scenario.sources]
        due += [(one.at_s or 0.0) + (one.for_s or 0.0) for one in self.scenario.sinks]
        last = self.last_time + behind_s(self.scenario.faults)
        end = max(last, self.first_time + max(due, default=0.0))
        simulation.run(max(end, self.first_time))
        news = self._news()
        while simulation.now < end + SETTLED_MAX_S:
            simulation.run(simulation.now + QUIET_S)
            before, news = news, self._news()
            is_waiting = self._is_queueing or self._is_expecting
            if news == before and self._is_done and not is_waiting:
                self._conclude()
                return Outcome(self, simulation.now, True)
        return Outcome(self, simulation.now, False)

    def _conclude(self) -> None:
        """See what has become of changes that were refused, or whose answers were lost."""
        for place, manager in enumerate(self.managers):
            if manager.is_refused:
                manager.is_decided = True
            elif manager.is_without_answer:
                manager.is_decided = self._has_been_told(place)

    def _has_been_told(self, place: int) -> bool:
        """Whether what brokers have in the end tells if a step without an answer was done."""
        in_force = self._running()[0].broker.ground.deployments.in_force
        asked, removed = self._rulesets[place], self._steps[place].removed
        if asked is not None:
            return self.book.conclude(asked, in_force, self._last_of)
        return self.book.conclude_removal(removed, in_force, self._last_of)

    def _last_of(self, rule: str, before: int) -> int | None:
        """The time of the last event before an instant that a sink got of a rule."""
        times = [sink.last_of(RULE_SOURCE + rule, before) for sink in self.sinks.values()]
        return max((time for time in times if time is not None), default=None)

    @property
    def _is_done(self) -> bool:
        """Whether all is published, and all that was asked of rules is answered."""
        are_answered = all(manager.is_done for manager in self.managers)
        return are_answered and all(source.is_done for source in self.sources)

    @property
    def _is_queueing(self) -> bool:
        """Whether some link has still to carry what was sent long ago."""
        if any(lane.waits_s > BEHIND_S for pair in self.lanes.values() for lane in pair):
            return True
        neighbours = (host.broker.overlay.neighbours for host in self._running())
        return any(one.buffered > one.under_way for own in neighbours for one in own.values())

    @property
    def _is_expecting(self) -> bool:
        """Whether some broker gives its clients time to come back (stations.publishers, Law 2)."""
        return any(host.broker.expects_clients for host in self._running())

    def _news(self) -> tuple[int, ...]:
        """Counts that stand still when nothing happens any more.

        What timers bring beyond the last event is none (S13): they never end.
        """
        last = round(self.last_time * MICROSECONDS)
        delivered = sum(sink.moments.count_until(last) for sink in self.sinks.values())
        published = sum(source.published for source in self.sources)
        floods = sum(
            sum(one.version for one in host.broker.overlay.states) for host in self._running()
        )
        return delivered, published, floods

    def _running(self) -> list[BrokerHost]:
        return [host for host in self.brokers.values() if host.is_running]

    # --- building ---

    def _refuse_bad_filters(self, published: Mapping[str, EventType]) -> None:
        """Raise RuleErrors for a filter that the types which sinks meet will not do for.

        One to a type that nobody knows by then waits: it is checked as far as that goes.
        """
        begun = [
            found.schemas
            for step, found in zip(self._steps, self._rulesets, strict=True)
            if step.at_s is None and found is not None
        ]
        known = {**published, **(begun[0] if begun else {})}
        for where, text in _filters_of(self.scenario.sinks):
            file = f"{self.scenario.file}: {where}"
            if parse_filter(text, file=file).type.text in known:
                parse_subscription(text, known, file=file)
            else:
                check_filter(text, file=file)

    def _refuse_faults_of_nobody(self) -> None:
        known = self._places().sources
        for number, fault in enumerate(self.scenario.faults, 1):
            for name in fault.sources:
                if name not in known:
                    raise ScenarioError(
                        f"{self.scenario.file}: fault[{number}].sources: "
                        f"there is no source {name!r}"
                    )

    def _places(self) -> Places:
        sources: dict[str, list[Source]] = {one.name: [] for one in self.scenario.sources}
        for source in self.sources:
            sources.setdefault(self._names.get(source.name, source.name), []).append(source)
        return Places(self.lanes, self.brokers, sources)

    def _generated(self) -> Generated | None:
        scenario = self.scenario
        if scenario.workload is None:
            return None
        try:
            return generate(scenario.workload, scenario.graph, scenario.seed, scenario.warm_up_s)
        except ValueError as error:
            raise ScenarioError(f"{scenario.file}: workload.{error}") from None

    def _used_brokers(self) -> Mapping[str, None]:
        """The brokers that have clients, in order."""
        used = [broker for broker, _ in self.recordings]
        return dict.fromkeys([*used, *(sink.broker for sink in self.scenario.sinks)])

    def _read_recordings(self) -> Iterator[tuple[str, Recording]]:
        schemas = dict(declared(self._steps))
        for source in self.scenario.sources:
            for recording in recordings.read(source.events, source.type_name, schemas):
                schemas.update((schema.name, schema) for schema in recording.types)
                other = self._names.setdefault(recording.name, source.name)
                if other != source.name:
                    raise EventError(
                        f"{source.events}: its events are by {recording.name!r}, "
                        f"whose events source {other!r} publishes"
                    )
                yield source.broker, recording

    def _broker(self, name: str) -> BrokerHost:
        scenario = self.scenario
        costs: Pricing = FREE
        if scenario.message_cost_s or scenario.byte_cost_s:
            costs = Costs(scenario.message_cost_s, scenario.byte_cost_s)
        if scenario.processing is not None:
            costs = scenario.processing.beside(costs)
        return BrokerHost(self.simulation, name, self._making(name), costs)

    def _making(self, name: str) -> Callable[[float], Broker]:
        scenario = self.scenario
        tell = partial(_say, name)
        matching = replace(scenario.matching.get(name, ON_PROCESSOR), tell=tell).settled()
        config = NodeConfig(
            name=name,
            matching=matching,
            heartbeat_s=scenario.heartbeat_s,
            ordering=Ordering(scenario.ordering),
            source_silence_max_s=scenario.source_silence_max_s,
            ahead_max_s=AHEAD_MAX_S,
        )
        if scenario.source_lead_max_s is not None:
            config = replace(config, lead_max_s=scenario.source_lead_max_s)
        if scenario.publish_credit is not None:
            config = replace(config, publish_credit=scenario.publish_credit)
        if scenario.delivery_events_max is not None:
            config = replace(config, delivery_events_max=scenario.delivery_events_max)

        def make(now: float) -> Broker:
            life = 1 + round((now - self.simulation.start) * MICROSECONDS)
            overlay = OverlayConfig(
                name,
                life,
                heartbeat_s=scenario.heartbeat_s,
                forget_s=scenario.forget_s,
            )
            if scenario.window_max is not None:
                overlay = replace(overlay, window_max=scenario.window_max)
            if scenario.buffer_max is not None:
                overlay = replace(overlay, buffer_max=scenario.buffer_max)
            engine = rules.engine.make(scenario.engine, device=matching.device, tell=tell)
            return make_broker(config, overlay, engine, strategy.make(scenario.strategy), now)

        return make

    def _join(self, one: str, other: str, quality: Quality) -> tuple[Lane, Lane]:
        def make_lane(name: str, deliver: Callable[[Frames], None]) -> Lane:
            return Lane(self.simulation, name, quality, deliver)

        delay_us = max(1, round(quality.delay_s * MICROSECONDS))
        return join(self.brokers[one], self.brokers[other], make_lane, delay_us)

    def _source(self, broker: str, recording: Recording) -> Source:
        moves = [
            Move(
                self.first_time + move.at_s,
                move.away_s,
                None if move.broker is None else self._place(move.broker),
            )
            for one in self.scenario.sources
            if one.name == self._names.get(recording.name)
            for move in one.moves
        ]
        return Source(
            self._place(broker), recording.name, recording.types, recording.publications(), moves
        )

    def _place(self, broker: str) -> Place:
        return Place(self.simulation, self.brokers[broker], AT_HAND, self.scenario.heartbeat_s)

    def _managers(self) -> Iterator[Manager]:
        """One for each step that changes the rules."""
        first = next(iter(self._used_brokers()), self.scenario.brokers[0])
        for place, step in enumerate(self._steps):
            name = f"rule manager {place}" if place else "rule manager"
            answered = partial(self._answer, place)
            yield Manager(self._place(step.broker or first), name, step.ask, answered)


def _say(broker: str, what: str, why: str) -> None:
    print(f"rexmq: broker {broker}: {what}: {why}", file=sys.stderr)


def _filters_of(sinks: Iterable[scenario_file.Sink]) -> Iterator[tuple[str, str]]:
    """The filters of all sinks, each behind its place in the scenario."""
    for number, sink in enumerate(sinks, 1):
        for place, text in enumerate(sink.subscribe, 1):
            yield f"sink[{number}].subscribe[{place}]", text
        for turn, then in enumerate(sink.then, 1):
            for place, text in enumerate(then.subscribe, 1):
                yield f"sink[{number}].then[{turn}].subscribe[{place}]", text


def _subscribers(made: Generated | None) -> Iterator[scenario_file.Sink]:
    """The sinks of a generated workload."""
    for broker, filters in made.subscriptions.items() if made else ():
        yield scenario_file.Sink(f"k-{broker}", broker, filters)
