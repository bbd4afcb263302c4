"""Messages as bytes (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Sequence

from routing.messages import Message


def encode(message: Message) -> list[bytes]:
    """The frames of a message: one, or two when it bears events."""
    raise NotImplementedError


def decode(frames: Sequence[bytes | memoryview]) -> Message:
    """The message in ``frames``; WireError for anything that is not one."""
    raise NotImplementedError
