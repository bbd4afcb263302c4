"""The thread that writes a store.

It takes all that waits, up to GROUP_BYTES, writes it in one transaction, which SQLite syncs, says
so, and begins again. Between what is written, entries that may go do so (:mod:`retention`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from broker.errors import StoreError
from broker.store.retention import Retention, note, trim_step

GROUP_BYTES = 8 << 20
"""About how many bytes one transaction has."""
RETRY_S = 1.0
LOOK_S = 1.0
"""How often it is looked whether entries have become old."""
CHUNK = 256
"""Rows in one statement, at most."""
_ENTRY, _FRAMES, _VALUE = 12, 2, 4
_INSERTS = {
    _ENTRY: ("INSERT INTO entries VALUES", ""),
    _FRAMES: ("INSERT INTO frames VALUES", ""),
    _VALUE: (
        "INSERT INTO state VALUES",
        "ON CONFLICT (kind, key) DO UPDATE SET (value, checksum) = (excluded.value, "
        "excluded.checksum)",
    ),
}
"""Statements by the columns of their rows: what stands before these, and behind."""
_NO_ROOM = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
)
"""SQLite's errors where a disk, a quota or a limit on files leaves no room."""
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


Row: TypeAlias = tuple[Any, ...]
"""A row of the table of entries."""
Value: TypeAlias = tuple[str, str | None, bytes | None, int]
"""Kind, key (None: all of the kind are deleted), value (None: it is deleted) and checksum."""


class Batch(NamedTuple):
    """Rows that one write consists of, and how many bytes they are about."""

    ticket: int
    entries: Sequence[Row]
    frames: Sequence[tuple[int, bytes]]
    values: Sequence[Value]
    size: int


