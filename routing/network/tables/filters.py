"""Filters of one type that lead to one neighbour, and what they come to.

It follows from the filters and from the type alone, so it is worked out once for all
neighbours that want the same; in a large network each of them is asked for thousands of types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from matcher.model import EventType
from routing.delivery.subscriber_index import MANY
from routing.delivery.subscriptions import Interest, interest
from routing.errors import Refusal
from routing.network.tables.demand import Demand
from rules.subscription import Subscription


@dataclass(frozen=True, slots=True, eq=False)
class TypeFilters:
    """The filters of one type, by ``texts``, which are sorted; ``schema`` None: it is not known.

    ``fits``: whether one of them is a filter of the type, as far as that is known.
    """

    texts: tuple[str, ...]
    schema: EventType | None
    fits: bool
    filters: Mapping[str, Subscription]
    """Filters that fit the known type, by text."""
    demand: Demand | None
    """Their demand together; None for nothing, and where they are MANY: those come and go."""


def filters_of(texts: tuple[str, ...], schema: EventType | None) -> TypeFilters:
    """Put these filters together."""
    return _shared(texts, schema) if len(texts) < MANY else _made(texts, schema)


@lru_cache(maxsize=65_536)
def _shared(texts: tuple[str, ...], schema: EventType | None) -> TypeFilters:
    return _made(texts, schema)


def _made(texts: tuple[str, ...], schema: EventType | None) -> TypeFilters:
    interests = [one for text in texts if (one := known_interest(text, schema)) is not None]
    fitting = ((one.text, one.filter) for one in interests if one.filter is not None)
    # The brokers beyond filter once more: rather too many events than slow ones.
    filters = {text: replace(one, otherwise=True) for text, one in fitting}
    demand = None
    if schema is not None and 0 < len(filters) < MANY:
        demand = Demand(schema)
        demand.set(filters)
    return TypeFilters(texts, schema, bool(interests), filters, demand)


def by_type(texts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """The filters by the name of their type, sorted, each once."""
    found: dict[str, list[str]] = {}
    for text in sorted(set(texts)):
        found.setdefault(type_of(text), []).append(text)
    return {name: tuple(same) for name, same in found.items()}


def type_of(text: str) -> str:
    """The name by which a filter is kept: its type's; a text that is no filter has its own."""
    return type_named(text) or text


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
