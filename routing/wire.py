"""Messages as bytes (docs/protocol.md): what is true on every link, the simulated ones included.

A message is one frame, or two when it bears events; a packet between brokers is one frame before
those of the message in it. The first frame is four bytes, ``R``, ``X``,
the version and the kind, and a msgpack array of the message's fields in their order; the second
holds the columns of all its batches. The version stands where any version must have it, so that
a peer of another one can be told so.

``decode`` raises WireError and nothing else, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, cast, get_args, get_type_hints

import msgspec

from matcher.model import EventType
from routing.columns import (
    BatchHeader,
    decode_batches,
    encode_batches,
)
from routing.errors import VersionMismatch, WireError
from routing.messages import (
    VERSION,
    Acknowledged,
    Acks,
    Advertise,
    Answered,
    Asked,
    Asking,
    Awakening,
    Committed,
    Confirmed,
    CreateTree,
    Credit,
    Delivery,
    Deploy,
    Flow,
    Forward,
    Goodbye,
    Heartbeat,
    Hello,
    Known,
    LinkAck,
    LinkHello,
    LinkStates,
    ListRules,
    Message,
    Name,
    Need,
    Number,
    Opened,
    Packet,
    Part,
    Pause,
    Paused,
    Plan,
    Promise,
    Publish,
    Refused,
    Rejected,
    Remove,
    Request,
    Routed,
    RuleFacts,
    Shared,
    ShowRule,
    StatusRequest,
    Subscribe,
    Survey,
    Surveyed,
    Tag,
    Text,
    Time,
    TreeAck,
    TreeNack,
    Unadvertise,
    Unsubscribe,
    Want,
    Wanted,
    Welcome,
)
from routing.messages import (
    Sequence as SequenceNumber,
)
from routing.schemas import event_type_of, flat_schema

FRAME_MAX = 2**25
"""Bytes in one frame, either of them; a host refuses longer ones unread."""
BATCHES_MAX = 1_024
"""Batches in one message."""
MAGIC = b"RX"
_START = MAGIC + bytes((VERSION,))
_PREFIX = 4

Frames = list[bytes]
Buffer = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of message is written after the four bytes, and read."""

    kind: int
    message: type
    encode: Callable[[Any], Frames]
    decode: Callable[[Buffer, Buffer | None], Any]


_pack = msgspec.msgpack.Encoder().encode


def _plain(kind: int, message: type) -> Codec:
    """The codec of a message without events: its fields are plain data."""
    prefix = _prefix(kind)
    if issubclass(message, msgspec.Struct):
        return _flat(kind, message, prefix)
    names = tuple(field.name for field in fields(cast(Any, message)))
    hints = get_type_hints(message, include_extras=True)
    unpack = msgspec.msgpack.Decoder(
        tuple[tuple(hints[name] for name in names)] if names else tuple[()]  # type: ignore[misc]
    ).decode

    def encode_plain(value: Any) -> Frames:
        return [prefix + _pack([getattr(value, name) for name in names])]

    def decode_plain(data: Buffer, body: Buffer | None) -> Any:
        if body is not None:
            _no_body(body)
        return message(*unpack(data))

    return Codec(kind, message, encode_plain, decode_plain)


def _flat(kind: int, message: type, prefix: bytes) -> Codec:
    """The codec of a message that is written as it is."""
    unpack: Callable[[Buffer], Any] = msgspec.msgpack.Decoder(message).decode

    def encode_flat(value: Any) -> Frames:
        return [prefix + _pack(value)]

    def decode_flat(data: Buffer, body: Buffer | None) -> Any:
        if body is not None:
            _no_body(body)
        return unpack(data)

    return Codec(kind, message, encode_flat, decode_flat)


def _prefix(kind: int) -> bytes:
    return MAGIC + bytes((VERSION, kind))


def _no_body(body: Buffer | None) -> None:
    if body is not None:
        raise WireError("a second frame after a message that has one")


