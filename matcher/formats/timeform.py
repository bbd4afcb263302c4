"""How a file writes its times: the one meaning of options --time-unit, -zone, -format and -cut.

:meth:`TimeForm.time_of` says what one value means. The methods for whole columns take, in bulk, a
subset of what it takes and give None for the rest, so that both agree; nothing here is done for
each event where the values of a column are alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from matcher.errors import BadEvent, EventError
from matcher.model import MICROSECONDS, Bools, Int64s
from matcher.times import (
    EPOCH,
    STAMP,
    UNITS,
    FinerTime,
    UnreadTime,
    of_texts,
    of_ticks,
    time_of,
    times_of,
    within_range,
)

if TYPE_CHECKING:
    import pyarrow as pa

_LOCAL = re.compile(
    r"(\d{4})(?:-(\d\d)-|/(\d\d)/)(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?", re.ASCII
)
_PLAIN_LOCAL = (
    r"^(\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d)([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?$"  # what Arrow reads
)
_WHOLE = r"^-?\d{1,18}$"
_LOGGED = re.compile(
    r"(\d{4})([-/])(\d\d)\2(\d\d)[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))?"
    r" ?(?:([Zz]|UTC|GMT)|([+-]\d\d)(?::?(\d\d))?)?",
    re.ASCII,
)
"""The ways in which loggers write what RFC 3339 writes in one."""
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)
_LEAP = re.compile(r"(?<=:\d\d):60(?!\d)", re.ASCII)
_FINER_TEXT = re.compile(r"(:\d\d\.\d{6})\d+", re.ASCII)
_SECOND_OF_DAY = 86_400
_ZONES_KNOWN_TO = (datetime(2037, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
"""Arrow's zones have no daylight saving after it; Python's do."""
_PROBE = datetime(1987, 11, 22, 13, 44, 55, tzinfo=UTC)
_DECIMALS_MAX = 40


class Read(NamedTuple):
    """Times in microseconds; ``lacks_zone``: whether UTC was assumed for some; ``second``: the
    times again, the second of those that clocks show twice, None if there are none of these.
    """

    times: Int64s
    lacks_zone: bool = False
    second: Int64s | None = None

    def take(self, rows: Int64s | Bools) -> Read:
        """The times of some rows."""
        second = None if self.second is None else self.second[rows]
        return Read(self.times[rows], self.lacks_zone, second)


class Moment(NamedTuple):
    """A time in microseconds; whether UTC was assumed; and its second, if clocks show it twice."""

    time: int
    lacks_zone: bool = False
    second: int | None = None


def read_of(moments: Sequence[Moment]) -> Read:
    """Times that were read one by one."""
    times = np.array([one.time for one in moments], np.int64)
    lacks_zone = any(one.lacks_zone for one in moments)
    if all(one.second is None for one in moments):
        return Read(times, lacks_zone)
    seconds = [one.time if one.second is None else one.second for one in moments]
    return Read(times, lacks_zone, np.array(seconds, np.int64))


@dataclass(frozen=True, slots=True)
class TimeForm:
    """How times are written.

    ``unit`` (times.UNITS): what numbers count. ``zone``: the time zone (``Europe/Rome``,
    ``+02:00``) of what bears none; where it is not said (None) texts without one are refused and
    timestamps are in UTC; and where it is left open ("") both are in UTC, and readers tell so
    (``lacks_zone``). ``format``: of texts, as Python's ``strptime`` has it, in place of RFC 3339.
    ``cuts``: whether digits finer than a microsecond are cut. Raises EventError, with the option's
    name, for what is none of these.

    A time that clocks show twice is given as both; one that they skip does not exist and is
    refused. Digits of texts, decimals and whole nanoseconds that are finer than a microsecond are
    refused, or where that is said cut: the time is the microsecond in which it falls
    (matcher.times).
    """

    unit: str = "s"
    zone: str | None = None
    format: str | None = None
    cuts: bool = False

    def __post_init__(self) -> None:
        if self.unit not in (*UNITS, STAMP):
            raise EventError(f"--time-unit: expected {' or '.join(UNITS)}, found {self.unit!r}")
        _zone(self.zone or "UTC")
        if self.format is not None:
            _verify_format(self.format)

    def time_of(self, value: object) -> Moment:
        """The time that a value means; BadEvent."""
        if self.format is not None and type(value) is int:
            value = str(value)
        try:
            if isinstance(value, str):
                return self._of_text(value)
            if isinstance(value, datetime) and value.tzinfo is None:
                return self._of_local(value, value.isoformat())
            if isinstance(value, date) and not isinstance(value, datetime):
                midnight = datetime(value.year, value.month, value.day)
                return self._of_local(midnight, value.isoformat())
            return Moment(self._of_number(value))
        except FinerTime as error:
            raise BadEvent(f"{error.reason} (--time-cut cuts its digits)") from None
        except UnreadTime as error:
            raise BadEvent(f"{error.reason} (--time-format says how it is written)") from None

    def times_of(self, values: Sequence[Any]) -> Read | None:
        """The times of values of JSON or Python; None when one needs a closer look (time_of)."""
        kinds = set(map(type, values))
        if self.format is not None and kinds <= {int, str}:
            values, kinds = list(map(str, values)), {str}
        if kinds != {str}:
            times = times_of(values, self.unit) if self.format is None else None
            return None if times is None else Read(times)
        import pyarrow as pa

        try:
            return self.of_texts(pa.array(values, pa.string()))
        except UnicodeEncodeError:
            return None

    def of_texts(self, column: pa.Array) -> Read | None:
        """The times of a column of texts without nulls; None when one needs a closer look."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.format is not None:
            return self._formatted(column, self.format)
        if self.cuts:
            column = pc.replace_substring_regex(column, _FINER_TEXT.pattern, r"\1")
        times = of_texts(column)
        if times is not None:
            return Read(times)
        if pc.all(pc.match_substring_regex(column, _WHOLE)).as_py():
            times = self.of_ticks(column.cast(pa.int64()).to_numpy(), self.unit)
            return None if times is None else Read(times)
        if self.zone is None or not pc.all(pc.match_substring_regex(column, _PLAIN_LOCAL)).as_py():
            return self._of_logged(column.to_pylist())
        try:
            stamps = pc.replace_substring(column, "/", "-").cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            return None
        return self.of_clocks(stamps.cast(pa.int64()).to_numpy())

    def _of_logged(self, texts: Sequence[str]) -> Read | None:
        """The times of texts that are not of RFC 3339, but as loggers write it."""
        import pyarrow as pa

        plain = list(map(_as_rfc_3339, texts))
        return None if plain == texts else self.of_texts(pa.array(plain, pa.string()))

    def of_stamps(self, column: pa.Array) -> Read | None:
        """The times of timestamps or dates without nulls; None when one needs a closer look."""
        import pyarrow as pa

        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        times = self.of_ticks(column.view(pa.int64()).to_numpy(), column.type.unit)
        if times is None or column.type.tz is not None:
            return None if times is None else Read(times)
        return Read(times) if self.zone is None else self.of_clocks(times)

    def of_ticks(self, ticks: Int64s, unit: str) -> Int64s | None:
        """Microseconds of whole numbers; None where one is finer, or beyond all years."""
        if self.cuts and unit == "ns":
            ticks, unit = ticks // 1000, "us"
        return of_ticks(ticks, unit)

    def of_clocks(self, times: Int64s) -> Read | None:
        """The times of what clocks of the zone showed, as microseconds since their 1970."""
        if not self.zone or self.zone == "UTC":
            return Read(times, self.zone == "")
        if len(times) and times.max() >= _ZONES_KNOWN_TO:
            return None
        import pyarrow as pa
        import pyarrow.compute as pc

        clocks = pa.array(times).view(pa.timestamp("us"))
        try:
            first, last, second = (
                pc.assume_timezone(clocks, self.zone, ambiguous=hour, nonexistent=gap)
                for hour, gap in _CHOICES
            )
        except pa.ArrowInvalid:  # Python may know zones that Arrow does not
            return None
        if not first.equals(last):
            return None
        found, again = (one.cast(pa.int64()).to_numpy() for one in (first, second))
        return Read(found, second=None if np.array_equal(found, again) else again)

    def at_clock(self, time: int, found: str) -> Moment:
        """The time at which a clock of the zone showed so many microseconds since its 1970."""
        return self._of_local((EPOCH + timedelta(microseconds=time)).replace(tzinfo=None), found)

    # --- texts ---

    def _of_text(self, text: str) -> Moment:
        if _LEAP.search(text):
            before = self._of_text(_LEAP.sub(":59", text))
            if before.time // MICROSECONDS % _SECOND_OF_DAY != _SECOND_OF_DAY - 1:
                raise BadEvent(f"time {text!r} does not exist: 60 seconds are no leap second")
            again = None if before.second is None else before.second + MICROSECONDS
            time = within_range(before.time + MICROSECONDS, text)
            return Moment(time, before.lacks_zone, again)
        if self.format is not None:
            return self._of_format(text, self.format)
        text = _as_rfc_3339(text)
        if self.cuts:
            text = _FINER_TEXT.sub(r"\1", text)
        local = _LOCAL.fullmatch(text)
        if local is None or self.zone is None:
            return Moment(self._of_number(text))
        year, month, other, day, hour, minute, second, fraction = local.groups()
        digits = (fraction or "").rstrip("0")
        if len(digits) > 6:
            raise FinerTime(f"time {text!r} is finer than a microsecond")
        fields = [int(one or 0) for one in (year, month or other, day, hour, minute, second)]
        try:
            moment = datetime(*fields, int(digits.ljust(6, "0")))  # type: ignore[arg-type, call-arg]
        except ValueError as error:
            raise BadEvent(f"time {text!r} does not exist: {error}") from None
        return self._of_local(moment, text)

    def _formatted(self, column: pa.Array, form: str) -> Read | None:
        """The times of a column of texts of a format, each distinct text being read once."""
        if self.zone is not None and (clocks := _by_arrow(column, form)) is not None:
            return self.of_clocks(clocks)
        encoded = column.dictionary_encode()
        try:
            read = read_of([self._of_text(text) for text in encoded.dictionary.to_pylist()])
        except (BadEvent, UnicodeDecodeError):
            return None
        return read.take(encoded.indices.to_numpy())

    def _of_format(self, text: str, form: str) -> Moment:
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            raise BadEvent(f"time {text[:60]!r} is not of --time-format {form!r}") from None
        if moment.tzinfo is None:
            if self.zone is None:
                raise BadEvent(f"time {text[:60]!r} lacks its zone: say it with --time-zone")
            return self._of_local(moment, text)
        return Moment(within_range((moment - EPOCH) // timedelta(microseconds=1), text))

    def _of_local(self, moment: datetime, found: str) -> Moment:
        """The time when clocks of the zone showed this."""
        zone = _zone(self.zone or "UTC")
        aware = moment.replace(tzinfo=zone)
        try:
            if aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment:
                raise BadEvent(f"time {found!r} does not exist in {self.zone}: its clocks skip it")
        except OverflowError:
            pass  # at an end of all years
        first, second = (
            (aware.replace(fold=fold) - EPOCH) // timedelta(microseconds=1) for fold in (0, 1)
        )
        both = None if first == second else within_range(second, found)
        return Moment(within_range(first, found), self.zone == "", both)

    def _of_number(self, value: object) -> int:
        """A number, or a text of RFC 3339 or of a number."""
        try:
            return time_of(value, self.unit)
        except FinerTime:
            if not self.cuts:
                raise
            number = Decimal(str(value))
            if not number.is_finite() or number.adjusted() > _DECIMALS_MAX:
                raise
            ticks = number.scaleb(UNITS.get(self.unit, 6)).to_integral_value(ROUND_FLOOR)
            return time_of(Decimal(ticks), "us")


def _as_rfc_3339(text: str) -> str:
    """A text as loggers write it in the form of RFC 3339, as far as it says; others as they are.

    >>> _as_rfc_3339("2024/06/01 10:00:00,123 +0200"), _as_rfc_3339("2024-06-01T10:00")
    ('2024-06-01T10:00:00.123+02:00', '2024-06-01T10:00:00')
    """
    logged = _LOGGED.fullmatch(text)
    if logged is None:
        return text
    year, _, month, day, clock, second, fraction, utc, hours, minutes = logged.groups()
    zone = "Z" if utc else f"{hours}:{minutes or '00'}" if hours else ""
    rest = f".{fraction}" if fraction else ""
    return f"{year}-{month}-{day}T{clock}{second or ':00'}{rest}{zone}"


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    """A time zone by its name, or an offset; EventError."""
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is None:
            return ZoneInfo(name)
        delta = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-delta if offset[1] == "-" else delta)
    except (OSError, ValueError, LookupError):
        raise EventError(
            f"--time-zone: no time zone is called {name!r}; expected a name such as UTC or "
            f"Europe/Rome, or an offset such as +02:00"
        ) from None


@lru_cache(maxsize=64)
def _verify_format(form: str) -> None:
    """EventError unless a format is one of strptime's, and says the year."""
    try:
        year = datetime.strptime(_PROBE.strftime(form), form).year
    except ValueError as error:
        raise EventError(
            f"--time-format: {error}; expected the codes of strptime, as in '%d.%m.%Y %H:%M:%S'"
        ) from None
    if year != _PROBE.year:
        raise EventError(f"--time-format: {form!r} does not say the year (%Y)")


def _by_arrow(column: pa.Array, form: str) -> Int64s | None:
    """Clock times by Arrow's reader of formats: None unless that writes all texts again as
    they are, for it is laxer than Python's (it takes February 30 for March 1).
    """
    if "%f" in form or "%z" in form:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    stamps = pc.strptime(column, format=form, unit="s", error_is_null=True)
    if stamps.null_count or not pc.strftime(stamps, format=form).equals(column):
        return None
    seconds: Int64s = stamps.cast(pa.int64()).to_numpy()
    return seconds * MICROSECONDS


_CHOICES = (("earliest", "earliest"), ("earliest", "latest"), ("latest", "earliest"))
"""Of a local time that comes twice, and of one that never does, which time it may be."""
RFC_3339 = TimeForm()
"""The form where none is said."""
