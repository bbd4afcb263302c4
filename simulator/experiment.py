"""One run of a scenario: the order in which it starts, and when it is over.

Without a duration a run is over when all sources have published and closed, nothing but signs of
life has been sent for ``QUIET_S``, and no link is behind with what it has to carry. With one it
ends in the midst of things: whoever checks it lets it go on to the same end
(``Outcome.concluded``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS
from runtime.collector import collector_patient
from runtime.large_pages import use_large_pages
from simulator.faults import arrange, behind_s
from simulator.hosts import BrokerHost
from simulator.network import READY_AT, SINKS_AT, SOURCES_AT, Network
from simulator.scenario import Scenario
from simulator.simulation import Trace
from simulator.watch import Watch

QUIET_S = 5.0
"""Seconds without news after which a run is over."""
BEHIND_S = 1.0
"""A link that is so far behind with what it has to carry may bring news later than that."""
SETTLED_MAX_S = 3_600.0
"""Seconds after the last event's time after which a run is over in any case."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run. ``settled``: it ended because nothing more was to come."""

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


class Experiment(Network):
    """A network that runs. ``is_watched``: brokers are looked at while they run, for checkers;
    the rest is as for a Network.
    """

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace | None = None,
        *,
        keeps_deliveries: bool = True,
        is_watched: bool = True,
    ) -> None:
        super().__init__(scenario, trace, keeps_deliveries=keeps_deliveries)
        self.watch = Watch(self) if is_watched else None

    @property
    def measured_from(self) -> float:
        """When the warm-up is over."""
        return self.first_time + self.scenario.warm_up_s

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
        in_force = self._running()[0].broker.context.deployments.in_force
        asked, removed = self._rulesets[place], self._steps[place].removed
        if asked is not None:
            past = self._steps[place].since(self.first_time)
            return self.book.conclude(asked, in_force, self._last_of, past)
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
        """Whether some broker gives its clients time to come back (publishers)."""
        agreed = (host.broker.agreed for host in self._running())
        return any(len(one.absent) > len(one.out_of_reach) for one in agreed)

    def _news(self) -> tuple[int, ...]:
        """Counts that stand still when nothing happens any more.

        What timers bring beyond the last event is none (S13): they never end.
        """
        last = round(self.last_time * MICROSECONDS)
        delivered = sum(sink.moments.count_until(last) for sink in self.sinks.values())
        published = sum(source.published for source in self.sources)
        floods = sum(
            sum(one.version for one in host.broker.overlay.topology.states)
            for host in self._running()
        )
        return delivered, published, floods

    def _running(self) -> list[BrokerHost]:
        return [host for host in self.brokers.values() if host.is_running]
