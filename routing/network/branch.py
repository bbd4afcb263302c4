"""One neighbour in the tree: what is wanted beyond it, and what is about to be sent there."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType, Int64s
from routing.deployment import Deployed
from routing.errors import Refusal
from routing.messages import Flow, Known
from routing.network.demand import Demand
from routing.order import greatest_time
from routing.parcel import Parcel
from routing.partition.predicates import Predicate
from routing.subscriptions import PER_TYPE_MAX, Interest, interest, parcel_of
from rules.pattern import CANDIDATE
from rules.subscription import Subscription

Marks = tuple[tuple[str, int], ...]


class Branch:
    """What lies beyond one neighbour."""

    def __init__(self, neighbour: str) -> None:
        self.neighbour = neighbour
        self.filters: tuple[str, ...] = ()
        """What is wanted there."""
        self.told: tuple[str, ...] | None = None
        """What it was told to send, None before it was told anything."""
        self.known: Known | None = None
        """What it was told that the root knows."""
        self.rules: tuple[Deployed, ...] = ()
        """The rules whose composite events are wanted there."""
        self._interests: tuple[Interest, ...] = ()
        self._demands: dict[str, Demand] = {}  # by the name of the type
        self._indexed: tuple[tuple[str, ...], list[EventType | None]] = (), []
        """The filters, and their types as far as they are known, for which that was worked out."""
        self._flows: list[Flow] = []
        self._promises: dict[str, int] = {}
        self._marks: dict[str, int] = {}
        self._ended: set[str] = set()
        self._latest = TIME_MIN

    def index(
        self, schemas: Mapping[str, EventType], defining: Mapping[str, Sequence[Deployed]]
    ) -> None:
        """Filters, types or rules have changed: work out anew what is wanted.

        Every source that comes or goes changes the types for all brokers; what no filter here is
        of changes nothing.
        """
        named = dict.fromkeys(name for text in self.filters if (name := type_named(text)))
        known = [schemas.get(name) for name in named]
        if self._indexed != (self.filters, known):
            self._indexed = self.filters, known
            self._interests = tuple(_checked(self.filters, schemas))
            self._demand()
        names = dict.fromkeys(one.type_name for one in self._interests)
        self.rules = tuple(rule for name in names for rule in defining.get(name, ()))
        self._marks = {
            rule.rule.name: self._marks.get(rule.rule.name, TIME_MIN) for rule in self.rules
        }

    @property
    def predicates(self) -> Iterator[Predicate]:
        """What is wanted there of published events, or more."""
        for one in _bounded(self._interests):
            if one.filter is not None:
                yield Predicate.of(one.filter.type, one.filter.conditions, CANDIDATE)

    def _demand(self) -> None:
        by_type: dict[EventType, dict[str, Subscription]] = {}
        for one in self._interests:
            if one.filter is not None:
                by_type.setdefault(one.filter.type, {})[one.text] = one.filter
        before, self._demands = self._demands, {}
        for event_type, filters in by_type.items():
            demand = before.get(event_type.name)
            if demand is None or demand.type != event_type:
                demand = Demand(event_type)
            demand.set(filters)
            self._demands[event_type.name] = demand

    # --- what is about to be sent ---

    def offer(self, batches: Sequence[EventBatch], order: Int64s | None) -> Parcel | None:
        """Send what is wanted of these events, and give it; None for nothing."""
        demands = [self._demands.get(batch.type.name) for batch in batches]
        if not any(demands):
            return None  # which is common, and cheaper to find out than what is wanted of them
        patterns = [
            [] if demand is None else demand.patterns(batch)
            for demand, batch in zip(demands, batches, strict=True)
        ]
        parcel = parcel_of(batches, patterns, order)
        if parcel is not None:
            self._flows.append(Flow(parcel.batches, parcel.order))
        return parcel

    def offer_detected(
        self,
        batches: Sequence[EventBatch],
        order: Int64s | None,
        marks: Mapping[str, int],
        *,
        every_mark: bool = False,
        ended: Container[str] = (),
    ) -> None:
        """The same for composite events, with the marks that say when they are due.

        A mark is told only until it has passed everything that was sent: further on there is
        nothing that waits for it. ``every_mark``: it is told always, since events that come to the
        same sinks another way may wait for it. ``ended`` are rules that nobody publishes anything
        for any more: it is told once, and once more if that is no longer so.
        """
        wanted = self.offer(batches, order) if batches else None
        if wanted is not None:
            self._latest = max(self._latest, *map(greatest_time, wanted.batches))
        news = {
            name: marks[name]
            for name, told in self._marks.items()
            if (every_mark or told <= self._latest) and marks.get(name, TIME_MIN) > told
        }
        if news:
            self._marks.update(news)
            self.add_marks(tuple(news.items()))
        for name in self._marks.keys() & marks.keys():
            if (name in ended) != (name in self._ended):
                self._tell_end(name, marks[name], has_ended=name in ended)

    def _tell_end(self, name: str, mark: int, *, has_ended: bool) -> None:
        self._marks[name] = max(mark, self._marks[name])
        self.add_marks(((name, mark), (name, TIME_MAX)) if has_ended else ((name, mark),))
        (self._ended.add if has_ended else self._ended.discard)(name)

    def begin_anew(self) -> None:
        """Rules begin anew, and what was said of marks is forgotten there."""
        self._marks = dict.fromkeys(self._marks, TIME_MIN)
        self._ended.clear()
        self._latest = TIME_MIN

    def add_marks(self, marks: Marks) -> None:
        """Send marks behind the events."""
        self._last_flow(marks=marks)

    def promise(self, source: str, mark: int) -> None:
        """Send a promise behind the events."""
        self._promises[source] = mark

    def take_flows(self) -> list[Flow]:
        """What is to be sent now."""
        if self._promises:
            self._last_flow(promises=tuple(self._promises.items()))
            self._promises = {}
        flows, self._flows = self._flows, []
        return flows

    def _last_flow(self, *, marks: Marks = (), promises: Marks = ()) -> None:
        flow = self._flows.pop() if self._flows else Flow()
        self._flows.append(
            replace(flow, marks=flow.marks + marks, promises=flow.promises + promises)
        )


def _checked(filters: Iterable[str], schemas: Mapping[str, EventType]) -> list[Interest]:
    """The filters that fit the types as they are known here; the others match nothing yet."""
    found = ((text, type_named(text)) for text in filters)
    interests = (
        known_interest(text, schemas.get(name)) for text, name in found if name is not None
    )
    return [one for one in interests if one is not None]


@lru_cache(maxsize=65_536)
def type_named(text: str) -> str | None:
    """The type that a filter is of; None when the text is no filter."""
    try:
        return interest(0, text, {}).type_name
    except Refusal:
        return None


@lru_cache(maxsize=65_536)
def known_interest(text: str, schema: EventType | None) -> Interest | None:
    """A filter checked against its type, if that is known; None when it does not fit."""
    # Remembered, since every change of anything makes all of them to be looked at again.
    try:
        return interest(0, text, {} if schema is None else {schema.name: schema})
    except Refusal:
        return None


def _bounded(interests: Sequence[Interest]) -> list[Interest]:
    """At most PER_TYPE_MAX a type: beyond that, all of its events."""
    by_type: dict[str, list[Interest]] = {}
    for one in interests:
        by_type.setdefault(one.type_name, []).append(one)
    bounded = []
    for name, same in by_type.items():
        if len(same) > PER_TYPE_MAX and (first := same[0]).filter is not None:
            every = replace(first.filter, conditions=())
            same = [Interest(0, name, name, every)]
        bounded += same[:PER_TYPE_MAX]
    return bounded
