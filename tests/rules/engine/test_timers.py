"""When a rule's Timer ticks, and what its events carry (tesla.md S13)."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from matcher.model import MICROSECONDS, EventType, Kind, Value
from rules.engine.order import timers
from rules.pattern import TIMER, Rule
from rules.terms import AttributeOf, Compare, Comparison, Expression, Literal, Or
from rules.zones import stretches

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
            "zone": "UTC",
        }


@pytest.mark.parametrize(
    ("zone", "hour", "found"),
    [
        # Summer time begins on 10 March 2013 and ends on 3 November, both at 2.
        ("America/New_York", 2, ["2013-03-09T07", "2013-03-11T06"]),
        ("America/New_York", 3, ["2013-03-09T08", "2013-03-10T07", "2013-03-11T07"]),
        (
            "America/New_York",
            1,
            ["2013-11-02T05", "2013-11-03T05", "2013-11-03T06", "2013-11-04T06"],
        ),
        ("Asia/Kolkata", 9, ["2013-03-09T03:30"]),
        ("UTC", 0, ["2013-03-09T00"]),
    ],
)
def test_a_local_time_that_is_left_out_does_not_tick_and_one_that_comes_twice_does_twice(
    zone: str, hour: int, found: list[str]
):
    timer = rule(field_is("zone", zone), field_is("H", hour))
    moments = [datetime.fromisoformat(one).replace(tzinfo=UTC) for one in found]
    begin = moments[0].replace(hour=0, minute=0)
    days = (moments[-1].date() - begin.date()).days + 1
    start = int(begin.timestamp()) * MICROSECONDS
    times = timers.ticks(timer, start, start + days * 24 * HOUR)
    events = [one for one in timers.batch(times, zone).events() if one.data["H"] == hour]
    assert [one.time for one in events] == [int(m.timestamp()) * MICROSECONDS for m in moments]
    for one in events:
        local = datetime.fromtimestamp(one.time // MICROSECONDS, ZoneInfo(zone))
        fields = {"S": local.second, "M": local.minute, "H": local.hour, "day": local.day}
        fields |= {"month": local.month}
        assert one.data == {**fields, "D": local.strftime("%A"), "zone": zone}
        assert one.source == ("timer" if zone == "UTC" else f"timer/{zone}")


def test_stretches_of_a_zone_are_those_of_its_clocks():
    for zone in ("Europe/Rome", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"):
        begin = int(datetime(1900, 1, 1, tzinfo=UTC).timestamp())
        found = list(stretches(zone, begin + 7, begin + 130 * 366 * 86_400))
        assert found[0][0] == begin + 7
        assert all(one[1] == other[0] for one, other in itertools.pairwise(found))
        for first, last, ahead in found:
            for second in (first, (first + last) // 2, last - 1):
                offset = datetime.fromtimestamp(second, ZoneInfo(zone)).utcoffset()
                assert offset == timedelta(seconds=ahead)


def test_columns_have_the_declared_kinds():
    batch = timers.batch(timers.ticks(rule(), 0, 3 * MICROSECONDS))
    assert [attribute.kind for attribute in batch.type.attributes][:5] == [Kind.INT] * 5
    assert all(column.dtype == np.int64 for column in batch.columns[:5])
    assert len(timers.batch(np.empty(0, np.int64))) == 0
