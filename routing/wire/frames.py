"""Frames as messages, and messages as frames: the table of kinds, and what holds other messages.

``decode`` raises WireError and nothing else, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast, get_args

import msgspec

from routing.errors import VersionMismatch, WireError
from routing.messages import (
    EVERYTHING,
    GATHERED,
    Answered,
    Asked,
    Asking,
    Confirmed,
    HandOver,
    LogPart,
    Message,
    Packet,
    Refused,
    Routed,
    Sequence as SequenceNumber,
    Tag,
)
from routing.wire import clients, network
from routing.wire.codec import (
    LINK_HELLO,
    MAGIC,
    PREFIX,
    Buffer,
    Codec,
    Frames,
    no_body,
    pack,
    prefix,
    version_of,
)
from routing.wire.headers import Nested

FRAME_MAX, SAID_MAX = 2**25, 2**25 - 2**20
"""Bytes in one frame, either of them; a host refuses longer ones unread. Clients say less, so that
brokers have room for it in messages of theirs."""


# --- requests on their way to the root, and answers ------------------------------------------


_ASKED, _ANSWERED = 58, 59
_ASKING = frozenset((*get_args(Asking), HandOver))
_unpack_nested = msgspec.msgpack.Decoder(Nested).decode


def _encode_asked(message: Asked) -> Frames:
    (request,) = encode(message.request)
    plain: tuple[Any, ...] = (message.path, message.number, message.client, request)
    rights = () if message.rights == EVERYTHING else (message.rights,)
    return [prefix(_ASKED) + pack((*plain, *rights))]


def _decode_asked(data: Buffer, body: Buffer | None) -> Asked:
    plain, request = _decode_nested(data, body)
    if type(request) not in _ASKING:
        raise WireError(f"a request for another broker that is {type(request).__name__}")
    return Asked(plain.path, plain.number, plain.client, cast(Any, request), plain.rights)


def _encode_answered(message: Answered) -> Frames:
    (answer,) = encode(message.answer)
    return [prefix(_ANSWERED) + pack((message.path, message.number, "", answer))]


def _decode_answered(data: Buffer, body: Buffer | None) -> Answered:
    plain, answer = _decode_nested(data, body)
    if not isinstance(answer, Confirmed | Refused | LogPart):
        raise WireError(f"an answer of another broker that is {type(answer).__name__}")
    return Answered(plain.path, plain.number, answer)


def _decode_nested(data: Buffer, body: Buffer | None) -> tuple[Nested, Message]:
    no_body(body)
    plain = _unpack_nested(data)
    return plain, decode((plain.message,))


# --- packets ---------------------------------------------------------------------------------

_PACKET = 49
_PACKET_PREFIX = prefix(_PACKET)
_ROUTED = frozenset(get_args(Routed))
_unpack_packet = msgspec.msgpack.Decoder(tuple[Tag, SequenceNumber, SequenceNumber]).decode


def _encode_packet(message: Packet) -> Frames:
    plain, inner = (message.tag, message.sequence, message.acknowledged), message.message
    return [_PACKET_PREFIX + pack(plain), *_BY_MESSAGE[type(inner)](inner)]


def _decode_packet(data: Buffer, first: Buffer, body: Buffer | None) -> Packet:
    tag, sequence, acknowledged = _unpack_packet(data)
    inner: Any = _decode_one(first, body)
    if type(inner) not in _ROUTED:
        raise WireError(f"a packet with {type(inner).__name__} in it")
    return Packet(tag, sequence, acknowledged, inner)


# --- the table of kinds ----------------------------------------------------------------------

CODECS: tuple[Codec, ...] = (
    *clients.CLIENT_CODECS,
    *network.NETWORK_CODECS,
    Codec(_ASKED, Asked, _encode_asked, _decode_asked),
    Codec(_ANSWERED, Answered, _encode_answered, _decode_answered),
)
_BY_MESSAGE: dict[type, Callable[[Any], Frames]] = {
    Packet: _encode_packet,
    **{codec.message: codec.encode for codec in CODECS},
}
_KINDS: dict[type, int] = {codec.message: codec.kind for codec in CODECS}
_BY_PREFIX = {prefix(codec.kind): codec.decode for codec in CODECS}
_OF_BROKERS = {_PACKET_PREFIX, *(one for one in _BY_PREFIX if one[3] >= LINK_HELLO)}
_GATHERED = frozenset(codec.kind for codec in CODECS if codec.message in GATHERED)


def encode(message: Message) -> list[bytes]:
    """The frames of a message: one, or two when it bears events, and one more for a packet."""
    return _BY_MESSAGE[type(message)](message)


def decode(frames: Sequence[Buffer], *, by_client: bool = False) -> Message:
    """The message in ``frames``; ``by_client``: what brokers alone say is not read.

    Raises WireError for anything that is not one, and its subclass VersionMismatch for a message
    of another version.
    """
    count = len(frames)
    if not 1 <= count <= 3:
        raise WireError(f"a message of {count} frames; expected one to three")
    if max(map(len, frames)) > (most := SAID_MAX if by_client else FRAME_MAX):
        raise WireError(f"a frame of more than {most} bytes")
    first = frames[0]
    if by_client and bytes(first[:PREFIX]) in _OF_BROKERS:
        raise WireError("a message among brokers, from a client")
    try:
        if count > 1 and first[:PREFIX] == _PACKET_PREFIX:
            body = frames[2] if count == 3 else None
            return _decode_packet(first[PREFIX:], frames[1], body)
        if count > 2:
            _check_start(first)
            raise WireError("three frames that are no packet")
        return _decode_one(first, frames[1] if count == 2 else None)
    except (ValueError, RecursionError, OverflowError) as error:
        # msgspec's errors, bad UTF-8 and nesting that is too deep: all are the sender's bytes.
        raise WireError(f"{type(error).__name__}: {error}") from None


def decode_kept(frames: Sequence[Buffer]) -> Message:
    """The message in frames that a store keeps, whichever version they were written by.

    A release reads what earlier ones kept: the state of a rule has the same form in versions 1 and
    2 of the protocol among brokers. Raises as ``decode`` does.
    """
    first, *rest = frames
    return decode([prefix(first[3]) + first[PREFIX:] if len(first) >= PREFIX else first, *rest])


def is_gathered(frames: Sequence[Buffer]) -> bool:
    """Whether frames are, by their looks, a message of ``GATHERED``, or a packet with one."""
    first = frames[1 if len(frames) > 1 and frames[0][:PREFIX] == _PACKET_PREFIX else 0]
    return len(first) >= PREFIX and first[3] in _GATHERED


def looks_like(frames: Sequence[Buffer], kind: type[Message]) -> bool:
    """Whether frames are, by their looks, a message of this type, of whichever version."""
    first = frames[0] if frames else b""
    return len(first) >= PREFIX and bytes(first[:2]) == MAGIC and first[3] == _KINDS[kind]


def _decode_one(first: Buffer, body: Buffer | None) -> Message:
    """The message, no packet, that begins with a frame."""
    decoder = _BY_PREFIX.get(bytes(first[:PREFIX]))
    if decoder is None:
        _check_start(first)
        raise WireError(f"no message is of kind {first[3]}")
    message: Message = decoder(first[PREFIX:], body)
    return message


def _check_start(first: Buffer) -> None:
    """WireError unless a first frame starts as ours do."""
    if len(first) < PREFIX or bytes(first[:2]) != MAGIC:
        raise WireError("not a message of this protocol")
    if first[2] != (version := version_of(first[3])):
        raise VersionMismatch(first[2], version)
