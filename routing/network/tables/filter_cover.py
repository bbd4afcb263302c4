"""Filters that need not be told, since others ask for all that they ask for (thesis 7.3.4).

Law 1: a filter is left out only when another one that is told covers it (matcher.filters.covering),
or when one that says the same as several is told in place of them (matcher.filters.merging). So no
event that somebody wants is missed, and none that nobody wants is asked for. Temp(value > 40) is
told, Temp(value > 50) is left out.

Law 2: a filter with conditions that constraints cannot say (rules.planning.sketch) asks for less
than they say: it may be covered, covers nothing, and stays as it is. Temp(value * value > 9) covers
nothing, and Temp() covers it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from matcher.filters.constraint import SPELLING, Constraint, Filter
from matcher.filters.covering import Numbers, covers, values_of
from matcher.filters.merging import merged
from matcher.model import OPTIONAL, EventType
from matcher.spelling import spelled
from routing.network.tables.filters import known_interest
from rules.planning.sketch import Sketch, sketch_of

FEW = 256
"""Filters of one type up to which they are compared with one another, which is quadratic."""


def maximal(
    filters: Mapping[str, tuple[str, ...]], schemas: Mapping[str, EventType]
) -> tuple[str, ...]:
    """The filters, sorted, without those that others cover, of equal ones the first by text; those
    that say together what one filter does are told as that one. ``filters``: by the name of their
    type, sorted, each once.
    """
    kept: list[str] = []
    for name, texts in filters.items():
        kept += maximal_of_type(texts, schemas.get(name))
    return tuple(sorted(kept))


def maximal_of_type(texts: tuple[str, ...], schema: EventType | None) -> tuple[str, ...]:
    """The same for the filters of one type, sorted, each once; None: it is not known."""
    if schema is None or len(texts) <= 1 or len(texts) > FEW:
        return texts
    return _told(texts, schema)


@lru_cache(maxsize=1_024)
def _told(texts: tuple[str, ...], schema: EventType) -> tuple[str, ...]:
    """The same for filters of one type, several neighbours being told nearly the same."""
    return tuple(sorted(_merge(_maximal(texts, schema), schema)))


def _maximal(texts: Iterable[str], schema: EventType) -> list[str]:
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


def _merge(texts: list[str], schema: EventType) -> list[str]:
    """Filters of which none covers another, those whose numbers go on where those of another end
    being one with it.
    """
    sketches = {text: _sketch_of(text, schema) for text in texts}
    whole = {text: one.filter for text, one in sketches.items() if one is not None and one.is_whole}
    others = set(texts).difference(whole)
    merging = True
    while merging:
        before = len(whole)
        for name in schema.names:
            for run in list(_alike(whole, name)):
                _merge_run(run, whole, schema)
        merging = len(whole) < before
    merged = [text for text in whole if text not in sketches]
    return [text for text in texts if text in whole or text in others] + merged


def _alike(filters: Mapping[str, Filter], name: str) -> Iterator[list[str]]:
    """Filters that ask the same but for numbers of one attribute, in the order of these."""
    runs: dict[frozenset[Constraint], list[tuple[int | float, str]]] = {}
    for text, filter_ in filters.items():
        wanted = values_of(filter_, name)
        if isinstance(wanted, Numbers):
            others = frozenset(one for one in filter_.constraints if one.name != name)
            runs.setdefault(others, []).append((wanted.low, text))
    for run in runs.values():
        if len(run) > 1:
            yield [text for _, text in sorted(run)]


def _merge_run(run: list[str], filters: dict[str, Filter], schema: EventType) -> None:
    """Merge filters with those that follow them, where that can be said in a text."""
    last = run[0]
    for text in run[1:]:
        together = merged(filters[last], filters[text])
        said = None if together is None else _text_of(together, schema)
        if together is None or said is None:
            last = text
            continue
        del filters[last], filters[text]
        filters[said], last = together, said


def _text_of(filter_: Filter, schema: EventType) -> str | None:
    """A filter as a text of just its meaning; None where none can be found."""
    conditions = [_condition(one, schema) for one in filter_.constraints]
    text = f"{spelled(schema.name)}({' and '.join(conditions)})"
    read = _sketch_of(text, schema)
    if read is None or not read.is_whole:
        return None  # such as one that has an infinite number
    return text if covers(read.filter, filter_) and covers(filter_, read.filter) else None


def _condition(constraint: Constraint, schema: EventType) -> str:
    """A constraint as a filter says it, of the presence of an attribute in its own words."""
    name, place = constraint.name, schema.index(constraint.name)
    if place is not None and place >= len(schema.presences):
        asked = "is not null" if constraint.holds(True) else "is null"
        return f"{spelled(name.removesuffix(OPTIONAL))} {asked}"
    return f"{spelled(name)} {SPELLING[constraint.operator]} {_literal(constraint.operand)}"


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


@lru_cache(maxsize=65_536)
def _sketch_of(text: str, schema: EventType) -> Sketch | None:
    """The sketch of a filter of this type by constraints; None when it does not fit the type."""
    interest = known_interest(text, schema)
    if interest is None or interest.filter is None:
        return None
    return sketch_of(interest.filter.conditions, schema)
