"""Whoever did not listen for a while has not found anybody silent."""

from lone import hear, lone

from matcher.model import EventType
from routing.config import NodeConfig, SessionConfig
from routing.effects import Close
from routing.messages import (
    VERSION,
    Advertise,
    Heartbeat,
    Hello,
    LinkHello,
    Welcome,
)
from routing.network.brokers.broker import Broker
from routing.overlay.channel import Channel
from routing.overlay.config import OverlayConfig
from routing.overlay.ends import Down
from routing.session import Session, State
from routing.silence import excused


def closed(node: Broker) -> list[bytes]:
    return [one.peer for one in node.take_effects() if isinstance(one, Close)]


def node_with_two_clients() -> Broker:
    node = lone(NodeConfig(heartbeat_s=1.0, wall_clock=False))
    for peer in (b"one", b"two"):
        hear(node, peer, Hello(VERSION, peer.decode(), 1.0))
    node.take_effects()
    return node


def test_what_a_host_is_late_by_is_nobodys_silence() -> None:
    assert excused(1.0, 5.0, 5.0) == 1.0
    assert excused(1.0, 5.0, 7.5) == 3.5
    assert excused(4.0, 5.0, 9.5) == 8.5
    assert excused(9.0, 5.0, 9.5) == 9.5, "nobody was heard in the future"


def test_a_broker_that_was_kept_from_its_work_reads_before_it_takes_clients_for_dead() -> None:
    node = node_with_two_clients()
    # It wakes after 100 s, reads the first of two messages, and a timer is long due.
    node.node.receive(b"one", Heartbeat(), 100.0)
    node.handle_timer(100.0)
    assert closed(node) == []
    node.node.receive(b"two", Heartbeat(), 100.0)
    for tick in range(1, 9):
        node.node.receive(b"two", Heartbeat(), 100.0 + tick / 2)
        node.handle_timer(100.0 + tick / 2)
    assert closed(node) == [b"one"], "silent while somebody listened"


def test_lost_sources_are_not_closed_for_what_their_broker_was_late_by() -> None:
    """They could not come back while it slept."""
    config = NodeConfig(heartbeat_s=1.0, wall_clock=False, source_silence_max_s=10.0)
    node = lone(config)
    kind = EventType.of("A", n="int")
    for name in ("one", "two"):
        hear(node, name.encode(), Hello(VERSION, name, 1.0))
        hear(node, name.encode(), Advertise(1, (kind,)))
    node.lose(b"one", 1.0)

    def standings(now: float) -> list[str]:
        node.handle_timer(now)
        return [one["standing"] for one in node.status(now)["sources"]]

    assert standings(1.5) == ["lost", "live"]
    node.node.receive(b"two", Heartbeat(), 100.0)
    assert standings(100.0) == ["lost", "live"], "it was asleep for 98 s"
    for tick in range(1, 10):
        node.node.receive(b"two", Heartbeat(), 100.0 + tick)
        assert standings(100.0 + tick - 0.5) == ["lost", "live"]
        assert standings(100.0 + tick) == ["lost", "live"]
    assert standings(109.5) == ["closed", "live"]
    (one, two) = node.status(110.0)["sources"]
    assert (one["closed_by"], two["closed_by"]) == ("lost", None)


def test_a_broker_that_is_always_late_loses_the_dead_all_the_same() -> None:
    node, now = node_with_two_clients(), 0.0
    while now < 12.0:
        due = node.next_timer()
        assert due is not None
        now = due + 0.5  # as late as its timers are apart
        node.node.receive(b"one", Heartbeat(), now)
        node.handle_timer(now)
    assert closed(node) == [b"two"]


def test_a_client_that_was_kept_from_its_work_does_not_blame_the_broker() -> None:
    session = Session(SessionConfig(name="p"))
    session.connect(0.0)
    session.receive(Welcome(VERSION, "b", 0, 10, 1.0), 0.0)
    session.handle_timer(100.0)
    assert session.state is State.READY
    while (due := session.next_timer()) is not None and due < 110.0:
        session.handle_timer(due)
    assert session.state is State.OFF, "silent while the client listened"


def test_a_link_does_not_fall_while_its_end_was_kept_from_its_work() -> None:
    channel = Channel(b"to-b", OverlayConfig("a", 1), 0.0)
    channel.handle_timer(0.0)
    channel.receive(LinkHello(VERSION, "b", 1, 1, 0, 1, 1.0), 0.0)
    channel.take_results()
    channel.handle_timer(100.0)
    assert channel.is_up
    while channel.is_up and (due := channel.next_timer()) is not None and due < 110.0:
        channel.handle_timer(due)
    assert channel.take_results() == [Down("b", "nothing heard for 3 s")]
