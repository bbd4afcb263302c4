"""The network of a scenario, built: its brokers and lanes, its clients, and when these come.

The clock of a run is that of its events: simulated seconds are seconds since the epoch, so an
event of time t is published at t, where its source's clock is right, and what is delivered at
t + d took d. Brokers start ``lead_s`` before the first event is published; clients come once the
overlay has had time to settle, first sources, then the rules, then sinks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import rules.engine
from matcher.errors import EventError
from matcher.matching import ON_PROCESSOR
from matcher.model import MICROSECONDS, EventBatch, EventType
from routing.config import NodeConfig, Ordering
from routing.messages import Confirmed
from routing.network import strategy
from routing.network.brokers.broker import Broker
from routing.overlay.config import OverlayConfig
from rules.subscription import check_filter, parse_subscription
from rules.syntax.parser import parse_filter
from simulator import recordings, scenario as scenario_file
from simulator.changes import RuleBook, checked, declared, steps_of
from simulator.clients import Client, Manager, Move, Place, Sink, Source
from simulator.faults import Places, ahead_s, before_s
from simulator.generation import Generated, generate
from simulator.hosts import FREE, BrokerHost, Costs, Pricing, join
from simulator.lanes import Frames, Lane, Quality
from simulator.moments import Moments, Publications
from simulator.recordings import Recording
from simulator.scenario import Scenario, ScenarioError
from simulator.simulation import Simulation, Trace
from simulator.stores import SimulatedStore

SOURCES_AT, RULES_AT, SINKS_AT, READY_AT = 0.4, 0.6, 0.8, 0.95
"""When the clients come, and the network is as large as it gets: shares of the time from the
brokers' start to the first event."""
AHEAD_MAX_S = 1e10
"""Recordings know what is to come, and promise it: some 300 years ahead of the clock."""
SYNC_S = 0.004
"""Seconds that a store takes to keep something, unless a fault says how many."""
BROKER_BOUNDS = ("publish_credit", "delivery_events_max", "unasked_events_max")
"""Bounds of brokers that a scenario may set, as NodeConfig calls them."""
AT_HAND = Quality(delay_s=0.0)
"""Clients are where their broker is (7.4 looks at links between brokers only)."""


class Network:
    """A scenario, built and ready to run. Raises ScenarioError, EventError, RuleErrors, OSError,
    and NoDevice where a broker needs a GPU.

    ``keeps_deliveries``: sinks keep what they are delivered, for checkers and whoever writes it.
    """

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace | None = None,
        *,
        keeps_deliveries: bool = True,
    ) -> None:
        self.scenario = scenario
        made = self._generated()
        self._steps = steps_of(scenario, made.rules if made else "")
        self._names: dict[str, str] = {}
        """A scenario's names of the sources that files name."""
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
        self._give_stores()
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
                durable=sink.durable,
            )
            for sink in self._subscribers
        }
        self.managers = list(self._managers())

    @property
    def first_time(self) -> float:
        """The first event's time, in seconds."""
        return min((one.least_time for _, one in self.recordings), default=0) / MICROSECONDS

    @property
    def last_time(self) -> float:
        """The last event's time, in seconds."""
        return max((one.greatest_time for _, one in self.recordings), default=0) / MICROSECONDS

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

    # --- clients that come ---

    def _begin(self, place: int) -> None:
        """Let a step come that changes the rules, when its time has come."""
        if place < len(self._steps):
            moment = self._moment(self._steps[place].at_s, RULES_AT)
            self.simulation.at(moment, partial(self._ask, self.managers[place]))

    def _ask(self, manager: Manager) -> None:
        manager.came = {one.name: self._last_taken(one.name) for one in self.sources}
        manager.start()

    def _last_taken(self, source: str) -> int:
        """The number of the last event of a source that a broker has taken in; -1 for none."""
        known = (host.broker.context.sources.find(source) for host in self.brokers.values())
        return max((one.last_sequence for one in known if one is not None), default=-1)

    def _moment(self, at_s: float | None, share: float) -> float:
        """So many seconds after the first event's time; or at a share of the time before it."""
        if at_s is None:
            return self.simulation.start + share * self.scenario.lead_s
        return self.first_time + at_s

    def _answer(self, place: int, answer: Confirmed | None) -> None:
        """A step is done, or refused."""
        if answer is not None:
            past = self._steps[place].since(self.first_time)
            self.book.note(self._rulesets[place], answer, self.simulation.now, past)
        self._begin(place + 1)

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

    def _give_stores(self) -> None:
        """Give stores to brokers that are to be started again with one, or have durable sinks; if
        any drains, to all, so that these can go on; and, where a rule is to hold from a past
        instant, to those at which sources publish.
        """
        keeping = [sink.broker for sink in self.scenario.sinks if sink.durable]
        for fault in self.scenario.faults:
            if fault.kind == "restart" and fault.value is not None:
                for name in fault.brokers or self.brokers:
                    self.brokers[name].store = SimulatedStore(self.simulation, name, fault.value)
            elif fault.kind == "backup":
                keeping += fault.brokers or self.brokers
            elif fault.kind == "drain":
                keeping += self.brokers
        if any(step.since_s is not None for step in self._steps):
            keeping += [broker for broker, _ in self.recordings]
            keeping += [
                move.broker for one in self.scenario.sources for move in one.moves if move.broker
            ]
        for name in keeping:
            host = self.brokers[name]
            if host.store is None:
                host.store = SimulatedStore(self.simulation, name, SYNC_S)

    def _broker(self, name: str) -> BrokerHost:
        scenario = self.scenario
        constants = FREE
        if scenario.message_cost_s or scenario.byte_cost_s:
            constants = Costs(scenario.message_cost_s, scenario.byte_cost_s)
        costs: Pricing = constants
        if scenario.processing is not None:
            costs = scenario.processing.beside(constants)
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
        bounds = {name: getattr(scenario, name) for name in BROKER_BOUNDS}
        config = replace(config, **{name: most for name, most in bounds.items() if most})

        def make(now: float) -> Broker:
            incarnation = 1 + round((now - self.simulation.start) * MICROSECONDS)
            overlay = OverlayConfig(
                name,
                incarnation,
                heartbeat_s=scenario.heartbeat_s,
                forget_s=scenario.forget_s,
            )
            if scenario.window_max is not None:
                overlay = replace(overlay, window_max=scenario.window_max)
            if scenario.buffer_max is not None:
                overlay = replace(overlay, buffer_max=scenario.buffer_max)
            engine = rules.engine.make(
                scenario.engine,
                device=matching.device,
                tell=tell,
                composites_max=config.composites_per_instant_max,
            )
            return Broker(config, overlay, engine, strategy.make(scenario.strategy), now)

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
                move.says_goodbye,
            )
            for one in self.scenario.sources
            if one.name == self._names.get(recording.name)
            for move in one.moves
        ]
        return Source(
            self._place(broker), recording.name, recording.types, recording.publications(), moves
        )

    def _place(self, broker: str) -> Place:
        names = [*self.brokers]
        first = names.index(broker)
        hosts = tuple(self.brokers[name] for name in names[first:] + names[:first])
        return Place(self.simulation, hosts, AT_HAND, self.scenario.heartbeat_s)

    def _managers(self) -> Iterator[Manager]:
        """One for each step that changes the rules."""
        first = next(iter(self._used_brokers()), self.scenario.brokers[0])
        for place, step in enumerate(self._steps):
            name = f"rule manager {place}" if place else "rule manager"
            answered = partial(self._answer, place)
            ask = partial(step.ask, first_s=self.first_time)
            yield Manager(self._place(step.broker or first), name, ask, answered)


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
