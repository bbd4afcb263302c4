"""How one kind of message is written and read: four bytes, and an array of its fields.

The bytes are ``R``, ``X``, the version and the kind. The version stands where any version must have
it, so that a peer of another one can be told so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, cast, get_type_hints

import msgspec

from routing.errors import WireError
from routing.messages import LINK_VERSION, VERSION, Traces

BATCHES_MAX = 1_024
"""Batches in one message."""
MAGIC = b"RX"
PREFIX = 4
"""Bytes before a message's fields."""
LINK_HELLO = 48
"""The first kind that brokers say to one another; clients say and are told lesser ones."""

Frames = list[bytes]
Buffer = bytes | memoryview

pack = msgspec.msgpack.Encoder().encode
"""Plain data as bytes."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of message is written after the four bytes, and read."""

    kind: int
    message: type
    encode: Callable[[Any], Frames]
    decode: Callable[[Buffer, Buffer | None], Any]


def plain_codec(kind: int, message: type) -> Codec:
    """The codec of a message without events: its fields are plain data."""
    begin = prefix(kind)
    if issubclass(message, msgspec.Struct):
        return _flat(kind, message, begin)
    names = tuple(field.name for field in fields(cast(Any, message)))
    hints = get_type_hints(message, include_extras=True)
    unpack = msgspec.msgpack.Decoder(
        tuple[tuple(hints[name] for name in names)] if names else tuple[()]  # type: ignore[misc]
    ).decode

    def encode_plain(value: Any) -> Frames:
        return [begin + pack([getattr(value, name) for name in names])]

    def decode_plain(data: Buffer, body: Buffer | None) -> Any:
        if body is not None:
            no_body(body)
        return message(*unpack(data))

    return Codec(kind, message, encode_plain, decode_plain)


def _flat(kind: int, message: type, begin: bytes) -> Codec:
    """The codec of a message that is written as it is."""
    unpack: Callable[[Buffer], Any] = msgspec.msgpack.Decoder(message).decode

    def encode_flat(value: Any) -> Frames:
        return [begin + pack(value)]

    def decode_flat(data: Buffer, body: Buffer | None) -> Any:
        if body is not None:
            no_body(body)
        return unpack(data)

    return Codec(kind, message, encode_flat, decode_flat)


def version_of(kind: int) -> int:
    """The version of the protocol that messages of a kind are of."""
    return VERSION if kind < LINK_HELLO else LINK_VERSION


def prefix(kind: int) -> bytes:
    """The bytes before the fields of a message of that kind."""
    return MAGIC + bytes((version_of(kind), kind))


def check_traces(traces: Traces, events: int) -> None:
    """WireError unless the places rise, and are those of so many events."""
    places = [place for place, _ in traces]
    if places != sorted(set(places)) or places[-1] >= events:
        raise WireError("trace contexts of events that are not there")


def no_body(body: Buffer | None) -> None:
    """WireError where there is a second frame."""
    if body is not None:
        raise WireError("a second frame after a message that has one")
