"""Filters that say nothing beyond others: ``covers(f, g)`` when every event that ``g`` matches
is matched by ``f``. Who forwards subscriptions need not forward ``g`` beside ``f``.

The values of an attribute that satisfy all constraints of ``g`` on it are an interval from which
some points are left out. Numbers are those that an event can have, ints and floats of 64 bits: a
point follows another, which closes every interval. A text is followed by itself with a NUL at its
end, and a prefix stands for the texts from itself up to the first that no longer begins with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matcher.filters.constraint import INT_MAX, INT_MIN, Constraint, Filter, Operator, Sort

_GREATEST = "\U0010ffff"
_NUL = "\0"


def covers(wide: Filter, narrow: Filter) -> bool:
    """Whether ``wide`` matches every event that ``narrow`` matches. The answer is never yes for a
    filter that does not cover: a delivery would be lost. It is exact where ``narrow`` asks for
    numbers, bools, and texts by equality, order and prefix. What ``suffix`` and ``contains`` have
    in common with other constraints is searched for in their operands alone; a covering that is
    missed costs a message.
    """
    if any(values_of(narrow, name) is None for name in _names(narrow)):
        return True  # it matches nothing
    if wide.type is not None and wide.type != narrow.type:
        return False
    return all(_implied(narrow, constraint) for constraint in wide.constraints)


def maximal(filters: Sequence[Filter]) -> list[int]:
    """The places of filters that together match whatever all match: none covers another.

    Of filters that cover each other the first stays. Quadratic in their number.
    """
    kept: list[int] = []
    for place, filter_ in enumerate(filters):
        if any(covers(filters[other], filter_) for other in kept):
            continue
        kept = [other for other in kept if not covers(filter_, filters[other])]
        kept.append(place)
    return kept


def _names(filter_: Filter) -> Iterable[str]:
    return dict.fromkeys(constraint.name for constraint in filter_.constraints)


def _implied(narrow: Filter, constraint: Constraint) -> bool:
    values = values_of(narrow, constraint.name)
    return values is not None and values is not ABSENT and values.within(constraint)


@dataclass(frozen=True, slots=True)
class _Absent:
    """No constraint asks for the attribute: it may be anything, and lack."""

    def within(self, constraint: Constraint) -> bool:
        """Nothing holds of an attribute that may lack."""
        return False


@dataclass(frozen=True, slots=True)
class Numbers:
    """From ``low`` to ``high``, both included and neither left out; NaN too if ``unordered``."""

    low: int | float
    high: int | float
    without: frozenset[int | float]
    unordered: bool

    def has(self, number: int | float) -> bool:
        """Whether a number is one of them."""
        return self.low <= number <= self.high and number not in self.without

    def within(self, constraint: Constraint) -> bool:
        """Whether all of them satisfy a constraint."""
        operand = constraint.operand
        if constraint.sort is not Sort.NUMBER or isinstance(operand, str):
            return False
        if constraint.operator is Operator.UNEQUAL:
            return operand in self.without or not self.low <= operand <= self.high
        ends = constraint.holds(self.low) and constraint.holds(self.high)
        return ends and not self.unordered


@dataclass(frozen=True, slots=True)
class _Texts:
    """From ``low``, which is included, to ``high``, which is not (None: no end).

    ``pieces`` are the constraints ``suffix`` and ``contains`` that hold of all of them.
    """

    low: str
    high: str | None
    without: frozenset[str]
    pieces: tuple[Constraint, ...]

    def within(self, constraint: Constraint) -> bool:
        """Whether all of them satisfy a constraint; for pieces, whether that is plain to see."""
        operand = constraint.operand
        if not isinstance(operand, str):
            return False
        if self.high == self.low + _NUL:
            return constraint.holds(self.low)
        if constraint.operator in (Operator.SUFFIX, Operator.CONTAINS):
            return self._has(constraint, operand)
        if constraint.operator is Operator.UNEQUAL:
            inside = self.low <= operand and (self.high is None or operand < self.high)
            failed = any(not piece.holds(operand) for piece in self.pieces)
            return operand in self.without or not inside or failed
        low, high = _bounds(constraint.operator, operand)
        return self.low >= low and (high is None or (self.high is not None and self.high <= high))

    def _has(self, constraint: Constraint, operand: str) -> bool:
        known = [str(piece.operand) for piece in self.pieces]
        if constraint.operator is Operator.SUFFIX:
            suffixes = [piece for piece in self.pieces if piece.operator is Operator.SUFFIX]
            return not operand or any(constraint.holds(piece.operand) for piece in suffixes)
        return any(operand in text for text in [*known, self._common()])

    def _common(self) -> str:
        """The longest beginning that all of them share."""
        length = len(self.low)
        while length and not _spans(self.low[:length], self.high):
            length -= 1
        return self.low[:length]


@dataclass(frozen=True, slots=True)
class _Bools:
    """Some of the two."""

    values: tuple[bool, ...]

    def within(self, constraint: Constraint) -> bool:
        """Whether all of them satisfy a constraint."""
        return all(map(constraint.holds, self.values))


ABSENT = _Absent()


def values_of(filter_: Filter, name: str) -> _Absent | Numbers | _Texts | _Bools | None:
    """The values that an attribute can have in events that a filter matches; None when none."""
    constraints = [one for one in filter_.constraints if one.name == name]
    if not constraints:
        return ABSENT
    if len({constraint.sort for constraint in constraints}) > 1:
        return None
    match constraints[0].sort:
        case Sort.NUMBER:
            return _numbers(constraints)
        case Sort.TEXT:
            return _texts(constraints)
        case Sort.BOOL:
            values = tuple(
                value for value in (True, False) if all(one.holds(value) for one in constraints)
            )
            return _Bools(values) if values else None


# --- numbers -----------------------------------------------------------------------------------


def _numbers(constraints: Sequence[Constraint]) -> Numbers | None:
    low: int | float = -math.inf
    high: int | float = math.inf
    without = set()
    unordered = True
    for constraint in constraints:
        operand = constraint.operand
        assert isinstance(operand, int | float)
        if constraint.operator is Operator.UNEQUAL:
            without.add(operand)
            continue
        unordered = False
        if constraint.operator in (Operator.EQUAL, Operator.GREATER_EQUAL):
            low = max(low, operand)
        if constraint.operator in (Operator.EQUAL, Operator.LESS_EQUAL):
            high = min(high, operand)
        if constraint.operator is Operator.GREATER:
            if operand == math.inf:
                return None
            low = max(low, above(operand))
        if constraint.operator is Operator.LESS:
            if operand == -math.inf:
                return None
            high = min(high, _below(operand))
    while low in without and low < high:
        low = above(low)
    while high in without and low < high:
        high = _below(high)
    if low > high or (low == high and low in without):
        return None
    return Numbers(low, high, frozenset(without), unordered)


def above(number: int | float) -> int | float:
    """The least number of an event that is greater than another."""
    nearest = float(number)
    following = nearest if nearest > number else math.nextafter(nearest, math.inf)
    if INT_MIN - 1 <= number < INT_MAX:
        return min(following, math.floor(number) + 1)
    return following


def _below(number: int | float) -> int | float:
    """The greatest number of an event that is less than another."""
    return -above(-number) if number != INT_MIN else math.nextafter(-(2.0**63), -math.inf)


# --- texts -------------------------------------------------------------------------------------


def _texts(constraints: Sequence[Constraint]) -> _Texts | None:
    low, high = "", None
    without = set()
    pieces = []
    for constraint in constraints:
        operand = str(constraint.operand)
        if constraint.operator is Operator.UNEQUAL:
            without.add(operand)
        elif constraint.operator in (Operator.SUFFIX, Operator.CONTAINS):
            pieces.append(constraint)
        else:
            begin, end = _bounds(constraint.operator, operand)
            low = max(low, begin)
            high = end if high is None or (end is not None and end < high) else high
    while low in without:
        low += _NUL
    while high is not None and high.endswith(_NUL) and high[:-1] in without and low < high:
        high = high[:-1]
    if high is not None and low >= high:
        return None
    if high == low + _NUL and not all(piece.holds(low) for piece in pieces):
        return None
    return _Texts(low, high, frozenset(without), tuple(pieces))


def _bounds(operator: Operator, operand: str) -> tuple[str, str | None]:
    """The first text that satisfies a constraint and the first after it that does not."""
    match operator:
        case Operator.LESS:
            return "", operand
        case Operator.LESS_EQUAL:
            return "", operand + _NUL
        case Operator.GREATER:
            return operand + _NUL, None
        case Operator.GREATER_EQUAL:
            return operand, None
        case Operator.PREFIX:
            return operand, _after(operand)
        case _:
            return operand, operand + _NUL


def _after(prefix: str) -> str | None:
    """The first text behind all that begin with ``prefix``; None when there is none."""
    kept = prefix.rstrip(_GREATEST)
    return kept[:-1] + chr(ord(kept[-1]) + 1) if kept else None


def _spans(prefix: str, high: str | None) -> bool:
    """Whether all texts from ``prefix`` to ``high`` begin with it."""
    end = _after(prefix)
    return end is None or (high is not None and high <= end)
