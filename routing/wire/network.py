"""The messages between brokers as bytes, but for those that hold another message."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Annotated, cast

import msgspec

from routing import messages
from routing.errors import WireError
from routing.messages import (
    ENTRIES_MAX,
    Catalog,
    CatalogDelta,
    Flow,
    Forward,
    Name,
    Report,
    RuleState,
    Sequence as SequenceNumber,
    Shared,
    Time,
)
from routing.wire.codec import (
    BATCHES_MAX,
    Buffer,
    Codec,
    Frames,
    no_body,
    pack,
    plain_codec,
    prefix,
)
from routing.wire.columns import decode_batches, encode_batches
from routing.wire.headers import BatchHeader
from routing.wire.schemas import event_type_of, flat_schema


class _Catalog(msgspec.Struct, array_like=True, frozen=True):
    types: Annotated[tuple[tuple[str, ...], ...], msgspec.Meta(max_length=2 * messages.TYPES_MAX)]
    rules: tuple[messages.RuleFacts, ...]
    ended: tuple[tuple[Name, SequenceNumber], ...]
    homes: Annotated[
        tuple[tuple[Name, tuple[Name, ...]], ...], msgspec.Meta(max_length=ENTRIES_MAX)
    ]
    closed: Annotated[tuple[Name, ...], msgspec.Meta(max_length=ENTRIES_MAX)]


class _Report(msgspec.Struct, array_like=True, frozen=True):
    root: Name
    epoch: SequenceNumber
    number: SequenceNumber
    nodes: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    fronts: tuple[tuple[Name, Time], ...]
    marks: tuple[tuple[Name, Time], ...]
    rules: tuple[tuple[Name, Time], ...]
    resume_from: tuple[tuple[Name, Time], ...]
    sources: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    known: Annotated[tuple[_Catalog, ...], msgspec.Meta(max_length=ENTRIES_MAX)]
    wants: tuple[tuple[Name, tuple[messages.Text, ...]], ...]
    front: Time
    ended: tuple[tuple[Name, Time], ...] = ()
    promises: tuple[tuple[Name, Time], ...] = ()
    committed: tuple[tuple[Name, Time], ...] = ()
    counts: tuple[tuple[Name, SequenceNumber, Time], ...] = ()
    found: tuple[tuple[Name, SequenceNumber, SequenceNumber], ...] = ()
    logs: tuple[tuple[Name, Time], ...] = ()
    stays: tuple[messages.Stay, ...] = ()
    lost: tuple[messages.LostSource, ...] = ()


class _Flow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    ordered: bool
    marks: tuple[tuple[Name, Time], ...]
    traces: messages.Traces = ()


class _Forwarded(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    marks: tuple[tuple[Name, Time], ...]
    fresh: messages.Number
    answers: tuple[tuple[Name, SequenceNumber, Time], ...]
    came: bytes | None
    traces: messages.Traces = ()


class _Shared(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    parts: Annotated[tuple[messages.Part, ...], msgspec.Meta(max_length=ENTRIES_MAX)]
    pulled: tuple[
        tuple[messages.Number, tuple[tuple[Name, SequenceNumber, Time], ...], bytes | None], ...
    ]
    traces: messages.Traces = ()


class _RuleState(msgspec.Struct, array_like=True, frozen=True, gc=False):
    rule: Name
    since: Time
    mark: Time
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]


_CATALOG, _FLOW, _REPORT, _FORWARD, _SHARED, _STATE = 55, 57, 61, 63, 70, 78
_FLOW_PREFIX, _FORWARD_PREFIX, _SHARED_PREFIX = prefix(_FLOW), prefix(_FORWARD), prefix(_SHARED)
_unpack_catalog = msgspec.msgpack.Decoder(_Catalog).decode
_unpack_report = msgspec.msgpack.Decoder(_Report).decode
_unpack_flow = msgspec.msgpack.Decoder(_Flow).decode
_unpack_forwarded = msgspec.msgpack.Decoder(_Forwarded).decode
_unpack_shared = msgspec.msgpack.Decoder(_Shared).decode
_unpack_state = msgspec.msgpack.Decoder(_RuleState).decode


def _encode_catalog(message: Catalog) -> Frames:
    return [_catalog_bytes(message)]


def _decode_catalog(data: Buffer, body: Buffer | None) -> Catalog:
    no_body(body)
    return _catalog_from(bytes(data))


# What is known is told on as it is, to all, whenever anything of it changes.
@lru_cache(maxsize=16)
def _catalog_bytes(message: Catalog) -> bytes:
    return prefix(_CATALOG) + pack(_flat_catalog(message))


@lru_cache(maxsize=16)
def _catalog_from(data: bytes) -> Catalog:
    return _catalog_of(_unpack_catalog(data))


def _flat_catalog(catalog: Catalog) -> _Catalog:
    types = tuple(tuple(flat_schema(event_type)) for event_type in catalog.types)
    return _Catalog(types, catalog.rules, catalog.ended, catalog.homes, catalog.closed)


def _catalog_of(plain: _Catalog) -> Catalog:
    types = tuple(map(event_type_of, plain.types))
    return Catalog(types, plain.rules, plain.ended, plain.homes, plain.closed)


_CATALOG_DELTA = plain_codec(72, CatalogDelta)


def _decode_delta(data: Buffer, body: Buffer | None) -> CatalogDelta:
    no_body(body)
    return _delta_from(bytes(data))


@lru_cache(maxsize=16)
def _delta_from(data: bytes) -> CatalogDelta:
    return cast(CatalogDelta, _CATALOG_DELTA.decode(data, None))


def _encode_report(message: Report) -> Frames:
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    plain = _Report(**{**values, "known": tuple(map(_flat_catalog, message.known))})
    return [prefix(_REPORT) + pack(plain)]


def _decode_report(data: Buffer, body: Buffer | None) -> Report:
    no_body(body)
    plain = _unpack_report(data)
    values = msgspec.structs.asdict(plain)
    return Report(**{**values, "known": tuple(map(_catalog_of, plain.known))})


def _encode_flow(message: Flow) -> Frames:
    headers, body = encode_batches(message.batches, message.order)
    plain = headers, message.order is not None, message.marks
    first = _FLOW_PREFIX + pack((*plain, message.traces) if message.traces else plain)
    return [first, body] if headers else [first]


def _decode_flow(data: Buffer, body: Buffer | None) -> Flow:
    plain = _unpack_flow(data)
    if not plain.batches:
        no_body(body)
        return Flow((), None, plain.marks)
    batches, order = decode_batches(plain.batches, body, plain.ordered, plain.traces)
    return Flow(batches, order, plain.marks, plain.traces)


def _encode_forward(message: Forward) -> Frames:
    headers, body = encode_batches(message.batches)
    plain = headers, message.marks, message.fresh, message.answers, message.came
    first = _FORWARD_PREFIX + pack((*plain, message.traces) if message.traces else plain)
    return [first, body] if headers else [first]


def _decode_forward(data: Buffer, body: Buffer | None) -> Forward:
    plain = _unpack_forwarded(data)
    if not plain.batches:
        no_body(body)
        return Forward((), plain.marks, 0, plain.answers)
    if plain.fresh > len(plain.batches):
        raise WireError(f"{plain.fresh} fresh batches of {len(plain.batches)}")
    batches, _ = decode_batches(plain.batches, body, traces=plain.traces)
    if plain.came is not None and len(plain.came) != 8 * sum(map(len, batches)):
        raise WireError(f"{len(plain.came)} bytes of times for {sum(map(len, batches))} events")
    return Forward(batches, plain.marks, plain.fresh, plain.answers, plain.came, plain.traces)


def _encode_shared(message: Shared) -> Frames:
    headers, body = encode_batches(message.batches)
    plain = headers, message.parts, message.pulled
    first = _SHARED_PREFIX + pack((*plain, message.traces) if message.traces else plain)
    return [first, body] if headers else [first]


def _decode_shared(data: Buffer, body: Buffer | None) -> Shared:
    plain = _unpack_shared(data)
    if not plain.batches:
        no_body(body)
        return Shared((), plain.parts, plain.pulled)
    batches, _ = decode_batches(plain.batches, body, traces=plain.traces)
    return Shared(batches, plain.parts, plain.pulled, plain.traces)


def _encode_state(message: RuleState) -> Frames:
    headers, body = encode_batches(message.batches)
    first = prefix(_STATE) + pack((message.rule, message.since, message.mark, headers))
    return [first, body] if headers else [first]


def _decode_state(data: Buffer, body: Buffer | None) -> RuleState:
    plain = _unpack_state(data)
    if not plain.batches:
        no_body(body)
        return RuleState(plain.rule, plain.since, plain.mark)
    batches, _ = decode_batches(plain.batches, body)
    return RuleState(plain.rule, plain.since, plain.mark, batches)


NETWORK_CODECS: tuple[Codec, ...] = (
    Codec(_CATALOG, Catalog, _encode_catalog, _decode_catalog),
    Codec(_CATALOG_DELTA.kind, CatalogDelta, _CATALOG_DELTA.encode, _decode_delta),
    Codec(_FLOW, Flow, _encode_flow, _decode_flow),
    Codec(_REPORT, Report, _encode_report, _decode_report),
    Codec(_FORWARD, Forward, _encode_forward, _decode_forward),
    Codec(_STATE, RuleState, _encode_state, _decode_state),
    Codec(_SHARED, Shared, _encode_shared, _decode_shared),
    *(plain_codec(kind, message) for kind, message in messages.LINK_KINDS.items()),
)
"""Codecs of kinds from 48 on."""
