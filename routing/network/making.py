"""A broker as its strategy needs it."""

from __future__ import annotations

from routing.config import NodeConfig
from routing.network.brokers.broker import Broker
from routing.network.setup import Setup
from routing.network.strategy import Strategy
from routing.overlay.config import OverlayConfig
from rules.engine.engine import Detector


def make_broker(
    config: NodeConfig,
    overlay: OverlayConfig,
    engine: Detector,
    strategy: Strategy,
    now: float = 0.0,
) -> Broker:
    """A broker of a network all of whose brokers have this strategy."""
    return Broker(Setup(config, overlay, engine, strategy, now))
