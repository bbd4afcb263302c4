"""Draining: how a broker leaves its network so that nobody misses it.

Law 1: a broker that drains stops by itself, with status 0, once nothing of it is needed any more.
Until then it says what it waits for, in its log when that changes, and in its status: a subscriber
that has not taken what is queued for it, a source or a durable subscription that is on its way to
another broker, events that a rule may still need, its store.

Law 2: a broker that is alone in its network, or works alone, has nobody to hand anything over to:
it waits for its subscribers' queues, and no more (but see Law 3). b2 of b1 and b2 keeps the Temps
of five minutes that fire may need, and leaves five minutes after its last source; b1 then leaves at
once.

Law 3: a durable subscription goes to another broker of the network that has a store, with what
waits for it (routing.durability.giver); its clients follow. Where no other broker takes any this
one stays until they are removed: what is found for billing after b2 has gone would be lost to it.

Law 4: a network that falls into parts without it is warned of, not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx

from broker.log import log
from routing.delivery.durable import DurableSink
from routing.network.brokers.broker import Broker

TO_GO = "on their way to other brokers"
SHOWN_MAX = 5
"""Obstacles of one kind that are told by name."""


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
        broker.drain(now)
        broker.node.draining = obstacles = list(_obstacles(broker))
        if obstacles != self._told:
            self._told = obstacles
            if obstacles:
                log("info", "draining waits", {"for": "; ".join(obstacles)})
        return not obstacles

    def _warn_of_parts(self) -> None:
        """Law 4."""
        rest = _part_of(self._broker)
        rest.remove_node(self._broker.overlay.name)
        if len(rest) and not nx.is_connected(rest):
            parts = [sorted(part) for part in nx.connected_components(rest)]
            log("warning", "the network falls into parts without this broker", {"parts": parts})


def _part_of(broker: Broker) -> nx.Graph:
    """The brokers within reach, and their links."""
    overlay = broker.overlay
    reachable = overlay.part.nodes
    graph = nx.Graph()
    graph.add_nodes_from({*reachable, overlay.name})
    for state in overlay.states:
        for name, _ in state.neighbours:
            if {state.origin, name} <= {*reachable}:
                graph.add_edge(state.origin, name)
    return graph


def _obstacles(broker: Broker) -> Iterator[str]:
    """Reasons to wait, in words; none once it may leave."""
    is_alone, durables = len(_part_of(broker)) <= 1, list(broker.service.durables.names)
    awaited = _awaited(broker) if is_alone and durables else ()
    stay = is_alone and not awaited
    waiting = [one for one in broker.node.waiting_sinks if stay or not isinstance(one, DurableSink)]
    yield from _named(
        "subscribers that have not taken what is theirs",
        [sink.name or "one without a name" for sink in waiting],
    )
    if broker.awaits_store:
        yield "its store, which has yet to keep what has changed"
    if awaited:
        others = ", ".join(awaited)
        what = f"durable subscriptions, until they are removed or another broker answers ({others})"
        yield from _named(what, durables)
    if not is_alone:
        yield from _obstacles_in_network(broker)


def _awaited(broker: Broker) -> Sequence[str]:
    """The other brokers that one within whose reach there is none knows of, or is to link to."""
    agreed, overlay = broker.agreed, broker.overlay
    known = {*dict(agreed.catalog.homes), *agreed.out_of_reach} - {overlay.name}
    return [*sorted(known), *overlay.endpoints]


def _obstacles_in_network(broker: Broker) -> Iterator[str]:
    detection = broker.context.detection
    lost = [source.name for source in detection.publishers.all]
    yield from _named("sources that have a moment to come to other brokers", lost)
    problem = broker.giver.problem
    what = f"that no other broker takes until they are removed ({problem})" if problem else TO_GO
    yield from _named(f"durable subscriptions {what}", list(broker.service.durables.names))
    if kept := len(detection.replay_buffer):
        yield f"{kept} events that rules or other brokers may still need"
    if not (broker.agreed.is_planned and detection.is_at_work):
        yield "the network, which has no plan yet"
    if broker.overlay.name in dict(broker.agreed.catalog.homes):
        yield "the network, which has not yet been told"


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
        yield f"{what}: {', '.join(sorted(names)[:SHOWN_MAX])}{more}"
