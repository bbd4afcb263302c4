"""Changes that a node asks its store to keep, and what a store gives back when a broker starts.

A store is a log of published events and a table of records by kind and key. It knows the meaning of
neither: events are frames of a message, records are bytes. The changes of one ``effects.Store`` are
kept together or not at all, and in the order in which they were asked for.

Example: source s1 publishes two Temps: ``Append(7, (temps,))`` and ``Put("source", "s1", ...)``
with the number of the last of them go into one Store; it is acknowledged once that is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from matcher.model import EventBatch
from matcher.traces import Traces


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


StoreChange: TypeAlias = Append | Trim | Put | Delete
Entry: TypeAlias = tuple[int, Sequence[EventBatch], Traces]
"""A position of the log, the events there, and the trace contexts of some of them."""
Records: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""By kind and key."""


@dataclass(frozen=True, slots=True)
class StoreContents:
    """All that a store has kept of a broker; nothing for one that starts for the first time."""

    records: Records = field(default_factory=dict)
    entries: Iterable[Entry] = ()
    """In order, from the last Trim on."""
    position: int = 0
    """Of the last entry that there has ever been."""
