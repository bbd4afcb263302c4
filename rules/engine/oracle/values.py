"""The value of an expression within a match: the oracle's arithmetic (tesla.md S8 to S10).

Law 1 (S9): a value that does not exist, or is null, is ``None``. Arithmetic and comparisons on it
give None; ``and``, ``or`` and ``not`` follow three-valued logic.

Law 2 (S10): values are exact. Integers are Python's, checked to 64 bits; floats must be finite;
int and float compare by value, as Python compares them; sums, averages and deviations are computed
in rationals and rounded once (S8), to the nearest float, of two as near the even one. What is
exactly 0 is 0.0; what is too small for a float keeps its sign, -0.0 below zero.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from matcher.model import Kind, Value
from rules.engine.oracle.events import Occurrence
from rules.functions import applied
from rules.pattern import Negated
from rules.terms import (
    CANDIDATE,
    PREVIOUS,
    TIME,
    Aggregate,
    And,
    Arithmetic,
    AttributeOf,
    Called,
    Choice,
    Compare,
    Comparison,
    Convert,
    Expression,
    Function,
    Literal,
    Negative,
    Not,
    OfText,
    Operator,
    Or,
    Slot,
    Window,
    Within,
)
from rules.texts import result_of

Numbers: TypeAlias = Sequence[Any]


class View(Protocol):
    """The history as one rule sees it at one instant (S11, S12, S15)."""

    def events(self, name: str, *, strict: bool) -> Sequence[Occurrence]:
        """All events of a type; with ``strict``, those earlier than the instant."""
        ...

    def run(self, aggregate: Aggregate, scope: Scope) -> Sequence[Occurrence]:
        """The events of the run that an aggregate ranges over (X4)."""
        ...


class _Nothing:
    def events(self, name: str, *, strict: bool) -> Sequence[Occurrence]:
        return ()

    def run(self, aggregate: Aggregate, scope: Scope) -> Sequence[Occurrence]:
        return ()


NOTHING: View = _Nothing()
"""The history in which no event is."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A match in the making: what names and parameters stand for.

    ``events`` by number, terminator first; ``slots`` by number; ``candidate`` the negated or
    aggregated event whose own conditions are looked at, ``previous`` the one before it in a run.
    ``runs`` are the numbers of the events that end a run (X4).
    """

    view: View
    events: tuple[Occurrence, ...]
    slots: Mapping[int, Value] = field(default_factory=dict)
    candidate: Occurrence | None = None
    previous: Occurrence | None = None
    runs: frozenset[int] = frozenset()

    def event(self, number: int) -> Occurrence:
        """The event of a number, CANDIDATE and PREVIOUS included."""
        if number >= 0:
            return self.events[number]
        found = self.candidate if number == CANDIDATE else self.previous
        assert number in (CANDIDATE, PREVIOUS)
        assert found is not None
        return found

    @property
    def alone(self) -> tuple[Occurrence, ...]:
        """The events that are selected alone, not as runs: these are distinct (S1)."""
        return tuple(one for number, one in enumerate(self.events) if number not in self.runs)

    def with_event(self, event: Occurrence) -> Scope:
        """The scope with the next selected event."""
        return replace(self, events=(*self.events, event))

    def with_run(self, last: Occurrence) -> Scope:
        """The scope with the next run, by its last event."""
        return replace(self.with_event(last), runs=self.runs | {len(self.events)})

    def with_slot(self, slot: int, value: Value) -> Scope:
        """The scope with a parameter bound to a value."""
        return replace(self, slots={**self.slots, slot: value})


def holds(conditions: Sequence[Expression], scope: Scope) -> bool:
    """Whether all conditions are true: neither false nor undefined (S9)."""
    return all(value_of(condition, scope) is True for condition in conditions)


def in_window(time: int, window: Window, scope: Scope, *, after_start: bool = False) -> bool:
    """Whether a time is within a window, both ends included (S1, S4, S7, S8).

    ``after_start``: the start of a ``between`` does not count (S6).
    """
    if isinstance(window, Within):
        end = scope.event(window.anchor).time
        return end - window.duration <= time <= end
    start, end = scope.event(window.earlier).time, scope.event(window.later).time
    return (start < time if after_start else start <= time) and time <= end


def fitting(
    use: Negated | Aggregate, scope: Scope, *, after_start: bool = False
) -> list[Occurrence]:
    """The events in the window of a negation or an aggregate that satisfy its own conditions.

    Where a condition is undefined, only that candidate fails (S9).
    """
    return [
        event
        for event in scope.view.events(use.type.name, strict=use.strict)
        if in_window(event.time, use.window, scope, after_start=after_start)
        and holds(use.conditions, replace(scope, candidate=event))
    ]


def value_of(expression: Expression, scope: Scope) -> Value | None:
    """The value of an expression, None when it is undefined."""
    match expression:
        case Literal():
            return expression.value
        case AttributeOf():
            return attribute_of(scope.event(expression.event), expression.attribute)
        case Slot():
            return scope.slots[expression.index]
        case Arithmetic() | Compare():
            left, right = value_of(expression.left, scope), value_of(expression.right, scope)
            if left is None or right is None:
                return None  # S9
            if isinstance(expression, Compare):
                return _COMPARISONS[expression.comparison](left, right)
            return _calculate(expression.operator, left, right, expression.kind)
        case Negative() | Convert() | Not() | OfText():
            operand = value_of(expression.operand, scope)
            return None if operand is None else _apply(expression, operand)
        case Called():
            return applied(expression, [value_of(item, scope) for item in expression.operands])
        case And() | Or():
            operands = [value_of(item, scope) for item in expression.operands]
            deciding = isinstance(expression, Or)
            if deciding in operands:
                return deciding
            return None if None in operands else not deciding
        case Choice():
            chosen = value_of(expression.condition, scope)
            if chosen is None:
                return None
            return value_of(expression.value if chosen else expression.otherwise, scope)
        case Aggregate():
            return _aggregate(expression, scope)


def attribute_of(event: Occurrence, attribute: int) -> Value | None:
    """An attribute of an event by its number, None where it is null, or its time (X3)."""
    if attribute == TIME:
        return event.time
    presences = event.type.presences
    if attribute < len(presences) and presences[attribute] >= 0:
        return event.values[attribute] if event.values[presences[attribute]] else None
    return event.values[attribute]


def _apply(expression: Negative | Convert | Not | OfText, operand: Any) -> Value | None:
    if isinstance(expression, Not):
        return not operand
    if isinstance(expression, OfText):
        return result_of(expression.function)(operand)
    if isinstance(expression, Convert):
        return float(operand)
    return _checked(-operand, expression.kind)


def _calculate(operation: Operator, left: Any, right: Any, kind: Kind) -> Value | None:
    if kind is Kind.FLOAT:
        left, right = float(left), float(right)
    if operation in (Operator.DIVIDE, Operator.MODULO) and right == 0:
        return None  # S9
    return _checked(_OPERATORS[operation](left, right), kind)


def _checked(number: Any, kind: Kind) -> Value | None:
    """The number, or None when its kind cannot hold it (S9)."""
    if kind is Kind.INT:
        return int(number) if -(2**63) <= number < 2**63 else None
    try:
        rounded = float(number)
    except OverflowError:
        return None
    return rounded if math.isfinite(rounded) else None


_OPERATORS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    Operator.ADD: operator.add,
    Operator.SUBTRACT: operator.sub,
    Operator.MULTIPLY: operator.mul,
    Operator.DIVIDE: operator.truediv,
    Operator.MODULO: operator.mod,  # Python's has the divisor's sign, as S10 asks
}

_COMPARISONS: Mapping[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.UNEQUAL: operator.ne,
    Comparison.LESS: operator.lt,
    Comparison.LESS_EQUAL: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.GREATER_EQUAL: operator.ge,
    Comparison.PREFIX: lambda text, part: text.startswith(part),
    Comparison.SUFFIX: lambda text, part: text.endswith(part),
    Comparison.CONTAINS: lambda text, part: part in text,
}


def _aggregate(aggregate: Aggregate, scope: Scope) -> Value | None:
    """An aggregate over the events in its window, those of the match included (S8)."""
    is_of_run = aggregate.run is not None
    events = scope.view.run(aggregate, scope) if is_of_run else fitting(aggregate, scope)
    if aggregate.value is None:
        return len(events)
    found = (value_of(aggregate.value, replace(scope, candidate=event)) for event in events)
    values = [value for value in found if value is not None]
    result = _FUNCTIONS[aggregate.function](values)
    if result is None or isinstance(result, str):
        return result
    return _checked(result, aggregate.kind)


def run_of(aggregate: Aggregate, scope: Scope) -> Sequence[Occurrence]:
    """The events of the run that a numbered event ends, in order; none where it goes on (X4)."""
    run = aggregate.run
    assert run is not None
    events = sorted(fitting(aggregate, scope), key=lambda event: event.moment)  # E4

    def goes_on(place: int) -> bool:
        """Whether the event at a place is of the run of the one before it."""
        pair = replace(scope, candidate=events[place], previous=events[place - 1])
        return holds(run.links, pair)

    last = scope.events[run.event]
    end = events.index(last) + 1 if last in events else 0
    if end == 0 or (end < len(events) and goes_on(end)):
        return []
    start = end - 1
    while start > 0 and goes_on(start):
        start -= 1
    return events[max(start, end - run.most) if run.most else start : end]


def _exact_sum(values: Numbers) -> int | Fraction:
    if all(isinstance(value, int) for value in values):
        return sum(values)
    return sum(map(Fraction, values), Fraction())


def _average(values: Numbers) -> Fraction | None:
    return Fraction(_exact_sum(values)) / len(values) if values else None


def _place(value: Value) -> tuple[Value, float]:
    """Where a value stands among others: of the two zeros, which are equal, -0.0 comes first, so
    that an extreme does not depend on which event came before (S14).
    """
    return value, math.copysign(1.0, value) if isinstance(value, float) else 0.0


def _deviation(values: Numbers) -> float | None:
    """The population standard deviation, rounded at the square root alone."""
    mean = _average(values)
    if mean is None:
        return None
    variance = sum((Fraction(value) - mean) ** 2 for value in values) / len(values)
    return _square_root(Fraction(variance))


def _square_root(number: Fraction) -> float:
    """The float nearest to the square root of a number that may itself be beyond all floats.

    The root is cut off after 64 bits or more, and one *sticky* bit behind them says whether
    anything was: so it is rounded as the whole of it would be, from just above the middle between
    two floats too.
    """
    length = number.numerator.bit_length() - number.denominator.bit_length()
    shift = max(0, 64 - length // 2)
    whole, rest = divmod(number.numerator << 2 * shift, number.denominator)
    root = math.isqrt(whole)
    sticky = rest > 0 or root * root < whole
    return float(Fraction(2 * root + sticky, 2 << shift))


_FUNCTIONS: Mapping[Function, Callable[[Numbers], Any]] = {
    Function.COUNT: len,
    Function.SUM: _exact_sum,
    Function.MIN: lambda values: min(values, default=None, key=_place),
    Function.MAX: lambda values: max(values, default=None, key=_place),
    Function.AVG: _average,
    Function.STDDEV: _deviation,
    Function.FIRST: lambda values: values[0] if values else None,
}
