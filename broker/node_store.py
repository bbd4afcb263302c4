"""A node's store on its host: what the node asks for is written, and what was kept is read."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.errors import StoreError
from broker.store import Append, Change, Store, Sync
from broker.store.entries import entry_of, message_of
from broker.store.extracts import Extracts
from matcher.model import EventBatch
from routing import effects, storage
from routing.durability.records import KINDS
from routing.messages import Publish

RECALLED_ENTRIES = 4_096
"""Entries that no rule needs any more whose ids are known again after a restart, at most."""


@dataclass(frozen=True, slots=True)
class StoreChoices:
    """Where a broker's store is, and what it keeps. ``retain_s`` and ``retain_bytes`` None: what
    rules need.
    """

    directory: Path
    sync: Sync = Sync.FULL
    retain_s: float | None = None
    retain_bytes: int | None = None


SWITCH_S = 0.0005
"""Seconds after which the host's thread lets the store's have the interpreter, which needs it for
each of its six statements a transaction (Python's own are ten times as many)."""


class Keeping:
    """The store of one broker, in its host's thread. ``wake`` may be called in any.

    The store's own thread does no more than wake the host. What rules need no longer is let go once
    that is kept by which they need it no longer: were the log cut first, a power cut in between
    would leave a broker that evaluates from where its log does not reach.
    """

    def __init__(self, choices: StoreChoices, wake: Callable[[], None] = lambda: None) -> None:
        self.wake = wake
        sys.setswitchinterval(SWITCH_S)
        self._problem: StoreError | None = None
        self._told = 0
        self._trims: deque[tuple[int, int]] = deque()
        """Tickets, and the positions that may go once these are kept."""
        self._store = Store.open(
            choices.directory,
            sync=choices.sync,
            retain_s=choices.retain_s,
            retain_bytes=choices.retain_bytes,
            on_stored=lambda ticket: self.wake(),
            on_failed=self._fail,
        )

    def _fail(self, error: StoreError) -> None:
        self._problem = error
        self.wake()

    def close(self) -> None:
        """Write what waits, and let go of the store."""
        self._store.close()

    # --- what was kept ---

    def read(self) -> storage.StoreContents:
        """All that the store has of the broker; the log is read as it is iterated."""
        records = {kind: dict(self._store.items(kind)) for kind in KINDS}
        is_new, extracts = not any(records.values()), Extracts(self._store)
        return storage.StoreContents(
            {} if is_new else records,
            self._entries(),
            self._store.last_position,
            extracts,
            extracts,
            self._store.time_before(self._first),
            self._store.following,
            self._earlier(),
        )

    @property
    def _first(self) -> int:
        """The position of the first entry that rules need."""
        return max(self._store.reach, self._store.first_position)

    def _entries(self) -> Iterator[storage.Entry]:
        for entry in self._store.entries(self._first - 1):
            message = message_of(entry)
            yield entry.position, message.batches, message.traces

    def _earlier(self) -> Iterator[Sequence[EventBatch]]:
        first = max(self._store.first_position, self._first - RECALLED_ENTRIES)
        if first < self._first:
            for entry in self._store.entries(first - 1, self._first - 1):
                yield message_of(entry).batches

    # --- what is to be kept ---

    def ask(self, asked: effects.Store) -> None:
        """Have changes kept. StoreError where the store has failed for good."""
        written = [one for change in asked.changes for one in self._written(change, asked.number)]
        ticket = self._store.write(written)
        assert ticket == asked.number, "the node and the store count alike"

    def _written(self, change: storage.StoreChange, number: int) -> Iterator[Change]:
        if isinstance(change, storage.Append):
            message = Publish(tuple(change.batches), traces=tuple(change.traces))
            first = message.batches[0]
            yield Append(entry_of(first.ids.source.values[0], message))
        elif isinstance(change, storage.Trim):
            self._trims.append((number, change.position))
        else:
            yield change

    def take_kept(self) -> int | None:
        """The number up to which all is kept, where that is news. StoreError where the store has
        failed for good.
        """
        if self._store.failure is not None:
            raise self._store.failure
        kept = self._store.stored
        if kept == self._told:
            return None
        self._told = kept
        while self._trims and self._trims[0][0] <= kept:
            self._store.trim(self._trims.popleft()[1])
        return kept

    @property
    def problem(self) -> str | None:
        """Why the store takes nothing more for now; None while it does."""
        return str(self._problem) if self._store.is_out_of_room and self._problem else None
