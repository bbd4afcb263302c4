"""Checking a store, and keeping what is sound of one that is damaged."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.errors import StoreDamaged, StoreError
from broker.store import folder, schema
from broker.store.reader import READ, Reader, damage_told, entry_of
from broker.store.retention import note
from broker.store.values import Entry, entry_checksum, value_checksum

PROBLEMS_MAX = 20
"""Problems that SQLite is asked for."""
PIECE = 256
"""Rows that are read at once, where none is damaged."""
LONG = 4_096
PROBES = 256
"""Of a stretch of at least LONG numbers, how many are tried before it is given up."""
_COUNT_AT = 28
"""Where the header of a file says its pages, and its free ones behind."""
_SMALLEST_ROW = 32
"""Bytes that a row takes at least, where nobody knows how many rows there were."""
_VALUES = (
    "SELECT rowid, kind, key, value, checksum FROM state NOT INDEXED "
    "WHERE rowid >= ? AND rowid < ? ORDER BY rowid LIMIT ?"
)


@dataclass(slots=True)
class Report:
    """The result of a check, or of a repair.

    ``entries`` and ``values`` are sound; ``unsound`` are positions of entries, first and last, that
    are not or are missing, and ``lost`` those that an earlier repair has told of. ``problems`` says
    in words what is wrong. ``aside`` is the damaged file after a repair.
    """

    entries: int = 0
    events: int = 0
    values: int = 0
    unsound: list[tuple[int, int]] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    aside: Path | None = None

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def check(directory: Path) -> Report:
    """Read the whole of a store; it may be a broker's that runs. StoreError where there is none."""
    report = Report()
    try:
        reader = Reader.open(directory)
    except StoreDamaged as error:
        report.problems.append(str(error))
        return report
    with reader, suppress(StoreDamaged):
        _check_pages(reader, report)
        salvage = Salvage(reader.connection, report, folder.file_of(directory))
        for _ in salvage.entries():
            pass
        for _ in salvage.values():
            pass
    return report


def _check_pages(reader: Reader, report: Report) -> None:
    """Have SQLite look at its own structures."""
    try:
        with damage_told(reader.directory):
            rows = reader.connection.execute(f"PRAGMA quick_check({PROBLEMS_MAX})").fetchall()
    except StoreDamaged as error:
        report.problems.append(str(error))
        return
    report.problems += [line for row in rows for line in row[0].splitlines() if line != "ok"]


def repair(directory: Path) -> Report:
    """Keep what is sound of a store; where all is, nothing is changed.

    StoreHeld where a broker has it open; StoreError where there is no room, which changes nothing
    but the name of the damaged file.

    A repair can be broken off anywhere: it first puts the file aside, under another name, and last
    gives the new file the store's name. In between, a broker refuses the store, and a repair begins
    again with what was put aside.
    """
    with folder.locked(directory):
        file = folder.file_of(directory)
        if file.exists():
            report = check(directory)
            if report.is_sound:
                return report
            aside = _put_aside(directory)
        else:
            found = folder.put_aside(directory)
            if not found:
                raise StoreError(f"{directory} holds no store of a broker")
            aside = found[-1]
        try:
            report = _kept(aside, directory)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"the store in {directory} is not repaired: {error}; expected room for a file as "
                f"long as {aside.name}, and for two where its first page is damaged. Nothing of it "
                f"is lost: make room, and repair again"
            ) from None
        report.aside = aside
        return report


def _put_aside(directory: Path) -> Path:
    """Give a damaged file, and then its write-ahead log, another name."""
    number = len(folder.put_aside(directory)) + 1
    aside = directory / (folder.DAMAGED if number == 1 else f"{folder.DAMAGED}.{number}")
    file = folder.file_of(directory)
    os.rename(file, aside)
    _move_log(file, aside)
    folder.sync(directory)
    return aside


def _move_log(file: Path, aside: Path) -> None:
    with suppress(FileNotFoundError):
        os.rename(f"{file}-wal", f"{aside}-wal")
    with suppress(FileNotFoundError):
        os.unlink(f"{file}-shm")


