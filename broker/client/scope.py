"""How clients end: with their block, or while somebody iterates over what comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from broker.client.looped import Looped
from broker.client.threaded import Threaded
from broker.errors import ClientClosed

Thing = TypeVar("Thing")


class Scoped:
    """A client that leaves when its ``with`` block ends; at once when that ends by an error."""

    _driver: Threaded

    def close(self) -> None:
        """Leave. Events not yet taken are given up; rules stay."""
        self._leave()

    def _leave(self) -> None:
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


class AsyncScoped:
    """``Scoped`` for asyncio: it connects when its block is entered, or ``open`` is awaited."""

    _driver: Looped

    async def open(self) -> Self:
        """Connect."""
        raise NotImplementedError

    async def close(self) -> None:
        """See ``Scoped.close``."""
        self._leave()

    def _leave(self) -> None:
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
            self._leave()


def until_closed(receive: Callable[[], Thing]) -> Iterator[Thing]:
    """The results of ``receive``, again and again, until its client is closed."""
    with suppress(ClientClosed):
        while True:
            yield receive()


async def until_closed_async(receive: Callable[[], Awaitable[Thing]]) -> AsyncIterator[Thing]:
    """The same, awaited."""
    with suppress(ClientClosed):
        while True:
            yield await receive()
