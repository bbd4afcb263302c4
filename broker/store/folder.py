"""The files of a store, and that one process has it open.

``broker.db`` with SQLite's own ``broker.db-wal`` and ``broker.db-shm`` beside it, and
``broker.lock``, which the broker that has the store open keeps locked (``flock``), and which says
its process. Readers, and ``rexmq log trim``, need no lock but SQLite's own.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from broker.errors import StoreDamaged, StoreError, StoreHeld
from broker.store import schema

FILE, LOCK = "broker.db", "broker.lock"
_ENTERED, _READ = 0o011, 0o044
"""Modes of a folder, and of a file in it, that let others than the owner read the file."""
DAMAGED = "broker.db.damaged"
"""A file that ``rexmq log check --repair`` has put aside; numbers follow from the second on."""


def file_of(directory: Path) -> Path:
    """The file of the store in a folder."""
    return directory / FILE


def existing(directory: Path) -> Path:
    """The same; StoreError where there is none."""
    file = file_of(directory)
    if not file.is_file():
        if put_aside(directory):
            raise StoreDamaged(damaged(directory, "a repair of it was broken off"))
        raise StoreError(f"{directory} holds no store of a broker: there is no {FILE}")
    return file


def damaged(directory: Path, why: object) -> str:
    """The words for a store that is damaged."""
    return (
        f"the store in {directory} is damaged: {why}; to see what, and to keep what is sound: "
        f"rexmq log check --data {directory} --repair"
    )


def put_aside(directory: Path) -> list[Path]:
    """Damaged files that repairs have put aside, in their order."""
    names = (
        one for one in directory.glob(f"{DAMAGED}*") if not one.name.endswith(("-wal", "-shm"))
    )
    return sorted(names, key=lambda one: (len(one.name), one.name))


def lock(directory: Path) -> int:
    """Take the store in a folder for this process: a descriptor, whose end gives it back.

    StoreHeld where another process has it.
    """
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise StoreHeld(
            f"the store in {directory} is in use by process {holder or '(unknown)'}: "
            f"one broker has a store"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Have the store in a folder for a while."""
    descriptor = lock(directory)
    try:
        yield
    finally:
        os.close(descriptor)


def make(directory: Path) -> None:
    """Make the folder of a store, if it is not there: of mode 700, whatever the umask, for a store
    is its owner's alone. A folder that was there keeps its mode.
    """
    if not directory.is_dir():
        directory.mkdir(mode=0o700, parents=True)
        sync(directory.parent)


def make_file(file: Path) -> None:
    """Make an empty file for SQLite, in the place of any that is there: of mode 600, which SQLite
    gives its own files too.
    """
    file.unlink(missing_ok=True)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def open_to_others(directory: Path) -> list[Path]:
    """The folder of a store and the files there, as far as others than the owner may read them."""
    try:
        if not directory.stat().st_mode & _ENTERED:
            return []
        files = [file for file in directory.glob("broker.*") if file.stat().st_mode & _READ]
    except OSError:  # not there, or another's
        return []
    return [directory, *sorted(files)] if files else []


def create(directory: Path) -> None:
    """Make the file of a new store. The file is there as a whole or not at all: it is made under
    another name, synced and renamed. So a file that is empty or short was damaged, and is not taken
    for a new one.
    """
    unfinished = directory / f"{FILE}.new"
    make_file(unfinished)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        schema.create(connection)
    put_in_place(unfinished, file_of(directory))


def put_in_place(unfinished: Path, file: Path) -> None:
    """Have a finished file of SQLite, which nobody has open, be the store's."""
    sync(unfinished)
    os.replace(unfinished, file)
    sync(file.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
