"""A step between versions of a store by which values are of another form.

A step finds out which values are of the older form, and leaves the others: so it may be taken
again, as after a repair, which keeps values of either. A value that is not what was written ends
it, and nothing has changed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

from broker.store.values import value_checksum
from routing.durability.former import DURABLE, FORMER_QUEUE, former_sink, renewed, sink_of
from routing.storage import Put

_KEYS = "SELECT key FROM state WHERE kind = ? ORDER BY key"


def renew_queues(connection: sqlite3.Connection) -> None:
    """Have each durable sink's queue be of a kind of its own (version 2)."""
    now = time.time_ns() // 1_000
    queues: dict[str, list[str]] = {}
    for (key,) in connection.execute(_KEYS, (FORMER_QUEUE,)).fetchall():
        queues.setdefault(sink_of(key), []).append(key)
    for (name,) in connection.execute(_KEYS, (DURABLE,)).fetchall():
        sink = former_sink(_value(connection, DURABLE, name))
        if sink is None:
            continue
        for change in renewed(name, sink, _records(connection, queues.get(name, ())), now):
            kind, key = change.kind, change.key
            connection.execute("DELETE FROM state WHERE kind = ? AND key = ?", (kind, key))
            if isinstance(change, Put):
                row = kind, key, change.value, value_checksum(kind, key, change.value)
                connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", row)
    connection.execute("DELETE FROM state WHERE kind = ?", (FORMER_QUEUE,))  # of no sink any more


def _records(
    connection: sqlite3.Connection, keys: list[str] | tuple[()]
) -> Iterator[tuple[str, bytes]]:
    for key in keys:
        yield key, _value(connection, FORMER_QUEUE, key)


def _value(connection: sqlite3.Connection, kind: str, key: str) -> bytes:
    value: bytes
    value, checksum = connection.execute(
        "SELECT value, checksum FROM state WHERE kind = ? AND key = ?", (kind, key)
    ).fetchone()
    if value_checksum(kind, key, value) != checksum:
        raise sqlite3.DatabaseError(f"the value of {kind} {key!r} is not what was written")
    return value
