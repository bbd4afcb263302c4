"""Rows of Spark as record batches: for its row writers, where its Arrow writers cannot serve.

Law: a row becomes what Arrow's writer would have been given, so its id is the same whichever way
it goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, types as spark
from pyspark.sql.pandas.types import to_arrow_type

ROWS = 8_192
"""Rows in one record batch."""


def batches_of(rows: Iterable[Row], schema: spark.StructType) -> Iterator[pa.RecordBatch]:
    """The rows, so many at a time, as record batches of this schema."""
    given = iter(rows)
    while some := list(itertools.islice(given, ROWS)):
        columns = zip(*some, strict=True)
        arrays = [
            _array(values, field.dataType)
            for values, field in zip(columns, schema.fields, strict=True)
        ]
        yield pa.record_batch(arrays, names=schema.names)


def _array(values: Sequence[Any], data_type: spark.DataType) -> pa.Array:
    if isinstance(data_type, spark.TimestampType):
        # Spark gives datetimes in the zone of this process, with the fold where clocks go back.
        return pa.array(
            [None if value is None else value.astimezone() for value in values],
            pa.timestamp("us", "UTC"),
        )
    return pa.array(values, to_arrow_type(data_type))
