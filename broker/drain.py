"""Draining: how a broker leaves its network so that nobody misses it.

A broker that drains stops by itself, with status 0, once nothing of it is needed any more. Until
then it says what it waits for, in its log when that changes, and in its status: a subscriber that
has not taken what is queued for it, a source or a durable subscription that is on its way to
another broker, events that a rule may still need, its store.

A broker that is alone in its network, or works alone, has nobody to hand anything over to: it waits
for its subscribers' queues, and for its durable subscriptions. b2 of b1 and b2 keeps the Temps of
five minutes that fire may need, and leaves five minutes after its last source; b1 then leaves at
once.

A durable subscription goes to another broker of the network that has a store, with what waits for
it (routing.network.brokers.giver); its clients follow. Where no other broker takes any this one
stays until they are removed: what is found for billing after b2 has gone would be lost to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.log import log
from routing.leaving import go_on_draining
from routing.network.brokers.broker import Broker
from routing.overlay.graph import components_of


class Draining:
    """The look at a node that drains, from time to time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told: Sequence[str] | None = None

    def is_over(self, now: float) -> bool:
        """Whether it may stop; ``now`` in seconds of the host's clock."""
        broker = self._broker
        if broker.node.draining is None:
            return False
        if self._told is None:
            self._warn_of_parts()
        obstacles = go_on_draining(broker, now)
        if obstacles != self._told:
            self._told = obstacles
            if obstacles:
                log("info", "draining waits", {"for": "; ".join(obstacles)})
        return not obstacles

    def _warn_of_parts(self) -> None:
        """A network that falls into parts without this broker is warned of, not kept."""
        overlay = self._broker.overlay
        others = overlay.topology.part.nodes - {overlay.name}
        parts = components_of(state for state in overlay.topology.states if state.origin in others)
        names = sorted({tuple(sorted(part.nodes)) for part in parts.values()})
        if len(names) > 1:
            log("warning", "the network falls into parts without this broker", {"parts": names})
