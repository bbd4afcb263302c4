"""tesla.md E2: RFC 3339 or seconds, to the microsecond; of floats the nearest one."""

import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

from matcher.errors import BadEvent
from matcher.times import (
    RFC_3339_MAX,
    RFC_3339_MIN,
    rfc3339,
    seconds_text,
    time_of,
    time_text,
    times_of,
)

FORMS = [
    ("1970-01-01T00:00:00Z", 0),
    ("2013-01-01T05:17:00Z", 1_357_017_420_000_000),
    ("2013-01-01t05:17:00z", 1_357_017_420_000_000),
    ("2013-01-01 05:17:00+00:00", 1_357_017_420_000_000),
    ("2013-01-01T00:17:00-05:00", 1_357_017_420_000_000),
    ("2013-01-01T05:17:00.5Z", 1_357_017_420_500_000),
    ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
    ("2016-12-31T18:59:60.5-05:00", 1_483_228_800_500_000),
    ("2013-01-01T05:17:00.000001Z", 1_357_017_420_000_001),
    ("2013-01-01T05:17:00.123456000Z", 1_357_017_420_123_456),
    ("1969-12-31T23:59:59.999999Z", -1),
    ("0001-01-01T00:00:00Z", RFC_3339_MIN),
    ("9999-12-31T23:59:59.999999Z", RFC_3339_MAX),
    ("12.5", 12_500_000),
    ("-3", -3_000_000),
    (12, 12_000_000),
    (12.5, 12_500_000),
    (0.1, 100_000),
    (1356998400.123456, 1_356_998_400_123_456),
    (Decimal("253402300799.999999"), RFC_3339_MAX),
    ("253402300799.999999", RFC_3339_MAX),
    (-62_135_596_800, RFC_3339_MIN),
    ("1.50e1", 15_000_000),
    ("0e25", 0),
    ("-0.0e-99999999999999999999", 0),
    (np.float64(12.5), 12_500_000),
    (datetime(2013, 1, 1, 5, 17, tzinfo=UTC), 1_357_017_420_000_000),
    (datetime(2013, 1, 1, 0, 17, tzinfo=timezone(timedelta(hours=-5))), 1_357_017_420_000_000),
]

REFUSED = [
    ("2013-01-01T05:17:00.1234567Z", "finer"),
    ("12.0000001", "finer"),
    (Decimal("1e-7"), "finer"),
    ("1." + "0" * 70 + "1", "finer"),
    ("2013-02-30T00:00:00Z", "does not exist"),
    ("2013-01-01T24:00:00Z", "does not exist"),
    ("2013-01-01T05:17:60Z", "does not exist"),
    ("0000-01-01T00:00:00Z", "does not exist"),
    ("2013-01-01T05:17:00+24:00", "offset"),
    ("2013-01-01T05:17:00", "neither"),
    ("2013-01-01T05:17Z", "neither"),
    ("2013-01-01T05:17:00+0100", "neither"),
    ("2013-01-01", "neither"),
    (" 12", "neither"),
    ("", "neither"),
    ("nan", "neither"),
    ("٣", "neither"),
    (float("nan"), "years 1 to 9999"),
    (float("inf"), "years 1 to 9999"),
    (1e300, "years 1 to 9999"),
    (Decimal("1e999999999"), "years 1 to 9999"),
    ("1e99999999999999999999", "years 1 to 9999"),
    ("-1.5E+99999999999999999999", "years 1 to 9999"),
    ("1e-99999999999999999999", "finer"),
    ("1e-1999999999999999997", "finer"),
    (2**63, "year 292277026596: nanoseconds"),
    ("9223372036854.775808", "year 294247: milliseconds"),
    ("253402300800", "year 10000"),
    (-62_135_596_801, "year 0"),
    ("9999-12-31T23:59:59-01:00", "is the year 10000, beyond 1 to 9999"),
    ("0001-01-01T00:00:00+01:00", "is the year 0, beyond 1 to 9999"),
    (True, "found bool"),
    (None, "found null"),
    ([], "found a list"),
    (datetime(2013, 1, 1), "offset"),
]


@pytest.mark.parametrize(("form", "time"), FORMS)
def test_a_form_stands_for_its_microsecond(form: object, time: int) -> None:
    assert time_of(form) == time
    column = times_of([form, form])
    assert column is None or column.tolist() == [time, time]


@pytest.mark.parametrize(("form", "reason"), REFUSED)
def test_a_refused_form_is_refused_in_a_column_too(form: object, reason: str) -> None:
    with pytest.raises(BadEvent, match=reason):
        time_of(form)
    assert times_of([form]) is None
    assert times_of(["2013-01-01T05:17:00Z", form]) is None
    assert times_of([1.5, form]) is None


def test_a_message_quotes_no_more_of_a_time_than_a_line_holds() -> None:
    for form in ("9" * 5000, "0." + "0" * 5000 + "1", 10**5000):
        with pytest.raises(BadEvent) as caught:
            time_of(form)
        assert len(caught.value.reason) < 150


def test_columns_take_the_common_forms_in_bulk() -> None:
    for plain in (
        ["2013-01-01T05:17:00Z", "2013-01-01T05:17:00.25+01:00"],
        [1, 2],
        [1.5, 2],
        [1, "1970-01-01T00:00:01Z"],
    ):
        column = times_of(plain)
        assert column is not None
        assert column.tolist() == [time_of(value) for value in plain]