# --- messages that bear schemas or events ----------------------------------------------------


class _Advertised(msgspec.Struct, array_like=True, frozen=True):
    request: Request
    types: Annotated[tuple[tuple[str, ...], ...], msgspec.Meta(max_length=10_000)]


class _Published(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    promise: Time | None
    acks: Acks


class _Delivered(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    subscriptions: tuple[tuple[Number, ...], ...]
    ordered: bool
    dropped: SequenceNumber
    late: bool


_unpack_advertised = msgspec.msgpack.Decoder(_Advertised).decode
_unpack_published = msgspec.msgpack.Decoder(_Published).decode
_unpack_delivered = msgspec.msgpack.Decoder(_Delivered).decode
_ADVERTISE, _PUBLISH, _DELIVERY = 2, 4, 20
_PUBLISH_PREFIX, _DELIVERY_PREFIX = _prefix(_PUBLISH), _prefix(_DELIVERY)


def _encode_advertise(message: Advertise) -> Frames:
    plain = [message.request, [flat_schema(event_type) for event_type in message.types]]
    return [_prefix(_ADVERTISE) + _pack(plain)]


def _decode_advertise(data: Buffer, body: Buffer | None) -> Advertise:
    _no_body(body)
    plain = _unpack_advertised(data)
    types: tuple[EventType, ...] = tuple(event_type_of(flat) for flat in plain.types)
    return Advertise(plain.request, types)


def _encode_publish(message: Publish) -> Frames:
    headers, body = encode_batches(message.batches)
    return [_PUBLISH_PREFIX + _pack(_Published(headers, message.promise, message.acks)), body]


def _decode_publish(data: Buffer, body: Buffer | None) -> Publish:
    plain = _unpack_published(data)
    batches, _ = decode_batches(plain.batches, body)
    return Publish(batches, plain.promise, plain.acks)


def _encode_delivery(message: Delivery) -> Frames:
    order = message.order
    headers, body = encode_batches(message.batches, order)
    plain = _Delivered(
        headers, message.subscriptions, order is not None, message.dropped, message.late
    )
    return [_DELIVERY_PREFIX + _pack(plain), body]


def _decode_delivery(data: Buffer, body: Buffer | None) -> Delivery:
    plain = _unpack_delivered(data)
    batches, order = decode_batches(plain.batches, body, plain.ordered)
    if len(plain.subscriptions) != len(batches):
        raise WireError(f"subscriptions for {len(plain.subscriptions)} of {len(batches)} batches")
    return Delivery(batches, plain.subscriptions, order, plain.dropped, plain.late)


# --- messages along a tree -------------------------------------------------------------------


class _Known(msgspec.Struct, array_like=True, frozen=True):
    types: Annotated[tuple[tuple[str, ...], ...], msgspec.Meta(max_length=10_000)]
    rules: tuple[RuleFacts, ...]
    ended: tuple[tuple[Name, SequenceNumber], ...]
    homes: Annotated[tuple[tuple[Name, tuple[Name, ...]], ...], msgspec.Meta(max_length=10_000)]
    given_up: tuple[Name, ...]


class _Paused(msgspec.Struct, array_like=True, frozen=True):
    root: Name
    epoch: SequenceNumber
    number: SequenceNumber
    nodes: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    fronts: tuple[tuple[Name, Time], ...]
    marks: tuple[tuple[Name, Time], ...]
    rules: tuple[tuple[Name, Time], ...]
    due: tuple[tuple[Name, Time], ...]
    sources: tuple[tuple[Name, Name, tuple[Name, ...]], ...]
    known: Annotated[tuple[_Known, ...], msgspec.Meta(max_length=10_000)]
    wants: tuple[tuple[Name, tuple[Text, ...]], ...]


class _Flow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    ordered: bool
    promises: tuple[tuple[Name, Time], ...]
    marks: tuple[tuple[Name, Time], ...]


class _Nested(msgspec.Struct, array_like=True, frozen=True):
    path: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10_000)]
    number: Request
    client: Name
    message: bytes


