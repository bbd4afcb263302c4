"""Checks of a run: at its end, when nothing happens any more, and all the time.

Each checker gives the differences in words; none is a pass. The results are compared with the
centralised oracle, the network with what is really there, tables and trees with one another and
with what clients said; marks and buffers are looked at while the run goes on (simulator.watch).
A scenario names the checkers that are asked; all, unless it does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MIN, Bools, Event, EventBatch
from routing.leaving import KEPT
from routing.messages import Code, Rejected
from rules.engine.order import timers
from rules.pattern import TIMER
from simulator.agreement import Part, check_tables, check_trees, parts_of
from simulator.clients import Client, Manager, Sink, Source
from simulator.closings import Closings, closed_at
from simulator.dues import due, misnumbered, quiet_way_s
from simulator.endings import undecided
from simulator.experiment import Experiment, Outcome
from simulator.faults import FAILURES
from simulator.hosts import BrokerHost, Failure
from simulator.losses import Losses, less
from simulator.oracle import Answer, Oracle, delivered, differences
from simulator.scenario import CHECKS

REST_S = 60.0
"""Seconds before its end in which a network that has settled is to have come to rest."""

FAULTY_S = 5.0
"""How much longer things are under way where something goes wrong, but for failures and cuts."""


def check(outcome: Outcome) -> list[str]:
    """All differences of a run that its scenario asks for."""
    return [line for name in outcome.experiment.scenario.checks for line in CHECKERS[name](outcome)]


def check_results(outcome: Outcome) -> Iterator[str]:
    """Every sink got exactly what the centralised oracle gives it, and nothing was refused; but for
    what a source brings too late that comes in mid-stream, or comes back to a broker that has
    failed, which the oracle does not see either; for what follows from events that come too late
    for a rule that is over (simulator.endings); and for what may be lost with such a broker
    (simulator.losses).

    Of events whose times are those of their arrival only the published ones are compared; of
    composite ones it is asked that they can be true.
    """
    experiment = outcome.experiment
    yield from refusals(experiment)
    for manager in experiment.managers:
        if not manager.is_done:
            yield f"{manager.name}: it has had no answer"
    yield from _begun_too_late(experiment)
    yield from _drains_for_ever(experiment)
    by_arrival = experiment.scenario.ordering == "arrival"
    taken = list(_taken(experiment))
    oracle = Oracle(() if by_arrival else experiment.book.held, taken)
    losses = None if by_arrival else _losses(experiment)
    closings = None if by_arrival else Closings(experiment)
    without = _Without(experiment, taken, oracle)
    unclear = set() if by_arrival else undecided(experiment, taken, oracle, _returning(experiment))
    for name, sink in experiment.sinks.items():
        got = delivered(sink.arrivals)
        expected = due(experiment, sink, oracle, got)
        if closings:
            expected = closings.expected(sink, partial(without.due, sink, got), got)
        if sink.is_away and outcome.settled and not sink.has_left:
            yield f"sink {name}: what it subscribes to is not in force again"
        if losses is not None:
            is_whole = sink.durable and not _forgetful(sink.broker)
            gaps = () if is_whole else sink.gaps
            expected, got = losses.excuse(expected, sink.arrivals, gaps)
        expected, got = less(expected, unclear), less(got, unclear)
        got = _as_published(experiment, sink, got)
        if by_arrival:
            expected = Answer(got.composite, expected.published)
            lines = [*differences(expected, got), *_impossible(experiment, got.composite)]
        else:
            if _ticks(experiment):
                expected, got = _within(taken, expected), _within(taken, got)
            apart = partial(_told_apart, experiment, _behind(experiment, sink))
            lines = differences(apart(expected), apart(got))
        for line in (*lines, *misnumbered(experiment, sink, oracle)):
            yield f"sink {name}: {line}"


class _Without:
    """Oracles over what is published but by some sources, each made once."""

    def __init__(self, experiment: Experiment, taken: Sequence[EventBatch], oracle: Oracle) -> None:
        self._experiment = experiment
        self._taken = taken
        self._oracles: dict[frozenset[str], Oracle] = {frozenset(): oracle}

    def due(self, sink: Sink, got: Answer, absent: frozenset[str]) -> Answer:
        """The part that a sink is due of the answer without these sources."""
        if absent not in self._oracles:
            recordings = [one for _, one in self._experiment.recordings]
            names = [one.name for one in recordings for _ in one.batches]
            told = zip(names, self._taken, strict=True)
            others = [batch for name, batch in told if name not in absent]
            self._oracles[absent] = Oracle(self._experiment.book.held, others)
        return due(self._experiment, sink, self._oracles[absent], got)


def _begun_too_late(experiment: Experiment) -> Iterator[str]:
    """Rules hold from an instant beyond all that anybody has said, and from no later one (S15); or
    from a past one that was asked for, if that is earlier.
    """
    for one in experiment.book.held:
        past = experiment.book.past.get((one.rule.name, one.version))
        if past is not None and one.since is not None and one.since > past:
            yield f"rule {one.rule.name} holds from {one.since} us, it was to hold from {past}"
        moment = experiment.book.confirmed_at.get((one.rule.name, one.version))
        if one.since is not None and moment is not None:
            said = max((source.said_by(moment) for source in experiment.sources), default=TIME_MIN)
            latest = max(said + 1, _clock(experiment, moment))
            if one.since > latest + 1:
                yield f"rule {one.rule.name} holds from {one.since} us, nobody was beyond {latest}"


def _drains_for_ever(experiment: Experiment) -> Iterator[str]:
    """Brokers that drain in the end, and wait for something else than that rules go on: they do not
    once nothing is published any more.
    """
    for name, host in experiment.brokers.items():
        obstacles = host.broker.node.draining if host.drains else ()
        if obstacles and not obstacles[0].endswith(KEPT):
            yield f"broker {name}: it drains still; {'; '.join(obstacles)}"


def _clock(experiment: Experiment, moment: float) -> int:
    """The time that timers show to rules at a moment, where there are any."""
    return math.ceil(moment * MICROSECONDS) if _ticks(experiment) else TIME_MIN


def _told_apart(experiment: Experiment, behind: Mapping[str, float], answer: Answer) -> Answer:
    """With what may be told behind later events of other rules at the end, rule by rule: all, where
    rules come while brokers may be out of reach, since a sink there has got others' events by then
    that are from later (docs/networks.md).
    """

    def is_apart(event: Event) -> bool:
        return may_be_all or event.time <= behind.get(event.source, -math.inf)

    may_be_all = _is_torn(experiment) and bool(experiment.scenario.changes)
    in_order = [event for event in answer.composite if not is_apart(event)]
    apart = sorted(filter(is_apart, answer.composite), key=lambda event: event.source)
    return replace(answer, composite=(*in_order, *apart))


def _behind(experiment: Experiment, sink: Sink) -> Mapping[str, float]:
    """By the source of what they find, up to where a sink may have had composite events of others
    when a rule came: what that finds of before comes behind these (protocol.md section 5).
    """
    found: dict[str, float] = {}
    scenario = experiment.scenario
    way_s = quiet_way_s(scenario) + (FAULTY_S if scenario.faults else 0.0)
    for (name, _), moment in experiment.book.confirmed_at.items():
        if moment <= experiment.first_time:
            continue
        until_s = moment + way_s
        had = delivered(one for one in sink.arrivals if one.moment <= until_s)
        last = max((event.time for event in had.composite), default=-math.inf)
        found[RULE_SOURCE + name] = max(last, found.get(RULE_SOURCE + name, last))
    return found


def _is_torn(experiment: Experiment) -> bool:
    """Whether brokers fail, or links are cut for so long that they may seem to have."""
    scenario = experiment.scenario
    return any(
        fault.kind in FAILURES
        or (fault.kind == "cut" and (fault.for_s or math.inf) > scenario.heartbeat_s)
        for fault in scenario.faults
    )


def _as_published(experiment: Experiment, sink: Sink, got: Answer) -> Answer:
    """Without the order in which published events came, where brokers fail, or where trees are
    built anew and the sink has not been there from the first, with all that it wants: what is sent
    again may come behind later ones then (brokers.md section 5).
    """
    fails = any(fault.kind in FAILURES for fault in experiment.scenario.faults)
    confirmed_at = max((wish.confirmed_at for wish in sink.wishes.values()), default=math.inf)
    if not fails and not (_is_torn(experiment) and confirmed_at > experiment.first_time):
        return got
    ordered = sorted(got.published, key=lambda event: (event.source, event.sequence))
    return replace(got, published=tuple(ordered))


def refusals(experiment: Experiment) -> Iterator[str]:
    """Requests and events that brokers refused, and why; and the subscriptions
    that are paused in the end.
    """
    for client in experiment.clients:
        for number, reason in client.session.paused.items():
            yield f"{client.name}: subscription {number} is paused: {reason}"
        if isinstance(client, Manager) and client.is_decided:
            continue
        late = _late(experiment, client)
        for refusal in client.refusals:
            if refusal not in late:
                yield f"{client.name}: {type(refusal).__name__.lower()}: {refusal.reason}"


def _late(experiment: Experiment, client: Client) -> list[Rejected]:
    """Events that a source which came in mid-stream brought too late for others of its types; or
    one that came back, or has moved, for any.
    """
    if not isinstance(client, Source):
        return []
    from_s = min(_may_be_late_from(experiment, client), default=None)
    if from_s is None:
        return []
    recording = next(
        recording
        for source, (_, recording) in zip(experiment.sources, experiment.recordings, strict=True)
        if source is client
    )
    return [
        one
        for moment, one in zip(client.refused_at, client.refusals, strict=True)
        if isinstance(one, Rejected)
        and one.code is Code.LATE
        and moment >= from_s
        and _is_late(experiment, client, recording.batches, one, moment)
    ]


def _is_late(
    experiment: Experiment,
    client: Source,
    batches: Sequence[EventBatch],
    refusal: Rejected,
    moment: float,
) -> bool:
    """Whether what was refused is no later than all that others had said by then, or its source
    before it came.
    """
    came = [one.moment for one in client.moves]
    came += [one.moment for one in _forgetful(client.broker)]
    own = client.said_by(max((one for one in came if one <= moment), default=-math.inf))
    others = [one.said_by(moment) for one in experiment.sources if one is not client]
    said = max([own, *others, _clock(experiment, moment)])
    times = [batch.time[_among(batch, refusal.sequences)] for batch in batches]
    return all(int(one.max()) <= said for one in times if len(one))


def _may_be_late_from(experiment: Experiment, source: Source) -> Iterator[float]:
    """From which moments on, for each reason that there is."""
    yield from (move.moment for move in source.moves[:1])
    yield from (one.moment for one in _forgetful(source.broker)[:1])
    yield from closed_at(experiment, source)
    if experiment.comes_s(source.name) is not None:
        others = {
            one.name for other in experiment.sources if other is not source for one in other.types
        }
        if all(one.name in others for one in source.types):
            yield -math.inf


def _returning(experiment: Experiment) -> set[str]:
    """The sources that come in mid-stream, or come back."""
    return {
        one.name
        for one in experiment.sources
        if next(_may_be_late_from(experiment, one), None) is not None
    }


def _forgetful(host: BrokerHost) -> list[Failure]:
    """When a broker with clients forgot all that it knew."""
    return [one for one in host.failures if one.lost is not None]


def _losses(experiment: Experiment) -> Losses | None:
    """Losses that failed brokers excuse; None where none had clients."""
    failures = [one for host in experiment.brokers.values() for one in host.failures]
    if not failures:
        return None
    kept = [batch for one in failures for batch in one.lost or ()]
    for source, (_, recording) in zip(experiment.sources, experiment.recordings, strict=True):
        if forgotten := _forgetful(source.broker):
            last_s = forgotten[-1].moment + experiment.ahead_s(source.name)
            late = [run for refusal in _late(experiment, source) for run in refusal.sequences]
            for batch in recording.batches:
                mask = _among(batch, late) & (batch.time <= last_s * MICROSECONDS)
                kept += [batch.take(mask)] if mask.any() else []
    ahead_s = {one.name: experiment.ahead_s(one.name) for one in experiment.sources}
    first_s = min(one.moment for one in failures)
    return Losses(first_s, kept, experiment.book.held, ahead_s)


def _taken(experiment: Experiment) -> Iterator[EventBatch]:
    """The events that are published, but for those that came too late."""
    for source, (_, recording) in zip(experiment.sources, experiment.recordings, strict=True):
        late = [run for refusal in _late(experiment, source) for run in refusal.sequences]
        for batch in recording.batches:
            gone = _among(batch, late)
            yield batch.take(~gone) if gone.any() else batch


def _among(batch: EventBatch, runs: Iterable[tuple[int, int]]) -> Bools:
    """bool[n]: which events have numbers within these."""
    numbers = batch.ids.sequence
    found = np.zeros(len(batch), dtype=np.bool_)
    for first, last in runs:
        found |= (numbers >= first) & (numbers <= last)
    return found


def _impossible(experiment: Experiment, composite: Sequence[Event]) -> Iterator[str]:
    """Composite events that cannot be, whatever came when: those that came twice, of no rule, of
    events that nobody published, or before these were. Brokers' clocks are those of the events,
    which come before their times where their source's clock is ahead.
    """
    names = {RULE_SOURCE + name for name in experiment.book.names}
    ahead = {
        source.name: math.ceil(experiment.ahead_s(source.name) * MICROSECONDS)
        for source in experiment.sources
    }
    times = {
        f"{event.source}#{event.id}": event.time - ahead[event.source]
        for batch in experiment.batches
        for event in batch.events()
    }
    seen: set[tuple[str, str]] = set()
    for event in composite:
        told = f"{event.type} of {event.source}, id {event.id}"
        if (event.source, event.id) in seen:
            yield f"twice: {told}"
        seen.add((event.source, event.id))
        if event.source not in names:
            yield f"of no rule: {told}"
        for cause in event.cause_full:
            if cause.startswith((RULE_SOURCE, f"{timers.SOURCE}#", f"{timers.SOURCE}/")):
                continue
            if cause not in times:
                yield f"of {cause}, which nobody published: {told}"
            elif event.time < times[cause]:
                yield f"at {event.time} us, before {cause}: {told}"


def _within(taken: Sequence[EventBatch], answer: Answer) -> Answer:
    """Without what timers brought before and after the input, which a recording has not (S13)."""
    times = [batch.time for batch in taken if len(batch)]
    least = min((int(one.min()) for one in times), default=0)
    greatest = max((int(one.max()) for one in times), default=0)
    kept = tuple(event for event in answer.composite if least <= event.time <= greatest)
    return Answer(kept, answer.published)


def _ticks(experiment: Experiment) -> bool:
    """Whether any rule goes by the clock, which never ends."""
    return any(TIMER in one.rule.used_types for one in experiment.book.held)


def check_network(outcome: Outcome) -> Iterator[str]:
    """In every connected part all agree on it and on its centre, and its trees are trees."""
    for part in parts_of(outcome.experiment):
        yield from _check_part(part)


def _check_part(part: Part) -> Iterator[str]:
    names = part.brokers.keys()
    overlays = {name: broker.overlay for name, broker in part.brokers.items()}
    centres = {overlay.topology.part.centre for overlay in overlays.values()}
    for name, overlay in overlays.items():
        if overlay.topology.part.nodes != names:
            yield f"broker {name} sees {len(overlay.topology.part.nodes)} of {len(names)} brokers"
    if len(centres) > 1:
        yield f"there are several centres: {', '.join(sorted(centres))}"
        return
    (centre,) = centres
    trees = {name: overlay.topology.trees.find(centre) for name, overlay in overlays.items()}
    fathers = {name: tree.father for name, tree in trees.items() if tree is not None}
    children = {
        (name, child) for name, tree in trees.items() if tree is not None for child in tree.children
    }
    edges = {(father, name) for name, father in fathers.items() if father is not None}
    if len(fathers) < len(names) or edges != children:
        yield f"fathers and children of the tree of {centre} do not agree"
    elif len(names) > 1 and not nx.is_tree(nx.Graph(list(edges))):
        yield f"the tree of {centre} is no tree"


# --- what the watch has seen, and what is there at the end ---


def check_agreement(outcome: Outcome) -> Iterator[str]:
    """Whenever the network was at rest tables agreed; and once all is over it comes to rest, unless
    a broker drains, or a clock ticks: where links take longer than that, something is always under
    way.
    """
    yield from _seen(outcome, "tables")
    if not outcome.settled:
        return
    watch = outcome.experiment.watch
    has_rested = (
        watch is None
        or _ticks(outcome.experiment)
        or any(host.drains for host in outcome.experiment.brokers.values())
        or (
            watch.rested_at is not None
            and watch.rested_at >= outcome.experiment.simulation.now - REST_S
        )
    )
    for part in parts_of(outcome.experiment):
        if part.is_at_rest:
            yield from check_tables(part)
        elif not has_rested:
            yield f"broker {next(part.restless, part.root)}: it does not come to rest"


def check_sink_trees(outcome: Outcome) -> Iterator[str]:
    """Whenever the network was at rest the trees for sinks were trees, and so they are now; and no
    tree had two fathers for one broker, or a cycle.
    """
    yield from _seen(outcome, "trees")
    if outcome.settled:
        for part in parts_of(outcome.experiment):
            if part.is_at_rest:
                yield from check_trees(part)


def check_buffers(outcome: Outcome) -> Iterator[str]:
    """Nothing was longer than it may be; and once all is over nothing waits."""
    yield from _seen(outcome, "buffers")
    if not outcome.settled:
        return
    for name, host in outcome.experiment.brokers.items():
        if host.is_running:
            for sink in host.broker.context.sinks:
                if sink.queued:
                    yield f"broker {name}: {sink.queued} events still wait for sink {sink.name}"
    for source in outcome.experiment.sources:
        if source.session.outgoing.unacknowledged:
            unacknowledged = source.session.outgoing.unacknowledged
            yield f"source {source.name}: {unacknowledged} events are not acknowledged"


def check_marks(outcome: Outcome) -> Iterator[str]:
    """Marks that went back, which none may."""
    yield from _seen(outcome, "marks")


def _seen(outcome: Outcome, name: str) -> Iterator[str]:
    watch = outcome.experiment.watch
    if watch is not None:
        yield from watch.found.get(name, ())


CHECKERS: Mapping[str, Callable[[Outcome], Iterator[str]]] = {
    "results": check_results,
    "network": check_network,
    "tables": check_agreement,
    "trees": check_sink_trees,
    "buffers": check_buffers,
    "marks": check_marks,
}
assert tuple(CHECKERS) == CHECKS
