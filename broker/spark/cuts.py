"""How a pass is cut where tasks read files themselves: which row groups each cell is to read.

Law 1: a cell reads the row groups that overlap its slice and the rules' reach before it. One that
is in order of time is read up to the slice's end, another one whole. Cells of keys read them all,
each leaving out other buckets.

Law 2: files are read directly only where no row is read more than READS_MAX times for a pass, where
no bucket of keys is much fuller than others, and where so few row groups overlap in time that no
task has more than HELD_MAX rows in memory that it has not yet come to.

Law 3: rules that are bound to a key and have a reach too may be cut either way (``splitting``,
Pass): they are cut into slices of time where these read fewer rows than buckets of keys, and are
at least as many. What ends at a row group's first event and the reach reads no more of it, so that
is where slices begin, if it is near.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from broker.spark.blocks import Portion
from broker.spark.cells import SKEWED, Cell, cells_of, slices_max
from broker.spark.look import Share
from broker.spark.parquet import READ_TOGETHER
from matcher.model import TIME_MIN
from rules.cutting.splitting import ByKey, ByTime, Pass

READS_MAX = 4
HELD_MAX = 1 << 22
TIMES = 16
"""The times of a row group are known to so many quantiles."""
_SLACK = 4
"""A slice begins within this part of its length of where it would, were they all equally full."""


@dataclass(frozen=True, slots=True)
class Span:
    """A row group's events: how many, from when to when (TIMES + 1 quantiles), whether they are in
    order of time, and how many are in each bucket of each pass.
    """

    piece: int
    rows: int
    in_order: bool
    times: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]

    def read_before(self, end: int) -> float:
        """About so many rows are read of it for a slice that ends there."""
        return (
            self.rows * bisect_left(self.times, end) / len(self.times)
            if self.in_order
            else self.rows
        )


@dataclass(frozen=True, slots=True)
class Own:
    """A task's share: its cell, the pass, the bucket (None: all of them), the row groups that
    may hold something for it: number, time of the first event, and whether they are in order; and
    about how many ``rows`` it reads.
    """

    cell: Cell
    part: int
    bucket: int | None
    spans: tuple[tuple[int, int, bool], ...]
    rows: float


def may_be_cut(part: Pass, portion: Portion) -> bool:
    """Whether a pass may be cut so that rows are not read too often, as far as is known without a
    look at them.
    """
    return portion.buckets <= READS_MAX or part.reach is not None


def cut(
    part: Pass,
    place: int,
    portion: Portion,
    whole: Share,
    spans: Sequence[Span],
    count: int,
    *,
    exactly: bool,
) -> list[Own] | None:
    """The cells of the pass with number ``place``, into about or ``exactly`` ``count`` slices if
    time cuts it; None where rows would be read too often.
    """
    found = list[list[Own]]()
    is_sliced = isinstance(part.way, ByTime)
    if not is_sliced and portion.buckets <= READS_MAX and not _is_skewed(portion, place, spans):
        cells = [(number, Cell()) for number in range(portion.buckets)]
        found.append([_own(cell, place, number, 0, spans) for number, cell in cells])
    if part.reach is not None and isinstance(part.way, ByKey | ByTime):
        most = count if exactly else min(count, slices_max(whole, part.reach))
        cells_of_time = cells_of(_bounds(whole.times, most, part.reach, spans))
        if is_sliced or len(cells_of_time) >= portion.buckets:
            found.append([_own(cell, place, None, part.reach, spans) for cell in cells_of_time])
    best = min(found, key=_read, default=None)
    return None if best is None or _read(best) > READS_MAX * whole.count else best


def held(spans: Sequence[Span]) -> int:
    """So many rows may a task have read at once of row groups that overlap in time."""
    changes = list[tuple[int, int]]()
    for span in spans:
        rows = min(span.rows, READ_TOGETHER) if span.in_order else span.rows
        changes += [(span.times[0], rows), (span.times[-1] + 1, -rows)]
    return max(itertools.accumulate(change for _, change in sorted(changes)))


def _own(cell: Cell, place: int, bucket: int | None, reach: int, spans: Iterable[Span]) -> Own:
    begin = cell.start if cell.start == TIME_MIN else cell.start - reach
    needed = [span for span in spans if span.times[0] < cell.end and span.times[-1] >= begin]
    told = tuple((span.piece, span.times[0], span.in_order) for span in needed)
    return Own(cell, place, bucket, told, sum(span.read_before(cell.end) for span in needed))


def _read(cells: Iterable[Own]) -> float:
    return sum(one.rows for one in cells)


def _bounds(times: Sequence[int], count: int, reach: int, spans: Iterable[Span]) -> list[int]:
    """Where so many slices of about equally many events begin, but for the first; ``times`` are
    quantiles of all events. Slices that would be empty fall away.
    """
    last = len(times) - 1
    slack = last // (_SLACK * count)
    starts = sorted({span.times[0] + reach for span in spans if span.in_order})
    bounds = set[int]()
    for place in range(1, count):
        at = round(place * last / count)
        near = starts[
            bisect_left(starts, times[at - slack]) : bisect_left(starts, times[at + slack])
        ]
        bounds.add(min(near, key=lambda start: abs(start - times[at]), default=times[at]))
    return sorted(bounds - {times[0]})


def _is_skewed(portion: Portion, place: int, spans: Sequence[Span]) -> bool:
    if portion.buckets == 1:
        return False
    counts = np.sum([span.counts[place] for span in spans], axis=0)
    return bool(counts.max() > SKEWED * max(1.0, counts.mean()))