class _Forwarded(msgspec.Struct, array_like=True, frozen=True, gc=False):
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    marks: tuple[tuple[Name, Time], ...]
    fresh: Number
    answers: tuple[tuple[Name, SequenceNumber, Time], ...]
    came: bytes | None


class _Shared(msgspec.Struct, array_like=True, frozen=True, gc=False):
    first: SequenceNumber
    batches: Annotated[tuple[BatchHeader, ...], msgspec.Meta(max_length=BATCHES_MAX)]
    parts: Annotated[tuple[Part, ...], msgspec.Meta(max_length=10_000)]
    pulled: tuple[tuple[Number, tuple[tuple[Name, SequenceNumber, Time], ...], bytes | None], ...]


_KNOWN, _FLOW, _ASKED, _ANSWERED, _PAUSED, _FORWARD, _SHARED = 55, 57, 58, 59, 61, 63, 70
_FLOW_PREFIX, _FORWARD_PREFIX = _prefix(_FLOW), _prefix(_FORWARD)
_ASKING = frozenset(get_args(Asking))
_unpack_known = msgspec.msgpack.Decoder(_Known).decode
_unpack_paused = msgspec.msgpack.Decoder(_Paused).decode
_unpack_flow = msgspec.msgpack.Decoder(_Flow).decode
_unpack_forwarded = msgspec.msgpack.Decoder(_Forwarded).decode
_unpack_shared = msgspec.msgpack.Decoder(_Shared).decode
_unpack_nested = msgspec.msgpack.Decoder(_Nested).decode


def _encode_known(message: Known) -> Frames:
    return [_known_bytes(message)]


def _decode_known(data: Buffer, body: Buffer | None) -> Known:
    _no_body(body)
    return _known_from(bytes(data))


# What is known is told on as it is, to all, whenever anything of it changes.
@lru_cache(maxsize=16)
def _known_bytes(message: Known) -> bytes:
    return _prefix(_KNOWN) + _pack(_flat_known(message))


@lru_cache(maxsize=16)
def _known_from(data: bytes) -> Known:
    return _known_of(_unpack_known(data))


def _flat_known(known: Known) -> _Known:
    types = tuple(tuple(flat_schema(event_type)) for event_type in known.types)
    return _Known(types, known.rules, known.ended, known.homes, known.given_up)


def _known_of(plain: _Known) -> Known:
    types = tuple(map(event_type_of, plain.types))
    return Known(types, plain.rules, plain.ended, plain.homes, plain.given_up)


def _encode_paused(message: Paused) -> Frames:
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    plain = _Paused(**{**values, "known": tuple(map(_flat_known, message.known))})
    return [_prefix(_PAUSED) + _pack(plain)]


def _decode_paused(data: Buffer, body: Buffer | None) -> Paused:
    _no_body(body)
    plain = _unpack_paused(data)
    values = msgspec.structs.asdict(plain)
    return Paused(**{**values, "known": tuple(map(_known_of, plain.known))})


def _encode_flow(message: Flow) -> Frames:
    headers, body = encode_batches(message.batches, message.order)
    plain = _Flow(headers, message.order is not None, message.promises, message.marks)
    first = _FLOW_PREFIX + _pack(plain)
    return [first, body] if headers else [first]


def _decode_flow(data: Buffer, body: Buffer | None) -> Flow:
    plain = _unpack_flow(data)
    if not plain.batches:
        _no_body(body)
        return Flow((), None, plain.promises, plain.marks)
    batches, order = decode_batches(plain.batches, body, plain.ordered)
    return Flow(batches, order, plain.promises, plain.marks)


def _encode_forward(message: Forward) -> Frames:
    headers, body = encode_batches(message.batches)
    plain = _Forwarded(headers, message.marks, message.fresh, message.answers, message.came)
    first = _FORWARD_PREFIX + _pack(plain)
    return [first, body] if headers else [first]


