"""Timer events: when they tick for a rule, and what they carry (tesla.md S13)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matcher.model import MICROSECONDS, EventBatch, EventIds, Int64s, StringColumn
from rules.pattern import TIMER, UTC, WEEKDAYS, Rule
from rules.terms import (
    TERMINATOR,
    TIME,
    Aggregate,
    And,
    Arithmetic,
    AttributeOf,
    Called,
    Compare,
    Convert,
    Expression,
    Negative,
    Not,
    OfText,
    Or,
)
from rules.zones import stretches, zone_of

SOURCE = "timer"
"""The source of timer events; of those in another zone than UTC, ``timer/ZONE``."""

_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3_600, 86_400
_PERIODS = {"S": _SECOND, "M": _MINUTE, "H": _HOUR, "day": _DAY, "month": _DAY, "D": _DAY}
_THURSDAY = 3  # the day of the epoch, as a place in WEEKDAYS


def uses_timer(rule: Rule) -> bool:
    """Whether the rule's terminator is the built-in Timer."""
    return rule.terminator.name == TIMER.name


def period(rule: Rule) -> int:
    """The seconds between two ticks of a rule's Timer. A Timer ticks at whole seconds at which
    every field finer than the finest one that the terminator's own conditions mention is 0.
    ``day``, ``month`` and ``D`` are all fields of a whole day, so any of them alone means midnight;
    without conditions it ticks every second. Whether the conditions then hold is for the engine to
    say.
    """
    mentioned = {name for item in rule.conditions for name in _fields_in(item)}
    return min((_PERIODS[name] for name in mentioned if name in _PERIODS), default=_SECOND)


def ticks(rule: Rule, start: int, end: int) -> Int64s:
    """The times, in microseconds and ascending, in [start, end) at which the rule's Timer ticks.

    Its conditions are not looked at, but for the fields that they mention. Fields are UTC, or those
    of the time zone that the conditions name, and proleptic Gregorian. A local time that a change
    of clocks leaves out does not occur, and one that comes twice ticks twice.
    """
    step, zone = period(rule), zone_of(rule)
    begin, behind = -(-start // MICROSECONDS), -(-end // MICROSECONDS)
    parts = [
        np.arange(-(-(first + ahead) // step) * step - ahead, last, step, dtype=np.int64)
        for first, last, ahead in _stretches(zone, begin, behind)
    ]
    return np.concatenate(parts or [np.empty(0, np.int64)]) * MICROSECONDS


def batch(times: Int64s, zone: str = UTC) -> EventBatch:
    """The Timer events at some times, which are whole seconds in microseconds, ascending."""
    utc = times // MICROSECONDS
    seconds = utc.copy()  # of local time
    if len(utc):
        for first, last, ahead in _stretches(zone, int(utc[0]), int(utc[-1]) + 1):
            seconds[slice(*np.searchsorted(utc, (first, last)))] += ahead
    days = seconds // _DAY
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    weekdays = StringColumn(((days + _THURSDAY) % 7).astype(np.int32), WEEKDAYS)
    columns = (
        seconds % 60,
        seconds // _MINUTE % 60,
        seconds // _HOUR % 24,
        (dates - months).astype(np.int64) + 1,
        months.astype(np.int64) % 12 + 1,
        weekdays,
        StringColumn.constant(zone, len(times)),
    )
    texts = StringColumn.from_strings([f"timer/{second}" for second in utc.tolist()])
    source = SOURCE if zone == UTC else f"{SOURCE}/{zone}"
    ids = EventIds(StringColumn.constant(source, len(times)), utc, texts)
    return EventBatch(TIMER, times, ids, columns)


def _stretches(zone: str, begin: int, end: int) -> Iterable[tuple[int, int, int]]:
    return ((begin, end, 0),) if zone == UTC else stretches(zone, begin, end)


def _fields_in(expression: Expression) -> frozenset[str]:
    """The Timer's fields that an expression over the terminator mentions."""
    match expression:
        case AttributeOf(event, attribute):
            is_field = event == TERMINATOR and attribute != TIME
            return frozenset({TIMER.names[attribute]}) if is_field else frozenset()
        case Arithmetic() | Compare():
            return _fields_in(expression.left) | _fields_in(expression.right)
        case Negative() | Convert() | Not() | OfText():
            return _fields_in(expression.operand)
        case And() | Or() | Called():
            return frozenset().union(*map(_fields_in, expression.operands))
        case Aggregate():
            value = () if expression.value is None else (expression.value,)
            return frozenset().union(*map(_fields_in, (*expression.conditions, *value)))
        case _:
            return frozenset()
