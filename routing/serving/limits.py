"""Limits of users: how many connections, subscriptions and rules they may have, and how fast they
may publish.

A request beyond a limit is refused (``limit``), and changes nothing. A message that is too long
costs its sender the link, for good: it would send it again. What Welcome has told a client it may
rely on: a smaller limit of its user's messages holds from its next link on. Who may publish 256 at
once gets as much credit, so that clients cut what they publish by themselves. Who publishes too
fast waits for credit (:mod:`routing.serving.buckets`).
"""

from __future__ import annotations

from collections.abc import Iterable

from routing.errors import ProtocolError, Refusal
from routing.messages import Code, Rights
from routing.serving.link import Link


def check_connections(rights: Rights, links: Iterable[Link]) -> None:
    """Raise Refusal where a user may have no more connections than it has."""
    if rights.limits.connections_max is None:
        return
    count = 1 + sum(1 for link in links if link.rights.user == rights.user)
    check_count(rights, "connections_max", count, "connections")


def check_count(rights: Rights, limit: str, count: int, what: str) -> None:
    """Raise Refusal where a user would have more of something than it may."""
    most = getattr(rights.limits, limit)
    if most is not None and count > most:
        raise Refusal(Code.LIMIT, rights.beyond(f"{count} {what}", limit))


def check_size(link: Link, size: int) -> None:
    """Raise ProtocolError for a message of more bytes than those of a client may have."""
    rights, told = link.rights, link.message_bytes_told
    most = rights.limits.message_bytes_max
    if most is not None and told is not None and size > max(most, told):
        what = f"a message of {size} bytes"
        raise ProtocolError(Code.NOT_ALLOWED, rights.beyond(what, "message_bytes_max"))