def _decode_forward(data: Buffer, body: Buffer | None) -> Forward:
    plain = _unpack_forwarded(data)
    if not plain.batches:
        _no_body(body)
        return Forward((), plain.marks, 0, plain.answers)
    if plain.fresh > len(plain.batches):
        raise WireError(f"{plain.fresh} fresh batches of {len(plain.batches)}")
    batches, _ = decode_batches(plain.batches, body)
    if plain.came is not None and len(plain.came) != 8 * sum(map(len, batches)):
        raise WireError(f"{len(plain.came)} bytes of times for {sum(map(len, batches))} events")
    return Forward(batches, plain.marks, plain.fresh, plain.answers, plain.came)


def _encode_shared(message: Shared) -> Frames:
    headers, body = encode_batches(message.batches)
    first = _prefix(_SHARED) + _pack(_Shared(message.first, headers, message.parts, message.pulled))
    return [first, body] if headers else [first]


def _decode_shared(data: Buffer, body: Buffer | None) -> Shared:
    plain = _unpack_shared(data)
    if not plain.batches:
        _no_body(body)
        return Shared(plain.first, (), plain.parts, plain.pulled)
    batches, _ = decode_batches(plain.batches, body)
    return Shared(plain.first, batches, plain.parts, plain.pulled)


def _encode_asked(message: Asked) -> Frames:
    (request,) = encode(message.request)
    return [_prefix(_ASKED) + _pack(_Nested(message.path, message.number, message.client, request))]


def _decode_asked(data: Buffer, body: Buffer | None) -> Asked:
    plain, request = _decode_nested(data, body)
    if type(request) not in _ASKING:
        raise WireError(f"a request for the root that is {type(request).__name__}")
    return Asked(plain.path, plain.number, plain.client, cast(Any, request))


def _encode_answered(message: Answered) -> Frames:
    (answer,) = encode(message.answer)
    return [_prefix(_ANSWERED) + _pack(_Nested(message.path, message.number, "", answer))]


def _decode_answered(data: Buffer, body: Buffer | None) -> Answered:
    plain, answer = _decode_nested(data, body)
    if not isinstance(answer, Confirmed | Refused):
        raise WireError(f"an answer of the root that is {type(answer).__name__}")
    return Answered(plain.path, plain.number, answer)


def _decode_nested(data: Buffer, body: Buffer | None) -> tuple[_Nested, Message]:
    _no_body(body)
    plain = _unpack_nested(data)
    return plain, decode((plain.message,))


# --- packets ---------------------------------------------------------------------------------

_PACKET = 49
_PACKET_PREFIX = _prefix(_PACKET)
_ROUTED = frozenset(get_args(Routed))
_unpack_packet = msgspec.msgpack.Decoder(tuple[Tag, SequenceNumber, SequenceNumber]).decode


def _encode_packet(message: Packet) -> Frames:
    plain, inner = (message.tag, message.sequence, message.acknowledged), message.message
    return [_PACKET_PREFIX + _pack(plain), *_BY_MESSAGE[type(inner)](inner)]


def _decode_packet(data: Buffer, first: Buffer, body: Buffer | None) -> Packet:
    tag, sequence, acknowledged = _unpack_packet(data)
    inner: Any = _decode_one(first, body)
    if type(inner) not in _ROUTED:
        raise WireError(f"a packet with {type(inner).__name__} in it")
    return Packet(tag, sequence, acknowledged, inner)


# --- the table of kinds ----------------------------------------------------------------------

