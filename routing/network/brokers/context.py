"""Context of the parts of a broker: the tables that they share, and their words to others.

It has no state of its own. What changes belongs to one of the objects that are named here, or
to a part; parts change another's state by asking for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matcher.model import EventBatch
from routing.config import NodeConfig
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.effects import Peer
from routing.messages import Carried, Message
from routing.network.agreement.remote_sources import RemoteSources
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.router import Router
from routing.node import Node
from routing.overlay.overlay import Overlay
from routing.serving.accounts import Accounts
from routing.serving.advertisements import Advertisements
from routing.serving.credit import PublishCredit
from routing.serving.intake import check_schema
from routing.serving.link import Links
from routing.serving.moment import Moment
from routing.serving.outlet import Outlet
from routing.serving.published import PublishedIds
from routing.serving.service import Service
from routing.serving.source_names import SourceNames
from routing.serving.sources import Sources


@dataclass(frozen=True, slots=True)
class BrokerContext:
    """The tables of one broker, and the ways out of it. ``moment`` has the time."""

    name: str
    config: NodeConfig
    """As it was at first: what a running broker can change is told by ``configure``."""
    moment: Moment
    outlet: Outlet
    service: Service
    node: Node
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
    credit: PublishCredit

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
        if self.links.by_peer.get(peer) is not None:
            self.outlet.send(peer, message)

    def check_schemas(self, batches: Sequence[EventBatch]) -> None:
        """ProtocolError when events of another broker do not have the types that are known."""
        for batch in batches:
            known = self.advertisements.find(batch.type.name)
            if known is not None:
                check_schema(batch, known.schema)

    @property
    def filters(self) -> Mapping[str, tuple[str, ...]]:
        """The filters of this broker's sinks, each once and sorted, by the name of their type."""
        return self.sinks.filters.by_type

    @property
    def wanted_rules(self) -> set[str]:
        """The rules whose composite events this broker's sinks want."""
        return {one.rule.name for sink in self.sinks for one in sink.rules}
