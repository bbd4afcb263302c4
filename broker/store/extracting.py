"""Extracts of a broker's log, for who reads it over a link (routing.messages.ReadLog).

Law: what is read at a time is bounded, whatever is asked for: an extract goes as far as
EXTRACT_BYTES of frames, looked at or taken, or OUTLINES entries without them. Of 40 MB of Smokes,
asked for Temp, the first extract is empty and says that 4 MB of them have been read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from broker.errors import BeyondRetention
from broker.store.recording import message_of, pack
from broker.store.values import Entry
from matcher.model import TIME_MAX, TIME_MIN
from routing.errors import Refusal
from routing.messages import Code, LogEntry, Publish, ReadLog
from routing.storage import Entry as StoredEntry
from routing.storage import LogExtract
from routing.wire import encode

EXTRACT_BYTES = 4 << 20
OUTLINES = 65_536


class Log(Protocol):
    """The log of a store, or of one that another process has."""

    @property
    def last_position(self) -> int:
        """The position of the last entry that is stored."""
        ...

    @property
    def first_position(self) -> int:
        """The position of the first entry that is kept, or would be."""
        ...

    def entries(
        self, after: int | None = None, until: int | None = None, *, since_time: int | None = None
    ) -> Iterable[Entry]:
        """Entries that are stored."""
        ...

    def outlines(self, after: int | None = None) -> Iterable[Entry]:
        """Entries that are stored, without their frames."""
        ...

    def at(self, positions: Sequence[int]) -> Iterable[Entry]:
        """The entries at some positions."""
        ...


class Extracts:
    """Extracts of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, request: ReadLog, *, cut: bool) -> LogExtract:
        """See ReadableLog."""
        last = self._log.last_position
        after = request.after or None  # from the first that is kept
        try:
            if request.outlined:
                return self._outlined(request, after, last)
            return self._whole(request, after, last, cut)
        except BeyondRetention as error:
            raise Refusal(Code.TRIMMED, str(error)) from None

    @property
    def whole_from(self) -> int:
        """See ReadableLog. Entries are let go in the order of their positions, so this is the least
        time in the first that is kept, as far as they came in order.
        """
        first = self._log.first_position
        if first == 1:
            return TIME_MIN
        return next((one.first_time for one in self._log.outlines(first - 1)), TIME_MAX)

    def events(self, since: int) -> Iterator[StoredEntry]:
        """See ReadableLog."""
        for entry in self._log.entries(since_time=since):
            message = message_of(entry)
            yield entry.position, message.batches, message.traces

    def _outlined(self, request: ReadLog, after: int | None, last: int) -> LogExtract:
        found: list[LogEntry] = []
        read = request.after
        for entry in islice(self._log.outlines(after), OUTLINES):
            read = entry.position
            if _is_wanted(entry, request):
                found.append(_told(entry, b""))
        return tuple(found), read, last

    def _whole(self, request: ReadLog, after: int | None, last: int, cut: bool) -> LogExtract:
        found: list[LogEntry] = []
        size = 0
        if request.at:
            entries = self._log.at(request.at)
        else:
            entries = self._log.entries(after, last, since_time=request.since)
        for entry in entries:
            size += len(entry.frames)
            if _is_wanted(entry, request):
                frames = _cut(entry, request.types) if cut else entry.frames
                found.append(_told(entry, frames))
            if size >= EXTRACT_BYTES:
                return tuple(found), entry.position, last
        return tuple(found), last, last


def _told(entry: Entry, frames: bytes) -> LogEntry:
    times = entry.first_time, entry.last_time
    return LogEntry(entry.position, *times, entry.types, entry.events, frames)


def _is_wanted(entry: Entry, request: ReadLog) -> bool:
    is_timely = request.since is None or entry.last_time >= request.since
    return is_timely and (not request.types or not set(request.types).isdisjoint(entry.types))


def _cut(entry: Entry, types: Iterable[str]) -> bytes:
    """The frames of an entry with the events of some types alone."""
    wanted = set(types)
    if wanted.issuperset(entry.types):
        return entry.frames
    batches = tuple(one for one in message_of(entry).batches if one.type.name in wanted)
    return pack(encode(Publish(batches)))
