"""Retention: which entries of a log may go, and letting them go some at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

STEP_ENTRIES = 256
STEP_BYTES = 1 << 20


class Retention(NamedTuple):
    """How long entries are kept that no rule needs any more (None: this sets no end).

    An entry goes once no rule needs it (its position is below the *reach*) and it is older than
    ``retain_s`` or has ``retain_bytes`` of frames behind it, whichever is first; with neither it
    stays. Entries go in the order in which they came. With a reach of 90, ``retain_bytes`` of 1 GB
    and 10 MB of frames an entry, an entry stays until it is below 90 and a hundred entries are
    behind it.
    """

    seconds: float | None = None
    bytes: int | None = None

    def is_over(self, stored_at: int, behind: int, now: int) -> bool:
        """Whether it is for an entry that was stored at a time, and has so many bytes behind it;
        times in microseconds.
        """
        if self.seconds is not None and stored_at < now - self.seconds * 1e6:
            return True
        return self.bytes is not None and behind >= self.bytes


class Step(NamedTuple):
    """A step of letting go: how many entries went, and whether more may be gone at once."""

    entries: int
    has_more: bool


def trim_step(connection: sqlite3.Connection, reach: int, is_over: Callable[..., bool]) -> Step:
    """Let the first entries below ``reach`` go for which ``is_over``, in the connection's
    transaction.

    ``is_over(stored_at, behind, last_time)``: ``behind`` is how many bytes of frames came after it.

    At most STEP_ENTRIES entries and about STEP_BYTES go at once; what is written meanwhile waits
    for one such step at most.
    """
    rows = connection.execute(
        "SELECT position, stored_at, before + bytes, last_time, bytes FROM entries "
        "WHERE position < ? ORDER BY position LIMIT ?",
        (reach, STEP_ENTRIES),
    ).fetchall()
    if not rows:
        return Step(0, False)
    total = end_of(connection).before
    gone, size = 0, 0
    while gone < len(rows) and size < STEP_BYTES:
        _, stored_at, end, last_time, length = rows[gone]
        if not is_over(stored_at, total - end, last_time):
            break
        gone, size = gone + 1, size + length
    if gone:
        _let_go(connection, rows[:gone])
    return Step(gone, gone == STEP_ENTRIES or size >= STEP_BYTES)


def _let_go(connection: sqlite3.Connection, rows: Sequence[Any]) -> None:
    """Delete the entries up to that of the last row."""
    position, _, end, _, _ = rows[-1]
    latest = max(last_time for _, _, _, last_time, _ in rows)
    known = connection.execute("SELECT number FROM facts WHERE name = 'latest_gone'").fetchone()
    latest = latest if known is None else max(latest, known[0])
    connection.execute("DELETE FROM frames WHERE position <= ?", (position,))
    connection.execute("DELETE FROM entries WHERE position <= ?", (position,))
    note(connection, trimmed=position, before=end, latest_gone=latest)


class End(NamedTuple):
    """The end of a log: its last position, how many bytes of frames it has had, and when its last
    entry was stored.
    """

    position: int
    before: int
    stored_at: int


def end_of(connection: sqlite3.Connection) -> End:
    """The end of a log."""
    row = connection.execute(
        "SELECT position, before + bytes, stored_at FROM entries ORDER BY position DESC LIMIT 1"
    ).fetchone()
    facts = dict(connection.execute("SELECT name, number FROM facts").fetchall())
    _, before, stored_at = (0, facts.get("before", 0), 0) if row is None else row
    return End(facts.get("last", 0), before, stored_at)


def note(connection: sqlite3.Connection, **facts: int) -> None:
    """Have the store keep numbers of itself."""
    connection.executemany(
        "INSERT OR REPLACE INTO facts (name, number) VALUES (?, ?)", list(facts.items())
    )
