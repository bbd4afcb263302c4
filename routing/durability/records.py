"""Records of a broker in its store, as bytes and back: sources, what is known, and what is let go.

All else that a broker needs after a restart is found from these and from the log, by the replay
that every other plan uses. b1 is killed: its store has source s1 with its last number, 7, and its
promise, the rule fire, and the Temps that fire may still need. Started again, b1 is a broker that
was out of reach for a while and whose sources have lost their links.

=============  =================  ==========================================================
kind           key                value
=============  =================  ==========================================================
``broker``     "name"             the broker's name: a store belongs to one
``broker``     "users"            rights of users by name; names of rules that are to go, by id
``source``     its name           SourceRecord
``stay``       a source's name    its account, a Stay
``type``       its name           flat schema
``rule``       its id             place among the rules, RuleFacts
``catalog``    "rest"             versions of ended rules, homes, closed brokers
``committed``  "rules", "types"   times up to which nobody needs anything; greatest event times
``durable``    its name           DurableRecord
``queue/NAME`` a number           events from that number on, as the frames of a Delivery
``came``       a source's name    the number of its last event that came for durable sinks
``ids``        a number           sources with ids of events that came for durable sinks
``state``      a number           a part of the state of a rule, as the frames of a RuleState
=============  =================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from matcher.model import EventType
from routing.delivery.durable import NOBODY, DurableSink, Handed, Numbered, QueueBounds
from routing.durability.state_table import StatePiece
from routing.messages import Catalog, Delivery, Rights, RuleFacts, RuleState, Stay
from routing.number_set import NumberRun
from routing.serving.sources import Source, SourceState
from routing.serving.users import KeptUsers
from routing.storage import Delete, Put, Records
from routing.wire import decode, decode_kept, encode
from routing.wire.schemas import event_type_of, flat_schema

BROKER, SOURCE, TYPE, RULE = "broker", "source", "type", "rule"
CATALOG, COMMITTED = "catalog", "committed"
DURABLE, CAME, IDS, STATE, STAY = "durable", "came", "ids", "state", "stay"
KINDS = (BROKER, SOURCE, STAY, TYPE, RULE, CATALOG, COMMITTED, DURABLE, CAME, IDS, STATE)
"""Kinds that are read at a start; queues are read as they are needed."""

Flat = tuple[str, ...]
TimesByName = Mapping[str, int]
_Value = TypeVar("_Value")
_pack = msgspec.msgpack.Encoder().encode


class SourceRecord(Struct, array_like=True, frozen=True):
    """One source. ``types``: each that it publishes, with the time before which it counts for
    nothing. ``closed_by``: why it has closed; "" while it is open.
    """

    last_sequence: int
    promise: int
    closed_by: str
    replays: bool
    types: tuple[tuple[Flat, int], ...] = ()


class DurableRecord(Struct, array_like=True, frozen=True):
    """A durable sink. ``last`` and ``acknowledged``: numbers of events; ``complete``: the time up
    to which all composite events are queued; ``size``: the bytes of its queue's records;
    ``beyond``: runs of numbers above ``acknowledged`` that are not to come again; ``heir`` and
    ``origin``: as in DurableSink; ``dropped`` and ``untold``: as in Sink.
    """

    bounds: QueueBounds
    filters: tuple[tuple[int, str], ...]
    filters_made: int
    last: int
    acknowledged: int
    complete: int
    size: int
    rights: Rights
    beyond: tuple[NumberRun, ...] = ()
    heir: Handed = NOBODY
    origin: Handed = NOBODY
    dropped: int = 0
    untold: int = 0


class _QueueRecord(Struct, array_like=True, frozen=True):
    """Events of a queue that follow one another: when they were queued, the last number, frames."""

    at: int
    last: int
    frames: tuple[bytes, ...]


class _Rest(Struct, array_like=True, frozen=True):
    """The catalog but for types and rules."""

    ended: tuple[tuple[str, int], ...]
    homes: tuple[tuple[str, tuple[str, ...]], ...]
    closed: tuple[str, ...]


_unpack_queue = msgspec.msgpack.Decoder(_QueueRecord).decode


def source_record(source: Source, schemas: Mapping[str, EventType]) -> Put:
    """The record of a source whose types have these schemas."""
    closed_by = (source.closed_by or "") if source.standing is SourceState.CLOSED else ""
    types = ((tuple(flat_schema(schemas[name])), at) for name, at in source.floors.items())
    said = source.last_sequence, source.promise, closed_by, source.replays
    return Put(SOURCE, source.name, _pack(SourceRecord(*said, tuple(types))))


def stay_record(name: str, stay: Stay | None) -> Put | Delete:
    """The record of the account of a source; None for one that is forgotten."""
    return Delete(STAY, name) if stay is None else Put(STAY, name, _pack(stay))


def broker_record(name: str) -> Put:
    """The record that says whose store it is."""
    return Put(BROKER, "name", name.encode())


def homes_record(homes: Mapping[str, str]) -> Put:
    """The record of the brokers that have durable sinks, by the names of these."""
    return Put(BROKER, "homes", _pack(dict(homes)))


def homes_in(records: Records) -> Mapping[str, str]:
    """The brokers that had durable sinks, by the names of these; nothing in an older store."""
    homes = records.get(BROKER, {}).get("homes")
    return {} if homes is None else msgspec.msgpack.decode(homes, type=dict[str, str])


def users_record(kept: KeptUsers) -> Put:
    """The record of the rights of users, and of the rules that are to go."""
    return Put(BROKER, "users", _pack(kept))


def users_in(records: Records) -> KeptUsers:
    """These; nothing in an older store."""
    users = records.get(BROKER, {}).get("users")
    return ({}, {}) if users is None else msgspec.msgpack.decode(users, type=KeptUsers)


def times_record(key: str, times: TimesByName) -> Put:
    """A record of times by name."""
    return Put(COMMITTED, key, _pack(dict(times)))


def durable_record(sink: DurableSink, complete: int) -> Put:
    """The record of a durable sink."""
    record = DurableRecord(
        sink.bounds,
        tuple(sink.filters),
        sink.filters_made,
        sink.last,
        sink.acknowledged,
        complete,
        sink.stored_bytes,
        sink.rights,
        tuple(sink.beyond),
        sink.heir,
        sink.origin,
        sink.dropped,
        sink.untold,
    )
    return Put(DURABLE, sink.name, _pack(record))


def queue_record(name: str, delivery_batch: Numbered) -> Put:
    """The record of events that a durable sink was given together."""
    record = _QueueRecord(
        delivery_batch.at, delivery_batch.last, tuple(encode(delivery_batch.delivery))
    )
    return Put(queue_kind(name), number_key(delivery_batch.first), _pack(record))


def queue_kind(name: str) -> str:
    """The kind of the records of a durable sink's queue."""
    return f"queue/{name}"


