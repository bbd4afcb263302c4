"""Reading a store: a broker its own, and ``rexmq log`` that of a broker which may be running."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import msgspec

from broker.errors import BeyondRetention, StoreDamaged, StoreError
from broker.store import schema
from broker.store.folder import damaged, existing
from broker.store.values import Entry, Summary, entry_checksum, value_checksum
from matcher.model import TIME_MAX, TIME_MIN
from routing.storage import Stretch

READ_BYTES = 4 << 20
"""About how many bytes of frames are read at a time."""
READ_ENTRIES = 1_024
STRETCH_ENTRIES = 128
"""Entries that ``stretches`` takes together."""
FOLLOWING_BYTES = 1 << 20
"""About how many bytes of values are read at a time."""
_COLUMNS = (
    "position, source, first_sequence, last_sequence, types, first_time, last_time, events, "
    "stored_at, bytes, checksum"
)
READ = (
    f"SELECT {_COLUMNS}, data FROM entries LEFT JOIN frames USING (position) "
    "WHERE position >= ? AND position < ? ORDER BY position LIMIT ?"
)
_AT = f"SELECT {_COLUMNS}, data FROM entries LEFT JOIN frames USING (position) WHERE position IN"
_OUTLINES = f"SELECT {_COLUMNS} FROM entries WHERE position >= ? ORDER BY position LIMIT ?"
_STRETCH = (
    "SELECT min(position), max(position), min(first_time) FROM entries "
    "WHERE position BETWEEN ? AND ? AND last_time >= ?"
)
_FOLLOWING = "SELECT key, value, checksum FROM state WHERE kind = ? AND key > ? ORDER BY key"
_types_of = msgspec.json.Decoder(tuple[str, ...]).decode


class Reader:
    """Reads the store in a folder, by a connection of its own. A reader holds nobody up: it reads
    some entries at a time, each in a transaction that ends before it is handed out, so the
    write-ahead log never grows for a reader that is slow.
    """

    def __init__(
        self, directory: Path, connection: sqlite3.Connection, until_closed: ExitStack | None = None
    ) -> None:
        self.directory = directory
        self.connection = connection
        self._until_closed = until_closed or ExitStack()

    @classmethod
    def open(cls, directory: Path) -> Reader:
        """A reader beside whoever has the store; StoreError where there is none, or none that this
        release can read.
        """
        file = existing(directory)
        with damage_told(directory), ExitStack() as until_closed:
            connection = _connected(file, until_closed)
            until_closed.callback(connection.close)
            if schema.version_of(connection, file) < schema.VERSION:
                raise StoreDamaged(
                    f"{file} is a store of an older version: a broker that opens it brings it "
                    f"to the present one"
                )
            return cls(directory, connection, until_closed.pop_all())

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
        self._until_closed.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the log ---

    def fact(self, name: str) -> int:
        """A number that the store keeps of itself; 0 where it has none."""
        row = self._one("SELECT number FROM facts WHERE name = ?", name)
        return 0 if row is None else int(row[0])

    @property
    def first_position(self) -> int:
        """The position of the first entry that is kept, or would be."""
        return self.fact("trimmed") + 1

    @property
    def last_position(self) -> int:
        """The position of the last entry that was stored, whether it is kept or not."""
        return self.fact("last")

    @property
    def whole_from(self) -> int:
        """The time from which on no event was let go; TIME_MIN where none was. Stores that an older
        release has trimmed go by the first entry that is kept.
        """
        row = self._one("SELECT number FROM facts WHERE name = 'latest_gone'")
        if row is not None:
            return min(int(row[0]), TIME_MAX - 1) + 1
        first = self.first_position
        if first == 1:
            return TIME_MIN
        return next((one.first_time for one in self.outlines(first - 1)), TIME_MAX)

    def summary(self) -> Summary:
        """The log as a whole."""
        row = self._one(
            "SELECT count(*), total(events), total(bytes), min(first_time), max(last_time) "
            "FROM entries"
        )
        assert row is not None, "an aggregate has a row"
        entries, events, size, first_time, last_time = row
        return Summary(
            self.first_position,
            self.last_position,
            entries,
            int(events),
            int(size),
            first_time,
            last_time,
        )

    def entries(
        self,
        after: int | None = None,
        until: int | None = None,
        *,
        since_time: int | None = None,
        before_time: int | None = None,
    ) -> Iterator[Entry]:
        """The entries after a position (None: from the first that is kept) and up to another, those
        alone that may hold events from a time on, and before another.

        BeyondRetention where entries after that position are kept no more, or are given up before
        they have been read; StoreDamaged.
        """
        first = self._begin(after)
        span = self.span(since_time, before_time)
        low, high = (
            max(first, span.start),
            span.stop if until is None else min(until + 1, span.stop),
        )
        length = 16
        while low < high:
            rows = self._all(READ, low, high, length)
            for row in rows:
                self._verify_next(row[0], low)
                low = row[0] + 1
                if _overlaps(row, since_time, before_time):
                    yield self.verified(row)
            if len(rows) < length:
                self._verify_next(high, low)
                return
            length = _next_length(rows)

    def span(self, since_time: int | None = None, before_time: int | None = None) -> range:
        """The positions from the first to the last entry that may hold events of a stretch of time
        (None: without a bound). A bound has all entries looked at.
        """
        if since_time is None and before_time is None:
            return range(self.first_position, self.last_position + 1)
        conditions = _times(since_time, before_time)
        row = self._one(f"SELECT min(position), max(position) FROM entries WHERE {conditions}")
        return range(0) if row is None or row[0] is None else range(row[0], row[1] + 1)

    def outlines(self, after: int | None = None) -> Iterator[Entry]:
        """The entries after a position, without their frames, which are not read."""
        at = self._begin(after)
        while rows := self._all(_OUTLINES, at, READ_ENTRIES):
            yield from (entry_of(row, b"") for row in rows)
            at = rows[-1][0] + 1

    def stretches(self, since_time: int) -> Iterator[Stretch]:
        """All entries that are stored by now, some at a time: those that may hold events from a
        time on. Their frames are not read.
        """
        return self._stretches(self.first_position, self.last_position, since_time)

    def _stretches(self, first: int, last: int, since_time: int) -> Iterator[Stretch]:
        for low in range(first, last + 1, STRETCH_ENTRIES):
            high = min(low + STRETCH_ENTRIES - 1, last)
            found = self._one(_STRETCH, low, high, since_time)
            yield Stretch(low, low - 1, TIME_MAX) if found[0] is None else Stretch(*found)

    def at(self, positions: Sequence[int]) -> Iterator[Entry]:
        """The entries at some positions, in their order; raises as ``entries`` does."""
        left = sorted(set(positions))
        length = 16
        while left:
            some, left = left[:length], left[length:]
            places = ",".join("?" * len(some))
            rows = {row[0]: row for row in self._all(f"{_AT} ({places})", *some)}
            for position in some:
                if position not in rows:
                    self._verify_next(position + 1, position)
                else:
                    yield self.verified(rows[position])
            length = _next_length(list(rows.values()))

    def time_before(self, position: int) -> int:
        """The time behind the last event of the entries before a position; TIME_MIN for none."""
        row = self._one("SELECT max(last_time) FROM entries WHERE position < ?", position)
        return TIME_MIN if row is None or row[0] is None else int(row[0]) + 1

    def _begin(self, after: int | None) -> int:
        """The first position to read."""
        trimmed = self.fact("trimmed")
        if after is not None and after < trimmed:
            self._refuse(after + 1, trimmed)
        return trimmed + 1 if after is None else after + 1

    def _refuse(self, position: int, trimmed: int) -> NoReturn:
        raise BeyondRetention(
            f"the store in {self.directory} keeps entries from position {trimmed + 1} on; "
            f"{position} is asked for"
        )

    def _verify_next(self, position: int, expected: int) -> None:
        """Raise BeyondRetention or StoreDamaged where entries are missing in between, but for those
        that a repair has told of.
        """
        if position == expected:
            return
        if (trimmed := self.fact("trimmed")) >= expected:
            self._refuse(expected, trimmed)
        lost = sum(
            min(last, position - 1) - max(first, expected) + 1
            for first, last in self.lost()
            if first < position and last >= expected
        )
        if lost != position - expected:
            why = f"entries between {expected} and {position - 1} are missing"
            raise StoreDamaged(damaged(self.directory, why))

    def lost(self) -> list[tuple[int, int]]:
        """Positions, first and last, that repairs have found nothing sound of."""
        lost: list[tuple[int, int]] = self._all("SELECT first, last FROM lost ORDER BY first")
        return lost

    def verified(self, row: Any) -> Entry:
        """The entry of a row of READ; StoreDamaged where it is not what was written."""
        entry = entry_of(row, row[-1] or b"")
        if entry_checksum(entry, entry.position, row[4]) != row[10]:
            raise StoreDamaged(
                damaged(self.directory, f"entry {entry.position} is not what was written")
            )
        return entry

    # --- the state ---

    def items(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """The keys of a kind and their values, in the order of the keys; StoreDamaged."""
        rows = self._all("SELECT key, value, checksum FROM state WHERE kind = ? ORDER BY key", kind)
        for key, value, checksum in rows:
            self._verify_value(kind, key, value, checksum)
            yield key, value

    def following(self, kind: str, after: str) -> list[tuple[str, bytes]]:
        """Some values of a kind with their keys, the first that come after a key, about
        FOLLOWING_BYTES of them; none where there is none.
        """
        found, size = [], 0
        with (
            damage_told(self.directory),
            closing(self.connection.execute(_FOLLOWING, (kind, after))) as rows,
        ):
            for key, value, checksum in rows:
                self._verify_value(kind, key, value, checksum)
                found.append((key, value))
                size += len(value)
                if size >= FOLLOWING_BYTES or len(found) >= READ_ENTRIES:
                    break
        return found

    def _verify_value(self, kind: str, key: str, value: bytes, checksum: int) -> None:
        if value_checksum(kind, key, value) != checksum:
            raise StoreDamaged(
                damaged(self.directory, f"the value of {kind} {key!r} is not what was written")
            )

    def get(self, kind: str, key: str) -> bytes | None:
        """A value; None where there is none."""
        row = self._one("SELECT value, checksum FROM state WHERE kind = ? AND key = ?", kind, key)
        if row is None:
            return None
        value, checksum = row
        self._verify_value(kind, key, value, checksum)
        return bytes(value)

    def _all(self, statement: str, *values: object) -> list[Any]:
        with damage_told(self.directory):
            return self.connection.execute(statement, values).fetchall()

    def _one(self, statement: str, *values: object) -> Any:
        with damage_told(self.directory):
            return self.connection.execute(statement, values).fetchone()


def entry_of(row: Any, frames: bytes) -> Entry:
    """The entry of a row of _COLUMNS and its frames."""
    position, source, first_sequence, last_sequence, types, first, last, events = row[:8]
    return Entry(
        source,
        first_sequence,
        last_sequence,
        _types_of(types),
        first,
        last,
        events,
        frames,
        position,
        *row[8:10],
    )


def _times(since: int | None, before: int | None) -> str:
    """The condition that an entry may hold events of a stretch of time."""
    low = "TRUE" if since is None else f"last_time >= {since:d}"
    return low if before is None else f"{low} AND first_time < {before:d}"


def _overlaps(row: Any, since: int | None, before: int | None) -> bool:
    return (since is None or row[6] >= since) and (before is None or row[5] < before)


def _next_length(rows: list[Any]) -> int:
    """How many entries like these make READ_BYTES."""
    size: int = sum(row[9] for row in rows)
    return max(1, min(READ_ENTRIES, READ_BYTES * len(rows) // max(1, size)))


def _connected(file: Path, until_closed: ExitStack) -> sqlite3.Connection:
    """A connection to read by. If SQLite cannot make ``broker.db-shm`` beside a write-ahead log,
    a copy is read: that of a store on a disk for reading alone, which was not closed.
    """
    try:
        return schema.connect_to_read(file)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in schema.UNWRITABLE:
            raise
    copies = Path(until_closed.enter_context(TemporaryDirectory(prefix="rexmq-")))
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{file}{suffix}", copies / f"{file.name}{suffix}")
    return schema.connect(copies / file.name, read_only=True)


@contextmanager
def damage_told(directory: Path) -> Iterator[None]:
    """Have what SQLite finds wrong with a file be a StoreDamaged, and what else keeps it from
    reading or writing it, such as rights or another writer, a StoreError.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StoreDamaged(damaged(directory, error)) from None
        raise StoreError(f"the store in {directory} cannot be used: {error}") from None
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(damaged(directory, error)) from None
