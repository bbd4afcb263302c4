"""Times of a frame's rows in microseconds since the epoch, whatever kind of column holds them.

Law: a time is the one that ``rexmq detect`` reads in the same value, or none. So texts and numbers
with fractions are read by the reader of files (``matcher.formats.arrowcolumns``), in Python's
workers; timestamps and whole seconds by Spark. The session's zone enters nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions as f, types as spark
from pyspark.sql.pandas.functions import arrow_udf

from matcher.errors import SchemaError
from matcher.formats.arrowcolumns import BadRows, times_of_column
from matcher.formats.timeform import TimeForm
from matcher.model import MICROSECONDS
from matcher.times import RFC_3339_MAX

NO_TIME = "no time"
UNREAD_TIME = (
    "no time that can be read (expected RFC 3339 or seconds since the epoch, no finer than a "
    "microsecond and no later than the year 9999; time_zone, or a layout, says what else it is)"
)
"""Why rows with a null, and with another value that is no time, are no events."""
_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_FRACTIONS = (spark.DecimalType, spark.FloatType, spark.DoubleType)


def check_time(name: str, data_type: spark.DataType, *, has_zone: bool = False) -> None:
    """SchemaError, naming the column, unless times can be read in it; ``has_zone``: whether it is
    said what zone times without one are in.
    """
    if isinstance(data_type, (spark.TimestampNTZType, spark.DateType)):
        if has_zone:
            return
        raise SchemaError(
            f"column {name} holds times without a time zone; say which they are in "
            f"(time_zone='UTC', or 'Europe/Rome'), or make timestamps of them (to_utc_timestamp)"
        )
    known = (spark.TimestampType, spark.StringType, *_INTEGERS, *_FRACTIONS)
    if not isinstance(data_type, known):
        raise SchemaError(
            f"column {name} is of type {data_type.simpleString()}; expected timestamps, RFC 3339 "
            f"text or seconds since the epoch"
        )


def check_zone(frame: DataFrame, time_zone: str | None) -> None:
    """ValueError unless Java knows the time zone."""
    java = getattr(frame.sparkSession, "_jvm", None)
    if time_zone is None or java is None:
        return
    try:
        java.java.time.ZoneId.of(time_zone)
    except (Py4JError, PySparkException):
        raise ValueError(
            f"time_zone is a name such as 'UTC' or 'Europe/Rome', or an offset such as '+02:00', "
            f"not {time_zone!r}"
        ) from None


def microseconds(column: Column, data_type: spark.DataType, times: TimeForm) -> Column:
    """The times that a column holds, which ``check_time`` has looked at; null, or later than the
    year 9999, where there is none. A wall clock's hour that comes twice is the first one, and one
    that it skips is none.
    """
    if isinstance(data_type, spark.TimestampType):
        return f.unix_micros(column)
    if isinstance(data_type, (spark.TimestampNTZType, spark.DateType)):
        clock, zone, utc = column.cast("timestamp_ntz"), f.lit(times.zone), f.lit("UTC")
        moment = f.convert_timezone(zone, utc, clock)
        was_shown = f.convert_timezone(utc, zone, moment) == clock
        return f.when(was_shown, _of_clock(moment))
    if isinstance(data_type, _INTEGERS) and times.format is None and times.unit == "s":
        return f.try_multiply(column.cast("long"), f.lit(MICROSECONDS))
    return _reader(times)(column)


def bad_time(column: Column, time: Column) -> Column:
    """Why the times that were read in a column make rows no events, or null."""
    unread = time.isNull() | (time > f.lit(RFC_3339_MAX))
    return f.when(column.isNull(), f.lit(NO_TIME)).when(unread, f.lit(UNREAD_TIME))


def _of_clock(clock: Column) -> Column:
    """Times that a clock of UTC showed, without the session's own."""
    days = f.unix_date(clock.cast("date")).cast("long")
    minutes = (days * 24 + f.hour(clock)) * 60 + f.minute(clock)
    seconds = f.extract(f.lit("SECOND"), clock)
    return minutes * f.lit(60 * MICROSECONDS) + (seconds * MICROSECONDS).cast("long")


@lru_cache(maxsize=64)
def _reader(form: TimeForm) -> Callable[[Column], Column]:
    """A function of columns: the times of values as the reader of files reads them, null where it
    refuses.
    """

    def read(column: pa.Array) -> pa.Array:
        bad: BadRows = []
        times = times_of_column(column, len(column), bad, form).times
        refused = np.zeros(len(column), np.bool_)
        for rows, _ in bad:
            refused[rows] = True
        return pa.array(times, pa.int64(), mask=refused)

    found: Callable[[Column], Column] = arrow_udf(read, spark.LongType())  # type: ignore[call-overload]
    return found
