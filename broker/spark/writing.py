"""The writers of the data source: what the driver prepares, what a task writes, what a commit does.

Law 1: nothing is sent before the rows' columns were held against the type as the broker knows it;
the error names the column.

Law 2: events take effect once, though Spark writes a batch again when a commit has failed. They
are known by ids that follow from the rows (``outgoing``), each task is a part of one source, and
the broker drops what it has (``routing.parts``).

Law 3: with ``order`` ``held`` a part of the source that only holds its promise stands until the
commit, so nothing is late, in whatever order tasks run and rows come; rules find what they find
then. With ``time`` each task promises as it goes, and must have its rows in order; ``publish`` has
made the parts beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as spark
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from broker.client.manager import RuleManager
from broker.client.publisher import Publisher
from broker.errors import BrokerUnreachable
from broker.spark.delivery import Delivery
from broker.spark.frames import RESERVED, Form, kind_of
from broker.spark.options import WriteOptions
from broker.spark.outgoing import PlainRows, Rows, WideRows
from matcher.errors import EventError, SchemaError
from matcher.model import MICROSECONDS, Attribute, EventBatch, EventType, Kind
from routing.parts import part_name
from rules.language import load

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has written: ``rows`` and ``bytes`` of its record batches, events ``resent``
    to another broker, rows left out as ``bad``, and the ``latest`` event time (None: no event).
    """

    rows: int = 0
    bytes: int = 0
    resent: int = 0
    bad: int = 0
    latest: int | None = None


@dataclass(frozen=True)
class Target:
    """Where rows go and as what; the same in every task."""

    options: WriteOptions
    types: tuple[EventType, ...]
    form: Form | None

    @classmethod
    def of(cls, options: WriteOptions, schema: StructType) -> Target:
        """Look at the brokers and the columns. Raises SchemaError, which names the column, and
        BrokerUnreachable.
        """
        known = known_types(options.brokers, options.timeout_s)
        if options.form:
            form = form_of(options.form)
            for event_type in form.types:
                if known.get(event_type.name, event_type) != event_type:
                    check_columns(known[event_type.name], _kinds(event_type))
                    raise SchemaError(
                        f"the broker knows {known[event_type.name]}; expected {event_type}"
                    )
            return cls(options, form.types, form)
        if options.time not in schema.names:
            raise SchemaError(f"no column {options.time} holds the time of the events")
        if isinstance(schema[options.time].dataType, spark.TimestampNTZType):
            raise SchemaError(
                f"column {options.time} holds times without a time zone; make timestamps of them "
                f"(to_utc_timestamp)"
            )
        for name in options.ids:
            if name not in schema.names:
                raise SchemaError(f"no column {name}, which option id names")
        event_type = known.get(options.type) or _type_of(options, schema)
        kinds: dict[str, tuple[Kind | None, str]] = {
            field.name: (kind_of(field.dataType), field.dataType.simpleString())
            for field in schema.fields
        }
        check_columns(event_type, kinds)
        return cls(options, (event_type,), None)

    def rows(self) -> Rows:
        """A reader for one task."""
        if self.form is not None:
            return WideRows(self.form)
        options = self.options
        return PlainRows(self.types[0], options.time, options.ids, options.on_bad == "drop")

    def delivery(self, part: int) -> Delivery:
        """The publisher of one task."""
        options = self.options
        return Delivery(
            options.brokers,
            part_name(options.source, part),
            self.types,
            acks=options.acks,
            batch_events=options.batch_events,
            timeout_s=options.timeout_s,
        )

    def hold(self, part: int | None, promise: int | None = None, *, ends: bool = False) -> None:
        """Let a part promise something, and leave; ``ends``: it has published everything."""
        publisher = connected(self.options, part_name(self.options.source, part), self.types)
        if promise is not None:
            publisher.promise(promise)
        if ends:
            publisher.close()
        else:
            publisher.pause()


def connected(options: WriteOptions, name: str, types: Sequence[EventType]) -> Publisher:
    """A publisher at the first broker that answers; BrokerUnreachable when none does."""
    told = []
    for endpoint in options.brokers:
        try:
            return Publisher(
                endpoint,
                name=name,
                types=types,
                timeout_s=options.timeout_s,
                connect_timeout_s=min(options.timeout_s, 5.0),
            )
        except BrokerUnreachable as error:
            told.append(str(error))
    raise BrokerUnreachable(f"no broker is left: {'; '.join(told)}")


def known_types(brokers: Sequence[str], timeout_s: float) -> dict[str, EventType]:
    """The types that the first broker to answer knows; BrokerUnreachable when none does."""
    told = []
    for endpoint in brokers:
        try:
            with RuleManager(endpoint, connect_timeout_s=min(timeout_s, 5.0)) as manager:
                schemas = [known["schema"] for known in manager.status()["types"]]
        except BrokerUnreachable as error:
            told.append(str(error))
        else:
            return dict(load("\n".join(f"event {schema}" for schema in schemas)).schemas)
    raise BrokerUnreachable(f"no broker is left: {'; '.join(told)}")


