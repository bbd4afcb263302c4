"""How events are cut into cells, each of which one task runs the rules over.

Law 1: a cell owns the composite events of its slice of time, and gets the events of its slice and
of the rules' reach before it; so cells of one bucket of keys tile time, and overlap in what they
get. Where only keys cut, a cell's slice is all of time.

Law 2: cells are about equally full. Keys fall into buckets by their hash; a bucket that holds
several cells' events, as one key may, is cut by time as well, where the rules allow it. A slice is
never shorter than the reach, or else most of the work would be done several times.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, functions as f

from broker.spark.blocks import BUCKET, FIRST, LAST
from broker.spark.frames import TYPE, Form
from broker.spark.look import Share
from matcher.model import TIME_MAX, TIME_MIN
from rules.cutting.splitting import ByKey, ByTime, Pass

CELL = "cell"
"""The column that holds the number of a cell."""
SKEWED = 1.5
"""A bucket with so many times the events of an average cell is cut by time as well."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``start`` to before ``end``: the slice whose composite events a cell owns."""

    start: int = TIME_MIN
    end: int = TIME_MAX


def slices(part: Pass, shares: Sequence[Share], count: int, *, exactly: bool) -> list[list[int]]:
    """Where the slices of each bucket of a pass begin, but for the first; ``shares`` are those of
    its buckets. There are about ``count`` cells; ``exactly`` so many slices of time if that is
    wanted, whatever the rules' reach.
    """
    match part.way:
        case ByTime():
            (share,) = shares
            most = count if exactly else min(count, slices_max(share, part.reach or 0))
            return [bounds_of(share.times, most)]
        case ByKey() if part.reach is not None:
            average = max(1.0, sum(share.count for share in shares) / len(shares))
            return [_skewed(share, average, part.reach) for share in shares]
        case _:
            return [[] for _ in shares]


def cells_of(bounds: Sequence[int]) -> tuple[Cell, ...]:
    """The cells of a bucket by where its slices begin, but for the first."""
    starts, ends = [TIME_MIN, *bounds], [*bounds, TIME_MAX]
    return tuple(map(Cell, starts, ends))


def in_cells(
    blocks: DataFrame, bounds: Sequence[Sequence[int]], reaches: Sequence[int]
) -> DataFrame:
    """Blocks with the number of a cell that needs them, once for each such cell. ``bounds`` and
    ``reaches`` are by bucket; cells are numbered bucket by bucket, and slice by slice in these.

    An event at t is needed by the slices from the one of t to the one of t + reach.
    """
    firsts = [0, *itertools.accumulate(len(own) + 1 for own in bounds)][:-1]
    table = [
        {"f": f_, "r": reach, "b": [*own]}
        for f_, reach, own in zip(firsts, reaches, bounds, strict=True)
    ]
    # As one text, for a literal a number would be a call of Java's each.
    schema = "array<struct<f: int, r: bigint, b: array<bigint>>>"
    own = f.from_json(f.lit(json.dumps(table)), f.lit(schema))[f.col(BUCKET)]
    begin = own["f"] + _slice_in(own["b"], f.col(FIRST))
    end = own["f"] + _slice_in(own["b"], f.col(LAST) + own["r"])
    return blocks.withColumn(CELL, f.explode(f.sequence(begin, end)))


def _slice_in(bounds: Column, time: Column) -> Column:
    """How many of the bounds, an array, are not after a time."""
    return f.size(f.filter(bounds, lambda bound: bound <= time))


def bounds_of(times: Sequence[int], slices: int) -> list[int]:
    """Where slices of about equally many events begin, but for the first; ascending.

    ``times`` are quantiles. Slices that would be empty, for many events have one time, fall away.
    """
    if not times:
        return []
    last = len(times) - 1
    chosen = {times[round(place * last / slices)] for place in range(1, slices)}
    return sorted(chosen - {times[0]})


def slices_max(share: Share, reach: int) -> int:
    """So many slices are none of them shorter than the reach, on average."""
    return max(1, share.span // reach) if reach else TIME_MAX


def _skewed(share: Share, average: float, reach: int) -> list[int]:
    if share.count < SKEWED * average:
        return []
    return bounds_of(share.times, min(round(share.count / average), slices_max(share, reach)))


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


def slice_of(time: Column, bounds: Sequence[int]) -> Column:
    """How many of the bounds are not after a time, by bisection."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return f.lit(low)
        middle = (low + high) // 2
        later = time >= f.lit(bounds[middle])
        return f.when(later, search(middle + 1, high)).otherwise(search(low, middle))

    return search(0, len(bounds))
