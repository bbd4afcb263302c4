"""What a client may send at a node, in any order: nobody else notices (protocol.md section 1)."""

import random

import numpy as np
import pytest
from conversation import Conversation
from lone import hear, lone

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing import wire
from routing.config import OPERATORS, NodeConfig, SessionConfig
from routing.effects import Close, Send
from routing.messages import (
    Advertise,
    Confirmed,
    Credit,
    DealtWith,
    Delivery,
    Deploy,
    Goodbye,
    Heartbeat,
    Hello,
    ListRules,
    Message,
    Promise,
    Publish,
    Remove,
    ShowRule,
    StatusRequest,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    WhenFull,
)
from rules.engine.oracle.naive import NaiveEngine

TYPES = (
    EventType.of("T", n="int"),
    EventType.of("U", s="string"),
    EventType.of("T", n="float"),
    EventType.of("Timer", n="int"),
)
RULES = (
    "define A(n: int) from T(n > 1) where n = T.n",
    "define B(n: int) from T() and last U() within 5 s from T where n = T.n",
    "event W(x: int) define C(n: int) from W() where n = W.x",
    "define T(n: int) from A() where n = A.n",
    "define A(",
    "define Tick(s: int) from Timer(S % 2 = 0) where s = Timer.S",
)


def events(rng: random.Random) -> EventBatch:
    schema = rng.choice(TYPES)
    count = rng.randint(1, 4)
    values = {
        "n": np.arange(count) if str(schema).endswith("int)") else np.ones(count),
        "s": StringColumn.constant("x", count),
    }
    start = rng.randint(-2, 40)
    numbers = np.arange(start, start + count) * rng.choice([1, 1, 1, 0, -1])
    return EventBatch(
        schema,
        np.array([rng.choice([0, 5, 10**6, 2**62, 2**62 + 1, -(2**63)]) for _ in range(count)]),
        EventIds(StringColumn.constant(rng.choice("pqr"), count), numbers),
        (values[schema.names[0]],),
    )


def message(rng: random.Random) -> Message:
    number = rng.randint(0, 3)
    choices: list[Message] = [
        Hello(rng.choice([1, 1, 1, 2]), rng.choice(["p", "q", "r", "", "rexmq/x"]), 1.0, number),
        Advertise(number, tuple(rng.choices(TYPES, k=rng.randint(0, 3)))),
        Unadvertise(number, tuple(rng.choices("TUV", k=rng.randint(0, 2)))),
        Publish(tuple(events(rng) for _ in range(rng.randint(0, 3))), rng.choice([None, 7])),
        Publish((events(rng),), rng.choice([None, -(2**63), 2**63 - 1])),
        Promise(rng.choice([0, 10**6, 2**63 - 1, -(2**63)])),
        Subscribe(number, number, rng.choice(["T", "A(n > 2)", "U(s = 1)", "T(", "Timer"])),
        Subscribe(number, number, "T()", rng.choice(list(WhenFull)), rng.choice([1, 2**31 - 1])),
        Unsubscribe(number, number),
        Credit(rng.choice([0, 1, 2**31 - 1])),
        Deploy(number, rng.choice(RULES), rng.random() < 0.5),
        Remove(number, rng.choice("ABCT")),
        ListRules(number),
        ShowRule(number, rng.choice("ABCT")),
        StatusRequest(number),
        Heartbeat(),
        Goodbye(),
        DealtWith(rng.choice([0, 1, 2**62]), number),
        Delivery((events(rng),), ((1,),)),
    ]
    return rng.choice(choices)


@pytest.mark.parametrize("seed", range(40))
def test_a_node_survives_any_messages(seed: int) -> None:
    """Clients that know the format but no manners, beside one that has them."""
    rng = random.Random(seed)
    network = Conversation()
    network.node = network.new_node(wall_clock=rng.random() < 0.5, publish_credit=20)
    good = network.add("good", SessionConfig("good"))
    network.settle()
    good.session.subscribe("Good()")
    good.session.advertise([EventType.of("Good", n="int")])
    network.settle()
    peers = [f"bad/{number}".encode() for number in range(4)]
    for step in range(120):
        peer = rng.choice(peers)
        chance = rng.random()
        if chance < 0.05:
            network.node.lose(peer, network.now)
        elif chance < 0.15:
            network.pass_time(network.now + rng.choice([0.1, 0.6, 2.0]))
        else:
            if chance < 0.25:
                network.node.receive_frames(peer, wire.encode(Hello(1, "p", 1.0)), network.now)
            network.node.receive_frames(peer, wire.encode(message(rng)), network.now)
        network.settle()
        assert good.session.ready, f"seed {seed}, step {step}"
    network.take_lines()
    batch = EventBatch(
        EventType.of("Good", n="int"),
        np.array([1]),
        EventIds(StringColumn.constant("", 1), np.zeros(1, np.int64)),
        (np.array([7]),),
    )
    good.session.publish([batch], network.now)
    network.settle()
    assert any("Good@0.000001(7) for 1" in line for line in network.take_lines())


REFUSED: tuple[Message, ...] = (
    Advertise(1, (TYPES[2],)),
    Advertise(1, (TYPES[3],)),
    Unadvertise(1, ("T", "V")),
    Subscribe(1, 1, "T(n = )"),
    Subscribe(1, 1, "T(m = 1)"),
    Subscribe(1, 1, "T()", WhenFull.BLOCK, 2**31 - 1),
    Unsubscribe(1, 9),
    Deploy(1, RULES[4]),
    Deploy(1, RULES[3]),
    Deploy(1, f"{RULES[0]}\n{RULES[1]}"),
    Deploy(1, "define A(n: float) from T() where n = T.n", True),
    Remove(1, "Z"),
    ShowRule(1, "Z"),
)


