"""Event time and its text forms (tesla.md E2).

Time is an integer count of microseconds since the epoch. Its text is an RFC 3339 timestamp
(``2013-01-01T05:17:00Z``) or a number of seconds. A leap second, ``23:59:60`` UTC, is the first
second of the next day, as POSIX counts. Numbers may also count milliseconds, microseconds or
nanoseconds, where that is said; nothing guesses it.

Each direction has one form for a single time and one for a whole column; the column forms accept
a subset, in bulk, of what the single forms do, and say so when a column is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DecimalException,
    Inexact,
    InvalidOperation,
)
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from matcher.errors import BadEvent
from matcher.extremes import greatest, least
from matcher.model import MICROSECONDS, Int64s

Numbers = TypeVar("Numbers", float, npt.NDArray[np.float64])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RFC_3339_MIN = -62_135_596_800 * MICROSECONDS
"""The year 1: nothing earlier has an RFC 3339 form here, and no event is earlier."""
RFC_3339_MAX = 253_402_300_800 * MICROSECONDS - 1
"""The last microsecond of the year 9999."""

_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_ZONELESS = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?$", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_PLAIN_RFC_3339 = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_LENGTH = len("2013-01-01T05:17:00Z")
_SECONDS = slice(17, 19)
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
UNITS: Mapping[str, int] = {"s": 6, "ms": 3, "us": 0, "ns": -3}
"""Units that a time which is a number may count: how many microseconds, as a power of ten."""
STAMP = "stamp"
"""The unit of seconds that were no number in their file, so that no other unit can be meant."""
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
SECONDS_EXACT_IN_FLOAT = 2**32
"""Below it (the year 2106), a float times a million rounds to the microsecond that its shortest
decimal names; beyond it that decimal itself is rounded."""
_EXACT_IN_FLOAT = {
    "s": SECONDS_EXACT_IN_FLOAT,
    "ms": SECONDS_EXACT_IN_FLOAT * 10**3,
    "us": SECONDS_EXACT_IN_FLOAT * 10**6,
    "ns": 2**53,
}
"""The same in other units; of nanoseconds, those that a float holds all of."""
_POWER_MAX = 30
_DAY, _CYCLE = 86_400 * MICROSECONDS, 146_097
"""A day, and the days of 400 years, after which the calendar repeats."""
_FOUND_MAX = 60
"""Characters of a time that a message quotes; no good one is longer."""
_FEW = 64
"""So many times are printed sooner than Arrow is imported."""


class UnreadTime(BadEvent):
    """A text of another form."""


class FinerTime(BadEvent):
    """A time that falls between two microseconds."""


def time_of(value: object, unit: str = "s") -> int:
    """The time, in microseconds, that a text, a number or a datetime stands for.

    ``unit``, of UNITS, says what numbers count. Raises BadEvent: another form, digits finer than a
    microsecond, or beyond the years 1 to 9999.

    A binary float, as a clock or JSON gives it, is the nearest microsecond. Any other time that is
    finer is refused; readers of files may be told to cut it instead (``TimeForm``).
    """
    if type(value) is float:  # as most are
        return _of_float(value, unit)
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    match value:
        case bool() | None:
            raise BadEvent(f"no time: expected RFC 3339 or seconds, found {spoken(value)}")
        case str():
            return _of_text(value, unit)
        case int():
            return _of_number(Decimal(value), value, unit)
        case float():
            return _of_float(value, unit)
        case Decimal():
            return _of_number(value, value, unit)
        case np.datetime64():
            raise BadEvent(f"time {value} lacks its offset from UTC")
        case datetime():
            if value.tzinfo is None:
                raise BadEvent(f"time {value.isoformat()} lacks its offset from UTC")
            if getattr(value, "nanosecond", 0):  # pandas' datetimes have some
                raise _finer(value.isoformat())
            return within_range((value - EPOCH) // timedelta(microseconds=1), value.isoformat())
        case _:
            raise BadEvent(f"no time: expected RFC 3339 or seconds, found {spoken(value)}")


def decimal_of(text: str) -> Decimal:
    """The number that a text of JSON's grammar stands for, exactly.

    Raises BadEvent for one that no decimal holds, as no time does either.
    """
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond a decimal's, which no digits make up for
        digits, _, exponent = text.lower().partition("e")
        if not Decimal(digits):
            return Decimal(0)
        raise _finer(text) if exponent.startswith("-") else _beyond(text) from None


def within_range(time: int, found: object = None) -> int:
    """A time in microseconds, if it lies in the years 1 to 9999; BadEvent quotes ``found``."""
    if not RFC_3339_MIN <= time <= RFC_3339_MAX:
        raise BadEvent(f"{_said(time if found is None else found, time)}, beyond 1 to 9999")
    return time


def verify_range(times: Int64s) -> None:
    """BadEvent for a column of times, in microseconds, that are not all in the years 1 to 9999."""
    if len(times):
        within_range(least(times))
        within_range(greatest(times))


def spoken(value: object) -> str:
    """Name a value's kind in words of the event model and of JSON, without the value itself.

    Reasons are counted by their text, so it must not grow with what is in the value.
    """
    return _SPOKEN.get(type(value), type(value).__name__)


_SPOKEN: Mapping[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    dict: "an object",
    list: "a list",
}


def times_of(values: Sequence[Any], unit: str = "s") -> Int64s | None:
    """The times of a whole column; None when some value needs a closer look (time_of)."""
    kinds = set(map(type, values))
    if kinds == {str}:
        import pyarrow as pa

        try:
            return of_texts(pa.array(values, pa.string()))
        except UnicodeEncodeError:
            return None
    if kinds == {int}:
        return _of_ints(values, unit)
    if kinds <= {int, float} and (unit != "ns" or int not in kinds):
        try:
            return of_floats(np.array(values, np.float64), unit)
        except OverflowError:  # an int that no float is near to
            return None
    exact = _EXACT_IN_FLOAT[unit]
    if any(type(value) is float and abs(value) >= exact for value in values):
        return None
    try:
        return np.array([time_of(value, unit) for value in values], np.int64)
    except BadEvent:
        return None


def of_floats(numbers: npt.NDArray[np.float64], unit: str = "s") -> Int64s | None:
    """Microseconds of a column of numbers; None where one needs a closer look."""
    if not np.all(np.abs(numbers) < _EXACT_IN_FLOAT[unit]):  # False for NaN too
        return None
    return np.rint(_in_microseconds(numbers, unit)).astype(np.int64)


def rfc3339(times: Int64s) -> list[str]:
    """RFC 3339 text of a column of times, in UTC; six digits of fraction where there is one.

    Times outside the years 1 to 9999 have no such form and are printed in seconds.
    """
    if len(times) == 0:
        return []
    is_known = times.min() >= RFC_3339_MIN and times.max() <= RFC_3339_MAX
    if len(times) <= _FEW or not is_known:
        return [time_text(time) for time in times.tolist()]
    whole = times % MICROSECONDS == 0
    if whole.all():
        return _printed(times // MICROSECONDS, "s")
    texts = np.array(_printed(times, "us"), object)
    texts[whole] = _printed(times[whole] // MICROSECONDS, "s")
    printed: list[str] = texts.tolist()
    return printed


def time_text(time: int) -> str:
    """RFC 3339 text of one time, or seconds outside the years 1 to 9999."""
    if not RFC_3339_MIN <= time <= RFC_3339_MAX:
        return seconds_text(time)
    moment = EPOCH + timedelta(microseconds=time)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def seconds_text(time: int) -> str:
    """The exact decimal number of seconds: ``12.5``, ``-3``."""
    whole, fraction = divmod(abs(time), MICROSECONDS)
    sign = "-" if time < 0 else ""
    return f"{sign}{whole}.{fraction:06d}".rstrip("0").rstrip(".")


def _of_text(text: str, unit: str) -> int:
    match = _RFC_3339.fullmatch(text)
    if match is None:
        if _NUMBER.fullmatch(text):
            return _of_number(decimal_of(text), text, unit)
        lacks = "; it lacks its time zone, as Z for UTC" if _ZONELESS.match(text) else ""
        raise UnreadTime(
            f"time {text[:_FOUND_MAX]!r} is neither RFC 3339 (2013-01-01T05:17:00Z) nor seconds"
            f"{lacks}"
        )
    if text[_SECONDS] == "60":
        time = _of_text(f"{text[:17]}59{text[19:]}", unit)
        if time // MICROSECONDS % 86_400 != 86_399:
            raise BadEvent(f"time {text!r} does not exist: 60 seconds are no leap second")
        return within_range(time + MICROSECONDS, text)
    *fields, fraction, sign, hours, minutes = match.groups()
    digits = (fraction or "").rstrip("0")
    if len(digits) > 6:
        raise FinerTime(f"time {text!r} is finer than a microsecond")
    try:
        moment = datetime(*map(int, fields), int(digits.ljust(6, "0")), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError as error:
        raise BadEvent(f"time {text!r} does not exist: {error}") from None
    offset = 0
    if sign:
        if int(hours) > 23 or int(minutes) > 59:
            raise BadEvent(f"time {text!r} has an offset beyond 23:59")
        offset = (int(hours) * 60 + int(minutes)) * 60 * MICROSECONDS * (1 if sign == "+" else -1)
    time = (moment - EPOCH) // timedelta(microseconds=1) - offset
    return within_range(time, text)


def _of_float(number: float, unit: str) -> int:
    if abs(number) < _EXACT_IN_FLOAT.get(unit, SECONDS_EXACT_IN_FLOAT):
        return round(_in_microseconds(number, unit))  # which is within range
    shortest = Decimal(float.__repr__(number))
    if not shortest.is_finite() or shortest.adjusted() > _POWER_MAX:
        raise _beyond(number)
    power = UNITS.get(unit, 6)
    rounded = shortest.scaleb(power).to_integral_value(ROUND_HALF_EVEN).scaleb(-power)
    return _of_number(rounded, number, unit)


def _in_microseconds(numbers: Numbers, unit: str) -> Numbers:
    """Floats of a unit, not rounded yet; the same operation for one and for a column."""
    power = UNITS.get(unit, 6)
    return numbers * 10.0**power if power >= 0 else numbers / 10.0**-power


def _of_number(number: Decimal, found: object, unit: str) -> int:
    if number.is_zero():  # whatever its exponent
        return 0
    if not number.is_finite() or number.adjusted() > _POWER_MAX:
        raise _beyond(found)
    try:
        scaled = _EXACT.scaleb(_EXACT.normalize(number), UNITS.get(unit, 6))
    except DecimalException:  # more digits than any time within range has
        raise _finer(found) from None
    if not RFC_3339_MIN <= scaled <= RFC_3339_MAX:
        raise _out_of_unit(scaled, found, unit)
    if scaled != scaled.to_integral_value(context=_EXACT):
        raise _finer(found)
    return int(scaled)


def _out_of_unit(time: Decimal, found: object, unit: str) -> BadEvent:
    """A number beyond all years, with the coarsest finer unit in which it would not be."""
    if unit == STAMP:
        return BadEvent(f"{_said(found, int(time))}, beyond 1 to 9999")
    said = _said(f"{_quoted(found)} as {_NAMES[unit]}", int(time))
    for finer, power in UNITS.items():
        moved = time.scaleb(power - UNITS[unit])
        if power < UNITS[unit] and RFC_3339_MIN <= moved <= RFC_3339_MAX:
            return BadEvent(f"{said}: {_NAMES[finer]}? say --time-unit {finer}")
    return BadEvent(f"{said}, beyond 1 to 9999")


def _said(found: object, time: int) -> str:
    cycles, day = divmod((time - RFC_3339_MIN) // _DAY, _CYCLE)
    year = 400 * cycles + date.fromordinal(day + 1).year
    return f"time {_quoted(found)} is the year {year}"


def _beyond(found: object) -> BadEvent:
    return BadEvent(f"time {_quoted(found)} is none of the years 1 to 9999")


def _finer(found: object) -> BadEvent:
    return FinerTime(f"time {_quoted(found)} is finer than a microsecond")


def _quoted(found: object) -> str:
    """A time as a message quotes it, however many digits it has."""
    # Python refuses to print an int of some thousand digits, but no decimal.
    text = str(Decimal(found) if isinstance(found, int) else found)
    return text if len(text) <= _FOUND_MAX else f"{text[:_FOUND_MAX]}..."


def of_texts(column: Any) -> Int64s | None:
    """Microseconds of an Arrow column of RFC 3339 texts; None where one needs a closer look."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Arrow's own reading is laxer than RFC 3339: it takes a date without seconds, or without
    # minutes, but none that is as long as one with seconds and Z.
    lengths = pc.min_max(pc.binary_length(column)).as_py()
    plain = lengths == {"min": _LENGTH, "max": _LENGTH}
    if not plain and not pc.all(pc.match_substring_regex(column, _PLAIN_RFC_3339)).as_py():
        return None
    try:
        times = pc.cast(column, pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return None
    numbers: Int64s = times.cast(pa.int64()).to_numpy()
    is_known = numbers.min(initial=0) >= RFC_3339_MIN and numbers.max(initial=0) <= RFC_3339_MAX
    return numbers if is_known else None


def _of_ints(values: Sequence[int], unit: str) -> Int64s | None:
    try:
        return of_ticks(np.array(values, np.int64), unit)
    except OverflowError:
        return None


def of_ticks(ticks: Int64s, unit: str) -> Int64s | None:
    """Microseconds of a column of whole numbers; None where one is finer, or beyond all years."""
    power: int = 10 ** abs(UNITS[unit])
    if unit == "ns":
        if (ticks % power).any():
            return None
        times = ticks // power
        low, high = RFC_3339_MIN, RFC_3339_MAX
        return times if times.min(initial=0) >= low and times.max(initial=0) <= high else None
    low, high = -(-RFC_3339_MIN // power), RFC_3339_MAX // power
    is_known = ticks.min(initial=0) >= low and ticks.max(initial=0) <= high
    return ticks * power if is_known else None


def _printed(ticks: Int64s, unit: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    # pa.array() of an array would import pandas, and so would a text among the arguments of a call.
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ticks))]
    column = pa.Array.from_buffers(pa.timestamp(unit), len(ticks), buffers).cast(pa.string())
    column = pc.replace_substring(column, " ", "T", max_replacements=1)
    return [f"{text}Z" for text in column.to_pylist()]
