"""Errors of the host, the clients and the command line.

``BrokerError``
    ``BrokerUnreachable``: no broker answers there, or the one that did has gone. Exit status 3.
    ``RefusedError``: a broker understood and said no; the message says what and why.
        ``LateEvents``: events earlier than their source's own promise.
    ``PublishBlocked``: the broker gave no room for more events within the time allowed.
    ``ClientClosed``: the client was used after it was closed (the caller's mistake).
    ``ForeignClient``: the client belongs to another process, or event loop (likewise).
    ``AddressTaken``: an endpoint that a broker should listen on is in use.
    ``ConfigurationError``: a configuration is refused; names file, key and what was expected.
    ``ForeignPackage``: one of the seven packages comes from somewhere else.
    ``StoreError``: what is wrong with a broker's store; the message names its folder.
        ``StoreHeld``: another process has it open.
        ``StoreDamaged``: it holds what was never written there, or lacks what was.
        ``StoreVersion``: it was written by a newer release.
        ``BeyondRetention``: entries of its log are asked for that it keeps no more.
"""

from __future__ import annotations


class BrokerError(Exception):
    """The root of this package's errors."""


class BrokerUnreachable(BrokerError):
    """No broker answers at the endpoint."""


class RefusedError(BrokerError):
    """The broker refused a request; ``code`` names the kind of refusal, as the protocol does.
    ``numbers``: first and last numbers of the events that it is about, as receipts count them.
    """

    def __init__(
        self, reason: str, code: str = "refused", numbers: tuple[tuple[int, int], ...] = ()
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.numbers = numbers


class LateEvents(RefusedError):
    """Events were refused because they break their source's own promise."""


class PublishBlocked(BrokerError, TimeoutError):
    """The unacknowledged events filled their buffer, and no room came in time."""


class ClientClosed(BrokerError):
    """The client was used after it was closed."""


class ForeignClient(BrokerError):
    """The client was used outside the process, or the event loop, that has opened it."""


class AddressTaken(BrokerError):
    """Another process listens on the endpoint."""


class ConfigurationError(BrokerError):
    """A configuration is refused; the message names its place and what was expected."""


class ForeignPackage(BrokerError):
    """One of the distribution's packages was found somewhere else."""


class StoreError(BrokerError):
    """A broker's store cannot be opened, read or written."""


class StoreHeld(StoreError):
    """Another process has the store open."""


class StoreDamaged(StoreError):
    """The store holds what was never written there, or lacks what was."""


class StoreVersion(StoreError):
    """The store was written by a newer release."""


class BeyondRetention(StoreError):
    """Entries of a log are asked for that it keeps no more."""