def _kept(aside: Path, directory: Path) -> Report:
    """Make the store of what is sound in a file that was put aside."""
    report, file = Report(), folder.file_of(directory)
    _move_log(file, aside)  # where a repair was broken off before it did
    unfinished = file.with_name(f"{folder.FILE}.new")
    folder.make_file(unfinished)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as made:
        schema.create(made)
        made.execute("PRAGMA journal_mode=DELETE")  # all in one file, until it is in its place
        made.execute("PRAGMA synchronous=OFF")
        copy = aside.with_name(f"{aside.name}.copy")
        try:
            with closing(_openable(aside, copy, unfinished)) as damaged:
                made.execute("BEGIN")
                _copy(Salvage(damaged, report, aside), made)
                made.execute("COMMIT")
                schema.migrate(made, 1)  # of what an older release wrote, too
        finally:
            for one in (copy, Path(f"{copy}-wal"), Path(f"{copy}-shm")):
                one.unlink(missing_ok=True)
        made.execute("PRAGMA journal_mode=WAL")
    folder.put_in_place(unfinished, file)
    return report


def _openable(aside: Path, copy: Path, fresh: Path) -> sqlite3.Connection:
    """A connection to a damaged file or, where its header is, to a copy with that of a fresh one:
    the tables of all stores begin at the same pages.
    """
    connection = schema.connect(aside)
    try:
        schema.version_of(connection, aside)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return connection
    except (sqlite3.DatabaseError, StoreDamaged):
        connection.close()
    folder.make_file(copy)
    shutil.copyfile(aside, copy)
    with suppress(FileNotFoundError):
        shutil.copyfile(f"{aside}-wal", f"{copy}-wal")
    with fresh.open("rb") as sound, copy.open("r+b") as file:
        header = bytearray(sound.read(schema.PAGE_BYTES))
        pages = copy.stat().st_size // schema.PAGE_BYTES
        header[18:20] = b"\x02\x02"  # it is read with its write-ahead log
        header[_COUNT_AT : _COUNT_AT + 12] = pages.to_bytes(4, "big") + bytes(8)
        header[92:96] = header[24:28]  # the count is of this header
        file.write(header)
    return schema.connect(copy)


def _copy(salvage: Salvage, made: sqlite3.Connection) -> None:
    """Write what is sound to a fresh store."""
    facts = salvage.facts()
    before = facts.get("before", 0)
    last = facts.get("last", facts.get("trimmed", 0))
    for row, entry in salvage.entries():
        values = list(row[:10])
        made.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, before, row[10]),
        )
        made.execute("INSERT INTO frames VALUES (?, ?)", (entry.position, entry.frames))
        before, last = before + len(entry.frames), max(last, entry.position)
    made.executemany(
        "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)", [row[1:] for row in salvage.values()]
    )
    lost = salvage.report.unsound + salvage.report.lost
    made.executemany("INSERT OR REPLACE INTO lost VALUES (?, ?)", lost)
    note(made, **(facts | {"last": last}))


