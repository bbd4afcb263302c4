"""Receipts of what was published, by which a caller asks for its acknowledgement."""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from broker.errors import ClientClosed


class Acknowledging(Protocol):
    """A publisher, as its receipts need it."""

    def has_acknowledged(self, number: int) -> bool:
        """Whether all up to a number is acknowledged. ValueError with ``acks="none"``."""


class Waiting(Acknowledging, Protocol):
    """A synchronous one."""

    def wait(self, timeout_s: float | None = None, *, up_to: int | None = None) -> None:
        """Wait until all up to a number is acknowledged."""


class AsyncWaiting(Acknowledging, Protocol):
    """An asynchronous one."""

    async def wait(self, timeout_s: float | None = None, *, up_to: int | None = None) -> None:
        """Wait until all up to a number is acknowledged."""


Source = TypeVar("Source", bound=Acknowledging)


class _Receipt(Struct, Generic[Source], frozen=True):
    """A receipt, but for how to wait. A receipt is a publisher and the number of the last event
    that its call has published; nothing is kept for it anywhere. Acknowledgements come in the order
    of numbers: a call that publishes events 8 to 10 has the number 10.
    """

    publisher: Source
    number: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.number})"

    @property
    def is_acknowledged(self) -> bool:
        """Whether all up to its number is acknowledged, as the publisher's ``acks`` says, by what
        has been heard so far. ValueError with ``acks="none"``.
        """
        return self.publisher.has_acknowledged(self.number)


class Receipt(_Receipt[Waiting], frozen=True):
    """The receipt of what ``Publisher.publish``, or ``publish_batch``, has published."""

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until all up to its number is acknowledged.

        Raises PublishBlocked after ``timeout_s`` seconds (default: the publisher's), what the
        broker refused that no call has raised yet, ClientClosed where the publisher was closed
        before, and ValueError with ``acks="none"``.
        """
        self.publisher.has_acknowledged(self.number)
        try:
            self.publisher.wait(timeout_s, up_to=self.number)
        except ClientClosed:
            if not self.is_acknowledged:
                raise


class AsyncReceipt(_Receipt[AsyncWaiting], frozen=True):
    """The same of an ``AsyncPublisher``; to await it is to wait."""

    async def wait(self, timeout_s: float | None = None) -> None:
        """See ``Receipt.wait``."""
        self.publisher.has_acknowledged(self.number)
        try:
            await self.publisher.wait(timeout_s, up_to=self.number)
        except ClientClosed:
            if not self.is_acknowledged:
                raise

    def __await__(self) -> Generator[object, None, None]:
        return self.wait().__await__()
