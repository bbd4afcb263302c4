"""A first look at events: how many there are, from when to when, and what is wrong with them.

It is one aggregation, and the only pass that happens before the pieces are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from broker.spark.frames import BAD, TIME, TYPE
from matcher.errors import BadEvent

QUANTILES = 64
"""Times are known to so many quantiles."""
ACCURACY = 1_000
"""Spark's: a quantile may be wrong by so small a share of the rows."""
REASONS_MAX = 5
"""So many reasons are spelled out in an error."""


@dataclass(frozen=True, slots=True)
class Share:
    """What is known of some events: how many they are, and QUANTILES + 1 times, the first the
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
    """All events together, and why so many rows are none, by type and reason."""

    whole: Share
    bad: Mapping[tuple[str, str], int]

    def refuse_bad(self) -> None:
        """Raise BadEvent when there are rows that are no events."""
        if self.bad:
            raise BadEvent(
                f"{self.told()}; on_bad='drop' leaves such rows out, rejected() shows them"
            )

    def told(self) -> str:
        """What is wrong, in words."""
        first = sorted(self.bad.items(), key=lambda item: (-item[1], item[0]))
        told = [f"{count} of {name}: {reason}" for (name, reason), count in first[:REASONS_MAX]]
        more = [] if len(first) <= REASONS_MAX else [f"{len(first) - REASONS_MAX} other reasons"]
        rows = sum(self.bad.values())
        return f"{rows} {'row is no event' if rows == 1 else 'rows are no events'} " + (
            f"({'; '.join([*told, *more])})"
        )


def look(frame: DataFrame) -> Look:
    """Look at a wide frame."""
    reason = f.col(BAD)
    named = f.when(reason.isNotNull(), f.coalesce(f.col(TYPE), f.lit("no type")))
    rows = frame.groupBy(named.alias("named"), reason.alias("reason")).agg(*_measures()).collect()
    whole, bad = Share(0, ()), {}
    for row in rows:
        if row["reason"] is None:
            whole = Share(row["count"], _exact(row))
        else:
            bad[row["named"], row["reason"]] = row["count"]
    return Look(whole, bad)


def shares(frame: DataFrame, bucket: Column) -> dict[int, Share]:
    """The share of each bucket of good events."""
    rows = frame.groupBy(bucket.alias("bucket")).agg(*_measures()).collect()
    return {row["bucket"]: Share(row["count"], _exact(row)) for row in rows}


def _measures() -> list[Column]:
    at = [place / QUANTILES for place in range(QUANTILES + 1)]
    return [
        f.count(f.lit(1)).alias("count"),
        f.min(TIME).alias("least"),
        f.max(TIME).alias("greatest"),
        f.percentile_approx(TIME, at, ACCURACY).alias("times"),
    ]


def _exact(row: Row) -> tuple[int, ...]:
    """The quantiles with the true ends."""
    if row["times"] is None:
        return ()
    return (row["least"], *row["times"][1:-1], row["greatest"])
