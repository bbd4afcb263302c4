"""Composite events as rows of a DataFrame: what all have in common, and a struct for each type.

A row's own type has its attributes in the column of the type's name; the columns of other types
are null. So types may have attributes of one name and different kinds, and nothing is renamed.
``of_type`` and ``write_by_type`` leave these columns behind.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, functions as f, types as spark

from broker.spark.frames import SPARK_TYPES, column_name, quoted
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
        for attribute in event_type.declared:
            struct.add(attribute.name, SPARK_TYPES[attribute.kind])
        schema.add(event_type.name, struct)
    return schema


def rows(batch: EventBatch, types: Sequence[EventType], *, full_cause: bool) -> pa.RecordBatch:
    """Events of one of the types as such rows; primitive ones have no causes."""
    count = len(batch)
    columns = {
        "type": strings(StringColumn.constant(batch.type.name, count)),
        "time": pa.array(batch.time).view(pa.timestamp("us", "UTC")),
        "source": strings(batch.ids.source),
        "id": printed_ids(batch.ids),
        "cause": (
            pa.array([[]] * count, pa.list_(pa.string()))
            if batch.causes is None
            else printed_causes(batch.causes, full=full_cause)
        ),
    }
    for event_type in types:
        if event_type.name != batch.type.name:
            columns[event_type.name] = pa.nulls(count, _struct(event_type))
        elif event_type.attributes:
            columns[event_type.name] = pa.StructArray.from_arrays(
                attribute_columns(batch), fields=list(_struct(event_type))
            )
        else:
            columns[event_type.name] = pa.array([{}] * count, _struct(event_type))
    return pa.record_batch(columns)


def attribute_columns(batch: EventBatch) -> list[pa.Array]:
    """The values of the declared attributes, in their order."""
    return [_array(batch, place) for place in range(len(batch.type.declared))]


def of_type(composites: DataFrame, name: str) -> DataFrame:
    """The composite events of one type as a table of its own: ``time``, its attributes, ``source``,
    ``id`` and ``cause``. An attribute that is called like one of these has the column ``attribute
    id``. ValueError where there is no such type.
    """
    names = composites.schema.names[len(spark_schema(())) :]
    if name not in names:
        raise ValueError(f"no type {name!r} is among the composite events: {', '.join(names)}")
    struct = quoted(name)
    attributes = [
        struct.getField(field).alias(column_name(field))
        for field in composites.select(f"`{name}`.*").columns
    ]
    table = composites.where(f.col("type") == name).select(
        "time", *attributes, "source", "id", "cause"
    )
    # What detect has packed is let go with its result, which the caller may keep no longer.
    weakref.finalize(table, id, composites).atexit = False
    return table


def write_by_type(composites: DataFrame, folder: str | Path) -> dict[str, int]:
    """Write the composite events of each type, with the columns that it has (``of_type``), as
    Parquet to ``folder``/``type``, over what was there; gives how many there are of each.

    They are worked out once, however many types there are, and are meanwhile on Spark's disks.
    """
    names = composites.schema.names[len(spark_schema(())) :]
    is_kept = composites.storageLevel != StorageLevel.NONE
    kept = composites if is_kept else composites.persist(StorageLevel.DISK_ONLY)
    try:
        counts = {row["type"]: row["count"] for row in kept.groupBy("type").count().collect()}
        for name in names:
            of_type(kept, name).write.mode("overwrite").parquet(f"{folder}/{name}")
    finally:
        if not is_kept:
            kept.unpersist()
    return {name: counts.get(name, 0) for name in names}


@functools.cache
def _struct(event_type: EventType) -> pa.DataType:
    return pa.struct([(one.name, _ARROW[one.kind]) for one in event_type.declared])


def _array(batch: EventBatch, place: int) -> pa.Array:
    """The values of a declared attribute."""
    column, presence = batch.columns[place], batch.presence(place)
    if isinstance(column, StringColumn):
        texts = strings(column)
        return texts if presence is None else pc.if_else(pa.array(presence), texts, None)
    return pa.array(column, mask=None if presence is None else ~presence)
