"""Clients that a program leaves open are closed when its interpreter ends.

What ends normally has published everything: by its last line, by ``sys.exit`` or by an exception.
Each client that is open then says goodbye as ``close`` does, so its source holds up no rules, not
even after a restart of the broker. All of them together have ``EXIT_S`` for that; what the broker
does not have by then is lost. How many events that were, and what the broker refused that no call
has raised yet, is printed on standard error. What a durable subscriber was given last counts as
dealt with by its ``close`` alone.

Who is killed, or ends by ``os._exit``, says nothing: that is a lost source. A child that was forked
closes nothing of its parent's, and can use nothing of it.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import time
from typing import Protocol

from broker.client.connection import Connection
from broker.client.uninterrupted import whole
from broker.errors import BrokerError, ForeignClient, PublishBlocked
from broker.escaping import escaped_lines

EXIT_S = 5.0
"""How long the end of an interpreter waits for brokers at most, in seconds."""


class Open(Protocol):
    """The driver of an open client."""

    def end(self, seconds: float) -> None:
        """See its events off, for so long at most, and close it."""
        ...

    def disown(self) -> None:
        """Let go of it in a child that was forked."""
        ...


_open: dict[Open, None] = {}
"""Open clients, in the order in which they were opened."""


def note_open(client: Open) -> None:
    """A client is open from now on."""
    _open[client] = None


def note_closed(client: Open) -> None:
    """A client is closed; harmless when it was before."""
    _open.pop(client, None)


@atexit.register
def _end_all() -> None:
    ends_at = time.monotonic() + EXIT_S
    for client in list(_open):
        client.end(max(0.0, ends_at - time.monotonic()))


def _disown_all() -> None:
    for client in list(_open):
        client.disown()
    _open.clear()


os.register_at_fork(after_in_child=_disown_all)


def see_off(connection: Connection, seconds: float) -> None:
    """Wait until the broker has everything, and say goodbye; nobody else uses the connection.

    A source whose link is lost just then has yet to come back, to say that nothing follows.
    """
    ends_at = time.monotonic() + seconds
    if connection.failure is None and connection.due is not None:
        whole(connection.due)
    while connection.failure is None:
        whole(connection.pump)
        left_s = ends_at - time.monotonic()
        if is_seen_off(connection) or left_s <= 0:
            break
        due_s = connection.deadline() - connection.clock.now()
        poller = select.poll()
        for descriptor in connection.descriptors:
            poller.register(descriptor, select.POLLIN)
        poller.poll(max(1.0, 1_000 * min(left_s, due_s)))
    tell_unsaid(connection)
    whole(connection.close)


def tell_unsaid(connection: Connection) -> None:
    """Print what the calls of a client would have raised that are not made any more."""
    if isinstance(connection.failure, ForeignClient):
        return
    unsaid: list[BrokerError | None] = [*connection.unraised(), connection.problem]
    if lost := connection.unacknowledged():
        unsaid.append(PublishBlocked(f"{lost} events are still unacknowledged at the end"))
    for one in filter(None, unsaid):
        print(escaped_lines(f"rexmq: {connection.endpoint}: {one}"), file=sys.stderr)


def is_seen_off(connection: Connection) -> bool:
    """Whether nothing more of a client's can reach its broker, or has to. A source says goodbye
    where that alone is left, and is seen off when it is answered.
    """
    session = connection.session
    if connection.failure is not None or session.has_left:
        return True
    if session.outgoing.unacknowledged or session.unanswered:
        return False
    if session.is_source and session.ready:
        session.leave(connection.clock.now())
        connection.let_out()
    return not session.is_source
