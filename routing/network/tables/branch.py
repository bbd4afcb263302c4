"""One neighbour in the tree: what is wanted beyond it, and what is about to be sent there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import EventBatch, EventType, Int64s
from routing.delivery.delivery_batch import DeliveryBatch, in_messages
from routing.delivery.subscriptions import delivery_batch_of
from routing.deployment import Deployed
from routing.messages import Catalog, Flow, SubscriptionUpdate
from routing.network.tables.deferred_watermarks import DeferredWatermarks, RuleWatermarks
from routing.network.tables.demand import Demand
from routing.network.tables.filters import TypeFilters, filters_of, type_of
from routing.order import greatest_time


class Branch:
    """One neighbour, and what is beyond; many filters are matched as ``matching`` says."""

    def __init__(self, neighbour: str, matching: Matching = ON_PROCESSOR) -> None:
        self.neighbour = neighbour
        self._matching = matching
        self.told: dict[str, tuple[str, ...]] | None = None
        """Filters that it was told to send by, by type; None before it was told anything."""
        self.told_number = 0
        """The number under which it was told that."""
        self.untold: set[str] = set()
        """The types of which it may have to be told something else."""
        self.has_joined = False
        """Whether it is in the plan, and nobody has been asked since what else is known."""
        self.catalog: Catalog | None = None
        """The root's catalog as it was told."""
        self.has_told_catalog = False
        """Whether it has told that to this broker, whole, so that it may amend it."""
        self.rules: tuple[Deployed, ...] = ()
        """The rules whose composite events are wanted there."""
        self.demands: dict[str, Demand] = {}
        """Demands for events that are wanted there, by type."""
        self.wanted_version = 0
        """Counts up whenever there are other ones."""
        self._heard_number = 0
        self._filters: dict[str, TypeFilters] = {}
        self.types: Collection[str] = self._filters.keys()
        """The types of the filters; a text that is no filter stands for itself."""
        self._stale: set[str] = set()
        """The types of which filters have changed since ``index``."""
        self._many: dict[str, Demand] = {}
        """Demands of types with MANY filters, which come and go."""
        self._flows: list[Flow] = []
        self.has_flows = False
        """Whether ``take_flows`` has something to give."""
        self.deferred = DeferredWatermarks()
        """Marks that it was told, or is owed."""

    # --- what is wanted there ---

    def texts(self, name: str) -> tuple[str, ...]:
        """The filters of a type, sorted."""
        found = self._filters.get(name)
        return () if found is None else found.texts

    def hear(self, update: SubscriptionUpdate) -> set[str] | None:
        """The neighbour has told what it wants, or what else; gives the types of which that is
        news. None when this changes something else than what is known here: it is void.
        """
        if update.after and update.after != self._heard_number:
            return None
        self._heard_number = update.number
        changed: dict[str, set[str]] = {}
        if not update.after:
            changed = {name: set() for name in self._filters}
        for text in (*update.gone, *update.filters):
            name = type_of(text)
            if name not in changed:
                changed[name] = set(self.texts(name))
        for text in update.gone:
            changed[type_of(text)].discard(text)
        for text in update.filters:
            changed[type_of(text)].add(text)
        news = set()
        for name, texts in changed.items():
            now = tuple(sorted(texts))
            if now != self.texts(name):
                self._want(name, now)
                news.add(name)
        return news

    def _want(self, name: str, texts: tuple[str, ...]) -> None:
        self._stale.add(name)
        if texts:
            before = self._filters.get(name)
            self._filters[name] = filters_of(texts, None if before is None else before.schema)
        else:
            del self._filters[name]

    def index(
        self,
        schemas: Mapping[str, EventType],
        defining: Callable[[str], Sequence[Deployed]],
        changed: Iterable[str] | None = None,
    ) -> None:
        """Filters, types or rules have changed: work out anew what is wanted.

        ``defining``: the rules that define a type. ``changed``: the types that are others than when
        this was last called, None for any. Every source that comes or goes changes types for all
        brokers; what no filter here is of changes nothing.
        """
        stale, self._stale = self._stale, set()
        stale.update(self._filters if changed is None else self._filters.keys() & changed)
        for name in sorted(stale):
            self._look_at(name, schemas.get(name))
        rules = tuple(
            rule for name in sorted(self._filters) if self._fits(name) for rule in defining(name)
        )
        if rules != self.rules:
            self.rules = rules
            self.deferred.arrange(rule.rule.name for rule in rules)

    def _fits(self, name: str) -> bool:
        found = self._filters.get(name)
        return found is not None and found.fits

    def _look_at(self, name: str, schema: EventType | None) -> None:
        """The filters of a type, or the type, may have changed."""
        texts = self.texts(name)
        if not texts:
            self._drop(name)
            return
        found = self._filters[name] = filters_of(texts, schema)
        if not found.filters:
            self._drop(name)
            return
        demand = found.demand or self._demand_of_many(found)
        if found.demand is not None:
            self._many.pop(name, None)
        if self.demands.get(name) is not demand:
            self.demands[name] = demand
            self.wanted_version += 1

    def _demand_of_many(self, found: TypeFilters) -> Demand:
        assert found.schema is not None
        demand = self._many.get(found.schema.name)
        if demand is None or demand.type != found.schema:
            demand = Demand(found.schema, self._matching)
            self._many[found.schema.name] = demand
        demand.set(found.filters)
        return demand

    def _drop(self, name: str) -> None:
        self._many.pop(name, None)
        if self.demands.pop(name, None) is not None:
            self.wanted_version += 1

    @property
    def matched(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The types whose filters are matched together, by name, and how."""
        for name, demand in sorted(self._many.items()):
            if (facts := demand.facts) is not None:
                yield name, facts

    def wants(self, name: str) -> bool:
        """Whether any events of a type are wanted there."""
        return name in self.demands

    # --- what is about to be sent ---

    def offer(self, batches: Sequence[EventBatch], order: Int64s | None) -> DeliveryBatch | None:
        """Send what is wanted of these events, and give it; None for nothing."""
        patterns = []
        for batch in batches:
            demand = self.demands.get(batch.type.name)
            patterns.append([] if demand is None else demand.patterns(batch))
        if not any(patterns):
            return None
        delivery_batch = delivery_batch_of(batches, patterns, order)
        if delivery_batch is not None:
            for part in in_messages(delivery_batch):
                self._flows.append(Flow(part.delivery.batches, part.delivery.order))
            self.has_flows = True
        return delivery_batch

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

        ``every_mark`` and ``ended`` as in DeferredWatermarks.learn.
        """
        wanted = self.offer(batches, order) if batches else None
        told = self.deferred.learn(marks, ended=ended, every=every_mark)
        if wanted is not None:
            told += self.deferred.send(max(map(greatest_time, wanted.delivery.batches)))
        if told:
            self.add_marks(told)

    def tell_all(self) -> None:
        """Tell all marks that are owed."""
        self.add_marks(self.deferred.take_all())

    def add_marks(self, marks: RuleWatermarks) -> None:
        """Send marks behind the events."""
        if marks:
            last = self._flows.pop() if self._flows else Flow()
            self._flows.append(Flow(last.batches, last.order, last.marks + marks))
            self.has_flows = True

    def take_flows(self) -> list[Flow]:
        """Give the flows to send now."""
        flows, self._flows = self._flows, []
        self.has_flows = False
        return flows
