"""A stream from the logs of a network: what sources have published, once each, or again when asked.

Law 1: an offset is a vector, by broker the position up to which its log has been read. What lies
between two offsets is the same whenever it is read, so Spark's checkpoint makes it exactly once.
From {b1: 40} to {b1: 52, b2: 7} are twelve entries of b1 and, b2 being new, its first seven.

Law 2: a log that is another than the one that was read, an older copy of it that goes on, is an
error. Beside each position is the checksum of the entry there. b1 was read up to 52, and a backup
is put in its place that ends at 45: nothing is read, neither before it has a 52 again nor then.

What rules define is in no log: run the rules over the stream (``detect_stream``).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from broker.client.logs import NOWHERE, BrokerLog, logged_types
from broker.client.manager import RuleManager
from broker.client.start import start_time
from broker.errors import BrokerError, RefusedError
from broker.schemas import type_of
from broker.spark.errors import in_a_sentence
from broker.spark.limits import (
    BOUNDED,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from broker.spark.options import StreamOptions
from broker.spark.reading import check_known, rows_of, schema_of
from broker.spark.target import of_first
from broker.store.entries import message_of
from broker.store.ordered import Step, Wanted
from matcher.model import TIME_MAX, TIME_MIN, EventType
from routing.messages import Code, LogPart

Positions = Mapping[str, int]
Offset = Mapping[str, tuple[int, int | None]]
"""By broker a position, and the checksum of the entry there, None where it is kept no more."""
ENTRIES_AT_ONCE = 65_536
"""Entries of one task."""
NO_ORDER = np.empty(0, np.int64)
ALL = ReadAllAvailable()


@dataclass
class Span(InputPartition):
    """The entries of a broker's log behind one position and up to another."""

    broker: str
    after: int
    until: int


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """For ``spark.readStream``."""

    def __init__(self, options: StreamOptions) -> None:
        if options.events_max is not None and not BOUNDED:
            raise ValueError("option maxEventsPerTrigger needs pyspark 4.2 or later")
        self._options = options
        self._types = self._checked()
        self._target: Positions | None = None
        """Where a query ends that takes what there is now."""

    # --- offsets ---

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query begins."""
        with in_a_sentence(), self._manager() as manager:
            is_new = self._options.start == "new"
            begins = self._ends(manager) if is_new else self._begins(manager)
            return self._marked(manager, begins)

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit = ALL
    ) -> dict[str, Any]:
        """Where the next micro-batch ends; Spark 4.1 does not say where it begins."""
        start = start or {}
        with in_a_sentence(), self._manager() as manager:
            self._verify(manager, start)
            begins = {name: position for name, (position, _) in start.items()}
            ends = self._ends(manager) if self._target is None else self._target
            if isinstance(limit, ReadMaxRows):
                ends = self._bounded(manager, begins, ends, limit.max_rows)
            new = {name: end for name, end in ends.items() if end > begins.get(name, -1)}
            return {**start, **self._marked(manager, new)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The micro-batches' bound."""
        most = self._options.events_max
        return ALL if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the query end with what there is by now."""
        with in_a_sentence(), self._manager() as manager:
            self._target = self._ends(manager)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the logs end."""
        with in_a_sentence(), self._manager() as manager:
            return self._marked(manager, self._ends(manager))

    def _begins(self, manager: RuleManager) -> Positions:
        """The positions before the first entries that are kept and may hold what is asked for."""
        begin = start_time(self._options.start)
        return {name: self._begin(self._log(manager, name, begin)) for name in self._names(manager)}

    @staticmethod
    def _begin(log: BrokerLog) -> int:
        part = log.outlined(0)
        while not part.entries and part.read < part.last:
            part = log.outlined(part.read)
        return part.entries[0].position - 1 if part.entries else part.read

    def _ends(self, manager: RuleManager) -> Positions:
        names = self._names(manager)
        return {name: self._log(manager, name).outlined(NOWHERE).last for name in names}

    def _marked(self, manager: RuleManager, positions: Positions) -> dict[str, Any]:
        """Positions as an offset has them."""
        return {
            name: [position, self._checksum(manager, name, position)]
            for name, position in positions.items()
        }

    def _checksum(self, manager: RuleManager, name: str, position: int) -> int | None:
        """The checksum of an entry; None where it is not kept, or may not be read."""
        for types in (None, frozenset(self._options.types)):
            try:
                entry = next(BrokerLog(manager, name, Wanted(types)).at([position]), None)
            except RefusedError as refusal:
                if refusal.code == Code.TRIMMED.value:
                    break
                if refusal.code != Code.NOT_ALLOWED.value:
                    raise
            else:
                if entry is None:
                    break
                said = entry.first_time, entry.last_time, entry.types, entry.events
                return zlib.crc32(repr(said).encode())
        return None

    def _verify(self, manager: RuleManager, offset: Offset) -> None:
        """BrokerError where a log is not the one that was read (Law 2), unless that is borne."""
        if not self._options.fails_on_loss:
            return
        for name in self._names(manager):
            position, checksum = offset.get(name, (0, None))
            last = self._log(manager, name).outlined(NOWHERE).last
            found = checksum if last < position else self._checksum(manager, name, position)
            if last < position or (None not in (found, checksum) and found != checksum):
                why = f"it ends at {last}" if last < position else "it has another entry there"
                raise BrokerError(
                    f"the log of broker {name!r} is not the one that was read up to position "
                    f"{position}: {why}; was an older copy of its store put in its place? Events "
                    f"may be missing: begin anew, with another checkpointLocation"
                )

    def _names(self, manager: RuleManager) -> Sequence[str]:
        """The brokers at which what is asked for is published, or was."""
        homes = manager.read_log("", NOWHERE, outlined=True).homes
        return [name for name, types in homes if not set(types).isdisjoint(self._options.types)]

    def _bounded(
        self, manager: RuleManager, start: Positions, ends: Positions, events: int
    ) -> Positions:
        """So far that a micro-batch has at most so many events, but for an entry of each log, which
        is not cut. Logs get their shares by how much is left of each.
        """
        left = {name: max(0, end - start.get(name, 0)) for name, end in ends.items()}
        total = max(1, sum(left.values()))
        return {
            name: self._cut(
                self._log(manager, name), start.get(name, 0), ends[name], events * own // total
            )
            for name, own in left.items()
        }

    @staticmethod
    def _cut(log: BrokerLog, after: int, end: int, events: int) -> int:
        """The position up to which a log has so many events, behind one and up to another."""
        count, read = 0, after
        while read < end:
            part = log.outlined(read)
            for entry in part.entries:
                if entry.position > end or (count and count + entry.events > events):
                    return min(end, entry.position - 1)
                count += entry.events
            read = part.read
        return end

    # --- events ---

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Stretches of the logs, none too long for a task."""
        with in_a_sentence(), self._manager() as manager:
            for offset in (start, end):
                self._verify(manager, offset)
        spans = {
            name: (start.get(name, (0, None))[0], last) for name, (last, _) in sorted(end.items())
        }
        entries = sum(max(0, last - after) for after, last in spans.values())
        size = max(1, min(ENTRIES_AT_ONCE, entries // self._options.parts_min))
        forgotten = sorted(start.keys() - end.keys())
        if forgotten:  # with Spark 4.1, which does not say where a micro-batch begins
            raise BrokerError(f"the log of broker {forgotten[0]!r}, which was read, is not known")
        return [
            Span(name, at, min(at + size, last))
            for name, (after, last) in spans.items()
            for at in range(after, last, size)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a stretch."""
        assert isinstance(partition, Span)
        with in_a_sentence():
            yield from self._read(partition)

    def _read(self, span: Span) -> Iterator[pa.RecordBatch]:
        # Spark plans in processes that import all anew, and need no filters.
        from broker.client.past import Past

        begin = start_time(self._options.start)
        schemas = {one.name: one for one in self._types}
        past = Past(self._options.filters, (), schemas, TIME_MIN if begin is None else begin)
        wanted = Wanted(frozenset(schemas), before=self._options.before)
        with self._manager() as manager:
            log, after = self._log(manager, span.broker), span.after
            while after < span.until:
                part = self._part(log, after)
                if part.read <= after:
                    raise BrokerError(f"the log of broker {span.broker!r} ends at {part.last}")
                after = part.read
                batches = [
                    batch
                    for entry in part.entries
                    if entry.position <= span.until
                    for given in message_of(entry).batches
                    if (batch := wanted.of(given)) is not None
                ]
                for delivery in past.take(Step(batches, NO_ORDER, TIME_MAX), {}):
                    yield from (rows_of(one, self._types) for one in delivery.batches)

    def _part(self, log: BrokerLog, after: int) -> LogPart:
        """The entries behind a position; where those are gone, and that is borne, the first that
        are kept.
        """
        try:
            return log.behind(after)
        except RefusedError as refusal:
            is_gone = refusal.code == Code.TRIMMED.value
            if not is_gone or self._options.fails_on_loss:
                raise
            return log.behind(self._begin(log))

    def _log(self, manager: RuleManager, name: str, since: int | None = None) -> BrokerLog:
        return BrokerLog(manager, name, Wanted(frozenset(self._options.types), since))

    def _manager(self) -> RuleManager:
        options = self._options
        return of_first(
            options.brokers,
            lambda one: RuleManager(options.keys.address(one), connect_timeout_s=options.timeout_s),
        )

    def _checked(self) -> Sequence[EventType]:
        """The types that are read; ValueError for those that come of rules alone."""
        wanted = self._options.types
        with self._manager() as manager:
            known = {one["name"]: type_of(one["schema"]) for one in manager.status()["types"]}
            known.update(logged_types(manager, wanted))
            homes = manager.read_log("", NOWHERE, outlined=True).homes
            defined = {one["type"] for one in manager.list()}
        apart = defined.difference(*(types for _, types in homes))
        for name in wanted:
            if name in apart:
                raise ValueError(
                    f"{name} is in no log, for rules define it: read what they use, and run them "
                    f"over it by detect_stream"
                )
            check_known(name, known)
        return [known[name] for name in wanted]

    @property
    def schema(self) -> StructType:
        """The columns of what is read."""
        return schema_of(self._types)


class LogReader(DataSourceReader):
    """For ``spark.read``: what a stream takes that ends with what there is."""

    def __init__(self, options: StreamOptions) -> None:
        self._stream = LogStream(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Stretches of the logs, up to where they end now."""
        start = self._stream.initialOffset()
        return self._stream.partitions(start, self._stream.latestOffset(start, ALL))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a stretch; of none, for Spark has a task also where there are none."""
        return self._stream.read(partition) if isinstance(partition, Span) else iter(())
