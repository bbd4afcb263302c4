"""The messages between clients and brokers as bytes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from routing.errors import WireError
from routing.messages import (
    ENTRIES_MAX,
    PLAIN_KINDS,
    Acks,
    Advertise,
    Delivery,
    Number,
    Publish,
    Request,
    Sequence as SequenceNumber,
    Time,
    Traces,
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


class _Advertised(msgspec.Struct, array_like=True, frozen=True):
    request: Request
    types: Annotated[tuple[tuple[str, ...], ...], msgspec.Meta(max_length=ENTRIES_MAX)]


class _Published(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    promise: Time | None
    acks: Acks
    traces: Traces = ()


class _Delivered(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    subscriptions: tuple[tuple[Number, ...], ...]
    ordered: bool
    dropped: SequenceNumber
    late: bool
    number: SequenceNumber
    again: bool
    traces: Traces = ()


ADVERTISED_MAX = 1 << 17
"""Names and kinds of an Advertise: to check so many takes a tenth of a second."""
_unpack_advertised = msgspec.msgpack.Decoder(_Advertised).decode
_unpack_published = msgspec.msgpack.Decoder(_Published).decode
_unpack_delivered = msgspec.msgpack.Decoder(_Delivered).decode
_ADVERTISE, _PUBLISH, _DELIVERY = 2, 4, 20
_PUBLISH_PREFIX, _DELIVERY_PREFIX = prefix(_PUBLISH), prefix(_DELIVERY)


def _encode_advertise(message: Advertise) -> Frames:
    plain = [message.request, [flat_schema(event_type) for event_type in message.types]]
    return [prefix(_ADVERTISE) + pack(plain)]


def _decode_advertise(data: Buffer, body: Buffer | None) -> Advertise:
    no_body(body)
    plain = _unpack_advertised(data)
    if (strings := sum(map(len, plain.types))) > ADVERTISED_MAX:
        raise WireError(
            f"{strings} names and kinds in a message; expected at most {ADVERTISED_MAX}"
        )
    return Advertise(plain.request, tuple(map(event_type_of, plain.types)))


def _encode_publish(message: Publish) -> Frames:
    headers, body = encode_batches(message.batches)
    plain = headers, message.promise, message.acks
    return [_PUBLISH_PREFIX + pack((*plain, message.traces) if message.traces else plain), body]


def _decode_publish(data: Buffer, body: Buffer | None) -> Publish:
    plain = _unpack_published(data)
    batches, _ = decode_batches(plain.batches, body, traces=plain.traces)
    return Publish(batches, plain.promise, plain.acks, plain.traces)


def _encode_delivery(message: Delivery) -> Frames:
    """Encode once a Delivery that several are given, one after another."""
    global _last
    if _last is not None and _last[0] is message:
        return [*_last[1]]
    order = message.order
    headers, body = encode_batches(message.batches, order)
    plain = (
        headers,
        message.subscriptions,
        order is not None,
        message.dropped,
        message.late,
        message.number,
        message.again,
    )
    frames = _DELIVERY_PREFIX + pack((*plain, message.traces) if message.traces else plain), body
    _last = message, frames
    return [*frames]


_last: tuple[Delivery, tuple[bytes, bytes]] | None = None
"""The last delivery, and its frames."""


def _decode_delivery(data: Buffer, body: Buffer | None) -> Delivery:
    plain = _unpack_delivered(data)
    batches, order = decode_batches(plain.batches, body, plain.ordered, plain.traces)
    if len(plain.subscriptions) != len(batches):
        raise WireError(f"subscriptions for {len(plain.subscriptions)} of {len(batches)} batches")
    last = plain.number, plain.again, plain.traces
    return Delivery(batches, plain.subscriptions, order, plain.dropped, plain.late, *last)


CLIENT_CODECS: tuple[Codec, ...] = (
    Codec(_ADVERTISE, Advertise, _encode_advertise, _decode_advertise),
    Codec(_PUBLISH, Publish, _encode_publish, _decode_publish),
    Codec(_DELIVERY, Delivery, _encode_delivery, _decode_delivery),
    *(plain_codec(kind, message) for kind, message in PLAIN_KINDS.items()),
)
"""Codecs of all kinds below 48."""