CODECS: tuple[Codec, ...] = (
    _plain(1, Hello),
    Codec(_ADVERTISE, Advertise, _encode_advertise, _decode_advertise),
    _plain(3, Unadvertise),
    Codec(_PUBLISH, Publish, _encode_publish, _decode_publish),
    _plain(5, Promise),
    _plain(6, Subscribe),
    _plain(7, Unsubscribe),
    _plain(8, Deploy),
    _plain(9, Remove),
    _plain(10, ListRules),
    _plain(11, ShowRule),
    _plain(12, StatusRequest),
    _plain(16, Welcome),
    _plain(17, Confirmed),
    _plain(18, Refused),
    _plain(19, Acknowledged),
    Codec(_DELIVERY, Delivery, _encode_delivery, _decode_delivery),
    _plain(21, Rejected),
    _plain(32, Credit),
    _plain(33, Heartbeat),
    _plain(34, Goodbye),
    _plain(48, LinkHello),
    _plain(50, LinkAck),
    _plain(51, LinkStates),
    _plain(52, CreateTree),
    _plain(53, TreeAck),
    _plain(54, TreeNack),
    Codec(_KNOWN, Known, _encode_known, _decode_known),
    _plain(56, Want),
    Codec(_FLOW, Flow, _encode_flow, _decode_flow),
    Codec(_ASKED, Asked, _encode_asked, _decode_asked),
    Codec(_ANSWERED, Answered, _encode_answered, _decode_answered),
    _plain(60, Pause),
    Codec(_PAUSED, Paused, _encode_paused, _decode_paused),
    _plain(62, Plan),
    _plain(68, Wanted),
    Codec(_FORWARD, Forward, _encode_forward, _decode_forward),
    _plain(71, Awakening),
    _plain(64, Need),
    _plain(65, Survey),
    _plain(66, Surveyed),
    _plain(67, Committed),
    _plain(69, Opened),
    Codec(_SHARED, Shared, _encode_shared, _decode_shared),
)
_BY_MESSAGE: dict[type, Callable[[Any], Frames]] = {
    Packet: _encode_packet,
    **{codec.message: codec.encode for codec in CODECS},
}
_BY_KIND = {codec.kind: codec.decode for codec in CODECS}


def encode(message: Message) -> list[bytes]:
    """The frames of a message: one, or two when it bears events, and one more for a packet."""
    return _BY_MESSAGE[type(message)](message)


def decode(frames: Sequence[Buffer]) -> Message:
    """The message in ``frames``.

    Raises WireError for anything that is not one, and its subclass VersionMismatch for a message
    of another version.
    """
    count = len(frames)
    if not 1 <= count <= 3:
        raise WireError(f"a message of {count} frames; expected one to three")
    for frame in frames:
        if len(frame) > FRAME_MAX:
            raise WireError(f"a frame of more than {FRAME_MAX} bytes")
    first = frames[0]
    try:
        if count > 1 and first[:_PREFIX] == _PACKET_PREFIX:
            body = frames[2] if count == 3 else None
            return _decode_packet(first[_PREFIX:], frames[1], body)
        if count > 2:
            _check_start(first)
            raise WireError("three frames that are no packet")
        return _decode_one(first, frames[1] if count == 2 else None)
    except (ValueError, RecursionError, OverflowError) as error:
        # msgspec's errors, bad UTF-8 and nesting that is too deep: all are the sender's bytes.
        raise WireError(f"{type(error).__name__}: {error}") from None


def _decode_one(first: Buffer, body: Buffer | None) -> Message:
    """The message, no packet, that begins with a frame."""
    if first[:3] != _START or len(first) < _PREFIX:
        _check_start(first)
    decoder = _BY_KIND.get(first[3])
    if decoder is None:
        raise WireError(f"no message is of kind {first[3]}")
    message: Message = decoder(first[_PREFIX:], body)
    return message


def _check_start(first: Buffer) -> None:
    """WireError unless a first frame starts as ours do."""
    if first[:3] == _START and len(first) >= _PREFIX:
        return
    if len(first) < _PREFIX or bytes(first[:2]) != MAGIC:
        raise WireError("not a message of this protocol")
    raise VersionMismatch(first[2], VERSION)
