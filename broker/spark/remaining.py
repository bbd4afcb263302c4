"""The events that a stopped query has kept and not evaluated, read out of its checkpoint.

Spark reads the states of a query as frames (``statestore``), as of the last micro-batch that was
committed. Nothing is written to the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as f

from broker.spark.columns import to_bytes
from broker.spark.errors import in_a_sentence
from broker.spark.memory import (
    ENGINE,
    HEAD,
    PIECES,
    Head,
    OtherCheckpoint,
    Part,
    Piece,
    evaluated,
    part_of,
)
from broker.spark.packing import CELL


def remaining(
    session: SparkSession, checkpoint: str, parts: Sequence[Part], plan: str
) -> DataFrame:
    """The composite events that the cells of a checkpoint would find at the end of the streams,
    packed in a column ``found``. Raises OtherCheckpoint unless the checkpoint is of this plan.
    """

    def state(name: str) -> DataFrame:
        reader = session.read.format("statestore").option("stateVarName", name)
        return reader.load(checkpoint)

    heads = state(HEAD).select(f"key.{CELL}", f.col("value").alias(HEAD))
    if any(row.plan != plan for row in heads.select(f"{HEAD}.plan").distinct().collect()):
        raise OtherCheckpoint
    piece = f.struct("user_map_key.number", "user_map_value.*").alias(PIECES)
    pieces = state(PIECES).select(f"key.{CELL}", piece)
    engines = state(ENGINE).select(f"key.{CELL}", f.col("value.snapshot").alias(ENGINE))
    states = heads.unionByName(pieces, allowMissingColumns=True)
    states = states.unionByName(engines, allowMissingColumns=True)
    return states.groupBy(CELL).applyInArrow(ending(parts), "found binary")


def ending(parts: Sequence[Part]) -> Callable[[pa.Table], pa.Table]:
    """For ``applyInArrow``, which takes functions alone: of the states of a cell, a row each, to
    what it would find at the end.
    """

    def end(states: pa.Table) -> pa.Table:
        with in_a_sentence():
            part = part_of(parts, states.column(CELL)[0].as_py())
            found = [to_bytes(batch) for batch in _found(part, states)]
        return pa.table({"found": pa.array(found, pa.binary())})

    return end


def _found(part: Part, states: pa.Table) -> list[pa.RecordBatch]:
    def told(name: str) -> list[Any]:
        values: list[Any] = states.column(name).drop_null().to_pylist()
        return values

    (kept,) = told(HEAD)
    kept.pop("plan")
    head = Head(**kept)
    pieces = [Piece(**piece) for piece in told(PIECES)]
    engines = told(ENGINE)
    last = max((piece.last for piece in pieces), default=head.mark)
    if last <= head.mark:
        return []
    return evaluated(part, head, pieces, engines[0] if engines else None, last).found
