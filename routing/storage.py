"""Changes that a node asks its store to keep, and what a store gives back when a broker starts.

A store is a log of published events and a table of records by kind and key. It knows the meaning of
neither: events are frames of a message, records are bytes. The changes of one ``effects.Store`` are
kept together or not at all, and in the order in which they were asked for.

Example: source s1 publishes two Temps: ``Append(7, (temps,))`` and ``Put("source", "s1", ...)``
with the number of the last of them go into one Store; it is acknowledged once that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from matcher.model import TIME_MIN, EventBatch
from matcher.traces import Traces
from routing.messages import LogEntry, ReadLog


class Append(Struct, frozen=True, eq=False, gc=False):
    """Events that a source has published, behind all that the log has. ``position``: one more than
    that of the entry before, from 1 on. ``traces``: trace contexts of some of the events.
    """

    position: int
    batches: Sequence[EventBatch]
    traces: Traces = ()


class Trim(Struct, frozen=True, gc=False):
    """Events before this position are needed by no rule any more."""

    position: int


class Put(Struct, frozen=True, gc=False):
    """A record, in the place of the one of this kind and key."""

    kind: str
    key: str
    value: bytes


class Delete(Struct, frozen=True, gc=False):
    """The record of this kind and key is no more."""

    kind: str
    key: str


class Clear(Struct, frozen=True, gc=False):
    """All records of this kind are no more."""

    kind: str


StoreChange: TypeAlias = Append | Trim | Put | Delete | Clear
Entry: TypeAlias = tuple[int, Sequence[EventBatch], Traces]
"""A position of the log, the events there, and the trace contexts of some of them."""
Records: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""By kind and key."""
RecordsAfter: TypeAlias = Callable[[str, str], Sequence[tuple[str, bytes]]]
"""Reads some records of a kind, the first whose keys come after one, in the order of their keys;
none where none is kept."""


def _nothing(kind: str, after: str) -> Sequence[tuple[str, bytes]]:
    return ()


LogExtract: TypeAlias = tuple[tuple[LogEntry, ...], int, int]
"""Entries of a log, the position up to which they go, and that of the last entry there is."""


class Stretch(NamedTuple):
    """Entries of a log that follow one another: the first position and the last of those that may
    hold events from a time on, and the least time of an event in these. With ``first`` beyond
    ``last``: there are none.
    """

    first: int
    last: int
    least: int


class KeptLog(Protocol):
    """A log that goes further back than what rules need now."""

    @property
    def whole_from(self) -> int:
        """The time from which on all events are kept, TIME_MIN where none was let go."""
        ...

    def stretches(self, since: int) -> Iterator[Stretch]:
        """All entries by now, stretch by stretch: those that may hold events from a time on."""
        ...

    def events(self, stretch: Stretch, since: int) -> Iterator[Entry]:
        """The entries of a stretch that may hold events from a time on. Refusal (trimmed) where
        some are kept no more.
        """
        ...


class ReadableLog(Protocol):
    """A log, which may be read while more is appended."""

    def read(self, request: ReadLog, *, cut: bool) -> LogExtract:
        """Entries behind a position, as many as a message bears, or the outlines of more. ``cut``:
        with the events of the types alone that are asked for. Refusal (trimmed) where some are kept
        no more.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreContents:
    """All that a store has kept of a broker; nothing for one that starts for the first time."""

    records: Records = field(default_factory=dict)
    entries: Iterable[Entry] = ()
    """In order, from the last Trim on."""
    position: int = 0
    """Of the last entry that there has ever been."""
    log: KeptLog | None = None
    reader: ReadableLog | None = None
    let_go: int = TIME_MIN
    """The time behind the last event that is in the log before ``entries``."""
    following: RecordsAfter = _nothing
    """Reads records that are not in ``records``, for as long as the broker lives."""
    earlier: Iterable[Sequence[EventBatch]] = ()
    """Events of entries before ``entries`` that are kept still: their ids are known again."""
