"""Comparisons of an event's attribute with what is known before the event: how one may look it up.

``attribute = value`` names a key of an index; ``attribute < value`` and its kin bound a range of an
ordered one. A value is known before the event when it reads neither the event itself nor a slot
that is only filled for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from matcher.model import Kind
from rules.terms import AttributeOf, Compare, Comparison, Expression, Slot, nodes_of

_TURNED = {
    Comparison.EQUAL: Comparison.EQUAL,
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_EQUAL: Comparison.GREATER_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_EQUAL: Comparison.LESS_EQUAL,
}
"""Comparisons with their operands exchanged."""
_UPPER = (Comparison.LESS, Comparison.LESS_EQUAL)
_STRICT = (Comparison.LESS, Comparison.GREATER)
_NUMBERS = (Kind.INT, Kind.FLOAT)


@dataclass(frozen=True, slots=True)
class Known:
    """``attribute comparison value``, the attribute being the event's own."""

    attribute: AttributeOf
    comparison: Comparison
    value: Expression

    @property
    def is_strict(self) -> bool:
        """Whether the value itself is left out."""
        return self.comparison in _STRICT


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of one attribute, of which one at least is there."""

    attribute: AttributeOf
    lower: Known | None
    upper: Known | None


def known_comparison(condition: Expression, event: int, waiting: Collection[int]) -> Known | None:
    """The condition as a comparison with something known before ``event``, if it is one.

    ``waiting`` are the slots that are filled only once the event is chosen.
    """
    if not (isinstance(condition, Compare) and condition.comparison in _TURNED):
        return None
    turned = _TURNED[condition.comparison]
    for own, comparison, value in (
        (condition.left, condition.comparison, condition.right),
        (condition.right, turned, condition.left),
    ):
        if isinstance(own, AttributeOf) and own.event == event and _is_known(value, event, waiting):
            return Known(own, comparison, value)
    return None


def _is_known(value: Expression, event: int, waiting: Collection[int]) -> bool:
    return not any(
        (isinstance(part, AttributeOf) and part.event == event)
        or (isinstance(part, Slot) and part.index in waiting)
        for part in nodes_of(value)
    )


def interval(comparisons: Iterable[Known]) -> Interval | None:
    """The interval of the attribute, a number, that is bounded best: on both sides, or first."""
    bounded: dict[AttributeOf, list[Known | None]] = {}
    for known in comparisons:
        if known.comparison is Comparison.EQUAL or known.attribute.kind not in _NUMBERS:
            continue
        sides = bounded.setdefault(known.attribute, [None, None])
        side = int(known.comparison in _UPPER)
        sides[side] = sides[side] or known
    if not bounded:
        return None
    best = max(bounded, key=lambda attribute: None not in bounded[attribute])
    return Interval(best, *bounded[best])
