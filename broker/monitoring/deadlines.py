"""Deadlines of connections: each is cut in time, whatever its request or answer has come to.

Law: nobody holds a connection for longer than ``CONNECTION_S``, who is not let in. A hundred that
say nothing, or do not read what is answered, would else keep everybody out for good. Who is let in
and asks for what takes longer, a stream of events say, has the time that this takes.
"""

from __future__ import annotations

import asyncio
from typing import Any

CONNECTION_S = 10.0

_cuts: dict[Any, tuple[asyncio.BaseTransport, asyncio.TimerHandle]] = {}
"""By the address of who has connected: the connection, and what will cut it."""


def begin(who: Any, transport: asyncio.Transport) -> None:
    """Have a connection cut after ``CONNECTION_S``."""
    _cuts[who] = transport, _cut_after(CONNECTION_S, transport)


def end(who: Any) -> None:
    """Forget a connection, which has ended."""
    if who in _cuts:
        _cuts.pop(who)[1].cancel()


def extend(who: Any, seconds: float) -> None:
    """Have a connection cut so many seconds from now instead."""
    if who in _cuts:
        transport, cut = _cuts[who]
        cut.cancel()
        _cuts[who] = transport, _cut_after(seconds, transport)


def _cut_after(seconds: float, transport: Any) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, transport.abort)
