"""The store of a broker: see :mod:`broker.store`."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from broker.errors import StoreDamaged, StoreError
from broker.store import folder, schema
from broker.store.reader import Reader, damage_told
from broker.store.retention import End, Retention, end_of
from broker.store.values import (
    Append,
    Change,
    Entry,
    Sync,
    entry_checksum,
    value_checksum,
)
from broker.store.writer import Batch, Row, Value, Writer, unless_full
from routing.storage import Clear, Put, Stretch

WAITING_BYTES = 64 << 20
"""How much may wait to be written before the store says that it is full."""
_OVERHEAD = 256
"""Bytes that a change takes beside its own."""


def _now() -> int:
    return time.time_ns() // 1_000


def _ignore(_: Any) -> None:
    pass


class Store:
    """The log and the state of one broker."""

    def __init__(
        self,
        directory: Path,
        lock: int,
        writing: sqlite3.Connection,
        reading: sqlite3.Connection,
        retention: Retention,
        waiting_bytes: int,
        clock: Callable[[], int],
        on_stored: Callable[[int], None],
        on_failed: Callable[[StoreError], None],
    ) -> None:
        self.directory = directory
        self._lock = lock
        self._reader = Reader(directory, reading)
        self._waiting_max = waiting_bytes
        self._clock = clock
        self._end: End = end_of(writing)
        self._ticket = 0
        reach = self._reader.fact("reach")
        self._writer = Writer(
            writing, str(directory), retention, reach, clock, on_stored, on_failed
        )

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        sync: Sync = Sync.FULL,
        retain_s: float | None = None,
        retain_bytes: int | None = None,
        on_stored: Callable[[int], None] = _ignore,
        on_failed: Callable[[StoreError], None] = _ignore,
        waiting_bytes: int = WAITING_BYTES,
        clock: Callable[[], int] = _now,
    ) -> Store:
        """The store in a folder, which is made where there is none.

        ``on_stored(ticket)`` and ``on_failed(error)`` are called in the store's own thread, and
        should do no more than wake another. Raises StoreHeld, StoreVersion, StoreDamaged, OSError.
        """
        folder.make(directory)
        lock = folder.lock(directory)
        connections: list[sqlite3.Connection] = []
        try:
            with damage_told(directory):
                file = _made(directory)
                connections.append(_opened(directory, file, sync))
                connections.append(schema.connect(file, read_only=True))
                return cls(
                    directory,
                    lock,
                    connections[0],
                    connections[1],
                    Retention(retain_s, retain_bytes),
                    waiting_bytes,
                    clock,
                    on_stored,
                    on_failed,
                )
        except BaseException:
            for connection in connections:
                connection.close()
            os.close(lock)
            raise

    def close(self) -> None:
        """Write what waits, but for what there is no room for, and let go of the folder."""
        self._reader.close()
        self._writer.close()
        os.close(self._lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ---

    def write(self, changes: Sequence[Change]) -> int:
        """Have changes stored, all or none: a ticket, greater than all before. StoreError after a
        failure that lasts.
        """
        if self._writer.failure is not None:
            raise self._writer.failure
        entries: list[Row] = []
        frames: list[tuple[int, bytes]] = []
        values: list[Value] = []
        size = 0
        for change in changes:
            size += _OVERHEAD
            if isinstance(change, Append):
                row = self._row(change.entry)
                entries.append(row)
                frames.append((row[0], change.entry.frames))
                size += len(change.entry.frames)
            elif isinstance(change, Put):
                checksum = value_checksum(change.kind, change.key, change.value)
                values.append((change.kind, change.key, change.value, checksum))
                size += len(change.value)
            elif isinstance(change, Clear):
                values.append((change.kind, None, None, 0))
            else:
                values.append((change.kind, change.key, None, 0))
        self._ticket += 1
        self._writer.add(Batch(self._ticket, entries, frames, values, size))
        return self._ticket

    def _row(self, entry: Entry) -> Row:
        """The next row of the log."""
        position, before, last_stored_at = self._end
        position += 1
        stored_at = max(self._clock(), last_stored_at)
        types = msgspec.json.encode(entry.types).decode()
        size = len(entry.frames)
        self._end = End(position, before + size, stored_at)
        return (
            position,
            entry.source,
            entry.first_sequence,
            entry.last_sequence,
            types,
            entry.first_time,
            entry.last_time,
            entry.events,
            stored_at,
            size,
            before,
            entry_checksum(entry, position, types),
        )

    @property
    def last_position(self) -> int:
        """The position of the last entry that is stored; others may wait to be."""
        return self._reader.last_position

    @property
    def stored(self) -> int:
        """The last ticket that is stored, with all before it."""
        return self._writer.stored

    @property
    def reach(self) -> int:
        """The position that ``trim`` was last told, of what is stored; 0 where it never was."""
        return self._reader.fact("reach")

    @property
    def is_full(self) -> bool:
        """Whether so much waits that nothing more should be written now."""
        return self._writer.waiting_bytes >= self._waiting_max

    @property
    def is_out_of_room(self) -> bool:
        """Whether the disk has no room for what waits."""
        return self._writer.is_out_of_room

    @property
    def failure(self) -> StoreError | None:
        """Why nothing is written any more."""
        return self._writer.failure

    def wait(self, ticket: int, timeout_s: float | None = None) -> bool:
        """Wait until a ticket is stored, or writing has failed; gives whether it is stored."""
        return self._writer.wait(ticket, timeout_s)

    def trim(self, reach: int) -> None:
        """Say that no rule needs entries below this position: they go when retention is over."""
        self._writer.trim(reach)

    # --- reading, by one thread ---

    @property
    def whole_from(self) -> int:
        """The time from which on no event was let go, as Reader.whole_from says."""
        return self._reader.whole_from

    @property
    def first_position(self) -> int:
        """The position of the first entry that is kept, or would be."""
        return self._reader.first_position

    def entries(
        self,
        after: int | None = None,
        until: int | None = None,
        *,
        since_time: int | None = None,
        before_time: int | None = None,
    ) -> Iterator[Entry]:
        """Entries that are stored, as Reader.entries gives them."""
        return self._reader.entries(after, until, since_time=since_time, before_time=before_time)

    def outlines(self, after: int | None = None) -> Iterator[Entry]:
        """Entries that are stored, without their frames, as Reader.outlines gives them."""
        return self._reader.outlines(after)

    def stretches(self, since_time: int) -> Iterator[Stretch]:
        """Entries that are stored by now, as Reader.stretches gives them."""
        return self._reader.stretches(since_time)

    def at(self, positions: Sequence[int]) -> Iterator[Entry]:
        """The stored entries at some positions, as Reader.at gives them."""
        return self._reader.at(positions)

    def time_before(self, position: int) -> int:
        """The time behind the last event of the entries before a position; TIME_MIN for none."""
        return self._reader.time_before(position)

    def items(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """The stored keys of a kind and their values, in the order of the keys."""
        return self._reader.items(kind)

    def following(self, kind: str, after: str) -> list[tuple[str, bytes]]:
        """Some stored values of a kind with their keys, the first that come after a key."""
        return self._reader.following(kind, after)

    def get(self, kind: str, key: str) -> bytes | None:
        """A stored value; None where there is none."""
        return self._reader.get(kind, key)


def _made(directory: Path) -> Path:
    """The file of the store in a folder, which is made where there never was any."""
    file = folder.file_of(directory)
    leftovers = (file.with_name(f"{folder.FILE}-wal"), *folder.put_aside(directory))
    if not file.exists() and not any(one.exists() for one in leftovers):
        folder.create(directory)
    elif not file.exists():
        raise StoreDamaged(folder.damaged(directory, f"{folder.FILE} is gone, and what it left"))
    elif not file.stat().st_size:
        raise StoreDamaged(folder.damaged(directory, f"{folder.FILE} is empty"))
    return file


def _opened(directory: Path, file: Path, sync: Sync) -> sqlite3.Connection:
    """A connection to write by, to a file that is as long as it should be, of this version."""
    connection = schema.connect(file)
    try:
        version = schema.version_of(connection, file)
        schema.set_up(connection, sync)
        with unless_full():
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        length = pages * connection.execute("PRAGMA page_size").fetchone()[0]
        if file.stat().st_size < length and not _has_log(file):
            why = f"{folder.FILE} has {file.stat().st_size} bytes of {length}"
            raise StoreDamaged(folder.damaged(directory, why))
        schema.migrate(connection, version)
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(file: Path) -> bool:
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0
