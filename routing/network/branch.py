"""One neighbour in the tree: what is wanted beyond it, and what is about to be sent there."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
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
        self.predicates: tuple[Predicate, ...] = ()
        """What is wanted there of published events, of types with few filters."""
        self.demands: dict[str, Demand] = {}
        """The same of types with more than PER_TYPE_MAX."""
        # By the names of types: what follows from the filters of each, which are looked at again
        # when they or the type have changed.
        self._indexed: dict[str, tuple[tuple[str, ...], EventType | None]] = {}
        self._fitting: set[str] = set()  # that have filters which fit, as far as they are known
        self._demands: dict[str, Demand] = {}
        self._predicates: dict[str, tuple[Predicate, ...]] = {}
        self._flows: list[Flow] = []
        self._promises: dict[str, int] = {}
        self.has_flows = False
        """Whether ``take_flows`` has something to give."""
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
        by_type = _by_type(self.filters)
        stale = [name for name in self._indexed if name not in by_type]
        for name, texts in by_type.items():
            wanted = texts, schemas.get(name)
            if self._indexed.get(name) != wanted:
                stale.append(name)
                self._indexed[name] = wanted
        for name in stale:
            self._demand(name, by_type.get(name, ()))
        if stale:
            self.predicates = tuple(one for name in by_type for one in self._predicates[name])
        names = (name for name in by_type if name in self._fitting)
        self.rules = tuple(rule for name in names for rule in defining.get(name, ()))
        self._marks = {
            rule.rule.name: self._marks.get(rule.rule.name, TIME_MIN) for rule in self.rules
        }

    def _demand(self, name: str, texts: Sequence[str]) -> None:
        """The filters of a type, or the type, have changed."""
        before = self._demands.pop(name, None)
        self._fitting.discard(name)
        self.demands.pop(name, None)
        self._predicates[name] = ()
        if not texts:
            del self._indexed[name], self._predicates[name]
            return
        _, schema = self._indexed[name]
        interests = [one for text in texts if (one := known_interest(text, schema)) is not None]
        if not interests:
            return
        self._fitting.add(name)
        filters = {one.text: one.filter for one in interests if one.filter is not None}
        if schema is None or not filters:
            return
        demand = before if before is not None and before.type == schema else Demand(schema)
        demand.set(filters)
        self._demands[name] = demand
        if len(filters) <= PER_TYPE_MAX:
            self._predicates[name] = tuple(_predicate_of(text, schema) for text in filters)
        else:
            self.demands[name] = demand

    def wants(self, name: str) -> bool:
        """Whether any events of a type are wanted there."""
        return name in self._demands

    # --- what is about to be sent ---

    def offer(self, batches: Sequence[EventBatch], order: Int64s | None) -> Parcel | None:
        """Send what is wanted of these events, and give it; None for nothing."""
        patterns = []
        for batch in batches:
            demand = self._demands.get(batch.type.name)
            patterns.append([] if demand is None else demand.patterns(batch))
        if not any(patterns):
            return None
        parcel = parcel_of(batches, patterns, order)
        if parcel is not None:
            self._flows.append(Flow(parcel.batches, parcel.order))
            self.has_flows = True
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
        for any more: it is told once, and once more if that is no longer so. In between no mark of
        theirs is told, though it may move with those of others: it would take that back.
        """
        wanted = self.offer(batches, order) if batches else None
        if wanted is not None:
            self._latest = max(self._latest, *map(greatest_time, wanted.batches))
        few = marks if len(marks) < len(self._marks) else self._marks
        common = [name for name in few if name in marks and name in self._marks]
        news = {
            name: marks[name]
            for name in common
            if not (name in ended and name in self._ended)
            if every_mark or self._marks[name] <= self._latest
            if marks[name] > self._marks[name]
        }
        if news:
            self._marks.update(news)
            self.add_marks(tuple(news.items()))
        for name in common:
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
        self.has_flows = True

    def take_flows(self) -> list[Flow]:
        """What is to be sent now."""
        if self._promises:
            self._last_flow(promises=tuple(self._promises.items()))
            self._promises = {}
        flows, self._flows = self._flows, []
        self.has_flows = False
        return flows

    def _last_flow(self, *, marks: Marks = (), promises: Marks = ()) -> None:
        last = self._flows.pop() if self._flows else Flow()
        told, promised = last.marks + marks, last.promises + promises
        self._flows.append(Flow(last.batches, last.order, promised, told))
        self.has_flows = True


@lru_cache(maxsize=256)  # in a large network each has thousands of filters
def _by_type(filters: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The filters by the type that they are of; texts that are no filters are left out."""
    found: dict[str, list[str]] = {}
    for text in filters:
        if (name := type_named(text)) is not None:
            found.setdefault(name, []).append(text)
    return {name: tuple(texts) for name, texts in found.items()}


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


@lru_cache(maxsize=65_536)
def _predicate_of(text: str, schema: EventType) -> Predicate:
    """A filter that fits its type, as fragments ask for events."""
    found = interest(0, text, {schema.name: schema}).filter
    assert found is not None
    return Predicate.of(schema, found.conditions, CANDIDATE)
