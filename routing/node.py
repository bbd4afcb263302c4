"""The broker's side of the protocol, without sockets, clocks or threads (architecture.md 4).

``receive`` or ``receive_frames`` for what came, ``lose`` for a link that broke, ``handle_timer``
when ``next_timer`` is due; after each of them the host carries out ``take_effects``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routing.config import NodeConfig
from routing.effects import Effect, Peer
from routing.messages import FromClient
from rules.engine.engine import Detector


class Node:
    """One broker. ``now`` is in seconds and never goes back; event time is in the events."""

    def __init__(self, config: NodeConfig, engine: Detector, now: float = 0.0) -> None:
        raise NotImplementedError

    def receive(self, peer: Peer, message: FromClient, now: float) -> None:
        """Take in one message. A peer's mistake costs at most that peer its link."""
        raise NotImplementedError

    def receive_frames(self, peer: Peer, frames: Sequence[bytes], now: float) -> None:
        """Decode (``wire.decode``) and take in one message; malformed frames close the link."""
        raise NotImplementedError

    def lose(self, peer: Peer, now: float) -> None:
        """The link broke without Goodbye. No effect for it follows; unknown peers are ignored."""
        raise NotImplementedError

    def handle_timer(self, now: float) -> None:
        """Do what is due: heartbeats, lost clients, silent sources, ticks of Timer."""
        raise NotImplementedError

    def next_timer(self) -> float | None:
        """When ``handle_timer`` is due next; None when nothing waits for time."""
        raise NotImplementedError

    def close(self, reason: str, now: float) -> None:
        """Say Goodbye to every client; the node takes nothing more in."""
        raise NotImplementedError

    def take_effects(self) -> list[Effect]:
        """The effects since the last call, in order."""
        raise NotImplementedError

    def status(self, now: float) -> Mapping[str, Any]:
        """What StatusRequest is answered with: plain data, ready for JSON."""
        raise NotImplementedError
