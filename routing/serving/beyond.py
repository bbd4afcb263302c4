"""Network of a broker, as its clients' side sees it: who decides, and what others have to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from matcher.model import EventBatch
from routing.delivery.sink import Sink
from routing.effects import Peer
from routing.messages import Asking, AskingAll, Confirmed
from routing.serving.link import Link
from rules.overrun import Overrun


class Beyond(Protocol):
    """The other side of a broker: that of the network, be it a network of one."""

    def ask(self, link: Link, request: Asking) -> None:
        """A client asks what the root has to answer."""

    def ask_all(self, link: Link, message: AskingAll) -> None:
        """A client asks something of all brokers."""

    def news(self, batches: tuple[EventBatch, ...]) -> tuple[EventBatch, ...]:
        """Give the events of a part of a source that sinks have not been offered before."""

    def confirm_subscription(self, link: Link, answer: Confirmed) -> None:
        """Answer a client once its subscription is in force everywhere."""

    def note_delivered(self, sink: Sink) -> None:
        """A sink was sent what it has credit for."""

    def await_commit(self, peer: Peer, batches: Sequence[EventBatch], sequence: int) -> None:
        """Acknowledge events up to a number, when all that follows from them is done."""

    def withdraw(self) -> None:
        """Have the rules removed that are to go, their owners having lost the right to them."""

    def note_overrun(self, overrun: Overrun) -> None:
        """A rule has ended here by itself."""

    def is_held(self) -> bool:
        """Whether no source gets credit for now."""

    def settle(self) -> None:
        """Do what follows for others, when clients have got what is theirs."""