@pytest.mark.parametrize("message", REFUSED, ids=repr)
def test_a_refused_request_changes_nothing(message: Message) -> None:
    network = Conversation()
    for name in ("owner", "asker"):
        network.add(name, SessionConfig(name))
    network.settle()
    network.clients["owner"].session.advertise(TYPES[:1])
    network.clients["asker"].session.advertise(TYPES[:1])
    network.settle()
    for text in (RULES[0], "define D(n: int) from A() where n = A.n"):
        network.clients["owner"].session.deploy(text)
    network.settle()
    before = network.node.status(0.0)
    hear(network.node, b"asker/1", message)
    effects = network.node.take_effects()
    answers = [one.message for one in effects if isinstance(one, Send)]
    assert [type(one).__name__ for one in answers] == ["Refused"], answers
    assert not any(isinstance(one, Close) for one in effects)
    assert network.node.status(0.0) == before


def test_a_broken_contract_changes_nothing_but_the_link() -> None:
    """Publishing beyond the credit, under another name, with numbers that do not rise."""
    for bad in ("credit", "name", "numbers", "schema"):
        network = Conversation()
        network.node = network.new_node(publish_credit=5)
        network.add("p", SessionConfig("p"))
        network.settle()
        network.clients["p"].session.advertise(TYPES[:1])
        network.settle()
        count = 6 if bad == "credit" else 2
        schema = TYPES[2] if bad == "schema" else TYPES[0]
        batch = EventBatch(
            schema,
            np.zeros(count, np.int64),
            EventIds(
                StringColumn.constant("q" if bad == "name" else "p", count),
                np.ones(count, np.int64) if bad == "numbers" else np.arange(count),
            ),
            (np.ones(count) if bad == "schema" else np.arange(count),),
        )
        network.node.receive_frames(b"p/1", wire.encode(Publish((batch,))), 0.0)
        status = network.node.status(0.0)
        assert status["clients"] == [], bad
        assert [one["events"] for one in status["sources"]] == [0]
        assert [one["last_sequence"] for one in status["sources"]] == [0]
        assert any(isinstance(one, Close) for one in network.node.take_effects())


@pytest.mark.parametrize(
    ("bound", "values"),
    [
        ("clients_max", [Hello(1, "c", 1.0)]),
        ("types_max", [Advertise(1, (TYPES[0], TYPES[1]))]),
        ("rules_max", [Deploy(1, RULES[2]), Deploy(2, RULES[2].replace(" C(", " E("))]),
        ("subscriptions_max", [Subscribe(1, 1, "T"), Subscribe(2, 2, "U")]),
        ("queue_events_max", [Subscribe(1, 1, "T", WhenFull.BLOCK, 2)]),
    ],
)
def test_every_bound_is_kept_and_named(bound: str, values: list[Message]) -> None:
    network = Conversation()
    limit = 2 if bound == "types_max" and len(values) > 1 else 1
    network.node = network.new_node(**{bound: limit})
    network.node.receive_frames(b"a", wire.encode(Hello(1, "a", 1.0)), 0.0)
    peer = b"c" if bound == "clients_max" else b"a"
    network.node.take_effects()
    for value in values:
        hear(network.node, peer, value)
    sent = [one.message for one in network.node.take_effects() if isinstance(one, Send)]
    refusals = [one for one in sent if type(one).__name__ == "Refused"]
    assert len(refusals) == 1, sent
    word = {"clients_max": "clients", "subscriptions_max": "subscriptions"}.get(bound, bound)
    assert word in str(refusals[0])
    assert sum(isinstance(one, Confirmed) for one in sent) == len(values) - 1


def test_a_full_node_takes_in_some_who_do_not_publish() -> None:
    """Whoever looks after it must reach it."""
    network = Conversation()
    network.node = network.new_node(clients_max=2)
    answers = []
    for number, name in enumerate(["a", "b", "c", *[""] * (OPERATORS + 1), "d"]):
        hello = Hello(1, name, 1.0)
        network.node.receive_frames(f"peer {number}".encode(), wire.encode(hello), 0.0)
        (first, *_) = (one for one in network.node.take_effects() if isinstance(one, Send))
        answers.append(type(first.message).__name__)
    kept = ["Welcome"] * OPERATORS
    assert answers == ["Welcome", "Welcome", "Refused", *kept, "Refused", "Refused"]


def test_sources_that_closed_long_ago_are_forgotten() -> None:
    network = Conversation()
    network.node = network.new_node(sources_max=3)
    for number in range(6):
        client = network.add(f"s{number}", SessionConfig(f"s{number}"))
        network.settle()
        client.session.advertise(TYPES[:1])
        network.settle()
        client.session.close(0.0)
        network.settle()
    known = [one["name"] for one in network.node.status(0.0)["sources"]]
    assert known == ["s3", "s4", "s5"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"heartbeat_s": 0},
        {"lead_max_s": -1.0},
        {"timer_slack_s": -1.0},
        {"source_silence_max_s": 0.0},
        {"publish_credit": 0},
        {"clients_max": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_configuration_without_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        NodeConfig(**wrong)  # type: ignore[arg-type]


def test_an_engine_that_fails_is_not_silenced() -> None:
    """Our own bugs crash; only a peer's mistakes are refused."""

    class Fails(NaiveEngine):
        def deploy(self, *arguments: object, **options: object) -> None:
            raise AssertionError("a bug")

        def fresh(self) -> "Fails":
            return Fails()

    node = lone(engine=Fails())
    hear(node, b"m", Hello(1, "m", 1.0))
    with pytest.raises(AssertionError, match="a bug"):
        hear(node, b"m", Deploy(1, RULES[2]))
