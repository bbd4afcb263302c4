"""Setup: the settings that a broker of a network begins with."""

from __future__ import annotations

from dataclasses import dataclass

from routing.config import NodeConfig
from routing.network.strategy import Strategy
from routing.overlay.config import OverlayConfig
from rules.engine.engine import Detector


@dataclass(frozen=True, slots=True)
class Setup:
    """A broker's configuration, its name and links, its engine, its network's strategy, the time.

    ``now``: seconds of the host's clock at which the broker begins.
    """

    config: NodeConfig
    overlay: OverlayConfig
    engine: Detector
    strategy: Strategy
    now: float = 0.0
