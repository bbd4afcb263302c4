"""Bodies of requests, whose bytes are bounded together: by who sends them, and in all.

A body takes its share of ``BYTES_MAX`` before its first byte is read, by the length that it says it
has, and keeps it until the request is answered. It is let in first: nothing is read of strangers
but what ``body_of`` bounds by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.requests import Request

from broker.monitoring.entry import TOO_MANY, NoEntry
from broker.monitoring.shares import NoShare, Shares

BYTES_MAX = 128 * 2**20
DISCARDED_MAX, DISCARDED_S = 32 * 2**20, 2.0
"""Bytes of a body that is too long, and seconds; a sender of more may find the connection reset."""
TOO_LARGE = 413


class Bodies:
    """The bodies of requests that are under way."""

    def __init__(self) -> None:
        self._bytes = Shares(BYTES_MAX)

    @asynccontextmanager
    async def of(self, request: Request, most: int, holder: str) -> AsyncIterator[bytes]:
        """The body of a request of ``holder``, of at most so many bytes. Raises NoEntry for a
        longer one, and for one that would be more than the share of its holder.
        """
        said = request.headers.get("content-length")
        size = most if said is None else int(said)
        if size > most:
            await _discard(request)
            raise _too_large(most)
        try:
            with self._bytes.held(holder, count=size):
                yield await body_of(request, most)
        except NoShare:
            raise NoEntry(TOO_MANY, "too many bytes of yours are under way") from None


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request, of at most so many bytes. Raises NoEntry for a longer one."""
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > most:
            raise _too_large(most)
    return bytes(read)


async def _discard(request: Request) -> None:
    """Take a body off its connection, else its sender is cut off before it reads the refusal."""
    left = DISCARDED_MAX
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARDED_S):
            async for piece in request.stream():
                left -= len(piece)
                if left < 0:
                    return


def _too_large(most: int) -> NoEntry:
    return NoEntry(TOO_LARGE, f"expected at most {most >> 10:,} KiB")
