"""Entries of a log, and the changes that a write is made of."""

from __future__ import annotations

import enum
import zlib
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from routing.storage import Clear, Delete, Put


class Sync(enum.Enum):
    """The worst that stored things survive."""

    FULL = "full"
    """A power cut: the file is synced before anything is said to be stored."""
    NORMAL = "normal"
    """The end of the process, by whatever kills it."""


class Entry(Struct, frozen=True, gc=False):
    """Some events of one source, as they came in.

    ``frames``: the bytes of their message. ``first_time`` and ``last_time``: the least and the
    greatest time of an event, in microseconds. ``position``, ``stored_at`` (microseconds of the
    broker's clock) and ``bytes``, the length of the frames, are the store's: what is appended has
    none.
    """

    source: str
    first_sequence: int
    last_sequence: int
    types: tuple[str, ...]
    first_time: int
    last_time: int
    events: int
    frames: bytes
    position: int = 0
    stored_at: int = 0
    bytes: int = 0


class Append(NamedTuple):
    """A change: the log has one more entry."""

    entry: Entry


Change: TypeAlias = Append | Put | Delete | Clear


class Summary(NamedTuple):
    """The log as a whole: its first and last position (last < first: it is empty), its entries,
    events and the bytes of their frames, and their least and greatest time.
    """

    first: int
    last: int
    entries: int
    events: int
    bytes: int
    first_time: int | None
    last_time: int | None


def entry_checksum(entry: Entry, position: int, types: str) -> int:
    """The checksum of an entry at a position, its ``types`` as they are stored."""
    said = (
        f"{position} {entry.first_sequence} {entry.last_sequence} {entry.first_time} "
        f"{entry.last_time} {entry.events} {types} {entry.source}"
    )
    return zlib.crc32(entry.frames, zlib.crc32(said.encode()))


def value_checksum(kind: str, key: str, value: bytes) -> int:
    """The checksum of a value of the state."""
    return zlib.crc32(value, zlib.crc32(f"{kind}\0{key}\0".encode()))