class Writer:
    """Writes batches in their order, by a thread of its own.

    ``on_stored`` is called with the last ticket of each transaction, and when there is room again;
    ``on_failed`` once when there is no room any more, and for the error that ends the thread. Both
    are called in the thread.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        name: str,
        retention: Retention,
        reach: int,
        clock: Callable[[], int],
        on_stored: Callable[[int], None],
        on_failed: Callable[[StoreError], None],
    ) -> None:
        self._connection = connection
        self._name = name
        self._retention = retention
        self._reach = reach
        self._reach_noted = reach
        self._clock = clock
        self._on_stored = on_stored
        self._on_failed = on_failed
        self._changed = threading.Condition()
        self._waiting: deque[Batch] = deque()
        self.waiting_bytes = 0
        self.stored = 0
        """The last ticket that is stored."""
        self.is_out_of_room = False
        self.failure: StoreError | None = None
        self._is_closing = False
        self._trim_at = 0.0
        self._thread = threading.Thread(target=self._run, name="rexmq store", daemon=True)
        self._thread.start()

    # --- called by the store's user ---

    def add(self, batch: Batch) -> None:
        """Have a batch written."""
        with self._changed:
            self._waiting.append(batch)
            self.waiting_bytes += batch.size
            self._changed.notify_all()

    def trim(self, reach: int) -> None:
        """Entries below this position are needed by no rule any more."""
        with self._changed:
            if reach > self._reach:
                self._reach, self._trim_at = reach, 0.0
                self._changed.notify_all()

    def wait(self, ticket: int, timeout_s: float | None) -> bool:
        """Wait until a ticket is stored, or writing has failed; gives whether it is stored."""
        with self._changed:
            self._changed.wait_for(lambda: self.stored >= ticket or self.failure, timeout_s)
            return self.stored >= ticket

    def close(self) -> None:
        """Write what waits, but for what there is no room for, and end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self._connection.close()

    # --- the thread ---

    def _run(self) -> None:
        while (group := self._next_group()) is not None:
            try:
                self._write(group)
            except sqlite3.Error as error:
                if not self._go_on_after(error):
                    return
            else:
                self._tell(group)

    def _next_group(self) -> list[Batch] | None:
        """Batches to be written now, none where it is time to trim; None: the end."""
        with self._changed:
            while not self._waiting and not self._is_closing:
                wait_s = self._trim_at - time.monotonic()
                if wait_s <= 0:
                    return []
                self._changed.wait(None if wait_s == float("inf") else wait_s)
            if not self._waiting:
                return None
            group, size = [], 0
            for batch in self._waiting:
                group.append(batch)
                size += batch.size
                if size >= GROUP_BYTES:
                    break
            return group

    def _write(self, group: Sequence[Batch]) -> None:
        run, begun = self._connection.execute, time.monotonic()
        has_more, reach = None, self._reach
        run("BEGIN IMMEDIATE")
        try:
            if entries := [row for batch in group for row in batch.entries]:
                self._insert(entries, _ENTRY)
                self._insert([row for batch in group for row in batch.frames], _FRAMES)
                note(self._connection, last=entries[-1][0])
            self._put(row for batch in group for row in batch.values)
            if begun >= self._trim_at:
                has_more = self._trim(reach)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        if has_more is not None:
            self._reach_noted = reach
            self._put_off_trimming(begun, reach, has_more)

    def _insert(self, rows: Sequence[tuple[Any, ...]], columns: int) -> None:
        """Insert rows, by few statements of few lengths, which are prepared once. Each statement
        lets go of the interpreter and has to wait for it again, up to five milliseconds where the
        broker is busy; so their number must not follow that of the entries.
        """
        for some in _chunks(rows):
            places = ",".join(["(" + ",".join("?" * columns) + ")"] * len(some))
            values = [value for row in some for value in row]
            before, behind = _INSERTS[columns]
            self._connection.execute(f"{before} {places} {behind}", values)

    def _put(self, values: Iterable[Value]) -> None:
        cleared: list[tuple[str]] = []
        rows: dict[tuple[str, str], Value] = {}
        for row in values:
            kind, key = row[:2]
            if key is None:
                rows = {one: own for one, own in rows.items() if one[0] != kind}
                cleared.append((kind,))
            else:
                rows[kind, key] = row
        if cleared:
            self._connection.executemany("DELETE FROM state WHERE kind = ?", cleared)
        self._insert([row for row in rows.values() if row[2] is not None], _VALUE)
        gone = [key for key, row in rows.items() if row[2] is None]
        if gone:
            self._connection.executemany("DELETE FROM state WHERE kind = ? AND key = ?", gone)

    def _put_off_trimming(self, begun: float, reach: int, has_more: bool) -> None:
        """After a step that began at a time: nothing goes for as long as it took, so that what
        comes meanwhile is stored by itself.
        """
        now = time.monotonic()
        with self._changed:
            if reach == self._reach:  # else there is a reason to look again
                self._trim_at = now + (now - begun if has_more else LOOK_S)

    def _trim(self, reach: int) -> bool:
        """Let some entries go, and note the reach; gives whether more may go at once."""
        now = self._clock()
        step = trim_step(
            self._connection,
            reach,
            lambda stored_at, behind, _: self._retention.is_over(stored_at, behind, now),
        )
        if reach != self._reach_noted:
            note(self._connection, reach=reach)
        return step.has_more

    def _go_on_after(self, error: sqlite3.Error) -> bool:
        """Wait and go on after an error that may pass; False where it does not. The transaction is
        undone, and what waits is kept. Where there is no room, the same is tried again after
        RETRY_S; any other error ends the thread, for after a sync that failed nobody knows what the
        disk holds.
        """
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code & 0xFF in _BUSY:
            return True
        failure = StoreError(f"the store {self._name} cannot be written: {error}")
        if code not in _NO_ROOM:
            with self._changed:
                self.failure = failure
                self._changed.notify_all()
            self._on_failed(failure)
            return False
        if not self.is_out_of_room:
            self.is_out_of_room = True
            self._on_failed(failure)
        with self._changed:
            return not self._changed.wait_for(lambda: self._is_closing, RETRY_S)

    def _tell(self, group: Sequence[Batch]) -> None:
        is_back, self.is_out_of_room = self.is_out_of_room, False
        if not (group or is_back):
            return
        with self._changed:
            for batch in group:
                self._waiting.popleft()
                self.waiting_bytes -= batch.size
                self.stored = batch.ticket
            self._changed.notify_all()
        self._on_stored(self.stored)


@contextmanager
def unless_full() -> Iterator[None]:
    """Do something that can be done later as well, where there is no room for it now."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode not in _NO_ROOM:
            raise


def _chunks(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """The rows in runs whose lengths are powers of two, CHUNK at most."""
    begin, length = 0, CHUNK
    while begin < len(rows):
        while length > len(rows) - begin:
            length //= 2
        yield rows[begin : begin + length]
        begin += length
