"""The data source ``rexmq``: ``spark.dataSource.register(RexmqDataSource)`` makes it known.

Spark plans a read or a write in a process of its own and sends what it gets from here to the
tasks, so nothing that is made here may hold a connection. Such a process imports everything anew,
so what only reads of logs need is imported there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrameReader, DataFrameWriter
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from broker.spark.environment import verify_workers
from broker.spark.errors import in_a_sentence
from broker.spark.options import ReadOptions, StreamOptions, WriteOptions
from broker.spark.reading import Reader, schema_of, types_of
from broker.spark.target import Target
from broker.spark.writers import BATCH_WRITERS, STREAM_WRITERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class RexmqDataSource(DataSource):
    """Reads from, and writes to, running brokers; ``options.TABLE`` says how."""

    @classmethod
    def name(cls) -> str:
        """The name that ``format`` is given."""
        return "rexmq"

    def schema(self) -> StructType:
        """The columns of what is read."""
        with in_a_sentence(ValueError):
            if self.options.get("for"):
                return schema_of(types_of(ReadOptions.of(self.options)))
            from broker.spark.log_stream import LogStream

            return LogStream(StreamOptions.of(self.options)).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        with in_a_sentence(ValueError):
            if not self.options.get("for"):
                from broker.spark.log_stream import LogReader

                return LogReader(StreamOptions.of(self.options))
            options = ReadOptions.of(self.options)
            return Reader(options, types_of(options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For ``spark.readStream``."""
        from broker.spark.log_stream import LogStream

        with in_a_sentence(ValueError):
            return LogStream(StreamOptions.of(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For ``df.write``."""
        with in_a_sentence(ValueError):
            if overwrite:
                raise ValueError('events cannot be overwritten: use mode("append")')
            options = WriteOptions.of(self.options)
            return BATCH_WRITERS[options.writer](Target.of(options, schema), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """For ``df.writeStream``."""
        with in_a_sentence(ValueError):
            options = WriteOptions.of(self.options)
            return STREAM_WRITERS[options.writer](Target.of(options, schema), schema)


def register(session: SparkSession) -> None:
    """Make ``format("rexmq")`` known to a session, in all threads. Raises SparkUnavailable where
    workers have no RexMQ.
    """
    verify_workers(session)
    _activate(session)
    _follow_sessions()
    session.dataSource.register(RexmqDataSource)


def _activate(session: SparkSession) -> None:
    """Make a session the active one of this thread."""
    java = getattr(session, "_jvm", None)
    if java is not None:  # Spark Connect looks in the session that is given
        java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


@functools.cache
def _follow_sessions() -> None:
    """Let readers and writers make their sessions active as they are given the format.

    Java looks for formats in the session that is active in a thread. A thread that has just begun
    has none, and one that has had two sessions may have the other; but a reader or a writer of
    Python's knows whose it is.
    """
    for kind in (DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter):
        setattr(kind, "format", _following(kind.format))  # noqa: B010


def _following(given: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    @functools.wraps(given)
    def format_of(own: Any, source: str) -> Any:
        if source.lower() == RexmqDataSource.name():
            _activate(own._spark)
        return given(own, source)

    return format_of
