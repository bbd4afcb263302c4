"""Two filters as one: ``merged(f, g)`` matches what ``f`` or ``g`` matches, and nothing else.

Who forwards the one filter need forward neither of the two. What is merged is exact. Where
no filter says the same as both, nothing is merged, and no more general filter is made up: that
would deliver what nobody asked for.

Two filters merge where one covers the other, or where they ask the same of all attributes but
one, and of this the one's numbers go on where the other's end, or one number behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from matcher.filters.constraint import Constraint, Filter, Operator
from matcher.filters.covering import Numbers, above, covers, values_of


def merged(first: Filter, second: Filter) -> Filter | None:
    """The filter that matches what either matches, or None where there is none to be found."""
    if covers(first, second):
        return first
    if covers(second, first):
        return second
    if first.type != second.type:
        return None
    names = {one.name for one in (*first.constraints, *second.constraints)}
    apart = [name for name in sorted(names) if _asked(first, name) != _asked(second, name)]
    if len(apart) != 1:
        return None
    one, other = values_of(first, apart[0]), values_of(second, apart[0])
    if not isinstance(one, Numbers) or not isinstance(other, Numbers):
        return None
    together = _union(apart[0], one, other)
    if not together:
        return None
    kept = tuple(one for one in first.constraints if one.name != apart[0])
    return Filter(kept + together, first.type)


def merge(filters: Sequence[Filter]) -> list[Filter]:
    """Filters that together match the same, fewer where some merge. Quadratic in their number."""
    kept: list[Filter] = []
    for filter_ in filters:
        place = 0
        while place < len(kept):
            together = merged(kept[place], filter_)
            if together is None:
                place += 1
                continue
            # What has grown may merge with those that it did not before.
            del kept[place]
            filter_, place = together, 0
        kept.append(filter_)
    return kept


def _asked(filter_: Filter, name: str) -> frozenset[Constraint]:
    return frozenset(one for one in filter_.constraints if one.name == name)


def _union(name: str, one: Numbers, other: Numbers) -> tuple[Constraint, ...]:
    """Constraints that say what either says; none where no constraints do."""
    if other.low < one.low:
        one, other = other, one
    between = above(one.high)
    if other.low > above(between):
        return ()  # there are several numbers between them
    low, high = one.low, max(one.high, other.high)
    out = {
        point
        for point in one.without | other.without | {between}
        if low <= point <= high and not (one.has(point) or other.has(point))
    }
    rows = [Constraint(name, Operator.UNEQUAL, point) for point in sorted(out)]
    if not (one.unordered or other.unordered):  # NaN is none of them: an order says so
        rows.append(Constraint(name, Operator.GREATER_EQUAL, low))
        rows.append(Constraint(name, Operator.LESS_EQUAL, high))
    return tuple(rows)
