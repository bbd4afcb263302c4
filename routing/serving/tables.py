"""Tables of one broker: who is connected, who publishes, which rules there are, who subscribes."""

from __future__ import annotations

from matcher.traces import TraceContexts
from routing.config import NodeConfig
from routing.delivery.sinks import Sinks
from routing.deployment import Deployments
from routing.serving.accounts import Accounts
from routing.serving.advertisements import Advertisements
from routing.serving.credit import PublishCredit
from routing.serving.link import Links
from routing.serving.moment import Moment
from routing.serving.published import PublishedIds
from routing.serving.source_names import SourceNames
from routing.serving.sources import Sources


class Tables:
    """Each owns its part of the state; who works with them shares them. ``now``: seconds of the
    host's clock.
    """

    def __init__(self, config: NodeConfig, now: float) -> None:
        self.moment, self.links = Moment(now), Links()
        self.published = PublishedIds(config)
        self.accounts = Accounts(config.sources_max)
        self.names, self.sources = SourceNames(self.accounts), Sources(config, self.accounts)
        self.advertisements, self.deployments = Advertisements(config), Deployments(config)
        self.sinks = Sinks(config, self.deployments)
        self.credit = PublishCredit(
            config, self.advertisements, self.deployments, self.sinks, self.moment
        )
        self.traces = TraceContexts()
        """Trace contexts of events that have come, and of composite events found of them."""
