"""Events as entries of a log, and back: the frames of an entry are a Publish (docs/protocol.md).

The first frame stands behind its length, four bytes, least significant first; the second follows.
"""

from __future__ import annotations

import struct
from typing import Protocol

from broker.errors import StoreDamaged
from broker.store.values import Entry
from routing.errors import WireError
from routing.messages import Publish
from routing.order import bounds_of
from routing.wire import decode, encode

_LENGTH = struct.Struct("<I")


def entry_of(source: str, message: Publish) -> Entry:
    """The entry of a message with at least one event, all of one source."""
    bounds = [bounds_of(batch) for batch in message.batches]
    return Entry(
        source,
        min(one.first for one in bounds),
        max(one.last for one in bounds),
        tuple(dict.fromkeys(batch.type.name for batch in message.batches)),
        min(one.least for one in bounds),
        max(one.greatest for one in bounds),
        sum(map(len, message.batches)),
        pack(encode(message)),
    )


class Recorded(Protocol):
    """An entry, of a store or on its way."""

    @property
    def position(self) -> int:
        """Its position in its log."""
        ...

    @property
    def frames(self) -> bytes:
        """The frames of its message."""
        ...


def message_of(entry: Recorded) -> Publish:
    """The message of an entry; StoreDamaged where its frames are none that this release knows."""
    try:
        message = decode(unpack(entry.frames))
    except WireError as error:
        raise StoreDamaged(f"entry {entry.position} of the log: {error}") from None
    if not isinstance(message, Publish):
        raise StoreDamaged(f"entry {entry.position} of the log is {type(message).__name__}")
    return message


def pack(frames: list[bytes]) -> bytes:
    """One or two frames as bytes."""
    first, *rest = frames
    return b"".join((_LENGTH.pack(len(first)), first, *rest))


def unpack(data: bytes) -> list[memoryview]:
    """The frames in bytes of ``pack``; WireError where they are too short."""
    if len(data) < _LENGTH.size:
        raise WireError(f"frames of {len(data)} bytes")
    view = memoryview(data)
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    if end > len(data):
        raise WireError(f"a frame of {end - _LENGTH.size} bytes in {len(data)}")
    return (
        [view[_LENGTH.size : end]] if end == len(data) else [view[_LENGTH.size : end], view[end:]]
    )
