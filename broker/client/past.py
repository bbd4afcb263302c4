"""Events that a subscription would have brought, found in the logs of a network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from broker.client.manager import RuleManager
from broker.schemas import type_of
from broker.store.ordered import Step, Wanted, order_of, stand_in_order
from matcher.identity import rule_id
from matcher.model import TIME_MAX, TIME_MIN, EventType
from matcher.traces import TraceContexts
from routing.config import NodeConfig
from routing.delivery.sinks import Sinks
from routing.deployment import Deployed, Deployments, install
from routing.messages import Delivery, Subscribe
from routing.network.recovery.resume_points import from_resume_points_on
from routing.order import greatest_time
from routing.partition.replay_starts import replay_starts
from routing.permission import EVERY_TYPE
from routing.traced import with_traces
from rules.engine import make
from rules.engine.order.intervals import Intervals
from rules.language import load

HERE = b"past"
CREDIT = 2**31 - 1
QUEUE_EVENTS = 1_000_000
DELIVERY_EVENTS = 65_536


def rules_of(
    manager: RuleManager, names: Iterable[str]
) -> tuple[list[Deployed], dict[str, EventType]]:
    """The rules in force that events of these types may come from (all for ``*``), and all types
    that are known.
    """
    schemas = {one["name"]: type_of(one["schema"]) for one in manager.status()["types"]}
    listed = manager.list()
    wanted, found = set(names), dict[str, Deployed]()
    is_all = EVERY_TYPE in wanted
    while True:
        missing = [
            (serial, one)
            for serial, one in enumerate(listed)
            if one["name"] not in found and (is_all or one["type"] in wanted)
        ]
        if not missing:
            return sorted(found.values(), key=lambda one: one.place), schemas
        for serial, one in missing:
            rules = load(manager.show(one["name"])["text"], known=schemas)
            schemas.update(rules.schemas)
            (rule,) = rules.rules
            named = rule.named(rule_id(rule.name, one["version"]))
            found[one["name"]] = Deployed(named, one["since"], one["version"], serial)
            wanted.update(used.name for used in rule.used_types)


class Past:
    """Filters, and rules, over the events of the past from ``start`` on.

    The past is a file: what rules find in logs is what `rexmq detect` finds in `rexmq log export`,
    each rule within the stretch of time in which it holds. Composite events are given up to the
    marks of what their rules need: with Temps promised up to 45 s and Smokes up to 40 s, of fire
    all before 40 s are given.
    """

    def __init__(
        self,
        filters: Sequence[str],
        rules: Sequence[Deployed],
        schemas: Mapping[str, EventType],
        start: int,
    ) -> None:
        self._start = start
        self._asked = Wanted(since=start)
        self._schemas = dict(schemas)
        config = NodeConfig(name="past")
        self._deployments = Deployments(config)
        self._deployments.adopt(rules, ())
        self._sinks = Sinks(config, self._deployments)
        for number, text in enumerate(filters, 1):
            asked = Subscribe(number, number, text, limit=QUEUE_EVENTS, again=True)
            self._sinks.subscribe(HERE, "", asked, self._schemas)
        sink = self._sinks.find(HERE)
        assert sink is not None, "somebody asks for something"
        self._sink = sink
        self._sinks.index()
        self._engine = Intervals(make("cdp" if rules else "naive"))
        self.traces = TraceContexts()
        """Trace contexts of events that have been read, and of what was found of them."""
        install(self._engine, rules, self._schemas)
        self._resume_from = {one.rule.name: start for one in rules}
        self._fronts: dict[str, int] = {}
        """By type, the time behind the last event."""
        self.reached: dict[str, int] = {}
        """By rule (plain names), the time up to which its composite events have been given."""

    @property
    def since(self) -> int | None:
        """The time from which on events matter; None for all."""
        times = replay_starts(self._deployments.rules, self._resume_from).horizons.values()
        least = min([self._start, *times])
        return None if least <= TIME_MIN else least

    def take(self, step: Step, marks: Mapping[str, int]) -> Iterator[Delivery]:
        """Take in the events of a step. ``marks``: as all that follows will not go beyond."""
        self._learn(one.type for one in step.batches)
        for batch in step.batches:
            name = batch.type.name
            self._fronts[name] = max(self._fronts.get(name, TIME_MIN), greatest_time(batch) + 1)
            if len(self._deployments):
                self._engine.push(batch)
        asked = [one for batch in step.batches if (one := self._asked.of(batch)) is not None]
        if asked:
            order = None if stand_in_order(asked) else order_of(asked)
            self._sinks.offer(tuple(asked), order)
        self._advance(step.complete, marks)
        self._sink.grant(HERE, CREDIT, CREDIT)
        while (delivery := self._sink.take(DELIVERY_EVENTS)) is not None:
            yield with_traces(delivery, self.traces) if self.traces.has_any else delivery

    def _learn(self, types: Iterable[EventType]) -> None:
        new = {one.name: one for one in types if self._schemas.get(one.name) != one}
        if new:
            self._schemas.update(new)
            self._sinks.check(self._schemas)

    def _advance(self, complete: int, marks: Mapping[str, int]) -> None:
        """Evaluate all before ``complete``, as far as the marks go. A type without a mark, which
        nobody may publish any more, binds no rule that another binds; of one that nothing binds
        there is nothing behind its last event.
        """
        needed = {name for one in self._deployments for name in self._needs(one)}
        front = max(self._fronts.values(), default=TIME_MIN)
        closed = max([front, *(marks[name] for name in needed if name in marks)])
        known = {name: min(complete, marks.get(name, closed)) for name in needed}
        for one in self._deployments:
            bounds = [marks[name] for name in self._needs(one) if name in marks]
            ends = [self._fronts.get(name, TIME_MIN) for name in self._needs(one)]
            bound = min(bounds) if bounds else max(ends, default=TIME_MIN)
            self.reached[one.name] = max(min(complete, bound), self.reached.get(one.name, TIME_MIN))
        found = from_resume_points_on(self._engine.advance(known), self._resume_from)
        self.traces.follow(found.batches)
        self._sinks.offer_detected(found, self._complete_to)

    def _complete_to(self, rules: Sequence[Deployed]) -> int:
        return min([self.reached[one.name] for one in rules], default=TIME_MAX)

    def _needs(self, one: Deployed) -> frozenset[str]:
        return self._deployments.needs(one.rule.name)
