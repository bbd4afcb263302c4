"""A broker that works alone until another greets it."""

import pytest
from conversation import batches_of, schema_of

import rules.engine
from routing import wire
from routing.config import NodeConfig, SessionConfig
from routing.effects import Close, Effect, Send
from routing.messages import VERSION, Code, Confirmed, Goodbye, LinkHello, Message
from routing.network import strategy
from routing.network.agreement.terms import Terms
from routing.network.brokers.broker import Broker
from routing.network.making import make_broker
from routing.network.solitary import Solitary
from routing.overlay.config import OverlayConfig
from routing.session import Lost, Session

TEMP = schema_of("Temp(room: string, value: float)")


def join(config: NodeConfig, terms: Terms, now: float) -> Broker:
    engine = rules.engine.make("naive")
    overlay = OverlayConfig("alone", 9, forget_s=terms.forget_s)
    return make_broker(config, overlay, engine, strategy.make(terms.strategy), now)


@pytest.fixture
def alone() -> Solitary:
    config = NodeConfig(name="alone", wall_clock=False)
    return Solitary(config, rules.engine.make("naive"), join, 0.0)


def greet(
    alone: Solitary, terms: str = "distributed-st, watermark", now: float = 1.0
) -> list[Effect]:
    hello = LinkHello(VERSION, "b", 1, 0, 0, False, 1.0, terms)
    alone.receive_frames(b"b", wire.encode(hello), now)
    return alone.take_effects()


def said(effects: list[Effect], peer: bytes) -> list[Message]:
    return [one.message for one in effects if isinstance(one, Send) and one.peer == peer]


def converse(alone: Solitary, session: Session, now: float) -> list[object]:
    """Carry messages between a client and the broker until nothing moves."""
    moved = True
    while moved:
        moved = False
        for effect in session.take_effects():
            if isinstance(effect, Send):
                moved = True
                alone.receive_frames(b"c", wire.encode(effect.message), now)
        for message in said(alone.take_effects(), b"c"):
            moved = True
            session.receive_frames(wire.encode(message), now)
    return list(session.take_results())


def test_the_first_greeting_makes_it_part_of_a_network(alone: Solitary) -> None:
    effects = greet(alone)
    assert alone.broker is not None
    (answer, *_) = [
        one for one in said(effects, b"b") if isinstance(one, LinkHello) and one.answers
    ]
    assert answer.terms == "distributed-st, watermark"
    assert alone.status(1.0)["network"]["links"][0]["neighbour"] == "b"
    alone.lose(b"b", 1.5)
    due = alone.next_timer()
    assert due is not None
    alone.handle_timer(due)
    assert alone.status(due)["network"]["links"] == []
    alone.configure(NodeConfig(name="alone", wall_clock=False, rules_max=7), due)
    alone.close("the end", due)


def test_its_clients_are_sent_away_to_come_back(alone: Solitary) -> None:
    session = Session(SessionConfig("", 1))
    session.connect(0.0)
    converse(alone, session, 0.0)
    for message in said(greet(alone), b"c"):
        session.receive_frames(wire.encode(message), 1.0)
    (lost,) = session.take_results()
    assert isinstance(lost, Lost)
    assert lost.retry


@pytest.mark.parametrize("what", ["rule", "source"])
def test_it_stays_alone_once_it_has_begun(alone: Solitary, what: str) -> None:
    session = Session(SessionConfig("t", 1))
    session.connect(0.0)
    if what == "rule":
        session.deploy("event Temp(value: float) define Hot() from Temp(value > 45)")
    else:
        session.advertise([TEMP])
    assert any(isinstance(one, Confirmed) for one in converse(alone, session, 0.0))
    (goodbye,) = said(greet(alone), b"b")
    assert isinstance(goodbye, Goodbye)
    assert goodbye.code is Code.TERMS
    assert "start it as part of a network, with --strategy distributed-st" in goodbye.reason
    assert alone.broker is None
    if what == "source":
        session.publish_all(batches_of('Temp@1("a", 50)', {"Temp": TEMP}), 1.0)
        converse(alone, session, 1.0)
        assert alone.status(1.0)["totals"]["received"] == 1


def test_an_unknown_strategy_and_malformed_greetings_change_nothing(alone: Solitary) -> None:
    (goodbye,) = said(greet(alone, "unheard-of, watermark"), b"b")
    assert isinstance(goodbye, Goodbye)
    assert goodbye.reason == "no strategy is called 'unheard-of' here"
    (goodbye,) = said(greet(alone, "centralized, chance"), b"b")
    assert isinstance(goodbye, Goodbye)
    assert goodbye.reason == "no ordering is called 'chance' here"
    (goodbye,) = said(greet(alone, "centralized, watermark, forget_s soon"), b"b")
    assert isinstance(goodbye, Goodbye)
    expected = "expected forget_s and a number of seconds"
    assert goodbye.reason == f"{expected}, found 'forget_s soon'"
    alone.receive_frames(b"b", [b"RX\x01\x30garbage"], 1.0)
    assert Close in map(type, alone.take_effects())
    assert alone.broker is None


def joined(alone: Solitary, terms: str) -> Broker:
    """What it has become by a greeting with these terms, which it has answered with the same."""
    (answer, *_) = [
        one for one in said(greet(alone, terms), b"b") if isinstance(one, LinkHello) and one.answers
    ]
    assert answer.terms == terms
    assert alone.broker is not None
    return alone.broker


def test_it_forgets_as_the_others_do(alone: Solitary) -> None:
    broker = joined(alone, "centralized, watermark, forget_s 15.000")
    assert broker.overlay.config.forget_s == 15.0


def test_others_that_would_forget_it_too_soon_are_refused() -> None:
    config = NodeConfig(name="alone", wall_clock=False, heartbeat_s=10.0)
    alone = Solitary(config, rules.engine.make("naive"), join, 0.0)
    (goodbye,) = said(greet(alone, "centralized, watermark, forget_s 15.000"), b"b")
    assert isinstance(goodbye, Goodbye)
    expected = "broker 'alone' needs a forget_s of 121 s at least, with its heartbeats of 10 s"
    assert goodbye.reason == expected


def test_alone_it_tells_that_it_is() -> None:
    alone = Solitary(NodeConfig(name="x"), rules.engine.make("naive"), join, 0.0)
    network = alone.status(0.0)["network"]
    assert (network["root"], network["brokers"], network["strategy"]) == ("x", [], None)
