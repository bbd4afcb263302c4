"""How events are cut into cells, each of which one task runs the rules over.

Law 1: a cell owns the composite events of its slice of time, and gets the events of its slice and
of the rules' reach before it; so cells of one bucket of keys tile time, and overlap in what they
get. Where only keys cut, a cell's slice is all of time.

Law 2: cells are about equally full. Keys fall into buckets by their hash; a bucket that holds
several cells' events, as one key may, is cut by time as well, where the rules allow it. A slice is
never shorter than the reach, or else most of the work would be done several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from broker.spark.frames import TIME, TYPE, Form
from broker.spark.look import Share, shares
from matcher.model import TIME_MAX, TIME_MIN
from rules.splitting import ByKey, ByTime, Pass

CELL = "cell"
"""The column that holds the number of a row's cell."""
SKEWED = 1.5
"""A bucket with so many times the events of an average cell is cut by time as well."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``start`` to before ``end``: the slice whose composite events a cell owns."""

    start: int = TIME_MIN
    end: int = TIME_MAX


@dataclass(frozen=True, slots=True)
class Cut:
    """The cells of a pass, and its frame with the column CELL: a row for each cell that needs it.

    ``overlap`` is how long before its slice a cell's events begin, in microseconds.
    """

    frame: DataFrame
    cells: tuple[Cell, ...]
    overlap: int


def cut(
    frame: DataFrame, form: Form, part: Pass, whole: Share, count: int, *, exactly: bool
) -> Cut:
    """Cut the good events of a pass into about ``count`` cells; ``exactly`` so many slices of time
    or buckets of keys if that is wanted, whatever the rules' reach.
    """
    reach = part.reach or 0
    match part.way:
        case ByTime():
            slices = count if exactly else min(count, _slices_max(whole, reach))
            bounds = bounds_of(whole.times, slices)
            return Cut(_in_slices(frame, [bounds], f.lit(0), reach), _cells(bounds), reach)
        case ByKey():
            bucket = bucket_of(form, part.way, count)
            if part.reach is None:
                return Cut(frame.withColumn(CELL, bucket), (Cell(),) * count, 0)
            of_bucket = shares(frame, bucket)
            none = Share(0, ())
            bounds_by_bucket = [
                _skewed(of_bucket.get(number, none), whole, count, reach) for number in range(count)
            ]
            cells = tuple(cell for bounds in bounds_by_bucket for cell in _cells(bounds))
            if len(cells) == count:
                return Cut(frame.withColumn(CELL, bucket), cells, 0)
            return Cut(_in_slices(frame, bounds_by_bucket, bucket, reach), cells, reach)
        case _:
            return Cut(frame.withColumn(CELL, f.lit(0)), (Cell(),), 0)


def bounds_of(times: Sequence[int], slices: int) -> list[int]:
    """Where slices of about equally many events begin, but for the first; ascending.

    ``times`` are quantiles. Slices that would be empty, for many events have one time, fall away.
    """
    if not times:
        return []
    last = len(times) - 1
    chosen = {times[round(place * last / slices)] for place in range(1, slices)}
    return sorted(chosen - {times[0]})


def _slices_max(share: Share, reach: int) -> int:
    return max(1, share.span // reach) if reach else TIME_MAX


def _skewed(share: Share, whole: Share, count: int, reach: int) -> list[int]:
    average = max(1.0, whole.count / count)
    if share.count < SKEWED * average:
        return []
    return bounds_of(share.times, min(round(share.count / average), _slices_max(share, reach)))


def _cells(bounds: Sequence[int]) -> tuple[Cell, ...]:
    starts, ends = [TIME_MIN, *bounds], [*bounds, TIME_MAX]
    return tuple(map(Cell, starts, ends))


def bucket_of(form: Form, way: ByKey, count: int) -> Column:
    """The number, below ``count``, of the bucket that a row's key falls into: int32."""
    return f.pmod(f.xxhash64(_key(form, way)), f.lit(count)).cast("int")


def _key(form: Form, way: ByKey) -> Column:
    """The key of a row, as text, by the attribute of its type."""
    types = {type_.name: type_ for type_ in form.types}
    key = f.lit(None).cast("string")
    for name, place in way.attributes:
        if name in types:
            column = f.col(form.column(types[name].attributes[place])).cast("string")
            key = f.when(f.col(TYPE) == name, column).otherwise(key)
    return key


def _in_slices(
    frame: DataFrame, bounds: Sequence[Sequence[int]], bucket: Column, reach: int
) -> DataFrame:
    """Rows with the cells of their bucket that need them, those of one time slice after another.

    A row at t is needed by the slices from the one of t to the one of t + reach.
    """
    first_cell = 0
    first = last = f.lit(0)
    for number, own in enumerate(bounds):
        begin = slice_of(f.col(TIME), own) + first_cell
        end = slice_of(f.col(TIME) + f.lit(reach), own) + first_cell
        first = f.when(bucket == number, begin).otherwise(first) if number else begin
        last = f.when(bucket == number, end).otherwise(last) if number else end
        first_cell += len(own) + 1
    return frame.withColumn(CELL, f.explode(f.sequence(first, last)))


def slice_of(time: Column, bounds: Sequence[int]) -> Column:
    """How many of the bounds are not after a time, by bisection."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return f.lit(low)
        middle = (low + high) // 2
        later = time >= f.lit(bounds[middle])
        return f.when(later, search(middle + 1, high)).otherwise(search(low, middle))

    return search(0, len(bounds))
