"""One run of a scenario: what it is made of, the order in which it starts, when it is over.

The clock of a run is that of its events: simulated seconds are seconds since the epoch, so an
event of time t is published at t, and what is delivered at t + d took d. Brokers start ``lead_s``
before the first event; clients come once the overlay has had time to settle, first sources, then
the rules, then sinks. Without a duration a run is over when all sources have published and closed
and nothing but signs of life has been sent for ``QUIET_S``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import rules
import rules.engine
from matcher.errors import EventError
from matcher.model import MICROSECONDS, EventBatch
from routing.config import NodeConfig, Ordering
from routing.network import strategy
from routing.network.broker import Broker
from routing.network.making import make_broker
from routing.overlay.config import OverlayConfig
from rules.language import declared_in
from rules.parser import decode, read
from rules.pattern import RuleSet
from simulator import recordings
from simulator import scenario as scenario_file
from simulator.clients import Client, Manager, Place, Sink, Source
from simulator.faults import arrange
from simulator.generation import Generated, generate
from simulator.hosts import FREE, BrokerHost, Costs, join
from simulator.lanes import Frames, Lane, Quality
from simulator.recordings import Recording
from simulator.scenario import Scenario, ScenarioError
from simulator.simulation import Simulation, Trace

SOURCES_AT, RULES_AT, SINKS_AT = 0.4, 0.6, 0.8
"""When the clients come: shares of the time from the brokers' start to the first event."""
QUIET_S = 5.0
"""Seconds without news after which a run is over."""
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


