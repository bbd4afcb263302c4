"""The reasons of a broker that drains to stay: in words, until nothing of it is needed any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routing.delivery.durable import DurableSink
from routing.network.brokers.broker import Broker

KEPT = "events that rules or other brokers may still need"
TO_GO = "on their way to other brokers"
SHOWN_MAX = 5
"""Obstacles of one kind that are told by name."""


def go_on_draining(broker: Broker, now: float) -> Sequence[str]:
    """Have a broker begin to drain, or go on; gives what it waits for: nothing once it may stop."""
    broker.drain(now)
    broker.node.draining = obstacles = tuple(_obstacles(broker))
    return obstacles


def _obstacles(broker: Broker) -> Iterator[str]:
    """Reasons to wait, in words; none once it may leave."""
    is_alone = not set(broker.overlay.topology.part.nodes) - {broker.overlay.name}
    durables = list(broker.service.durables.names)
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
        yield f"{kept} {KEPT}"
    if not (broker.agreed.is_planned and detection.is_at_work):
        yield "the network, which has no plan yet"
    if broker.overlay.name in dict(broker.agreed.catalog.homes):
        yield "the network, which has not yet been told"


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
        yield f"{what}: {', '.join(sorted(names)[:SHOWN_MAX])}{more}"
