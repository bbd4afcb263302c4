"""Deadlines of connections: each is cut in time, whatever its request or answer has come to."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from broker.monitoring.origins import origin_of

CONNECTION_S, SILENT_S = 10.0, 3.0
STRANGERS_MAX = 128

_cuts: dict[Any, tuple[asyncio.BaseTransport, asyncio.TimerHandle]] = {}
"""By the address of who has connected: the connection, and what will cut it."""
_strangers: dict[Any, str] = {}
"""The origins of strangers, the oldest first."""


def begin(peer: Any, transport: asyncio.BaseTransport) -> None:
    """Have a connection cut after ``SILENT_S``: it is a stranger's until somebody known has asked
    by it. Where there are more than ``STRANGERS_MAX`` the oldest of the origin that has most of
    them is cut: whoever opens thousands cuts its own.
    """
    end(peer)
    _cuts[peer] = transport, _cut_after(SILENT_S, peer)
    _strangers[peer] = origin_of(str(peer[0]) if peer else "")
    if len(_strangers) > STRANGERS_MAX:
        ((most, _),) = Counter(_strangers.values()).most_common(1)
        cut(next(oldest for oldest, origin in _strangers.items() if origin == most))


def place(peer: Any, origin: str) -> None:
    """A stranger asks, and comes from there, as its proxy says."""
    if peer in _strangers:
        _strangers[peer] = origin


def hear(peer: Any) -> None:
    """Somebody known asks: have the connection cut after ``CONNECTION_S``."""
    _strangers.pop(peer, None)
    extend(peer, CONNECTION_S)


def allow(peer: Any) -> None:
    """A stranger is let in, or answered: let it have ``CONNECTION_S``, unless it has more."""
    if peer in _strangers:
        left = _cuts[peer][1].when() - asyncio.get_running_loop().time()
        extend(peer, max(left, CONNECTION_S))


def end(peer: Any) -> None:
    """Forget a connection, which has ended."""
    _strangers.pop(peer, None)
    if peer in _cuts:
        _cuts.pop(peer)[1].cancel()


def cut(peer: Any) -> None:
    """Cut a connection now."""
    if peer in _cuts:
        transport: Any = _cuts[peer][0]
        end(peer)
        transport.abort()


def extend(peer: Any, seconds: float) -> None:
    """Have a connection cut so many seconds from now instead."""
    if peer in _cuts:
        transport, due = _cuts[peer]
        due.cancel()
        _cuts[peer] = transport, _cut_after(seconds, peer)


def lift(peer: Any) -> None:
    """Let a connection stand for as long as it likes, until ``extend``."""
    if peer in _cuts:
        _cuts[peer][1].cancel()


def _cut_after(seconds: float, peer: Any) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, cut, peer)