def number_key(number: int) -> str:
    """The key of what is kept by a number: as texts they rise as these do."""
    return f"{number:020d}"


def came_record(source: str, number: int) -> Put:
    """The record of the last event of a source that came."""
    return Put(CAME, source, _pack(number))


def ids_record(number: int, ids: Sequence[tuple[str, Sequence[str]]]) -> Put:
    """The record of ids that came, by source."""
    return Put(IDS, number_key(number), _pack(ids))


def state_record(piece: StatePiece) -> Put:
    """The record of a part of a rule's state."""
    return Put(STATE, number_key(piece.number), _pack(encode(piece.state)))


class CatalogRecords:
    """The catalog as the store has it, and the changes that make it another one."""

    def __init__(self, records: Records) -> None:
        self._catalog = catalog_in(records)
        self._places = {name: place for name, (place, _) in _rules_in(records).items()}
        """By id, the numbers that say how rules follow one another."""
        self._last_place = max(self._places.values(), default=0)

    def follow(self, catalog: Catalog) -> Iterator[Put | Delete]:
        """The store is to have this catalog."""
        before, self._catalog = self._catalog, catalog
        if catalog.types != before.types:
            yield from _changes(TYPE, _types(before), _types(catalog))
        if catalog.rules != before.rules:
            old = self._placed(before)
            self._place([facts.id for facts in catalog.rules])
            yield from _changes(RULE, old, self._placed(catalog))
        if _rest(catalog) != _rest(before):
            yield Put(CATALOG, "rest", _pack(_rest(catalog)))

    def _placed(self, catalog: Catalog) -> Mapping[str, tuple[int, RuleFacts]]:
        return {facts.id: (self._places[facts.id], facts) for facts in catalog.rules}

    def _place(self, rules: Sequence[str]) -> None:
        """Number rules: as before if those known stand in that order, with the new ones behind."""
        known = [self._places[one] for one in rules if one in self._places]
        new = rules[len(known) :]
        is_kept = known == sorted(known) and self._places.keys().isdisjoint(new)
        before, self._places = self._places if is_kept else {}, {}
        for one in rules:
            if one not in before:
                self._last_place += 1
            self._places[one] = before.get(one, self._last_place)


