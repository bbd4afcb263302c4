"""Composite events as rows of a DataFrame: what all have in common, and a struct for each type.

A row's own type has its attributes in the column of the type's name; the columns of other types
are null. So types may have attributes of one name and different kinds, and nothing is renamed.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from broker.spark.frames import SPARK_TYPES
from matcher.formats.printed import printed_causes, printed_ids, strings
from matcher.model import EventBatch, EventType, Kind, StringColumn

_ARROW = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.STRING: pa.string(),
}


def spark_schema(types: Sequence[EventType]) -> spark.StructType:
    """``type``, ``time``, ``source``, ``id``, ``cause``, and a struct named after each type."""
    schema = (
        spark.StructType()
        .add("type", spark.StringType())
        .add("time", spark.TimestampType())
        .add("source", spark.StringType())
        .add("id", spark.StringType())
        .add("cause", spark.ArrayType(spark.StringType()))
    )
    for event_type in types:
        struct = spark.StructType()
        for attribute in event_type.attributes:
            struct.add(attribute.name, SPARK_TYPES[attribute.kind])
        schema.add(event_type.name, struct)
    return schema


def rows(batch: EventBatch, types: Sequence[EventType], *, full_cause: bool) -> pa.RecordBatch:
    """Composite events of one type as such rows."""
    count = len(batch)
    assert batch.causes is not None
    columns = {
        "type": strings(StringColumn.constant(batch.type.name, count)),
        "time": pa.array(batch.time).view(pa.timestamp("us", "UTC")),
        "source": strings(batch.ids.source),
        "id": printed_ids(batch.ids),
        "cause": printed_causes(batch.causes, full=full_cause),
    }
    for event_type in types:
        if event_type.name != batch.type.name:
            columns[event_type.name] = pa.nulls(count, _struct(event_type))
        elif event_type.attributes:
            arrays = [
                strings(column) if isinstance(column, StringColumn) else pa.array(column)
                for column in batch.columns
            ]
            columns[event_type.name] = pa.StructArray.from_arrays(
                arrays, fields=list(_struct(event_type))
            )
        else:
            columns[event_type.name] = pa.array([{}] * count, _struct(event_type))
    return pa.record_batch(columns)


def of_type(composites: DataFrame, name: str) -> DataFrame:
    """The composite events of one type as a table of its own: ``time``, its attributes, ``source``,
    ``id`` and ``cause``.
    """
    table = composites.where(f.col("type") == name).select(
        "time", f.col(f"`{name}`.*"), "source", "id", "cause"
    )
    # What detect has packed is let go with its result, which the caller may keep no longer.
    weakref.finalize(table, id, composites).atexit = False
    return table


def _struct(event_type: EventType) -> pa.DataType:
    return pa.struct([(one.name, _ARROW[one.kind]) for one in event_type.attributes])
