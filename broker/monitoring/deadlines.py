"""Deadlines of connections: each is cut in time, whatever its request or answer has come to.

Law 1: nobody holds a connection for longer than ``CONNECTION_S``, who is not let in. Who is let in
and asks for what takes longer, a stream of events say, has the time that this takes.

Law 2: a connection that has not asked for anything is silent. It is cut after ``SILENT_S``, and
sooner where there are more than ``SILENT_MAX``: the oldest of the address that has most of them. So
whoever opens thousands cuts its own, and whoever asks at once is heard.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

CONNECTION_S, SILENT_S = 10.0, 3.0
SILENT_MAX = 64

_cuts: dict[Any, tuple[asyncio.BaseTransport, asyncio.TimerHandle]] = {}
"""By the address of who has connected: the connection, and what will cut it."""
_silent: dict[Any, None] = {}
"""The addresses of those who have asked for nothing yet, the oldest first."""


def begin(peer: Any, transport: asyncio.Transport) -> None:
    """Have a connection cut after ``SILENT_S`` (Law 2)."""
    _cuts[peer] = transport, _cut_after(SILENT_S, transport)
    _silent[peer] = None
    if len(_silent) > SILENT_MAX:
        ((most, _),) = Counter(map(_host, _silent)).most_common(1)
        oldest = next(one for one in _silent if _host(one) == most)
        del _silent[oldest]
        _cuts[oldest][0].abort()  # type: ignore[attr-defined]


def hear(peer: Any) -> None:
    """A connection has asked for something: have it cut after ``CONNECTION_S`` (Law 1)."""
    _silent.pop(peer, None)
    extend(peer, CONNECTION_S)


def end(peer: Any) -> None:
    """Forget a connection, which has ended."""
    _silent.pop(peer, None)
    if peer in _cuts:
        _cuts.pop(peer)[1].cancel()


def extend(peer: Any, seconds: float) -> None:
    """Have a connection cut so many seconds from now instead."""
    if peer in _cuts:
        transport, cut = _cuts[peer]
        cut.cancel()
        _cuts[peer] = transport, _cut_after(seconds, transport)


def lift(peer: Any) -> None:
    """Let a connection stand for as long as it likes, until ``extend``."""
    if peer in _cuts:
        _cuts[peer][1].cancel()


def _host(peer: Any) -> str:
    return str(peer[0]) if peer else ""


def _cut_after(seconds: float, transport: Any) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, transport.abort)