def test_printed_times_are_read_back_exactly() -> None:
    seed = 20130208
    print("seed", seed)
    chance = random.Random(seed)
    times = [chance.randrange(RFC_3339_MIN, RFC_3339_MAX) for _ in range(500)]
    times += [second * 1_000_000 for second in range(-3, 3)] + [RFC_3339_MIN, RFC_3339_MAX]
    texts = rfc3339(np.array(times, np.int64))
    assert texts == [time_text(time) for time in times]
    assert [time_of(text) for text in texts] == times
    column = times_of(texts)
    assert column is not None
    assert column.tolist() == times


def test_times_without_a_calendar_date_are_printed_in_seconds() -> None:
    times = [-(2**63) + 1, 2**63 - 2, 0, RFC_3339_MAX + 1, RFC_3339_MIN - 1]
    texts = rfc3339(np.array(times, np.int64))
    assert texts[0] == "-9223372036854.775807"
    for text in texts:
        if text != "1970-01-01T00:00:00Z":
            with pytest.raises(BadEvent, match="is the year"):
                time_of(text)


UNITS = [
    (1_541_000_542_290, "ms", 1_541_000_542_290_000),
    (1_541_000_542_290.125, "ms", 1_541_000_542_290_125),
    ("1541000542290.125", "ms", 1_541_000_542_290_125),
    (1_541_000_542_290_123, "us", 1_541_000_542_290_123),
    (1_541_000_542_290_123_000, "ns", 1_541_000_542_290_123),
    (1.541e18, "ns", 1_541_000_000_000_000),
    (5e6, "ns", 5_000),
    ("2018-10-31T15:42:22Z", "ns", 1_541_000_542_000_000),
]


@pytest.mark.parametrize(("form", "unit", "time"), UNITS)
def test_numbers_count_what_is_said(form: object, unit: str, time: int) -> None:
    assert time_of(form, unit) == time
    column = times_of([form, form], unit)
    assert column is None or column.tolist() == [time, time]


@pytest.mark.parametrize(
    ("form", "unit", "reason"),
    [
        (1_541_000_542_290, "s", "as seconds is the year 50802: milliseconds. say --time-unit ms"),
        (1_541_000_542_290_123, "s", "microseconds. say --time-unit us"),
        (1_541_000_542_290_123_456, "ms", "as milliseconds .* nanoseconds. say --time-unit ns"),
        (1_541_000_542_290_123_456, "ns", "finer"),
        ("1541000542290.1251", "ms", "finer"),
    ],
)
def test_numbers_of_another_unit_are_refused_by_name(form: object, unit: str, reason: str) -> None:
    with pytest.raises(BadEvent, match=reason):
        time_of(form, unit)
    assert times_of([form], unit) is None


def test_seconds_are_printed_exactly() -> None:
    assert [seconds_text(time) for time in (0, 12_500_000, -1, 3_000_000, -30_000_000)] == [
        "0",
        "12.5",
        "-0.000001",
        "3",
        "-30",
    ]


def test_floats_name_the_microsecond_that_they_print_as() -> None:
    seed, limit = 7, (2**32 - 1) * 1_000_000
    chance = random.Random(seed)
    times = np.array([chance.randrange(-limit, limit) for _ in range(2000)], np.int64)
    seconds = (times / 1_000_000).tolist()
    column = times_of(seconds)
    assert column is not None
    assert column.tolist() == times.tolist()
    assert [time_of(value) for value in seconds] == times.tolist()


FLOATS = [
    (12.0000001, "s", 12_000_000),
    (1_764_404_412.123_456_7, "s", 1_764_404_412_123_457),
    (-0.000_001_6, "s", -2),
    (1_541_000_542_290.125_1, "ms", 1_541_000_542_290_125),
    (1_541_000_542_290.0625, "us", 1_541_000_542_290),
    (1_541_000_542_290_123_456.0, "ns", 1_541_000_542_290_124),
]


@pytest.mark.parametrize(("number", "unit", "time"), FLOATS)
def test_a_float_is_the_nearest_microsecond(number: float, unit: str, time: int) -> None:
    for form in (number, np.float64(number)):
        assert time_of(form, unit) == time
    column = times_of([number, number], unit)
    assert column is None or column.tolist() == [time, time]


def test_a_clock_is_read_as_it_is_in_a_column() -> None:
    chance = random.Random(5)
    clocks = [chance.uniform(-2e9, 4e9) for _ in range(2_000)]
    column = times_of(clocks)
    assert column is not None
    assert column.tolist() == [time_of(clock) for clock in clocks]
    assert all(abs(time - clock * 1e6) < 1 for time, clock in zip(column, clocks, strict=True))


def test_numbers_of_numpy_are_times_and_nanoseconds_of_its_kind_are_refused() -> None:
    assert time_of(np.int64(5)) == time_of(np.float32(5.0)) == 5_000_000
    assert times_of([1_001, 2_600.0], "ns") is None
    with pytest.raises(BadEvent, match="finer"):
        time_of(np.int64(1_001), "ns")
    with pytest.raises(BadEvent, match="time 2024-05-01T10:00:00 lacks its offset from UTC"):
        time_of(np.datetime64("2024-05-01T10:00:00"))


class Stamp(datetime):
    """As pandas has them."""

    nanosecond = 789


def test_a_datetime_that_is_finer_is_refused() -> None:
    with pytest.raises(BadEvent, match="finer than a microsecond"):
        time_of(Stamp(2024, 5, 1, 10, tzinfo=UTC))


def test_printing_times_imports_no_pandas():
    script = (
        "import sys, numpy as np; from matcher.times import rfc3339; "
        "print(*rfc3339(np.arange(2)), 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z", "False"]