def check_columns(event_type: EventType, kinds: Mapping[str, tuple[Kind | None, str]]) -> None:
    """SchemaError, naming the column, unless the columns hold the type's attributes."""
    for attribute in event_type.attributes:
        if attribute.name not in kinds:
            raise SchemaError(
                f"no column {attribute.name} ({attribute.kind.value}), which event "
                f"{event_type.name} has"
            )
        kind, named = kinds[attribute.name]
        if kind is not attribute.kind and (kind, attribute.kind) != (Kind.INT, Kind.FLOAT):
            raise SchemaError(
                f"column {attribute.name} is of type {named}; event {event_type.name} has "
                f"{attribute}"
            )


def _kinds(event_type: EventType) -> dict[str, tuple[Kind | None, str]]:
    return {one.name: (one.kind, one.kind.value) for one in event_type.attributes}


def _type_of(options: WriteOptions, schema: StructType) -> EventType:
    """The type that the columns mean when the broker knows none of that name."""
    attributes = []
    for field in schema.fields:
        if field.name in RESERVED or field.name == options.time:
            continue
        kind = kind_of(field.dataType)
        if kind is None:
            raise SchemaError(
                f"column {field.name} is of type {field.dataType.simpleString()}; expected "
                f"integers, floats, booleans or strings"
            )
        attributes.append(Attribute(field.name, kind))
    return EventType(options.type, tuple(attributes))


# --- the form of publish(), as an option -------------------------------------------------------


def text_of(form: Form) -> str:
    """A form as text that an option can hold."""
    types = [
        [one.name, [[attribute.name, attribute.kind.value] for attribute in one.attributes]]
        for one in form.types
    ]
    return json.dumps(types)


def form_of(text: str) -> Form:
    """The inverse of text_of, as far as writers need it."""
    types = [
        EventType(name, tuple(Attribute(key, Kind(kind)) for key, kind in attributes))
        for name, attributes in json.loads(text)
    ]
    return Form.of(types, [])


# --- Spark's interfaces ------------------------------------------------------------------------


class _Writing:
    """What batch and streaming writers have in common."""

    def __init__(self, target: Target) -> None:
        self.target = target
        if target.options.order == "held":
            target.hold(None)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task: publish its rows as one part of the source."""
        context = TaskContext.get()
        assert context is not None
        rows = self.target.rows()
        delivery = self.target.delivery(context.partitionId())
        try:
            written = _write(iterator, rows, delivery, in_order=self.target.options.order == "time")
            delivery.finish()
        except BaseException:
            delivery.give_up()
            raise
        return written


class BatchWriter(_Writing, DataSourceArrowWriter):
    """``df.write.format("rexmq")``."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Rules may go on."""
        if self.target.options.order == "held":
            self.target.hold(None, ends=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """What was written stays, and rules wait until it is written again."""


class StreamWriter(_Writing, DataSourceStreamArrowWriter):
    """``df.writeStream.format("rexmq")``."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Rules may go on up to what later batches may still bring."""
        options = self.target.options
        latest = [
            one.latest for one in messages if isinstance(one, Written) and one.latest is not None
        ]
        if options.order == "held" and options.disorder_s is not None and latest:
            self.target.hold(None, max(latest) - round(options.disorder_s * MICROSECONDS))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What was written stays, and is known when the batch is written again."""


def _write(
    batches: Iterator[pa.RecordBatch], rows: Rows, delivery: Delivery, *, in_order: bool
) -> Written:
    count = size = 0
    latest: int | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        events = [one for one in rows.read(batch) if len(one)]
        count += batch.num_rows
        size += batch.nbytes
        if not events:
            continue
        if in_order:
            _check_order(events, latest)
        reached = max(int(one.time.max()) for one in events)
        latest = reached if latest is None else max(latest, reached)
        delivery.send(events, latest if in_order else None)
    return Written(count, size, delivery.resent, sum(rows.bad.values()), latest)


def _check_order(events: Sequence[EventBatch], latest: int | None) -> None:
    """EventError unless each type's events are in order of time, and after what came before."""
    for one in events:
        falls = bool((one.time[1:] < one.time[:-1]).any())
        if falls or (latest is not None and int(one.time[0]) < latest):
            raise EventError(
                f"rows of {one.type.name} are not in order of time: publish the frame with "
                f"broker.spark.publish, which sorts it, or with option order 'held' (rules wait "
                f"for the commit) or 'none' (for networks in arrival mode)"
            )
