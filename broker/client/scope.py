"""How clients end: with their block, while somebody iterates over what comes, or dropped."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from broker.client.looped import Looped
from broker.client.threaded import Threaded
from broker.errors import ClientClosed

Thing = TypeVar("Thing")


class Collected:
    """A client whose driver is told when it is collected. The driver then closes it, and a
    ResourceWarning says so; no driver refers to its client, and neither does anything that a driver
    calls.
    """

    _driver: Threaded | Looped

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)  # the arguments may have been refused
        if driver is not None and not driver.is_closed:
            text = f"unclosed {type(self).__name__} at {driver.endpoint}: it is closed now"
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)
            driver.drop()


class Scoped(Collected):
    """A client that leaves when its ``with`` block ends."""

    _driver: Threaded

    def close(self) -> None:
        """Leave. Events not yet taken are given up; rules stay."""
        self._leave()

    def _leave(self) -> None:
        """Leave a block that ends by an error, which goes on: nothing else is raised."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._leave()


class AsyncScoped(Collected):
    """``Scoped`` for asyncio: it connects when its block is entered, or ``open`` is awaited."""

    _driver: Looped

    async def open(self) -> Self:
        """Connect."""
        raise NotImplementedError

    async def close(self) -> None:
        """See ``Scoped.close``."""
        await self._leave()

    async def _leave(self) -> None:
        self._driver.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self._leave()


class UntilClosed(Generic[Thing]):
    """The results of ``receive``, again and again, until its client is closed. Threads may share
    it.
    """

    def __init__(self, receive: Callable[[], Thing]) -> None:
        self._receive = receive

    def __iter__(self) -> Iterator[Thing]:
        return self

    def __next__(self) -> Thing:
        try:
            return self._receive()
        except ClientClosed:
            raise StopIteration from None


class AsyncUntilClosed(Generic[Thing]):
    """The same, awaited; tasks may share it."""

    def __init__(self, receive: Callable[[], Awaitable[Thing]]) -> None:
        self._receive = receive

    def __aiter__(self) -> AsyncIterator[Thing]:
        return self

    async def __anext__(self) -> Thing:
        try:
            return await self._receive()
        except ClientClosed:
            raise StopAsyncIteration from None
