"""Extracts of a broker's log, for who reads it over a link (routing.messages.ReadLog)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Protocol

from msgspec.structs import replace

from broker.errors import BeyondRetention, StoreDamaged
from broker.store.entries import message_of, pack
from broker.store.values import Entry
from routing.errors import Refusal
from routing.messages import Code, LogEntry, Publish, ReadLog
from routing.storage import Entry as StoredEntry, LogExtract, Stretch
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
    def whole_from(self) -> int:
        """The time from which on no event was let go."""
        ...

    def entries(
        self, after: int | None = None, until: int | None = None, *, since_time: int | None = None
    ) -> Iterable[Entry]:
        """Entries that are stored."""
        ...

    def outlines(self, after: int | None = None) -> Iterable[Entry]:
        """Entries that are stored, without their frames."""
        ...

    def stretches(self, since_time: int) -> Iterator[Stretch]:
        """Entries that are stored by now, some at a time."""
        ...

    def at(self, positions: Sequence[int]) -> Iterable[Entry]:
        """The entries at some positions."""
        ...


class Extracts:
    """Extracts of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, request: ReadLog, *, cut: bool) -> LogExtract:
        """See ReadableLog. An extract goes as far as EXTRACT_BYTES of frames, looked at or taken,
        or OUTLINES entries without them. Of 40 MB of Smokes, asked for Temp, the first extract is
        empty and says that 4 MB of them have been read.

        It holds all that it says to have read, and nothing behind that: entry 17, which waits to
        be stored or is stored meanwhile, comes with the next extract.
        """
        last = self._log.last_position
        after = min(request.after, last) or None  # from the first that is kept
        try:
            if request.outlined:
                return self._outlined(request, after, last, cut)
            return self._whole(request, after, last, cut)
        except BeyondRetention as error:
            raise Refusal(Code.TRIMMED, str(error)) from None
        except StoreDamaged as error:
            raise Refusal(Code.NO_STORE, str(error)) from None

    @property
    def whole_from(self) -> int:
        """See KeptLog."""
        return self._log.whole_from

    def stretches(self, since: int) -> Iterator[Stretch]:
        """See KeptLog."""
        return self._log.stretches(since)

    def events(self, stretch: Stretch, since: int) -> Iterator[StoredEntry]:
        """See KeptLog."""
        try:
            for entry in self._log.entries(stretch.first - 1, stretch.last):
                if entry.last_time >= since:
                    message = message_of(entry)
                    yield entry.position, message.batches, message.traces
        except BeyondRetention as error:
            raise Refusal(Code.TRIMMED, str(error)) from None

    def _outlined(self, request: ReadLog, after: int | None, last: int, cut: bool) -> LogExtract:
        found: list[LogEntry] = []
        outlines = takewhile(lambda entry: entry.position <= last, self._log.outlines(after))
        for number, entry in enumerate(outlines, 1):
            if _is_wanted(entry, request):
                if cut and _has_others(entry, request):
                    (whole,) = self._log.at([entry.position])
                    entry = _cut(whole, request.types)
                found.append(_told(entry, b""))
            if number == OUTLINES:
                return tuple(found), entry.position, last
        return tuple(found), last, last  # whatever of it is kept no more

    def _whole(self, request: ReadLog, after: int | None, last: int, cut: bool) -> LogExtract:
        found: list[LogEntry] = []
        size = 0
        if request.at:
            entries = self._log.at([one for one in request.at if 0 < one <= last])
        else:
            entries = self._log.entries(after, last, since_time=request.since)
        for entry in entries:
            size += len(entry.frames)
            if _is_wanted(entry, request):
                if cut and _has_others(entry, request):
                    entry = _cut(entry, request.types)
                found.append(_told(entry, entry.frames))
            if size >= EXTRACT_BYTES:
                return tuple(found), entry.position, last
        return tuple(found), last, last


def _told(entry: Entry, frames: bytes) -> LogEntry:
    times = entry.first_time, entry.last_time
    return LogEntry(entry.position, *times, entry.types, entry.events, frames)


def _is_wanted(entry: Entry, request: ReadLog) -> bool:
    is_timely = request.since is None or entry.last_time >= request.since
    return is_timely and (not request.types or not set(request.types).isdisjoint(entry.types))


def _has_others(entry: Entry, request: ReadLog) -> bool:
    return not set(request.types).issuperset(entry.types)


def _cut(entry: Entry, types: Iterable[str]) -> Entry:
    """An entry with the events of some types alone, of which it has one at least."""
    wanted = set(types)
    batches = tuple(one for one in message_of(entry).batches if one.type.name in wanted)
    return replace(
        entry,
        types=tuple(sorted({batch.type.name for batch in batches})),
        events=sum(map(len, batches)),
        first_time=min(int(batch.time.min()) for batch in batches if len(batch)),
        last_time=max(int(batch.time.max()) for batch in batches if len(batch)),
        frames=pack(encode(Publish(batches))),
    )
