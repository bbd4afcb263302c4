"""What sinks get where a network fell apart, and its parts have gone on without one another.

They do so once they have forgotten each other (``forget_s``), and their brokers' logs say it: the
root of a part that its rules go on, and without whom; and where parts are together again, each
broker of each of its sources up to where others may have done without it.

Law 1: between being cut off and being together again a part's composite events are what its rules
find in the events of its own sources alone, as if there had never been others; before and after,
what they find in all events. Of the time about either turn each may be found in one way or the
other, and come when it comes. Nothing else may differ: what no log has said is not missing.

Law 2: a published event of which a log has said so may not have come to the other part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx

from matcher.model import MICROSECONDS, TIME_MIN, Event
from routing.effects import Log
from routing.network.brokers.following import DID_WITHOUT
from routing.network.brokers.planning import GO_ON_WITHOUT
from routing.node import LOST_CLOSED
from routing.serving.service import LEFT_OUT
from simulator.clients import Sink, Source
from simulator.faults import FAILURES, Fault
from simulator.network import Network
from simulator.oracle import Answer, delivered

Found: TypeAlias = Callable[[frozenset[str]], Answer]
"""What a sink is due of what is found without these sources."""
TOGETHER_S = 15.0
"""So long after a cut the parts are surely together again, and go by one plan."""


@dataclass(frozen=True, slots=True)
class Parting:
    """A part of the network has done without the sources of another: those who were cut off at a
    moment, in seconds.

    In microseconds of event time: its rules did without them for sure from ``begun`` until
    ``ending``, if they went on that far, and no longer than up to ``end``, that included.
    """

    part: frozenset[str]
    sources: frozenset[str]
    cut_s: float
    begun: float
    ending: float
    end: float

    def is_sure(self, last: int, time: int) -> bool:
        """Whether a rule was evaluated at an instant without the sources, for a sink that it had
        something for up to ``last`` while they were away. The sink need not have heard that there
        was nothing after that: then it gets what there is in all events.
        """
        return self.begun <= time <= last and time < self.ending

    def may_be(self, reached: int, time: int) -> bool:
        """Whether a rule may have been evaluated at an instant without the sources, for a sink that
        had its composite events up to there when they were cut off.
        """
        return reached <= time <= self.end


class Partings:
    """All of them."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._way_s = 0.5 + 10 * sum(link.quality.delay_s for link in network.scenario.links)
        self._all = [
            self._parting(name, moment, frozenset(log.fields["brokers"]))
            for name, moment, log in _told(network, GO_ON_WITHOUT)
        ]
        self._done_without: dict[str, list[tuple[str, float, int]]] = {}
        """By source: its broker, when that said that others had done without it, and up to when."""
        for name, moment, log in _told(network, DID_WITHOUT):
            said = self._done_without.setdefault(log.fields["source"], [])
            said.append((name, moment, log.fields["up_to"]))

    def __bool__(self) -> bool:
        return bool(self._all or self._done_without)

    def _parting(self, root: str, told_s: float, forgotten: frozenset[str]) -> Parting:
        network, way_s = self._network, self._way_s
        part = frozenset(nx.node_connected_component(_graph_at(network, told_s), root))
        part -= forgotten
        cut_s, healed_s = _cut(network, told_s, part, forgotten)
        sources = [one for one in network.sources if one.broker.name in forgotten]
        noticed_s = cut_s + way_s + 4 * network.scenario.heartbeat_s
        ending = healed_s - way_s
        up_to: dict[str, int] = {}  # by source, what is said of it first
        for name, moment, log in _told(network, DID_WITHOUT):
            if name in forgotten and moment >= told_s:
                up_to.setdefault(log.fields["source"], log.fields["up_to"])
        return Parting(
            part,
            frozenset(one.name for one in sources),
            cut_s,
            max([noticed_s * MICROSECONDS, *(one.said_by(cut_s) for one in sources)]),
            ending * MICROSECONDS,
            max(up_to.values(), default=self._end_untold(forgotten, cut_s, healed_s)),
        )

    def _end_untold(self, forgotten: frozenset[str], cut_s: float, healed_s: float) -> float:
        """Until when a part's rules may have done without others who do not say so: those who have
        published something meanwhile would have said it.
        """
        recordings = zip(self._network.sources, self._network.recordings, strict=True)
        silent = all(
            recording.greatest_time < cut_s * MICROSECONDS
            for source, (_, recording) in recordings
            if source.broker.name in forgotten
        )
        return (healed_s + (TOGETHER_S if silent else 0.0)) * MICROSECONDS

    def expected(self, sink: Sink, found: Found, got: Answer) -> Answer:
        """What must have come to a sink, and what has come and might."""
        own = [one for one in self._all if sink.broker.name in one.part]
        answers = {absent: found(absent) for absent in _each(own)}
        reached = {one: self._reached(sink, one.cut_s, answers[frozenset()]) for one in own}
        last = {one: _last(answers[one.sources], one.ending) for one in own}
        keys = {
            absent: {_key(one) for one in answer.composite} for absent, answer in answers.items()
        }

        def ways(event: Event) -> tuple[frozenset[str], frozenset[str]]:
            """Without whom it was found for sure, and perhaps."""
            source, time = event.source, event.time
            surely = [one for one in own if one.is_sure(last[one].get(source, TIME_MIN), time)]
            perhaps = [one for one in own if one.may_be(reached[one].get(source, TIME_MIN), time)]
            return _sources(surely), _sources(perhaps)

        def must(event: Event) -> bool:
            least, most = ways(event)
            return least == most and _key(event) in keys[least]

        def might(event: Event) -> bool:
            return any(_key(event) in keys[absent] for absent in ways(event) if absent in keys)

        come = {_key(one) for one in got.composite}
        each = {_key(one): one for answer in answers.values() for one in answer.composite}
        missing = [one for one in each.values() if must(one) and _key(one) not in come]
        came = _in_order(filter(might, got.composite), must)
        composite = sorted([*came, *missing], key=lambda one: one.time) if missing else came
        return Answer(tuple(composite), self._published(sink, answers[frozenset()], got))

    def _published(self, sink: Sink, whole: Answer, got: Answer) -> tuple[Event, ...]:
        """Law 2."""
        come = {_key(one) for one in got.published}
        spans = {
            source: [
                (self._apart_since(home, sink.broker.name, told_s), up_to)
                for home, told_s, up_to in said
            ]
            for source, said in self._done_without.items()
        }

        def may_lack(event: Event) -> bool:
            return any(since <= event.time <= up_to for since, up_to in spans.get(event.source, ()))

        return tuple(one for one in whole.published if _key(one) in come or not may_lack(one))

    def _apart_since(self, one: str, other: str, told_s: float) -> float:
        """Since when two brokers were in different parts that were together again by a moment, in
        microseconds of what is published; inf if they never were.
        """
        network = self._network
        since_s, was_apart = math.inf, False
        for moment in _turns(network, told_s):
            graph = _graph_at(network, moment)
            is_apart = not (one in graph and other in graph and nx.has_path(graph, one, other))
            if is_apart and not was_apart:
                since_s = moment
            was_apart = is_apart
        return (since_s - self._way_s) * MICROSECONDS

    def _reached(self, sink: Sink, moment: float, whole: Answer) -> Mapping[str, int]:
        """By source, up to where a sink had composite events at a moment; it need not have been
        told that there were none after these. Where rules may have waited for sources that had said
        nothing yet, what came by then says it.
        """
        recordings = [one for _, one in self._network.recordings]
        if all(one.least_time < (moment - self._way_s) * MICROSECONDS for one in recordings):
            return _last(whole, (moment - self._way_s) * MICROSECONDS)
        came = delivered(one for one in sink.arrivals if one.moment < moment)
        return {one.source: one.time for one in came.composite}


