"""Reading from a running broker: what a subscription gets in so many seconds.

A stream that can be read again needs subscriptions that outlast their clients, which brokers do
not have yet; this is where its reader will stand.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from broker.client.subscriber import Subscriber
from broker.errors import BrokerUnreachable
from broker.spark.frames import SPARK_TYPES
from broker.spark.options import ReadOptions
from broker.spark.target import known_types
from matcher.errors import SchemaError
from matcher.formats.tabular import to_arrow
from matcher.model import EventBatch, EventType

_COMMON = ("type", "time", "source", "id")


def schema_of(options: ReadOptions) -> tuple[EventType, spark.StructType]:
    """The type that is subscribed to, as the broker knows it, and the columns of its events."""
    known = known_types(options.brokers, options.timeout_s)
    event_type = known.get(options.type)
    if event_type is None:
        names = ", ".join(sorted(known)) or "none"
        raise SchemaError(
            f"no source or rule of the broker has made event {options.type} known, so its columns "
            f"are not; known are: {names}"
        )
    schema = (
        spark.StructType()
        .add("type", spark.StringType())
        .add("time", spark.TimestampType())
        .add("source", spark.StringType())
        .add("id", spark.StringType())
    )
    for attribute in event_type.attributes:
        schema.add(attribute.name, SPARK_TYPES[attribute.kind])
    return event_type, schema.add("cause", spark.ArrayType(spark.StringType()))


@dataclass
class Reader(DataSourceReader):
    """One subscriber, in one task."""

    options: ReadOptions
    type: EventType

    def partitions(self) -> list[InputPartition]:
        """One: a subscriber has one queue."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Events until the time is over."""
        ends = time.monotonic() + self.options.duration_s
        with self._subscriber() as subscriber:
            while (left := ends - time.monotonic()) > 0:
                try:
                    delivery = subscriber.receive_delivery(timeout_s=left)
                except TimeoutError:
                    return
                for batch in delivery.batches:
                    yield self._rows(batch)

    def _rows(self, batch: EventBatch) -> pa.RecordBatch:
        table = to_arrow(batch, dictionaries=False)
        columns = {name: table.column(name) for name in (*_COMMON, *self.type.names)}
        columns["cause"] = (
            table.column("cause")
            if "cause" in table.schema.names
            else pa.array([[]] * len(batch), pa.list_(pa.string()))
        )
        return pa.record_batch(columns)

    def _subscriber(self) -> Subscriber:
        told = []
        for endpoint in self.options.brokers:
            try:
                return Subscriber(endpoint, self.options.filter)
            except BrokerUnreachable as error:
                told.append(str(error))
        raise BrokerUnreachable(f"no broker is left: {'; '.join(told)}")
