"""A broker that works alone, and a host that calls it whenever something is due."""

from typing import Any

import rules.engine
from routing.config import NodeConfig
from routing.effects import Peer
from routing.network.brokers.broker import Broker
from routing.overlay.config import OverlayConfig


def lone(config: NodeConfig | None = None, engine: Any = None, now: float = 0.0) -> Broker:
    """A broker without links and strategy; by default with the engine ``naive``."""
    config = config or NodeConfig()
    engine = engine or rules.engine.make("naive")
    broker = Broker(config, OverlayConfig(config.name), engine, None, now)
    fire(broker, now)
    return broker


def fire(broker: Broker, now: float) -> None:
    """Have it do what is due."""
    while (due := broker.next_timer()) is not None and due <= now:
        broker.handle_timer(now)


def hear(broker: Broker, peer: Peer, message: Any, now: float = 0.0) -> None:
    """Have it take in a message, and do what is due at once."""
    broker.node.receive(peer, message, now)
    fire(broker, now)
