"""One neighbour in the tree: what is wanted beyond it, and what is about to be sent there."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache

from matcher.model import EventBatch, EventType, Int64s
from routing.deployment import Deployed
from routing.errors import Refusal
from routing.messages import Flow, Known
from routing.network.demand import Demand
from routing.network.owed import Marks, Owed
from routing.order import greatest_time
from routing.parcel import Parcel
from routing.partition.predicates import Predicate
from routing.subscriptions import PER_TYPE_MAX, Interest, interest, parcel_of
from rules.pattern import CANDIDATE


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
        self.owed = Owed()
        """What it was told of marks."""

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
        self.owed.arrange(rule.rule.name for rule in self.rules)

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
        """The same for composite events, and what is to be told of marks with them.

        ``every_mark`` and ``ended`` as in Owed.learn.
        """
        wanted = self.offer(batches, order) if batches else None
        told = self.owed.learn(marks, ended=ended, every=every_mark)
        if wanted is not None:
            told += self.owed.send(max(map(greatest_time, wanted.batches)))
        self.add_marks(told)

    def tell_all(self) -> None:
        """Tell all marks that are owed."""
        self.add_marks(self.owed.take_all())

    def add_marks(self, marks: Marks) -> None:
        """Send marks behind the events."""
        if marks:
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