class Salvage:
    """Reads what is sound of a file, however damaged, and reports what is not. Nothing is taken for
    sound that fails its checksum. Of a log with a damaged page, entries before and after it are
    kept at their own positions, and those in it become *lost*: a reader passes over them, which it
    does over no others.
    """

    def __init__(self, connection: sqlite3.Connection, report: Report, file: Path) -> None:
        self.report = report
        self._connection = connection
        self._rows_max = file.stat().st_size // _SMALLEST_ROW

    def facts(self) -> dict[str, int]:
        """The numbers that a store keeps of itself, as far as they can be read."""
        try:
            rows = self._connection.execute("SELECT name, number FROM facts").fetchall()
            return {str(name): int(number) for name, number in rows}
        except (sqlite3.DatabaseError, ValueError):
            self._say("what the store keeps of itself cannot be read")
            return {}

    def entries(self) -> Iterator[tuple[Any, Entry]]:
        """The sound entries, each with its row of READ."""
        facts = self.facts()
        self.report.lost = self._lost()
        passed = {at for low, high in self.report.lost for at in range(low, high + 1)}
        expected = facts.get("trimmed", 0) + 1
        last = facts.get("last")
        if last is None:
            last = self._greatest("SELECT max(position) FROM entries", expected)
        for row in self._rows(READ, expected, last + 1):
            if (entry := _sound(row)) is None:
                continue
            self._miss(expected, entry.position, passed)
            expected = entry.position + 1
            self.report.entries += 1
            self.report.events += entry.events
            yield row, entry
        self._miss(expected, last + 1 if "last" in facts else expected, passed)

    def values(self) -> Iterator[Any]:
        """The sound rows of the state: a number, kind, key, value and checksum."""
        last = self._greatest("SELECT max(rowid) FROM state NOT INDEXED", 1)
        for row in self._rows(_VALUES, 1, last + 1):
            _, kind, key, value, checksum = row
            if isinstance(value, bytes) and value_checksum(kind, key, value) == checksum:
                self.report.values += 1
                yield row
            else:
                self._say(f"the value of {kind} {key!r} is not what was written")

    def _lost(self) -> list[tuple[int, int]]:
        with suppress(sqlite3.DatabaseError):
            return self._connection.execute("SELECT first, last FROM lost").fetchall()
        return []

    def _miss(self, first: int, end: int, passed: set[int]) -> None:
        """Report that the entries from ``first`` to before ``end`` are not sound, if there are."""
        begin = None
        for at in range(first, end + 1):
            if at < end and at not in passed:
                begin = at if begin is None else begin
            elif begin is not None:
                self.report.unsound.append((begin, at - 1))
                are = f"entry {begin} is" if begin == at - 1 else f"entries {begin} to {at - 1} are"
                self._say(f"{are} damaged or missing")
                begin = None

    def _greatest(self, statement: str, least: int) -> int:
        """The greatest number of a row; where that cannot be read, one that none is beyond."""
        try:
            row = self._connection.execute(statement).fetchone()
            return least - 1 if row[0] is None else int(row[0])
        except sqlite3.DatabaseError:
            return least + self._rows_max

    def _rows(self, statement: str, low: int, high: int) -> Iterator[Any]:
        """The rows from ``low`` to before ``high``; where some cannot be read, the halves."""
        while low < high:
            try:
                rows = self._connection.execute(statement, (low, high, PIECE)).fetchall()
            except (sqlite3.DatabaseError, UnicodeDecodeError):
                yield from self._halves(statement, low, high)
                return
            yield from rows
            if len(rows) < PIECE:
                return
            low = rows[-1][0] + 1

    def _halves(self, statement: str, low: int, high: int) -> Iterator[Any]:
        if high - low == 1 or self._is_hopeless(statement, low, high):
            if statement is _VALUES:
                self._say("values of the state cannot be read")
            return
        middle = (low + high) // 2
        yield from self._rows(statement, low, middle)
        yield from self._rows(statement, middle, high)

    def _is_hopeless(self, statement: str, low: int, high: int) -> bool:
        """Whether no row can be read of a long stretch, by PROBES of its numbers: where a table's
        root is damaged, nobody knows its last number, and to try all would take hours.
        """
        if high - low < LONG:
            return False
        step = (high - low) // PROBES
        return not any(self._can_read(statement, at) for at in range(low, high, step))

    def _can_read(self, statement: str, at: int) -> bool:
        try:
            self._connection.execute(statement, (at, at + 1, 1)).fetchall()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return False
        return True

    def _say(self, problem: str) -> None:
        if problem not in self.report.problems:
            self.report.problems.append(problem)


def _sound(row: Any) -> Entry | None:
    """The entry of a row of READ; None where it is not what was written."""
    try:
        if not isinstance(row[-1], bytes):
            return None
        entry = entry_of(row, row[-1])
        return entry if entry_checksum(entry, entry.position, row[4]) == row[10] else None
    except (TypeError, ValueError):  # other kinds of values than were written
        return None
