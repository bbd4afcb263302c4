"""Events of the thesis's workloads (5.6, 6.2) at any size, for Spark: the same whatever the cores.

    python examples/pipeline/generator.py OUT --events 1000000 --types 10 --values 100 --seed 7
    python examples/pipeline/generator.py OUT --events 1000000000 --first 0 --last 250000000

Every event is a function of the seed and of its number alone: ``events`` events at ``rate`` a
second, of types ``T0``, ``T1``, ... at random, with one attribute ``value``, an int below
``values``. So partitions, cores and attempts change nothing, and a part of it, the numbers from
``first`` to before ``last``, can be made by itself, on another machine or another day.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from broker.spark import local_session


def workload(
    session: SparkSession,
    events: int,
    *,
    first: int = 0,
    last: int | None = None,
    types: int = 10,
    values: int = 100,
    rate: float = 100.0,
    seed: int = 0,
    partitions: int | None = None,
) -> DataFrame:
    """``type``, ``time``, ``source``, ``sequence`` and ``value``; times in order of the numbers.

    ``last``: all of the ``events`` unless it is given; ``rate``: events a second of event time.
    Raises ValueError for a part that is not one of these events.
    """
    end = events if last is None else last
    if not 0 <= first <= end <= events:
        raise ValueError(f"events {first} to {end} are no part of {events}")
    parts = partitions or session.sparkContext.defaultParallelism
    numbers = session.range(first, end, 1, parts)

    def below(bound: int, what: str) -> Column:
        return f.pmod(f.xxhash64(f.lit(seed), f.lit(what), f.col("id")), f.lit(bound))

    return numbers.select(
        f.concat(f.lit("T"), below(types, "type")).alias("type"),
        f.timestamp_micros((f.col("id") * f.lit(1e6 / rate)).cast("long")).alias("time"),
        f.lit("generator").alias("source"),
        (f.col("id") + 1).alias("sequence"),
        below(values, "value").alias("value"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="a folder, in which there will be one for each type")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first to be made")
    parser.add_argument("--last", type=int, help="the number after that of the last to be made")
    parser.add_argument("--types", type=int, default=10)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--rate", type=float, default=100.0, help="events a second of event time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--partitions", type=int, help="as many as there are cores, if not given")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    made = workload(
        local_session(given.cores),
        given.events,
        first=given.first,
        last=given.last,
        types=given.types,
        values=given.values,
        rate=given.rate,
        seed=given.seed,
        partitions=given.partitions,
    )
    made.write.partitionBy("type").mode("overwrite").parquet(str(given.out))


if __name__ == "__main__":
    main()
