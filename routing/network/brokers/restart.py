"""Restart of a broker that has a store: from what was kept to a broker that was away.

Law: a broker that comes back with its memory is one that was out of reach and whose sources have
lost their links. Its sources' names, numbers and promises are as they were, its log fills the
replay buffer, and what it knew it tells as any other that joins a tree; the plan that follows has
the log sent and evaluated again from where that is needed (brokers.planner, Law 2), and rules
whose memory no window bounds go on from their states. Smoke and Temp were promised up to 45 s and
40 s when b1 was killed: whoever subscribes now gets fire from 40 s on, found in all the Smokes and
Temps of the five minutes before.
"""

from __future__ import annotations

from collections.abc import Mapping

from matcher.model import EventType
from routing.delivery.deduplicator import Deduplicator
from routing.delivery.durable import DurableSink
from routing.delivery.durables import Durables
from routing.durability.records import (
    DurableRecord,
    SourceRecord,
    came_in,
    catalog_in,
    durables_in,
    ids_in,
    owner_of,
    sources_in,
    states_in,
    stays_in,
    times_in,
    users_in,
)
from routing.messages import Stay
from routing.network.brokers.catalog_sync import CatalogSync
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.journal import Journal
from routing.network.recovery.resume_points import least
from routing.serving.sources import FAR, MOVED, Source, SourceState
from routing.storage import Records, StoreContents
from routing.wire.schemas import event_type_of


def take_over(
    stored: StoreContents,
    context: BrokerContext,
    catalog_sync: CatalogSync,
    deduplicator: Deduplicator,
    journal: Journal,
) -> None:
    """Take what was kept into a broker's tables. ValueError for what another broker has kept."""
    records = stored.records
    owner = owner_of(records)
    if owner not in (None, context.name):
        raise ValueError(f"this is the store of broker {owner!r}, not of {context.name!r}")
    context.service.users.recall(users_in(records))
    context.accounts.recall(stays_in(records).values())
    for name, record in sources_in(records).items():
        _recall_source(context, name, record)
    catalog = catalog_in(records)
    catalog_sync.recall(catalog)
    own = dict(catalog.homes).get(context.name, ())
    context.detection.publishers.follow(own, ())
    context.detection.committed = dict(times_in(records, "rules"))
    for number, state in states_in(records):
        context.detection.states.recall(number, state)
    _recall_log(stored, context, catalog_sync, journal)
    for name, front in times_in(records, "types").items():
        known = context.advertisements.find(name)
        if known is not None:
            known.has_come_to(front)
    journal.recall(stored)
    _recall_durables(records, context, deduplicator, journal)


def _recall_source(context: BrokerContext, name: str, record: SourceRecord) -> None:
    is_known = context.accounts.find(name) is not None  # an older release had no accounts
    has_moved = is_known and not context.accounts.is_at(name, context.name)
    closed_by = record.closed_by or (MOVED if has_moved else None)
    source = Source(
        name,
        SourceState.CLOSED if closed_by else SourceState.LOST,
        last_sequence=record.last_sequence,
        promise=record.promise,
        promised_at=context.moment.now,
        closed_by=closed_by,
        replays=record.replays,
    )
    context.sources.recall(source, context.moment.now)
    for flat, floor in () if has_moved else record.types:
        context.advertisements.advertise(source, event_type_of(flat), floor)
    if source.is_open and not is_known:
        types = tuple(sorted(source.floors))
        context.accounts.learn([Stay(1, context.name, False, name, types)])
    if source.is_open:
        context.detection.publishers.add(source, source.floors)
        source.goes_on = True


def _recall_log(
    stored: StoreContents, context: BrokerContext, catalog_sync: CatalogSync, journal: Journal
) -> None:
    wholes = {one.whole for one in context.sources if one.whole is not None}
    for batches in stored.earlier:
        context.published.recall(batches, wholes)
    for position, batches, traces in stored.entries:
        context.overlay.traces.take(batches, traces)
        catalog_sync.borrow(batch.type for batch in batches)
        context.published.recall(batches, wholes)
        schemas = context.advertisements.schemas
        fitting = [one for one in batches if schemas.get(one.type.name) == one.type]
        context.detection.push(fitting, FAR)
        journal.recall_entry(position)


def _recall_durables(
    records: Records, context: BrokerContext, deduplicator: Deduplicator, journal: Journal
) -> None:
    """The durable sinks with their queues; the rules that they want are due from where these are
    complete.
    """
    schemas = context.advertisements.schemas
    for name, record in durables_in(records).items():
        sink = recalled(journal.durables, name, record, schemas)
        sink.heir, sink.origin = record.heir, record.origin
        deduplicator.watch()
    marks = least([(one.rule.name, sink.floor) for one in sink.rules] for sink in journal.durables)
    context.detection.recall_marks(marks)
    ids = ids_in(records)
    deduplicator.recall(came_in(records), (one for _, some in ids for one in some))
    for number, some in ids:
        journal.recall_ids(number, sum(len(texts) for _, texts in some))


def recalled(
    durables: Durables, name: str, record: DurableRecord, schemas: Mapping[str, EventType]
) -> DurableSink:
    """A durable sink as its record has it."""
    sink = durables.recall(name, record.bounds, record.filters, record.rights, schemas)
    sink.filters_made = record.filters_made
    numbers = record.last, record.acknowledged, record.beyond
    sink.recall(*numbers, record.complete, record.size, record.dropped, record.untold)
    return sink
