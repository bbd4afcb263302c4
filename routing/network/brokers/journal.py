"""Journal: what a broker asks its store to keep, and promises that wait until that is kept.

Law 1: all that one input changes, or several that were taken in together, is asked for at once, as
one ``effects.Store``. Messages that tell somebody that something is safe (``PROMISES``) leave when
all is kept that they speak of; others do not wait. Temp 7 of s1 goes to the sinks at once; s1 hears
that 7 has come when the store has it.

Law 2: the store may be behind by ``UNKEPT_MAX`` events: beyond that sources get no credit. A disk
that takes nothing more is a store that falls behind; new sources are told that it is full.

Law 3: the log is needed from the first event on that the replay buffer has; what lies before is
trimmed, when a survey has let go of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from matcher.model import EventBatch
from matcher.single import Single
from routing.effects import Peer, Send, Store
from routing.errors import Refusal
from routing.messages import Acknowledged, Code, Confirmed, Message
from routing.network.brokers.agreed import Agreed
from routing.network.evaluation.divided import DividedDetection, packed_parts
from routing.network.recovery.records import (
    CatalogRecords,
    broker_record,
    source_record,
    times_record,
)
from routing.serving.advertisements import Advertisements
from routing.serving.sources import Source
from routing.storage import Append, Change, Records, Trim

PROMISES = frozenset((Acknowledged, Confirmed))
"""Messages by which a client knows that something is safe (Law 1)."""
UNKEPT_MAX = 131_072
"""Events (Law 2)."""


class Journal:
    """The store's other side in a broker. ``emit`` takes effects."""

    def __init__(
        self,
        name: str,
        agreed: Agreed,
        detection: DividedDetection,
        advertisements: Advertisements,
        emit: Callable[[Store | Send], object],
    ) -> None:
        self._name = name
        self._agreed = agreed
        self._detection = detection
        self._advertisements = advertisements
        self._emit = emit
        self._number = self._kept = 0
        """The last Store that was asked for, and the last that the store has kept."""
        self._unkept: deque[tuple[int, int]] = deque()
        """Numbers of those between, with how many events they have."""
        self.unkept_events = 0
        self._new: list[Sequence[EventBatch]] = []
        self._new_events = 0
        self._touched: dict[str, Source] = {}
        self._promises: list[Send] = []
        """Of this input."""
        self._waiting: deque[tuple[int, Send]] = deque()
        """Those that wait for a Store of that number."""
        self._catalog = CatalogRecords({})
        self._told_catalog = agreed.catalog
        self._told_committed = detection.committed
        self._position = self._trimmed = 0
        self._ends: deque[tuple[int, int]] = deque()
        """Positions of the log that are needed, and how many events the replay buffer had taken by
        the end of each."""
        self.problem: str | None = None
        """Why the store takes nothing more; None while it does."""
        self._is_new = True

    # --- what changes ---

    def recall(self, records: Records, position: int) -> None:
        """The store has these records, which the broker's tables were filled from, and a log that
        ends with this position.
        """
        self._is_new = not records
        self._position = position
        self._catalog = CatalogRecords(records)
        self._told_catalog = self._agreed.catalog
        self._told_committed = self._detection.committed

    def recall_entry(self, position: int) -> None:
        """Events of this position have been taken in again."""
        self._trimmed = self._trimmed or position - 1
        self._ends.append((position, self._detection.replay_buffer.place))

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Sources have published these events."""
        self._new.append(batches)
        self._new_events += sum(map(len, batches))

    def touch(self, source: Source) -> None:
        """A source has published, promised, come or gone."""
        if not source.home:
            self._touched[source.name] = source

    def hold(self, peer: Peer, message: Message) -> None:
        """Send a promise once what it speaks of is kept."""
        self._promises.append(Send(peer, message))

    # --- what is asked for ---

    def flush(self) -> None:
        """Ask the store for all that has changed (Law 1)."""
        changes = tuple(self._changes())
        if changes:
            self._number += 1
            self._unkept.append((self._number, self._new_events))
            self.unkept_events += self._new_events
            self._new_events = 0
            self._emit(Store(self._number, changes))
        promises, self._promises = self._promises, []
        for promise in promises:
            if self._number > self._kept:
                self._waiting.append((self._number, promise))
            else:
                self._emit(promise)

    def _changes(self) -> Iterator[Change]:
        if self._is_new:
            self._is_new = False
            yield broker_record(self._name)
        if self._new:
            yield from self._appended()
        if self._touched:
            touched, self._touched = self._touched, {}
            schemas = self._advertisements.schemas
            for source in touched.values():
                yield source_record(source, schemas)
        if self._agreed.catalog is not self._told_catalog:
            self._told_catalog = self._agreed.catalog
            yield from self._catalog.follow(self._told_catalog)
        if self._detection.committed is not self._told_committed:
            yield from self._committed()

    def _appended(self) -> Iterator[Append]:
        new, self._new = self._new, []
        parts = packed_parts(new) if len(new) > 1 else new  # what came as a message fits into one
        for part in parts:
            for batches in _by_source(part):
                self._position += 1
                yield Append(self._position, batches)
        self._ends.append((self._position, self._detection.replay_buffer.place))

    def _committed(self) -> Iterator[Change]:
        self._told_committed = self._detection.committed
        yield times_record("rules", self._told_committed)
        first = self._detection.replay_buffer.first
        while self._ends and self._ends[0][1] <= first:
            self._trimmed = self._ends.popleft()[0]
        known = ((one.schema.name, one.front) for one in self._advertisements)
        yield times_record("types", {name: front for name, front in known if front is not None})
        yield Trim(self._trimmed + 1)

    # --- what is kept ---

    def stored(self, number: int) -> None:
        """The store has kept all up to this number; what has waited for it leaves."""
        self._kept, self.problem = number, None
        while self._unkept and self._unkept[0][0] <= number:
            self.unkept_events -= self._unkept.popleft()[1]
        while self._waiting and self._waiting[0][0] <= number:
            self._emit(self._waiting.popleft()[1])

    @property
    def is_behind(self) -> bool:
        """Whether sources are to wait for the store (Law 2)."""
        return self.unkept_events > UNKEPT_MAX or self.problem is not None

    def check_room(self) -> None:
        """Refusal while the store takes nothing more."""
        if self.problem is not None:
            raise Refusal(Code.STORE_FULL, f"the broker's store takes nothing more: {self.problem}")


def _by_source(batches: Sequence[EventBatch]) -> Iterable[Sequence[EventBatch]]:
    """The events of each source apart; a batch of what several have recorded goes by the first."""
    found: dict[str, list[EventBatch]] = {}
    for batch in batches:
        name = batch.row.source if isinstance(batch, Single) else batch.ids.source.values[0]
        found.setdefault(name, []).append(batch)
    return found.values()
