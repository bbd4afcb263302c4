"""Errors of the protocols, by whose fault they are (style: our bug asserts, a peer's never does).

- ``WireError``: bytes that are not a message. Costs the sender its link and nothing else.
- ``ProtocolError``: a well-formed message that its sender may not send in this state. Costs the
  sender its link and nothing else.
- ``Refusal``: a request that is answered with ``Refused``; the link lives on.
- ``SessionError`` (a ``ValueError``): the mistake of the program that drives a ``Session``.
"""

from __future__ import annotations

from routing.messages import Code


class WireError(Exception):
    """Bytes that are not a message of this protocol: what was wrong, and where."""


class VersionMismatch(WireError):
    """A message of another version of the protocol; ``version`` is the one it bears."""

    def __init__(self, version: int, own: int) -> None:
        super().__init__(f"protocol version {version}, but this side speaks version {own}")
        self.version = version


class ProtocolError(Exception):
    """A message that its sender may not send now; its link is closed with ``code``."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Refusal(Exception):
    """A request that is refused and changes nothing."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class SessionError(ValueError):
    """A call that the session's state or configuration does not allow."""


class SessionFull(SessionError):
    """The unacknowledged events have reached their bound; wait for acknowledgements."""
