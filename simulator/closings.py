"""Answers of sinks where brokers out of reach for too long were closed by others.

The root of a part says so in its log: the *inputs* of these brokers are closed. Afterwards they
begin beyond all marks, and what is earlier is refused as late, by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, Event
from routing.effects import Log
from routing.network.brokers.planner import INPUTS_CLOSED
from routing.node import LOST_CLOSED
from simulator.clients import Sink, Source
from simulator.network import Network
from simulator.oracle import Answer

Found: TypeAlias = Callable[[frozenset[str]], Answer]
"""The part that a sink is due of the answer without these sources."""
TOGETHER_S = 15.0
"""So long after the last fault all is surely well again."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The inputs of these brokers were closed by others."""

    brokers: frozenset[str]

    def beyond(self, broker: str, sources: Iterable[Source]) -> frozenset[str]:
        """The sources on the other side than a broker."""
        is_closed = broker in self.brokers
        return frozenset(
            one.name for one in sources if (one.broker.name in self.brokers) != is_closed
        )


class Closings:
    """All of them."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._all = {
            Closing(frozenset(log.fields["brokers"])) for _, log in _told(network, INPUTS_CLOSED)
        }
        faults, first = network.scenario.faults, network.first_time
        way_s = 0.5 + 10 * sum(link.quality.delay_s for link in network.scenario.links)
        begins_s = first + min((one.at_s for one in faults), default=math.inf) - way_s
        ends_s = first + max((one.end_s for one in faults), default=-math.inf) + TOGETHER_S
        self._begins, self._ends = begins_s * MICROSECONDS, ends_s * MICROSECONDS

    def __bool__(self) -> bool:
        return bool(self._all)

    def expected(self, sink: Sink, found: Found, got: Answer) -> Answer:
        """The answer of events that must have come to a sink, and of those that came and might.

        What rules find that need no closed input is exact, and so is what any rule finds after all
        is well again. Anything else that comes is true, of all events or of those of one side of a
        closing, and may be incomplete. A at b0 and B at b1, which is cut off: a sink at b0 lacks
        some of a rule over B, and nothing of one over A; nothing comes to it twice.
        """
        sources = self._network.sources
        beyond = {one.beyond(sink.broker.name, sources) for one in self._all}
        answers = {absent: found(absent) for absent in _together(beyond)}
        whole = answers[frozenset()]
        lacking = self._rules_over(frozenset().union(*beyond))

        def must(event: Event) -> bool:
            return event.source not in lacking or event.time > self._ends

        each = {_key(one): one for answer in answers.values() for one in answer.composite}
        due = {_key(one) for one in whole.composite if must(one)}
        might = {key for key, one in each.items() if key in due or not must(one)}
        came = dict.fromkeys(_key(one) for one in got.composite)
        missing = [each[key] for key in due - came.keys()]
        in_order = _in_order([each[key] for key in came if key in might], must)
        composite = sorted([*in_order, *missing], key=lambda one: one.time) if missing else in_order
        return Answer(tuple(composite), self._published(sink, whole, got))

    def _rules_over(self, sources: frozenset[str]) -> frozenset[str]:
        """The rules that need types of these sources, as sources of composite events."""
        held = [one.rule for one in self._network.book.held]
        types = {
            schema.name
            for one in self._network.sources
            if one.name in sources
            for schema in one.types
        }
        found: set[str] = set()
        while True:
            over = [
                rule for rule in held if types.intersection(used.name for used in rule.used_types)
            ]
            if {rule.name for rule in over} == found:
                return frozenset(RULE_SOURCE + name for name in found)
            found = {rule.name for rule in over}
            types |= {rule.defines.name for rule in over}

    def _published(self, sink: Sink, whole: Answer, got: Answer) -> tuple[Event, ...]:
        """The published events that are due: one may not have come from one side of a closing to
        the other.
        """
        beyond = {one.beyond(sink.broker.name, self._network.sources) for one in self._all}
        may_lack = frozenset().union(*beyond)
        come = {_key(one) for one in got.published}
        return tuple(
            one
            for one in whole.published
            if _key(one) in come or one.source not in may_lack or one.time < self._begins
        )


def _in_order(came: Iterable[Event], must: Callable[[Event], bool]) -> list[Event]:
    """Events that came, in order but for those that need not have: these stay where they came."""
    events = list(came)
    in_order = iter(sorted(filter(must, events), key=lambda one: one.time))
    return [next(in_order) if must(one) else one for one in events]


def closed_at(network: Network, source: Source) -> Iterator[float]:
    """The moments at which a source, or its broker, was closed, of which logs tell."""
    for moment, log in _told(network, INPUTS_CLOSED):
        if source.broker.name in log.fields["brokers"]:
            yield moment
    for moment, log in _told(network, LOST_CLOSED):
        if log.fields["source"] == source.name:
            yield moment


def _told(network: Network, text: str) -> Iterator[tuple[float, Log]]:
    """When logs say something in these words, and what."""
    for host in network.brokers.values():
        for moment, log in host.warnings:
            if log.text == text:
                yield moment, log


def _together(beyond: Iterable[frozenset[str]]) -> set[frozenset[str]]:
    """The sources that may have been missed together."""
    together = {frozenset[str]()}
    for sources in beyond:
        together |= {one | sources for one in together}
    return together


def _key(event: Event) -> tuple[str, str]:
    return event.source, event.id