def _types(catalog: Catalog) -> Mapping[str, list[str]]:
    return {one.name: flat_schema(one) for one in catalog.types}


def _rest(catalog: Catalog) -> _Rest:
    return _Rest(catalog.ended, catalog.homes, catalog.closed)


def _changes(
    kind: str, before: Mapping[str, _Value], after: Mapping[str, _Value]
) -> Iterator[Put | Delete]:
    for key, value in after.items():
        if before.get(key) != value:
            yield Put(kind, key, _pack(value))
    for key in before:
        if key not in after:
            yield Delete(kind, key)


# --- and back --------------------------------------------------------------------------------


def sources_in(records: Records) -> Mapping[str, SourceRecord]:
    """The sources, by name."""
    return _decoded(records, SOURCE, SourceRecord)


def stays_in(records: Records) -> Mapping[str, Stay]:
    """The accounts of sources, by name."""
    return _decoded(records, STAY, Stay)


def catalog_in(records: Records) -> Catalog:
    """The catalog."""
    types = _decoded(records, TYPE, Flat)
    rules = sorted(_rules_in(records).values(), key=lambda one: one[0])
    rest = _decoded(records, CATALOG, _Rest).get("rest", _Rest((), (), ()))
    return Catalog(
        tuple(event_type_of(types[name]) for name in sorted(types)),
        tuple(facts for _, facts in rules),
        rest.ended,
        rest.homes,
        rest.closed,
    )


def _rules_in(records: Records) -> Mapping[str, tuple[int, RuleFacts]]:
    return _decoded(records, RULE, tuple[int, RuleFacts])


def times_in(records: Records, key: str) -> TimesByName:
    """TimesByName by name."""
    return _decoded(records, COMMITTED, dict[str, int]).get(key, {})


def durables_in(records: Records) -> Mapping[str, DurableRecord]:
    """The durable sinks, by name."""
    return _decoded(records, DURABLE, DurableRecord)


def last_in(value: bytes) -> int:
    """The last number of a record of a queue."""
    return _unpack_queue(value).last


def queued_in(key: str, value: bytes) -> Numbered:
    """The events of a record of a queue."""
    record = _unpack_queue(value)
    delivery = decode(record.frames)
    assert isinstance(delivery, Delivery)
    said = len(delivery), int(key), record.last
    return Numbered(delivery, *said, at=record.at, size=len(value))


def came_in(records: Records) -> Mapping[str, int]:
    """The numbers of the last events that came, by source."""
    return _decoded(records, CAME, int)


def ids_in(records: Records) -> Sequence[tuple[int, Sequence[tuple[str, Sequence[str]]]]]:
    """The ids that came, each with the number of its record, in order."""
    found = _decoded(records, IDS, list[tuple[str, list[str]]])
    return [(int(key), found[key]) for key in sorted(found)]


def states_in(records: Records) -> Iterator[tuple[int, RuleState]]:
    """The parts of rules' states, each with its number, in order."""
    found = _decoded(records, STATE, list[bytes])
    for key in sorted(found):
        state = decode_kept(found[key])
        assert isinstance(state, RuleState)
        yield int(key), state


def owner_of(records: Records) -> str | None:
    """The broker whose store it is; None for a new one."""
    name = records.get(BROKER, {}).get("name")
    return None if name is None else name.decode()


def _decoded(records: Records, kind: str, of: type[_Value]) -> dict[str, _Value]:
    decode = msgspec.msgpack.Decoder(of).decode
    return {key: decode(value) for key, value in records.get(kind, {}).items()}
