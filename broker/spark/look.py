"""A first look at events: how many there are, from when to when, and what is wrong with them.

It is one aggregation, of rows before they are published, and for ``detect`` of the blocks that they
were packed in and their tallies. Of those the quantiles are of the times at which blocks begin, for
the blocks of a bucket are about equally full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Row, functions as f

from broker.spark.blocks import BUCKET, FIRST, LAST, OF_TYPE, REASON, ROWS
from broker.spark.frames import BAD, TIME, TYPE
from matcher.errors import BadEvent

QUANTILES = 64
"""Times are known to so many quantiles."""
ACCURACY = 1_000
"""Spark's: a quantile may be wrong by so small a share of them."""
REASONS_MAX = 5
"""So many reasons are spelled out in an error."""


@dataclass(frozen=True, slots=True)
class Share:
    """A look at some events: how many they are, and QUANTILES + 1 times, the first the
    least and the last the greatest; no times of no events.
    """

    count: int
    times: tuple[int, ...]

    @property
    def span(self) -> int:
        """From the first to the last, in microseconds."""
        return self.times[-1] - self.times[0] if self.times else 0


@dataclass(frozen=True, slots=True)
class Look:
    """All events together, and why so many rows are none, by type and reason; of blocks also the
    share of each bucket that has some.
    """

    whole: Share
    bad: Mapping[tuple[str, str], int]
    buckets: Mapping[int, Share] = field(default_factory=dict)

    def shares(self, first: int, count: int) -> list[Share]:
        """The shares of so many buckets, from number ``first`` on."""
        return [self.buckets.get(number, Share(0, ())) for number in range(first, first + count)]

    def refuse_bad(self) -> None:
        """Raise BadEvent when there are rows that are no events."""
        if self.bad:
            raise BadEvent(
                f"{self.told()}; on_bad='drop' leaves such rows out, rejected() shows them"
            )

    def told(self) -> str:
        """The fault in words."""
        first = sorted(self.bad.items(), key=lambda item: (-item[1], item[0]))
        told = [f"{count} of {name}: {reason}" for (name, reason), count in first[:REASONS_MAX]]
        more = [] if len(first) <= REASONS_MAX else [f"{len(first) - REASONS_MAX} other reasons"]
        rows = sum(self.bad.values())
        return f"{rows} {'row is no event' if rows == 1 else 'rows are no events'} " + (
            f"({'; '.join([*told, *more])})"
        )


def look(frame: DataFrame) -> Look:
    """Look at the rows of a wide frame."""
    reason = f.col(BAD)
    named = f.when(reason.isNotNull(), f.coalesce(f.col(TYPE), f.lit("no type")))
    grouped = frame.groupBy(named.alias(OF_TYPE), reason.alias(REASON))
    rows = grouped.agg(f.count(f.lit(1)).alias(ROWS), *_measures(TIME, TIME)).collect()
    return _look(rows, {})


def look_at_blocks(blocks: DataFrame) -> Look:
    """Look at the blocks and tallies of wide frames (``blocks``)."""
    grouped = blocks.groupBy(BUCKET, OF_TYPE, REASON)
    rows = grouped.agg(f.sum(ROWS).alias(ROWS), *_measures(FIRST, LAST)).collect()
    tallies = [row for row in rows if row[BUCKET] is None]
    return _look(tallies, {row[BUCKET]: _share(row) for row in rows if row[BUCKET] is not None})


def _measures(first: str, last: str) -> list[Column]:
    at = [place / QUANTILES for place in range(QUANTILES + 1)]
    return [
        f.min(first).alias("least"),
        f.max(last).alias("greatest"),
        f.percentile_approx(first, at, ACCURACY).alias("times"),
    ]


def _look(tallies: Sequence[Row], buckets: Mapping[int, Share]) -> Look:
    whole = next((_share(row) for row in tallies if row[REASON] is None), Share(0, ()))
    bad = {(row[OF_TYPE], row[REASON]): row[ROWS] for row in tallies if row[REASON] is not None}
    return Look(whole, bad, buckets)


def _share(row: Row) -> Share:
    """The share that a row of measures tells of: the quantiles with the true ends."""
    return Share(row[ROWS], (row["least"], *row["times"][1:-1], row["greatest"]))
