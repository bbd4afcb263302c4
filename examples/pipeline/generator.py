"""Events of the thesis's workloads (5.6, 6.2) at any size, for Spark: the same whatever the cores.

    python examples/pipeline/generator.py OUT --events 1000000 --types 10 --values 100 --seed 7

Every event is a function of the seed and of its number alone: ``events`` events at ``rate`` a
second, of types ``T0``, ``T1``, ... at random, with one attribute ``value``, an int below
``values``. So partitions, cores and attempts change nothing, and a part of it can be made alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from broker.spark import local_session


def workload(
    session: SparkSession,
    events: int,
    *,
    types: int = 10,
    values: int = 100,
    rate: float = 100.0,
    seed: int = 0,
    partitions: int | None = None,
) -> DataFrame:
    """``type``, ``time``, ``source``, ``sequence`` and ``value``; times in order of the numbers."""
    numbers = session.range(0, events, 1, partitions or session.sparkContext.defaultParallelism)

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--types", type=int, default=10)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    made = workload(
        local_session(given.cores),
        given.events,
        types=given.types,
        values=given.values,
        rate=given.rate,
        seed=given.seed,
    )
    made.write.partitionBy("type").mode("overwrite").parquet(str(given.out))


if __name__ == "__main__":
    main()
