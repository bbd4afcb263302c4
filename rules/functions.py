"""Functions of numbers and of times: the value of each, or None where it is undefined (S9, S10).

Every engine computes this. Kernels have the same in words; whatever looks at one event at a time,
or at a batch, asks here.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matcher.model import Kind, Value
from rules.terms import Called, NumberFunction
from rules.zones import AHEAD_MAX, AHEAD_MIN, aheads

HOUR, DAY = 3_600_000_000, 86_400_000_000
EPOCH_WEEKDAY = 3
"""1970-01-01 was a Thursday; Monday is 0."""


def function_of(called: Called) -> Callable[..., Value | None]:
    """The function that a term calls, of as many values, none of them undefined."""
    compute = _FUNCTIONS[called.function]
    if called.function.is_of_time:
        zone = called.zone

        def of_local(time: int) -> Value | None:
            local = local_time(time, zone)
            return None if local is None else compute(local)

        return of_local
    if called.kind is Kind.FLOAT:
        return lambda *values: compute(*map(float, values))
    return compute


def local_time(time: int, zone: str) -> int | None:
    """Return the local time of a zone, as microseconds since its clocks showed 1970."""
    if not AHEAD_MIN <= time < AHEAD_MAX:
        return None
    begins, ahead = aheads(zone)
    return time + ahead[bisect_right(begins, time) - 1]


def _whole(round_: Callable[[float], int]) -> Callable[[float], int | None]:
    """A function that gives an int, undefined beyond 64 bits."""

    def whole(number: float) -> int | None:
        found = round_(number)
        return found if -(2**63) <= found < 2**63 else None

    return whole


def _absolute(number: Any) -> Any:
    return None if number == -(2**63) and isinstance(number, int) else abs(number)


def _root(number: float) -> float | None:
    return math.sqrt(number) if number >= 0 else None


def _divided(left: int, right: int) -> int | None:
    if right == 0 or (left, right) == (-(2**63), -1):
        return None
    return left // right


def _least(*numbers: Any) -> Any:
    return min(numbers, key=_place)


def _greatest(*numbers: Any) -> Any:
    return max(numbers, key=_place)


def _place(number: Any) -> tuple[Any, float]:
    """Of the two zeros, which are equal, -0.0 is the lesser (S8)."""
    return number, math.copysign(1.0, number)


_FUNCTIONS: Mapping[NumberFunction, Callable[..., Any]] = {
    NumberFunction.ABS: _absolute,
    NumberFunction.SQRT: _root,
    NumberFunction.FLOOR: _whole(math.floor),
    NumberFunction.CEIL: _whole(math.ceil),
    NumberFunction.ROUND: _whole(round),
    NumberFunction.DIV: _divided,
    NumberFunction.LEAST: _least,
    NumberFunction.GREATEST: _greatest,
    NumberFunction.HOUR: lambda local: local // HOUR % 24,
    NumberFunction.WEEKDAY: lambda local: (local // DAY + EPOCH_WEEKDAY) % 7 + 1,
    NumberFunction.DATE: lambda local: local // DAY * DAY,
}


def applied(called: Called, values: Sequence[Any]) -> Value | None:
    """The value of a call, given those of its operands, of which some may be undefined."""
    return None if None in values else function_of(called)(*values)
