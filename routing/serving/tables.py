"""Tables of one broker: who is connected, who publishes, which rules there are, who subscribes."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Tables:
    """Each owns its part of the state; who works with them shares them."""

    moment: Moment
    links: Links
    published: PublishedIds
    accounts: Accounts
    names: SourceNames
    sources: Sources
    advertisements: Advertisements
    deployments: Deployments
    sinks: Sinks
    credit: PublishCredit
    traces: TraceContexts
    """Trace contexts of events that have come, and of composite events found of them."""


def tables_of(config: NodeConfig, now: float) -> Tables:
    """Empty tables. ``now``: seconds of the host's clock."""
    moment, advertisements = Moment(now), Advertisements(config)
    deployments = Deployments(config)
    sinks, accounts = Sinks(config, deployments), Accounts(config.sources_max)
    return Tables(
        moment,
        Links(),
        PublishedIds(config),
        accounts,
        SourceNames(accounts),
        Sources(config, accounts),
        advertisements,
        deployments,
        sinks,
        PublishCredit(config, advertisements, deployments, sinks, moment),
        TraceContexts(),
    )
