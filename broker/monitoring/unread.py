"""Bytes of messages that WebSockets have begun to bring and that are not whole yet.

They wait in memory for the rest of their message. Where there are more than ``BYTES_MAX`` of them
the WebSocket that has most is cut, of the user who has most: nobody else's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from broker.monitoring import deadlines

BYTES_MAX = 64 * 2**20

_holders: dict[Any, str] = {}
"""Users of WebSockets, by the address of who has connected."""
_bytes: Counter[Any] = Counter()
"""The bytes that wait, by the same."""


def begin(peer: Any, holder: str) -> None:
    """Count what a WebSocket of ``holder`` brings from now on."""
    _holders[peer] = holder


def take(peer: Any, count: int) -> None:
    """A WebSocket has brought so many bytes more."""
    if peer not in _holders:
        return
    _bytes[peer] += count
    if _bytes.total() > BYTES_MAX:
        held: Counter[str] = Counter()
        for other, waiting in _bytes.items():
            held[_holders[other]] += waiting
        ((holder, _),) = held.most_common(1)
        most = max((other for other in _bytes if _holders[other] == holder), key=_bytes.__getitem__)
        del _bytes[most]
        deadlines.cut(most)


def read(peer: Any) -> None:
    """The message of a WebSocket is whole, and read."""
    _bytes.pop(peer, None)


def end(peer: Any) -> None:
    """A WebSocket has ended."""
    read(peer)
    _holders.pop(peer, None)
