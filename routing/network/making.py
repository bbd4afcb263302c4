"""A broker as its strategy needs it."""

from __future__ import annotations

from routing.config import NodeConfig
from routing.network.adapting import AdaptingBroker
from routing.network.adaptive import AdaptiveBroker
from routing.network.broker import Broker
from routing.network.dividing import DividingBroker
from routing.network.many import SinkTreesBroker
from routing.network.setup import Setup
from routing.network.strategy import ByRates, ByWays, Strategy, has_sink_trees
from routing.overlay.config import OverlayConfig
from rules.engine.engine import Detector


class AdaptingSinkTreesBroker(AdaptingBroker, SinkTreesBroker):
    """A broker in trees for sinks, whose rules get other masters when events come otherwise."""


def make_broker(
    config: NodeConfig,
    overlay: OverlayConfig,
    engine: Detector,
    strategy: Strategy,
    now: float = 0.0,
) -> Broker:
    """A broker of a network all of whose brokers have this strategy."""
    kind: type[Broker] = DividingBroker
    if isinstance(strategy, ByWays):
        kind = AdaptiveBroker
    elif has_sink_trees(type(strategy)):
        kind = AdaptingSinkTreesBroker if isinstance(strategy, ByRates) else SinkTreesBroker
    elif isinstance(strategy, ByRates):
        kind = AdaptingBroker
    return kind(Setup(config, overlay, engine, strategy, now))