class Experiment:
    """A scenario, built and ready to run. Raises ScenarioError, EventError, RuleErrors, OSError."""

    def __init__(self, scenario: Scenario, trace: Trace | None = None) -> None:
        self.scenario = scenario
        self._refuse_what_is_not_there()
        made = None
        if scenario.workload is not None:
            made = generate(scenario.workload, scenario.graph, scenario.seed, scenario.warm_up_s)
        self._text = self._read_rules(made)
        self.recordings = [*self._read_recordings(), *(made.recordings if made else ())]
        self.rules = self._check_rules()
        start = self.first_time - scenario.lead_s
        self.simulation = Simulation(scenario.seed, start, trace)
        self.brokers: dict[str, BrokerHost] = {
            name: self._broker(name) for name in scenario.brokers
        }
        self.lanes: dict[frozenset[str], tuple[Lane, Lane]] = {
            frozenset(link.between): self._join(*link.between, link.quality)
            for link in scenario.links
        }
        self.sources = [self._source(broker, recording) for broker, recording in self.recordings]
        self.sinks = {
            sink.name: Sink(self._place(sink.broker), sink.name, sink.subscribe)
            for sink in (*scenario.sinks, *_subscribers(made))
        }
        self.deployed_at: float | None = None
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

    # --- running ---

    def run(self) -> Outcome:
        """Run to the end."""
        simulation, start = self.simulation, self.simulation.start
        for host in self.brokers.values():
            simulation.at(start, host.start)
        for share, clients in (
            (SOURCES_AT, self.sources),
            (RULES_AT, self.managers),
            (SINKS_AT, self.sinks.values()),
        ):
            for client in clients:
                simulation.at(start + share * self.scenario.lead_s, client.start)
        if self.scenario.warm_up_s:
            simulation.at(self.measured_from, self._count_anew)
        arrange(self.scenario.faults, simulation, self.first_time, self.lanes, self.brokers)
        if self.scenario.duration_s is not None:
            simulation.run(self.first_time + self.scenario.duration_s)
            return Outcome(self, simulation.now, False)
        return self._run_until_settled()

    def _count_anew(self) -> None:
        for pair in self.lanes.values():
            for lane in pair:
                lane.count_anew()

    def _run_until_settled(self) -> Outcome:
        simulation = self.simulation
        healed = [fault.at_s + (fault.for_s or 0.0) for fault in self.scenario.faults]
        end = max(self.last_time, self.first_time + max(healed, default=0.0))
        simulation.run(max(end, self.first_time))
        news = self._news()
        while simulation.now < end + SETTLED_MAX_S:
            simulation.run(simulation.now + QUIET_S)
            before, news = news, self._news()
            if news == before and all(source.is_done for source in self.sources):
                return Outcome(self, simulation.now, True)
        return Outcome(self, simulation.now, False)

    def _news(self) -> tuple[int, ...]:
        """Counts that stand still when nothing happens any more."""
        delivered = sum(len(sink.arrivals) for sink in self.sinks.values())
        published = sum(source.published for source in self.sources)
        floods = sum(
            sum(one.version for one in host.broker.overlay.states) for host in self._running()
        )
        return delivered, published, floods

    def _running(self) -> list[BrokerHost]:
        return [host for host in self.brokers.values() if host.is_running]

    # --- building ---

    def _refuse_what_is_not_there(self) -> None:
        scenario = self.scenario
        if scenario.engine not in rules.engine.ENGINES:
            expected = ", ".join(rules.engine.ENGINES)
            raise ScenarioError(
                f"{scenario.file}: engine: expected one of {expected}, found {scenario.engine!r}"
            )

    def _used_brokers(self) -> Mapping[str, None]:
        """The brokers that have clients, in order."""
        used = [broker for broker, _ in self.recordings]
        return dict.fromkeys([*used, *(sink.broker for sink in self.scenario.sinks)])

    def _read_rules(self, made: Generated | None) -> str:
        """Those of the file, then those that are generated."""
        path = self.scenario.rules
        text = "" if path is None else decode(path.read_bytes(), str(path))
        return text if made is None else f"{text}\n{made.rules}\n"

    def _check_rules(self) -> RuleSet | None:
        """The rules, over the types that they declare and those that the recordings have."""
        if not self._text.strip():
            return None
        known = {schema.name: schema for _, one in self.recordings for schema in one.types}
        return rules.load(self._text, file=self._rules_file, known=known)

    def _read_recordings(self) -> Iterator[tuple[str, Recording]]:
        schemas = dict(declared_in(read(self._text).file))
        publishers: dict[str, str] = {}
        for source in self.scenario.sources:
            for recording in recordings.read(source.events, source.type_name, schemas):
                schemas.update((schema.name, schema) for schema in recording.types)
                other = publishers.setdefault(recording.name, source.name)
                if other != source.name:
                    raise EventError(
                        f"{source.events}: its events are by {recording.name!r}, "
                        f"whose events source {other!r} publishes"
                    )
                yield source.broker, recording

    def _broker(self, name: str) -> BrokerHost:
        scenario = self.scenario
        costs = FREE
        if scenario.message_cost_s or scenario.byte_cost_s:
            costs = Costs(scenario.message_cost_s, scenario.byte_cost_s)
        return BrokerHost(self.simulation, name, self._making(name), costs)

    def _making(self, name: str) -> Callable[[float], Broker]:
        scenario = self.scenario
        ordering = Ordering(scenario.ordering)
        config = NodeConfig(name=name, heartbeat_s=scenario.heartbeat_s, ordering=ordering)

        def make(now: float) -> Broker:
            life = 1 + round((now - self.simulation.start) * MICROSECONDS)
            overlay = OverlayConfig(name, life, heartbeat_s=scenario.heartbeat_s)
            engine = rules.engine.make(scenario.engine)
            return make_broker(config, overlay, engine, strategy.make(scenario.strategy), now)

        return make

    def _join(self, one: str, other: str, quality: Quality) -> tuple[Lane, Lane]:
        def make_lane(name: str, deliver: Callable[[Frames], None]) -> Lane:
            return Lane(self.simulation, name, quality, deliver)

        delay_us = max(1, round(quality.delay_s * MICROSECONDS))
        return join(self.brokers[one], self.brokers[other], make_lane, delay_us)

    def _source(self, broker: str, recording: Recording) -> Source:
        return Source(
            self._place(broker), recording.name, recording.types, recording.publications()
        )

    def _place(self, broker: str) -> Place:
        return Place(self.simulation, self.brokers[broker], AT_HAND, self.scenario.heartbeat_s)

    def _managers(self) -> Iterator[Manager]:
        if self.rules is not None:
            broker = next(iter(self._used_brokers()), self.scenario.brokers[0])
            # Without its folder: what is carried is the same wherever the files are.
            file = Path(self._rules_file).name
            yield Manager(self._place(broker), self._text, file, self._note_deployed)

    @property
    def _rules_file(self) -> str:
        return str(self.scenario.rules or self.scenario.file)

    def _note_deployed(self) -> None:
        self.deployed_at = self.simulation.now


def _subscribers(made: Generated | None) -> Iterator[scenario_file.Sink]:
    """The sinks of a generated workload."""
    for broker, filters in made.subscriptions.items() if made else ():
        yield scenario_file.Sink(f"k-{broker}", broker, filters)