def _in_order(came: Iterable[Event], must: Callable[[Event], bool]) -> list[Event]:
    """What has come, in order but for what need not have: that stays where it came."""
    events = list(came)
    in_order = iter(sorted(filter(must, events), key=lambda one: one.time))
    return [next(in_order) if must(one) else one for one in events]


def forgotten_at(network: Network, source: Source) -> Iterator[float]:
    """The moments at which others had gone on without a source's broker, which it was told of."""
    for _, moment, log in _told(network, GO_ON_WITHOUT):
        if source.broker.name in log.fields["brokers"]:
            yield moment


def left_out_at(network: Network, source: Source) -> Iterator[float]:
    """The moments at which a broker has left a source out, or closed it since it was lost, so that
    rules go on without it.
    """
    for text in (LEFT_OUT, LOST_CLOSED):
        for _, moment, log in _told(network, text):
            if log.fields["source"] == source.name:
                yield moment


def _told(network: Network, text: str) -> Iterator[tuple[str, float, Log]]:
    """What logs say in these words: whose, when, and what."""
    for name, host in network.brokers.items():
        for moment, log in host.warnings:
            if log.text == text:
                yield name, moment, log


def _turns(network: Network, until_s: float) -> list[float]:
    """The moments at which faults begin or end, up to one."""
    first = network.first_time
    faults = network.scenario.faults
    return sorted(
        moment
        for fault in faults
        for moment in (first + fault.at_s, first + fault.end_s)
        if moment <= until_s
    )


def _graph_at(network: Network, moment: float) -> nx.Graph:
    """The brokers that run at a moment, and the links that are not cut."""
    graph, first = network.scenario.graph, network.first_time
    for fault in network.scenario.faults:
        if first + fault.at_s <= moment < first + fault.end_s:  # as _turns has it, to the last bit
            if fault.kind == "cut":
                graph.remove_edges_from(fault.links or list(graph.edges))
            elif fault.kind in FAILURES:
                graph.remove_nodes_from(fault.brokers or list(graph))
    return graph


def _cut(
    network: Network, told_s: float, part: frozenset[str], forgotten: frozenset[str]
) -> tuple[float, float]:
    """From when to when these brokers were cut off from that part, or did not run, as they were
    shortly before a moment.
    """
    first = network.first_time
    spans = [
        (first + fault.at_s, first + fault.end_s)
        for fault in network.scenario.faults
        if first + fault.at_s <= told_s <= first + fault.end_s + TOGETHER_S
        and _separates(fault, part, forgotten)
    ]
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    return max(begins, default=told_s), min(ends, default=math.inf)


def _separates(fault: Fault, part: frozenset[str], forgotten: frozenset[str]) -> bool:
    if fault.kind in FAILURES:
        return not forgotten.isdisjoint(fault.brokers or forgotten)
    return fault.kind == "cut" and (
        not fault.links or any((one in part) != (other in part) for one, other in fault.links)
    )


def _last(answer: Answer, ending: float) -> Mapping[str, int]:
    """By source, the last of what is found before then."""
    return {one.source: one.time for one in answer.composite if one.time < ending}


def _each(own: Iterable[Parting]) -> set[frozenset[str]]:
    """The sources that a sink may have done without together."""
    together = {frozenset[str]()}
    for parting in own:
        together |= {one | parting.sources for one in together}
    return together


def _sources(apart: Iterable[Parting]) -> frozenset[str]:
    return frozenset[str]().union(*(one.sources for one in apart))


def _key(event: Event) -> tuple[str, str]:
    return event.source, event.id
