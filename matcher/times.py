"""Event time and its text forms (tesla.md E2).

Time is an integer count of microseconds since the epoch. Its text is an RFC 3339 timestamp
(``2013-01-01T05:17:00Z``) or a number of seconds; digits finer than a microsecond are refused,
never rounded away. A binary float stands for the shortest decimal that names it, as JSON's
numbers do in most programs, so ``12.3`` is 12,300,000 microseconds exactly.

Each direction has one form for a single time and one for a whole column; the column forms accept
a subset, in bulk, of what the single forms do, and say so when a column is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from matcher.errors import BadEvent
from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, Int64s

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RFC_3339_MIN = -62_135_596_800 * MICROSECONDS
"""The year 1: nothing earlier has an RFC 3339 form here, and is printed in seconds."""
RFC_3339_MAX = 253_402_300_800 * MICROSECONDS - 1
"""The last microsecond of the year 9999."""

_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_PLAIN_RFC_3339 = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_LENGTH = len("2013-01-01T05:17:00Z")
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
SECONDS_EXACT_IN_FLOAT = 2**32
"""Below it (the year 2106), a float times a million rounds to the microsecond that it names."""
_WHOLE_SECONDS_MAX = TIME_MAX // MICROSECONDS
_FOUND_MAX = 60
"""Characters of a time that a message quotes; no good one is longer."""


def time_of(value: object) -> int:
    """The time, in microseconds, that a text, a number of seconds or a datetime stands for.

    Raises BadEvent: another form, digits finer than a microsecond, or beyond 64 bits.
    """
    match value:
        case bool() | None:
            raise BadEvent(f"no time: expected RFC 3339 or seconds, found {spoken(value)}")
        case str():
            return _of_text(value)
        case int():
            return _in_range(value * MICROSECONDS, value)
        case float():
            return _of_seconds(Decimal(float.__repr__(value)), value)  # of numpy's floats too
        case Decimal():
            return _of_seconds(value, value)
        case datetime():
            if value.tzinfo is None:
                raise BadEvent(f"time {value.isoformat()} lacks its offset from UTC")
            return (value - EPOCH) // timedelta(microseconds=1)
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


def spoken(value: object) -> str:
    """What a value is, in words of the event model and of JSON, without the value itself.

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


def times_of(values: Sequence[Any]) -> Int64s | None:
    """The times of a whole column; None when some value needs a closer look (time_of)."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return _of_texts(values)
    if kinds == {int}:
        return _of_whole_seconds(values)
    if kinds <= {int, float}:
        return of_float_seconds(np.array(values, np.float64))
    if any(type(value) is float and abs(value) >= SECONDS_EXACT_IN_FLOAT for value in values):
        return None
    try:
        return np.fromiter(map(time_of, values), np.int64, len(values))
    except BadEvent:
        return None


def of_float_seconds(seconds: npt.NDArray[np.float64]) -> Int64s | None:
    """Microseconds of a column of seconds; None unless each names one microsecond exactly."""
    if not np.all(np.abs(seconds) < SECONDS_EXACT_IN_FLOAT):  # False for NaN too
        return None
    times = np.rint(seconds * MICROSECONDS)
    return times.astype(np.int64) if np.all(times / MICROSECONDS == seconds) else None


def rfc3339(times: Int64s) -> list[str]:
    """RFC 3339 text of a column of times, in UTC; six digits of fraction where there is one.

    Times outside the years 1 to 9999 have no such form and are printed in seconds.
    """
    if len(times) == 0:
        return []
    if times.min() < RFC_3339_MIN or times.max() > RFC_3339_MAX:
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


def _of_text(text: str) -> int:
    match = _RFC_3339.fullmatch(text)
    if match is None:
        if _NUMBER.fullmatch(text):
            return _of_seconds(decimal_of(text), text)
        raise BadEvent(f"time {text!r} is neither RFC 3339 (2013-01-01T05:17:00Z) nor seconds")
    *date, fraction, sign, hours, minutes = match.groups()
    digits = (fraction or "").rstrip("0")
    if len(digits) > 6:
        raise BadEvent(f"time {text!r} is finer than a microsecond")
    try:
        moment = datetime(*map(int, date), int(digits.ljust(6, "0")), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError as error:
        raise BadEvent(f"time {text!r} does not exist: {error}") from None
    offset = 0
    if sign:
        if int(hours) > 23 or int(minutes) > 59:
            raise BadEvent(f"time {text!r} has an offset beyond 23:59")
        offset = (int(hours) * 60 + int(minutes)) * 60 * MICROSECONDS * (1 if sign == "+" else -1)
    return (moment - EPOCH) // timedelta(microseconds=1) - offset


def _of_seconds(seconds: Decimal, found: object) -> int:
    if seconds.is_zero():  # whatever its exponent
        return 0
    if not seconds.is_finite() or seconds.adjusted() > 18:
        raise _beyond(found)
    try:
        scaled = _EXACT.scaleb(_EXACT.normalize(seconds), 6)
    except DecimalException:  # more digits than any time within range has
        raise _finer(found) from None
    if scaled != scaled.to_integral_value(context=_EXACT):
        raise _finer(found)
    return _in_range(int(scaled), found)


def _in_range(time: int, found: object) -> int:
    if not TIME_MIN < time < TIME_MAX:
        raise _beyond(found)
    return time


def _beyond(found: object) -> BadEvent:
    return BadEvent(f"time {_quoted(found)} is not a number of seconds that fits in 64 bits")


def _finer(found: object) -> BadEvent:
    return BadEvent(f"time {_quoted(found)} is finer than a microsecond")


def _quoted(found: object) -> str:
    """A time as a message quotes it, however many digits it has."""
    # Python refuses to print an int of some thousand digits, but no decimal.
    text = str(Decimal(found) if isinstance(found, int) else found)
    return text if len(text) <= _FOUND_MAX else f"{text[:_FOUND_MAX]}..."


def _of_texts(texts: Sequence[str]) -> Int64s | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return None
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
    return numbers if len(numbers) == 0 or numbers.min() >= RFC_3339_MIN else None


def _of_whole_seconds(values: Sequence[int]) -> Int64s | None:
    try:
        seconds = np.array(values, np.int64)
    except OverflowError:
        return None
    if np.any(np.abs(seconds) > _WHOLE_SECONDS_MAX) or np.any(seconds == TIME_MIN):
        return None
    return seconds * MICROSECONDS


def _printed(ticks: Int64s, unit: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit)).cast(pa.string())
    column = pc.replace_substring(column, " ", "T", max_replacements=1)
    texts: list[str] = pc.binary_join_element_wise(column, "Z", "").to_pylist()
    return texts
