"""Which filters need not be told, since others ask for all that they ask for (thesis 7.3.4).

Law 1: a filter is left out only when another one that is told covers it (matcher.covering), so
no event that somebody wants is missed.

Law 2: a filter with conditions that constraints cannot say (rules.sketch) asks for less than they
say: it may be covered, and covers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from matcher.covering import covers
from matcher.model import EventType
from routing.network.branch import known_interest, type_named
from rules.sketch import Sketch, sketch_of

FEW = 256
"""Filters of one type up to which they are compared with one another, which is quadratic."""


def maximal(filters: Iterable[str], schemas: Mapping[str, EventType]) -> tuple[str, ...]:
    """The filters, sorted, without those that others cover; of equal ones the first by text."""
    by_type: dict[str, list[str]] = {}
    for text in sorted(set(filters)):
        by_type.setdefault(type_named(text) or text, []).append(text)
    kept: list[str] = []
    for name, texts in by_type.items():
        schema = schemas.get(name)
        kept += texts if schema is None or len(texts) > FEW else _maximal(texts, schema)
    return tuple(sorted(kept))


def _maximal(texts: list[str], schema: EventType) -> list[str]:
    sketches = {text: _sketch_of(text, schema) for text in texts}
    kept: list[str] = []
    for text in texts:
        if not any(_covers(sketches[other], sketches[text]) for other in kept):
            kept = [one for one in kept if not _covers(sketches[text], sketches[one])]
            kept.append(text)
    return kept


def _covers(wide: Sketch | None, narrow: Sketch | None) -> bool:
    if wide is None or narrow is None or not wide.is_whole:
        return False
    return covers(wide.filter, narrow.filter)


@lru_cache(maxsize=65_536)
def _sketch_of(text: str, schema: EventType) -> Sketch | None:
    """What constraints say of a filter of this type; None when it does not fit the type."""
    interest = known_interest(text, schema)
    if interest is None or interest.filter is None:
        return None
    return sketch_of(interest.filter.conditions, schema)
