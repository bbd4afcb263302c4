"""A broker that works alone: no other broker can be linked to it."""

import pytest
from lone import lone

from routing import wire
from routing.config import NodeConfig
from routing.effects import Close, Effect, Log, Send
from routing.messages import LINK_VERSION, Code, Goodbye, LinkHello
from routing.network.brokers.broker import Broker


@pytest.fixture
def alone() -> Broker:
    return lone(NodeConfig(name="alone", wall_clock=False))


def greet(alone: Broker, terms: str = "distributed-st, watermark") -> list[Effect]:
    hello = LinkHello(LINK_VERSION, "b", 1, 0, 0, 0, 1.0, terms)
    alone.receive_frames(b"b", wire.encode(hello), 1.0)
    return alone.take_effects()


def test_a_broker_that_greets_is_told_with_which_option_to_start_this_one(alone: Broker) -> None:
    sent, closed, said = greet(alone)
    reason = "broker 'alone' works alone: to be linked to, start it with --strategy distributed-st"
    assert sent == Send(b"b", Goodbye(reason, Code.TERMS))
    assert closed == Close(b"b", reason)
    assert isinstance(said, Log)
    assert (said.text, said.fields["neighbour"]) == ("link refused", "b")
    assert said.fields["reason"] == reason


def test_the_log_says_it_once_however_often_that_tries(alone: Broker) -> None:
    greet(alone)
    assert [type(one) for one in greet(alone)] == [Send, Close]


def test_it_tells_that_it_is_alone(alone: Broker) -> None:
    network = alone.status(0.0)["network"]
    assert (network["root"], network["brokers"], network["strategy"]) == ("alone", [], None)
