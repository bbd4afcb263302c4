"""Context of the parts of a broker: the tables that they share, and their words to others.

It has no state of its own. What changes belongs to one of the objects that are named here, or
to a part; parts change another's state by asking for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matcher.model import EventBatch
from routing.config import NodeConfig
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.effects import Peer
from routing.messages import Asking, Carried, Code, Confirmed, FromClient, Message
from routing.network.agreement.remote_sources import RemoteSources
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.router import Router
from routing.overlay.overlay import Overlay
from routing.serving.accounts import Accounts
from routing.serving.advertisements import Advertisements
from routing.serving.credit import Held
from routing.serving.intake import check_schema
from routing.serving.link import Link, Links
from routing.serving.moment import Moment
from routing.serving.published import PublishedIds
from routing.serving.source_names import SourceNames
from routing.serving.sources import Source, Sources


@dataclass(frozen=True, slots=True)
class NodeCallbacks:
    """Callbacks by which the parts have the Node do something for its clients."""

    send: Callable[[Peer, Message], None]
    """Send to a client."""
    answer: Callable[[Link, Asking], Confirmed]
    """Do what a client asks, as the root does; raises Refusal and ProtocolError."""
    receive: Callable[[Peer, FromClient, float], None]
    """Take in once more what a client has sent."""
    refuse: Callable[[Link, int | None, Code, str], None]
    """Answer a client that its request was refused."""
    expel: Callable[[Peer, Code, str], None]
    """Close a client's link, and say why."""
    source_of: Callable[[Link], Source]
    """The source of a link, which comes alive by that."""
    hold: Callable[[Held], None]
    """Give no credit to sources of what is full elsewhere."""
    close_source: Callable[..., None]
    """A source has published everything; why, if it has not said so."""
    check_interests: Callable[[], None]
    """Types have become known or were forgotten: check subscriptions again."""
    note_overrun: Callable[[str, str, int], None]
    """A rule has ended by itself: its id, the type that it defines, and up to when it holds."""
    follow: Callable[[], None]
    """Rules have changed: what is held back may be due."""
    settle: Callable[[], None]
    """Do all that follows from what has come so far."""
    when_kept: Callable[[Callable[[], None]], None]
    """Do something once all that has changed so far would survive a restart."""
    log: Callable[..., None]
    """Tell the host something: level, text, and fields by name."""


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """The tables of one broker, and the ways out of it. ``moment`` has the time."""

    name: str
    config: NodeConfig
    """As it was at first: what a running broker can change is told by ``configure``."""
    moment: Moment
    callbacks: NodeCallbacks
    overlay: Overlay
    router: Router
    detection: DividedDetection
    remote_sources: RemoteSources
    links: Links
    published: PublishedIds
    accounts: Accounts
    names: SourceNames
    sources: Sources
    sinks: Sinks
    advertisements: Advertisements
    deployments: Deployments

    def send(self, neighbour: str, message: Carried) -> None:
        """Send to a neighbour; nothing is sent to one that is not there."""
        self.overlay.send(neighbour, message, self.moment.now)

    def send_flows(self) -> None:
        """Send what goes up, then what is routed and the promises behind it (Router, Law 2);
        before anything is told by which types might be forgotten.
        """
        outbox, father = self.detection.part.evaluator.outbox, self.router.father
        for message in outbox.take() if outbox.waiting else ():
            if self.detection.is_at_work and father is not None:
                self.send(father, message)
        for neighbour, flow in self.router.take_flows():
            self.overlay.send(neighbour, flow, self.moment.now)

    def tell_all_marks(self) -> None:
        """Tell all marks, so that the resume points that brokers say next are not older than need
        be.
        """
        self.detection.tell_all_marks()
        self.send_flows()

    def answer(self, peer: Peer, message: Message) -> None:
        """Send to a client that may be gone."""
        if self.links.find(peer) is not None:
            self.callbacks.send(peer, message)

    def check_schemas(self, batches: Sequence[EventBatch]) -> None:
        """ProtocolError when events of another broker do not have the types that are known."""
        for batch in batches:
            known = self.advertisements.find(batch.type.name)
            if known is not None:
                check_schema(batch, known.schema)

    @property
    def filters(self) -> list[str]:
        """The filters of this broker's sinks."""
        return [one.text for sink in self.sinks for one in sink.interests]

    @property
    def wanted_rules(self) -> set[str]:
        """The rules whose composite events this broker's sinks want."""
        return {one.rule.name for sink in self.sinks for one in sink.rules}
