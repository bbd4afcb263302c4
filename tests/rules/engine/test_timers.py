"""When a rule's Timer ticks, and what its events carry (tesla.md S13)."""

from datetime import UTC, datetime

import numpy as np
import pytest

from matcher.model import MICROSECONDS, EventType, Kind, Value
from rules.engine import timers
from rules.pattern import TIMER, Rule
from rules.terms import AttributeOf, Compare, Comparison, Expression, Literal, Or

HOUR = 3_600 * MICROSECONDS
FRIDAY = int(datetime(2013, 2, 8, tzinfo=UTC).timestamp()) * MICROSECONDS


def field_is(name: str, value: Value) -> Expression:
    place = TIMER.index(name)
    assert place is not None
    kind = TIMER.attributes[place].kind
    return Compare(Comparison.EQUAL, AttributeOf(0, place, kind), Literal(value, kind))


def rule(*conditions: Expression) -> Rule:
    return Rule("r", EventType("Out"), TIMER, tuple(conditions), (), (), (), ("Timer",), (), "")


@pytest.mark.parametrize(
    ("field", "seconds"),
    [("S", 1), ("M", 60), ("H", 3_600), ("day", 86_400), ("month", 86_400), ("D", 86_400)],
)
def test_fields_finer_than_the_finest_mentioned_are_zero(field: str, seconds: int):
    value: Value = "Friday" if field == "D" else 1
    found = timers.ticks(rule(field_is(field, value)), FRIDAY, FRIDAY + 48 * HOUR)
    assert found.tolist() == list(range(FRIDAY, FRIDAY + 48 * HOUR, seconds * MICROSECONDS))


def test_the_finest_of_several_fields_decides():
    found = timers.ticks(rule(field_is("H", 9), field_is("D", "Friday")), FRIDAY, FRIDAY + HOUR + 1)
    assert found.tolist() == [FRIDAY, FRIDAY + HOUR]


def test_a_field_inside_an_expression_is_mentioned():
    either = Or((field_is("month", 2), field_is("M", 30)))
    assert timers.period(rule(either)) == 60


def test_a_timer_that_mentions_nothing_ticks_every_second():
    assert timers.period(rule()) == 1


def test_the_start_is_included_and_the_end_is_not():
    second = MICROSECONDS
    assert timers.ticks(rule(), 3 * second, 5 * second).tolist() == [3 * second, 4 * second]
    assert timers.ticks(rule(), 3 * second + 1, 5 * second + 1).tolist() == [4 * second, 5 * second]
    assert timers.ticks(rule(), 5 * second, 5 * second).tolist() == []
    assert timers.ticks(rule(), -second, 1).tolist() == [-second, 0]


def test_events_carry_the_fields_of_the_calendar():
    moments = [
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2000, 2, 29, 12, 34, 56, tzinfo=UTC),
        datetime(2013, 2, 8, 17, 20, tzinfo=UTC),
        datetime(2100, 3, 1, tzinfo=UTC),
    ]
    times = np.array([int(moment.timestamp()) * MICROSECONDS for moment in moments])
    for moment, event in zip(moments, timers.batch(times).events(), strict=True):
        second = int(moment.timestamp())
        assert event.id == f"timer/{second}"
        assert event.source == "timer"
        assert event.time == second * MICROSECONDS
        assert event.data == {
            "S": moment.second,
            "M": moment.minute,
            "H": moment.hour,
            "day": moment.day,
            "month": moment.month,
            "D": moment.strftime("%A"),
        }


def test_columns_have_the_declared_kinds():
    batch = timers.batch(timers.ticks(rule(), 0, 3 * MICROSECONDS))
    assert [attribute.kind for attribute in batch.type.attributes][:5] == [Kind.INT] * 5
    assert all(column.dtype == np.int64 for column in batch.columns[:5])
    assert len(timers.batch(np.empty(0, np.int64))) == 0
