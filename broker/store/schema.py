"""The tables of a store, their versions, and how its file is opened.

Entries and their frames are in two tables, of the same positions: so whoever looks at entries
alone, such as ``rexmq log list``, reads a hundred bytes of each.

``entries.before`` is how many bytes of frames the log has had before an entry, those that it keeps
no more included; the difference of two says what is between them without reading it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from broker.errors import StoreDamaged, StoreVersion
from broker.store.migration import renew_queues
from broker.store.values import Sync

APPLICATION_ID = 0x52784D51
"""Says in the file's header that it is one of these: RxMQ."""
PAGE_BYTES = 16_384
CHECKPOINT_BYTES = 4 << 20
"""Length of the write-ahead log from which on it is copied into the file."""
UNWRITABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
"""SQLite's errors if it cannot make its own files beside one that it reads."""
BUSY_S = 10.0
"""How long to wait for another process that writes, which is ``rexmq log trim``, in small steps."""

Step: TypeAlias = str | Callable[[sqlite3.Connection], None]
MIGRATIONS: Sequence[Step] = (
    """
    CREATE TABLE entries (
        position INTEGER PRIMARY KEY,
        source TEXT NOT NULL,
        first_sequence INTEGER NOT NULL,
        last_sequence INTEGER NOT NULL,
        types TEXT NOT NULL,
        first_time INTEGER NOT NULL,
        last_time INTEGER NOT NULL,
        events INTEGER NOT NULL,
        stored_at INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        before INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE frames (position INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
    CREATE TABLE state (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT;
    CREATE TABLE facts (name TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
    CREATE TABLE lost (first INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
    """,
    renew_queues,
)
"""Steps, statements or functions, that bring a store from version 0, an empty file, to 1, from 1 to
2, and so on.

``facts``: ``last``, the last position that was stored; ``trimmed``, the last that is kept no more,
with ``before`` of the next; ``latest_gone``, the greatest time of an event that is kept no more;
``reach``, the first position that a rule needs. ``lost``: positions that a repair has found nothing
sound of.
"""
VERSION = len(MIGRATIONS)


def connect(file: Path, *, read_only: bool = False, is_fixed: bool = False) -> sqlite3.Connection:
    """A connection to the file of a store, which is there. Each statement is a transaction, unless
    BEGIN says otherwise. ``is_fixed``: nobody writes it.
    """
    mode = "ro" if read_only else "rw"
    return sqlite3.connect(
        f"file:{quote(str(file.resolve()))}?mode={mode}&immutable={is_fixed:d}",
        timeout=BUSY_S,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=128,
    )


def connect_to_read(file: Path) -> sqlite3.Connection:
    """A connection to read by, also on a disk or in a folder that cannot be written.

    SQLite wants its two files beside the store's: a store that was closed has none, and is then
    read as a file that nobody changes. OperationalError if what was written last cannot be read.
    """
    connection = connect(file, read_only=True)
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        log = file.with_name(f"{file.name}-wal")
        if error.sqlite_errorcode & 0xFF not in UNWRITABLE or (log.exists() and log.stat().st_size):
            raise
        return connect(file, read_only=True, is_fixed=True)
    return connection


def set_up(connection: sqlite3.Connection, sync: Sync) -> None:
    """Have a connection write as brokers do."""
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.execute(f"PRAGMA synchronous={sync.value.upper()}")
    connection.execute("PRAGMA secure_delete=OFF")  # else what goes is overwritten, and synced
    connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_BYTES // page_bytes}")
    connection.execute(f"PRAGMA journal_size_limit={4 * CHECKPOINT_BYTES}")


def create(connection: sqlite3.Connection) -> None:
    """Make an empty file a store of the present version."""
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    migrate(connection, 0)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a store from a version to the present one, by the migrations after its own, each of
    which is one transaction.
    """
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if isinstance(step, str):
                for statement in step.split(";"):
                    connection.execute(statement)
            else:
                step(connection)
            connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def version_of(connection: sqlite3.Connection, file: Path) -> int:
    """The version of a store; StoreDamaged for what is none, StoreVersion for a newer one."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreDamaged(f"{file} is no store of a broker")
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise StoreVersion(
            f"{file} is a store of version {version}, and this release of RexMQ knows those up to "
            f"{VERSION}: start it with the release that wrote it, or a newer one"
        )
    return version
