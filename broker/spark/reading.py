"""Reading from a running broker: what a subscriber gets in so many seconds.

Events of one type come with its attributes as columns, under ``frames.column_name``; those of
several, with a struct for each type (``composites``), so that one subscriber, in one task, can have
them all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from broker.client.subscriber import Subscriber
from broker.errors import BrokerUnreachable
from broker.spark.composites import attribute_columns, rows, spark_schema
from broker.spark.errors import in_a_sentence
from broker.spark.frames import SPARK_TYPES, column_name
from broker.spark.options import ReadOptions
from broker.spark.target import known_types, of_first
from matcher.errors import SchemaError
from matcher.model import EventBatch, EventType

LOOK_S = 1.0
"""So often it is looked whether the broker is still there."""


def types_of(options: ReadOptions) -> tuple[EventType, ...]:
    """The types that are subscribed to, as the broker knows them; SchemaError for another."""
    known = known_types(options.brokers, options.timeout_s, options.keys)
    for name in options.types:
        check_known(name, known)
    return tuple(known[name] for name in options.types)


def check_known(name: str, known: Mapping[str, EventType]) -> None:
    """SchemaError for a type that is not among those that are known."""
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise SchemaError(
            f"no source or rule of the broker has made event {name} known, so its columns are not; "
            f"known are: {names}"
        )


def schema_of(types: Sequence[EventType]) -> spark.StructType:
    """The columns of events of these types."""
    if len(types) > 1:
        return spark_schema(types)
    *common, cause = spark_schema(()).fields
    own = [
        spark.StructField(column_name(attribute.name), SPARK_TYPES[attribute.kind])
        for attribute in types[0].declared
    ]
    return spark.StructType([*common, *own, cause])


def rows_of(batch: EventBatch, types: Sequence[EventType]) -> pa.RecordBatch:
    """Events of one of these types, in the columns of ``schema_of``."""
    if len(types) > 1:
        return rows(batch, types, full_cause=False)
    common = rows(batch, (), full_cause=False)
    *names, cause = common.schema.names
    columns = {name: common.column(name) for name in names}
    for attribute, values in zip(batch.type.declared, attribute_columns(batch), strict=True):
        columns[column_name(attribute.name)] = values
    return pa.record_batch(columns | {cause: common.column(cause)})


@dataclass
class Reader(DataSourceReader):
    """One subscriber, in one task."""

    options: ReadOptions
    types: Sequence[EventType]

    def partitions(self) -> list[InputPartition]:
        """One: a subscriber has one queue."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Events until the time is over; BrokerUnreachable when the broker is lost before."""
        with in_a_sentence():
            yield from self._read()

    def _read(self) -> Iterator[pa.RecordBatch]:
        ends = time.monotonic() + self.options.duration_s
        with self._subscriber() as subscriber:
            while (left := ends - time.monotonic()) > 0 and not subscriber.losses:
                try:
                    delivery = subscriber.receive_delivery(timeout_s=min(left, LOOK_S))
                except TimeoutError:
                    continue
                for batch in delivery.batches:
                    yield rows_of(batch, self.types)
            if subscriber.losses:
                raise BrokerUnreachable(
                    "the broker was lost while events were collected, and some may be missing: "
                    "collect them again"
                )

    def _subscriber(self) -> Subscriber:
        options = self.options
        return of_first(
            options.brokers, lambda one: Subscriber(options.keys.address(one), *options.filters)
        )
