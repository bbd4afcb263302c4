"""Journal: what a broker asks its store to keep, and what waits until that is kept.

Law 1: all that one input changes, or several that were taken in together, is asked for at once, as
one ``effects.Store``. What tells somebody that something is safe (routing.serving.outlet, and what
checkpoints say) leaves when all is kept that it speaks of; the rest does not wait. Temp 7 of s1
goes to the sinks at once; s1 hears that 7 has come when the store has it.

Law 2: the store may be behind by ``UNKEPT_BYTES_MAX`` of events: beyond that sources get no credit.
A disk that takes nothing more is a store that falls behind; whoever asks for a change (a new
source, rule or durable sink) is refused, and told why.
100,000 Temps that are one number each are 3 MB, and hold up nobody; 1,000 events with a text of
100 KB are 100 MB, and do.

Law 3: the log is needed from the first event on that the replay buffer has; what lies before is
trimmed, when a checkpoint has let go of it, and together with the states of rules that stand for
it.

Law 4: what is queued for durable sinks is kept with what it was made from, and so is which events
of other brokers have come for them: what is sent again after a restart is known. b1 has queued Temp
9 of b3 for audit when it is killed; b3 sends 5 to 12 again: audit gets 10 to 12.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import structs

from matcher.model import MICROSECONDS, EventBatch
from matcher.single import Single
from routing.delivery.deduplicator import Deduplicator
from routing.delivery.delivery_batch import join
from routing.delivery.durable import DurableSink, Numbered
from routing.delivery.durables import Durables
from routing.deployment import Deployed
from routing.durability.records import (
    DURABLE,
    IDS,
    STATE,
    CatalogRecords,
    broker_record,
    came_record,
    durable_record,
    homes_in,
    ids_record,
    number_key,
    queue_kind,
    queue_record,
    queued_in,
    source_record,
    state_record,
    stay_record,
    times_record,
    users_record,
)
from routing.durability.sink_homes import SinkHomes
from routing.effects import Store
from routing.errors import Refusal
from routing.evaluation.replay import packed_parts
from routing.messages import Advertise, Asking, Code, Deploy, Remove
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.serving.sources import Source
from routing.storage import (
    Append,
    Clear,
    Delete,
    Put,
    RecordsAfter,
    StoreChange,
    StoreContents,
    Trim,
)
from routing.traced import with_traces
from routing.wire.extent import BATCHES_AT_ONCE, EXTENT_MAX, extent_of

UNKEPT_BYTES_MAX = 16 << 20
"""Bytes of events, as they are in memory (Law 2)."""


class Journal:
    """The store's other side in a broker. ``emit`` takes effects."""

    def __init__(
        self,
        context: BrokerContext,
        agreed: Agreed,
        deduplicator: Deduplicator,
        emit: Callable[[Store], object],
    ) -> None:
        self._context = context
        self._traces = context.overlay.traces
        self._agreed = agreed
        self._detection = context.detection
        self._deduplicator = deduplicator
        self._emit = emit
        self.problem: str | None = None
        """Why the store takes nothing more; None while it does."""
        self._number = self._kept = 0
        """The last Store that was asked for, and the last that the store has kept."""
        self._unkept: deque[tuple[int, int]] = deque()
        """Numbers of those between, with how many bytes of events they have."""
        self._unkept_bytes = 0
        self._actions: list[Callable[[], object]] = []
        """To be done once all that this input changes is kept."""
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()
        """Actions that wait for a Store of that number."""
        self._is_new = True
        self._new: list[Sequence[EventBatch]] = []
        self._new_bytes = 0
        self._touched: dict[str, Source] = {}
        self._catalog = CatalogRecords({})
        self._told_catalog = agreed.catalog
        self._told_committed = context.detection.committed
        self._told_users = context.service.users.kept
        self._position = self._trimmed = 0
        self._ends: deque[tuple[int, int]] = deque()
        """Positions of the log that are needed, and how many events the replay buffer had taken by
        the end of each."""
        self._changed: dict[str, DurableSink] = {}
        self._gone: list[Put | Delete | Clear] = []
        """Changes of records of durable sinks that were removed, or come from another broker: these
        are before another of the same name is kept, which may come in the same turn."""
        self.durables = Durables(context.sinks, self)
        """The durable sinks, which there are with a store alone."""
        self._homes = SinkHomes(context.overlay)
        self._told_names: tuple[str, ...] = ()
        """Their names as other brokers were told them."""
        self._following: RecordsAfter = lambda kind, after: ()
        """Reads what the store has of their queues."""
        self._ids: deque[tuple[int, int]] = deque()
        """Numbers of records of ids, with how many these have."""
        self._kept_ids = 0

    # --- what was kept ---

    def recall(self, stored: StoreContents) -> None:
        """The store has these, which the broker's tables were filled from."""
        self._is_new = not stored.records
        self._position = stored.position
        self._following = stored.following
        self._homes.recall(homes_in(stored.records), self.now)
        self._catalog = CatalogRecords(stored.records)
        self._told_catalog = self._agreed.catalog
        self._told_committed = self._detection.committed
        self._told_users = self._context.service.users.kept

    def recall_entry(self, position: int) -> None:
        """Events of this position have been taken in again."""
        self._trimmed = self._trimmed or position - 1
        self._ends.append((position, self._detection.replay_buffer.place))

    def recall_ids(self, number: int, count: int) -> None:
        """The store has so many ids in the record of this number."""
        self._ids.append((number, count))
        self._kept_ids += count

    # --- what changes ---

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Sources have published these events."""
        self._new.append(batches)
        self._new_bytes += extent_of(batches)

    def touch(self, source: Source) -> None:
        """A source has published, promised, come or gone."""
        if not source.home:
            self._touched[source.name] = source

    # --- the keeper of durable sinks (routing.delivery.durable) ---

    @property
    def now(self) -> float:
        """The seconds of the broker's clock."""
        return self._context.moment.now

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """The durable sinks of other brokers: their brokers, by name."""
        return self._homes.by_name(self.now)

    @property
    def brokers(self) -> Collection[str]:
        """The other brokers within reach."""
        return self._context.overlay.topology.part.nodes - {self._context.name}

    def note(self, sink: DurableSink) -> None:
        """A durable sink has something to be kept."""
        self._changed[sink.name] = sink
        self._deduplicator.watch()

    def begin(self, sink: DurableSink) -> None:
        """A durable sink is made. One that was on its way here when the broker was killed has left
        records of its queue.
        """
        self._gone.append(Clear(queue_kind(sink.name)))

    def forget(self, sink: DurableSink) -> None:
        """A durable sink is no more."""
        self._changed.pop(sink.name, None)
        self._gone += (Delete(DURABLE, sink.name), Clear(queue_kind(sink.name)))

    def change(self, *changes: Put | Delete | Clear) -> None:
        """Have these changes of durable sinks' records kept, before what is new of the sinks."""
        self._gone += changes

    def records_after(self, name: str, key: str) -> Sequence[tuple[str, bytes]]:
        """The next few records of a durable sink's queue behind a key, as bytes."""
        return self._following(queue_kind(name), key)

    def read(self, name: str, after: int) -> Sequence[Numbered]:
        """The next few records of a durable sink's queue, as the store has them."""
        found = self._following(queue_kind(name), number_key(after) if after else "")
        queued = [queued_in(*one) for one in found]
        for one in queued:
            self._traces.take(one.delivery.batches, one.delivery.traces)
        return queued

    def when_kept(self, action: Callable[[], object]) -> None:
        """Do this once all that has changed by the end of this input is kept."""
        self._actions.append(action)

    @property
    def is_awaiting(self) -> bool:
        """Whether the store, which takes what it is given, has yet to keep some of it."""
        return bool(self._unkept) and self.problem is None

    # --- what is asked for ---

    def flush(self) -> None:
        """Ask the store for all that has changed (Law 1)."""
        for sink in self.durables:
            if sink.has_old:
                self._context.sinks.touch(sink)
        if (names := tuple(self.durables.names)) != self._told_names:
            self._told_names = names
            self._context.overlay.say_durables(names, self.now)
        changes = tuple(self._changes())
        if changes:
            self._number += 1
            self._unkept.append((self._number, self._new_bytes))
            self._unkept_bytes += self._new_bytes
            self._new_bytes = 0
            self._emit(Store(self._number, changes))
        actions, self._actions = self._actions, []
        for action in actions:
            if self._number > self._kept:
                self._waiting.append((self._number, action))
            else:
                action()

    def _changes(self) -> Iterator[StoreChange]:
        if self._is_new:
            self._is_new = False
            yield broker_record(self._context.name)
        if self._new:
            yield from self._appended()
        if self._touched:
            touched, self._touched = self._touched, {}
            schemas = self._context.advertisements.schemas
            for source in touched.values():
                yield source_record(source, schemas)
        yield from self._homes.take_changes(self.now)
        if (users := self._context.service.users.kept) != self._told_users:
            self._told_users = users
            yield users_record(users)
        for name, stay in self._context.accounts.take_changes():
            yield stay_record(name, stay)
        if self._agreed.catalog is not self._told_catalog:
            self._told_catalog = self._agreed.catalog
            yield from self._catalog.follow(self._told_catalog)
        yield from self._states()
        if self._detection.committed is not self._told_committed:
            yield from self._committed()
        yield from self._gone
        self._gone.clear()
        if self._changed:
            changed, self._changed = self._changed, {}
            for sink in changed.values():
                yield from self._durable(sink)
        if self._deduplicator.changed is not None:
            yield from self._came()

    def _appended(self) -> Iterator[Append]:
        new, self._new = self._new, []
        parts = packed_parts(new) if len(new) > 1 else new  # what came as a message fits into one
        for part in parts:
            for batches in _by_source(part):
                self._position += 1
                traces = self._traces.of(batches) if self._traces.has_any else ()
                yield Append(self._position, batches, traces)
        self._ends.append((self._position, self._detection.replay_buffer.place))

    def _states(self) -> Iterator[StoreChange]:
        """The states of rules, which are kept before what they stand for is let go (Law 3)."""
        added, gone = self._detection.states.take_changes()
        yield from map(state_record, added)
        yield from (Delete(STATE, number_key(number)) for number in gone)

    def _committed(self) -> Iterator[StoreChange]:
        self._told_committed = self._detection.committed
        yield times_record("rules", self._told_committed)
        first = self._detection.replay_buffer.first
        while self._ends and self._ends[0][1] <= first:
            self._trimmed = self._ends.popleft()[0]
        known = ((one.schema.name, one.front) for one in self._context.advertisements)
        yield times_record("types", {name: front for name, front in known if front is not None})
        yield Trim(self._trimmed + 1)
        for sink in self.durables:  # rules that find nothing have come further, too
            self._changed[sink.name] = sink

    def _durable(self, sink: DurableSink) -> Iterator[StoreChange]:
        if sink.last > sink.kept:
            self.when_kept(partial(self._release, sink, sink.last))
        at = round(self.now * MICROSECONDS)
        for delivery_batches in _alike(sink.take_new()):
            joined, first = join(delivery_batches), delivery_batches[0].first
            delivery, last = joined.delivery, delivery_batches[-1].last
            if self._traces.has_any:
                delivery = with_traces(delivery, self._traces)
            delivery_batch = Numbered(delivery, joined.events, first, last, at=at)
            record = queue_record(sink.name, delivery_batch)
            yield record
            sink.keep(structs.replace(delivery_batch, size=len(record.value)))
        for first in sink.take_done():
            yield Delete(queue_kind(sink.name), number_key(first))
        yield durable_record(sink, self.complete_to(sink))

    def complete_to(self, sink: DurableSink) -> int:
        """Up to which time all composite events of a durable sink are queued."""
        return sink.complete_to(self._detection.complete_to, self._reached)

    def _reached(self, deployed: Deployed) -> int:
        return self._detection.reached(deployed.rule.name)

    def _release(self, sink: DurableSink, number: int) -> None:
        """Let what is kept leave (routing.delivery.durable)."""
        if sink.name in self.durables:
            sink.kept = number
            self._context.sinks.touch(sink)

    def _came(self) -> Iterator[StoreChange]:
        """Say which events have come for durable sinks (Law 4)."""
        for name, number in self._deduplicator.take_numbers().items():
            yield came_record(name, number)
        ids = self._deduplicator.take_ids()
        if not ids:
            return
        count = sum(len(texts) for _, texts in ids)
        number = self._ids[-1][0] + 1 if self._ids else 0
        self.recall_ids(number, count)
        yield ids_record(number, ids)
        while self._kept_ids - self._ids[0][1] > self._deduplicator.ids_max:
            old, gone = self._ids.popleft()
            self._kept_ids -= gone
            yield Delete(IDS, number_key(old))

    # --- what is kept ---

    def stored(self, number: int) -> None:
        """The store has kept all up to this number; what has waited for it is done."""
        self._kept = number
        while self._unkept and self._unkept[0][0] <= number:
            self._unkept_bytes -= self._unkept.popleft()[1]
        while self._waiting and self._waiting[0][0] <= number:
            self._waiting.popleft()[1]()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its state, as plain data."""
        return {"store_problem": self.problem, "store_behind_bytes": self._unkept_bytes}

    @property
    def is_behind(self) -> bool:
        """Whether sources are to wait for the store (Law 2)."""
        return self._unkept_bytes > UNKEPT_BYTES_MAX or self.problem is not None

    def note_problem(self, problem: str | None) -> None:
        """The reason for which the store takes nothing more; None: it takes what comes."""
        before, self.problem = self.problem, problem
        log = self._context.outlet.log
        if before is None and problem is not None:
            log("error", "the store takes nothing more", reason=problem)
        elif before is not None and problem is None:
            log("info", "the store takes what waits")
            self._context.service.settle()

    def check_asked(self, client: str, request: Asking) -> None:
        """Refusal of what adds to what is kept, while the store takes nothing more. A source that
        is back adds nothing.
        """
        if isinstance(request, Advertise):
            source = self._context.sources.find(client)
            if source is not None and all(one.name in source.floors for one in request.types):
                return
        if isinstance(request, Advertise | Deploy | Remove):
            self.check_room()

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


def _alike(delivery_batches: Sequence[Numbered]) -> Iterator[Sequence[Numbered]]:
    """Runs of delivery batches that one record holds: as long as a message, late ones apart."""
    run: list[Numbered] = []
    batches = size = 0
    for delivery_batch in delivery_batches:
        own = extent_of(delivery_batch.batches)
        is_full = size + own > EXTENT_MAX or batches + len(delivery_batch.batches) > BATCHES_AT_ONCE
        if run and (delivery_batch.late != run[0].late or is_full):
            yield run
            run, batches, size = [], 0, 0
        run.append(delivery_batch)
        batches += len(delivery_batch.batches)
        size += own
    if run:
        yield run
