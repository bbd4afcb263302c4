"""A broker as its strategy needs it."""

from __future__ import annotations

from collections.abc import Mapping

from routing.config import NodeConfig
from routing.network.brokers.adapting import AdaptingBroker
from routing.network.brokers.adaptive import AdaptiveBroker
from routing.network.brokers.broker import Broker
from routing.network.brokers.dividing import DividingBroker
from routing.network.brokers.many import SinkTreesBroker
from routing.network.setup import Setup
from routing.network.strategy import Chosen, Strategy, chosen_by, has_sink_trees
from routing.overlay.config import OverlayConfig
from rules.engine.engine import Detector


class AdaptingSinkTreesBroker(AdaptingBroker, SinkTreesBroker):
    """A broker in trees for sinks, whose rules get other masters when events come otherwise."""


_KINDS: Mapping[tuple[Chosen | None, bool], type[Broker]] = {
    (None, False): DividingBroker,
    (None, True): SinkTreesBroker,
    (Chosen.MASTERS, False): AdaptingBroker,
    (Chosen.MASTERS, True): AdaptingSinkTreesBroker,
    (Chosen.WAYS, True): AdaptiveBroker,
}
"""By what the root chooses, and whether brokers with sinks have trees of their own."""


def make_broker(
    config: NodeConfig,
    overlay: OverlayConfig,
    engine: Detector,
    strategy: Strategy,
    now: float = 0.0,
) -> Broker:
    """A broker of a network all of whose brokers have this strategy."""
    kind = _KINDS[chosen_by(type(strategy)), has_sink_trees(type(strategy))]
    return kind(Setup(config, overlay, engine, strategy, now))
