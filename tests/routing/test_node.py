"""The stories of testdata/*.txt: what crosses between a Broker and its Sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conversation import Conversation, schema_of
from datadriven import parse, printed, run
from engines import NAMES
from lone import hear, lone

import rules.engine
from broker.parallel import engine_of
from matcher.single import Row, Single
from matcher.times import RFC_3339_MAX, RFC_3339_MIN
from routing import wire
from routing.config import NodeConfig
from routing.effects import Log, Send
from routing.messages import (
    VERSION,
    Acknowledged,
    Acks,
    Advertise,
    Code,
    Confirmed,
    Credit,
    Delivery,
    Deploy,
    Goodbye,
    Hello,
    Promise,
    Publish,
    Refused,
    Subscribe,
)
from routing.serving.service import NAMED_MAX
from rules.engine.oracle.naive import NaiveEngine

SCRIPTS = sorted(Path(__file__).with_name("testdata").glob("*.txt"))


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_story(script: Path, engine: str, rewrite: bool) -> None:
    run(script, Conversation(engine).perform, rewrite=rewrite)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_rewriting_a_script_keeps_all_but_the_transcripts(script: Path) -> None:
    text = script.read_text()
    assert printed(parse(text)) == text


def test_a_published_event_is_on_its_way_before_the_engine_and_the_accounts(monkeypatch) -> None:
    """Law 2, for a host that carries effects out as they arise."""
    temp, engine, noted = schema_of("Temp(value: float)"), rules.engine.make("naive"), []
    node = lone(NodeConfig(wall_clock=False), engine)
    node.outlet.emit = noted.append
    rule = (
        "event Temp(value: float) define Hot(value: float) from Temp() as t where value = t.value"
    )
    for message in (
        Hello(VERSION, "sensor", 1.0),
        Advertise(1, (temp,)),
        Subscribe(2, 1, "Temp()"),
        Credit(10),
        Deploy(3, rule),
    ):
        hear(node, b"sensor", message)
    noted.clear()
    push = NaiveEngine.push
    monkeypatch.setattr(
        NaiveEngine, "push", lambda own, batch: (noted.append("pushed"), push(own, batch))
    )
    hear(node, b"sensor", Publish((Single(temp, Row(1, "sensor", 1, None, (20.0,))),)))
    said = [type(one.message) if isinstance(one, Send) else one for one in noted]
    assert said == [Delivery, "pushed", Acknowledged]
    assert node.take_effects() == []


@pytest.mark.parametrize("count", [NAMED_MAX, NAMED_MAX + 3])
def test_of_many_rules_the_log_names_the_first_and_counts_the_others(count: int) -> None:
    node = lone(NodeConfig(name="b"))
    hear(node, b"k", Hello(VERSION, "", 1.0))
    text = "event T(x: int)" + "".join(
        f" rule r{n}: define Z{n}(x: int) from T() as t where x = t.x" for n in range(count)
    )
    hear(node, b"k", Deploy(1, text))
    logs = [one for one in node.take_effects() if isinstance(one, Log)]
    (told,) = [one.fields for one in logs if one.text == "deployed"]
    assert told["rules"] == [f"r{n}" for n in range(NAMED_MAX)]
    assert told.get("more") == (count - NAMED_MAX or None)


def test_the_status_says_what_each_rule_takes_and_an_answer_to_deploy_does_not() -> None:
    temp = schema_of("Temp(value: float)")
    node = lone(NodeConfig(wall_clock=False), rules.engine.make("cdp"))
    rule = (
        "event Temp(value: float) rule rise: define Rise(value: float) from Temp() as t and "
        "last Temp(value < t.value) as u within 5 min from t where value = u.value"
    )
    noted: list[object] = []
    node.outlet.emit = noted.append
    for message in (Hello(VERSION, "sensor", 1.0), Advertise(1, (temp,)), Deploy(2, rule)):
        hear(node, b"sensor", message)
    answers = [one.message for one in noted if isinstance(one, Send)]
    details = [one.detail for one in answers if isinstance(one, Confirmed)]
    (deployed,) = next(one["rules"] for one in details if "rules" in one)
    assert "memory" not in deployed
    for number in range(1, 100):
        hear(node, b"sensor", Publish((Single(temp, Row(number, "sensor", number, None, (1.0,))),)))
    hear(node, b"sensor", Promise(1_000))
    (told,) = node.status(0.0)["rules"]
    assert told["memory"] > 99 * 7 * 8
    assert node.status(0.0)["clients"][0]["user"] is None


@pytest.mark.parametrize("time", [RFC_3339_MIN - 1, RFC_3339_MAX + 1])
def test_an_event_beyond_all_years_is_refused_by_name(time: int) -> None:
    temp, noted = schema_of("Temp(value: float)"), []
    node = lone(NodeConfig(wall_clock=False))
    node.outlet.emit = noted.append
    hear(node, b"sensor", Hello(VERSION, "sensor", 1.0))
    hear(node, b"sensor", Advertise(1, (temp,)))
    for number, moment in enumerate((RFC_3339_MIN, RFC_3339_MAX, time), 1):
        assert not farewells(noted)
        row = Row(moment, "sensor", number, None, (1.0,))
        hear(node, b"sensor", Publish((Single(temp, row),)))
    assert farewells(noted) == [
        (Code.BAD_EVENT, "an event time beyond the years 1 to 9999"),
    ]


def test_sinks_that_get_the_same_share_the_message() -> None:
    """A host encodes a message once that is the same object as the last. Of 40 filters that are
    matched together, the event has to pass each.
    """
    temp = schema_of("Temp(value: float)")
    node = lone(NodeConfig(wall_clock=False))
    hear(node, b"p", Hello(VERSION, "sensor", 1.0))
    hear(node, b"p", Advertise(1, (temp,)))
    for place in range(40):
        peer = b"s%d" % place
        hear(node, peer, Hello(VERSION, "", 1.0))
        hear(node, peer, Subscribe(1, 1 + place % 2, f"Temp(value > {place})"))
        hear(node, peer, Credit(10))
    node.take_effects()
    hear(node, b"p", Publish((Single(temp, Row(1, "sensor", 1, None, (30.5,))),)))
    sent = [one.message for one in node.take_effects() if isinstance(one, Send)]
    deliveries = [one for one in sent if isinstance(one, Delivery)]
    assert [one.subscriptions for one in deliveries] == [((1 + place % 2,),) for place in range(31)]
    assert len({id(one) for one in deliveries}) == 2


def farewells(effects: list[object]) -> list[tuple[Code, str]]:
    messages = [one.message for one in effects if isinstance(one, Send)]
    return [(one.code, one.reason) for one in messages if isinstance(one, Goodbye)]


def test_what_is_gathered_is_settled_once_and_before_any_other_message() -> None:
    """Law 3: three events come together; a subscription between them finds the first two."""
    temp, sent = schema_of("Temp(value: float)"), list[Send]()
    node = lone(NodeConfig(wall_clock=False))
    for peer, message in (
        (b"p", Hello(VERSION, "sensor", 1.0)),
        (b"p", Advertise(1, (temp,))),
        (b"s", Hello(VERSION, "", 1.0)),
        (b"s", Subscribe(1, 1, "Temp()")),
        (b"s", Credit(10)),
    ):
        hear(node, peer, message)
    node.take_effects()

    def publish(number: int) -> tuple[bytes, list[bytes]]:
        row = Row(number, "sensor", number, None, (float(number),))
        return b"p", wire.encode(Publish((Single(temp, row),), number, Acks.BROKER))

    other = (b"s", wire.encode(Subscribe(2, 2, "Temp(value > 2)")))
    node.receive_together([publish(1), publish(2), other, publish(3)], 0.0)
    sent = [effect for effect in node.take_effects() if isinstance(effect, Send)]
    deliveries = [one.message for one in sent if isinstance(one.message, Delivery)]
    assert [sum(map(len, one.batches)) for one in deliveries] == [2, 1]
    assert deliveries[1].subscriptions == ((1, 2),)
    acknowledged = [one.message for one in sent if isinstance(one.message, Acknowledged)]
    assert acknowledged == [Acknowledged(2), Acknowledged(3)]


def test_a_source_gets_credit_before_it_has_none_left() -> None:
    """Law 3: of ten events that come together with a credit of 8, the fourth is followed by more
    credit, before the fifth is read.
    """
    temp, read, granted_behind = schema_of("Temp(value: float)"), [0], []
    node = lone(NodeConfig(wall_clock=False, publish_credit=8))
    hear(node, b"p", Hello(VERSION, "sensor", 1.0))
    hear(node, b"p", Advertise(1, (temp,)))
    node.take_effects()

    def note(effect: object) -> None:
        if isinstance(effect, Send) and isinstance(effect.message, Credit):
            granted_behind.append((read[0], effect.message.events))

    def come() -> Iterator[tuple[bytes, list[bytes]]]:
        for number in range(1, 11):
            read[0] = number
            yield (
                b"p",
                wire.encode(Publish((Single(temp, Row(number, "sensor", number, None, (0.5,))),))),
            )

    node.outlet.emit = note
    node.receive_together(come(), 0.0)
    assert granted_behind == [(4, 4), (8, 4)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_rule_that_the_engine_does_not_take_is_refused(threads: int) -> None:
    """And nothing else happens: the next one is deployed."""
    node = lone(NodeConfig(name="b"), engine_of("aip-published", threads))
    hear(node, b"k", Hello(VERSION, "", 1.0))
    types = "event A(x: int) event B(x: int) "
    hear(node, b"k", Deploy(1, types + "define X() from all A(), B() within 2 s"))
    hear(node, b"k", Deploy(2, types + "define X() from A() or B()"))
    hear(node, b"k", Deploy(3, types + "define X() from A() and each B() within 2 s from A"))
    said = [one.message for one in node.take_effects() if isinstance(one, Send)]
    refused = {one.request: one for one in said if isinstance(one, Refused)}
    assert refused.keys() == {1, 2}
    assert "(all ... within) form no sequence, which AIP as published needs" in refused[1].reason
    assert "rule X: events of either type (or) form no sequence" in refused[2].reason


def test_a_message_of_an_unknown_link_is_not_decoded_if_it_is_larger_than_any_hello(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "decode", lambda frames: pytest.fail("it was decoded"))
    node = lone(NodeConfig(wall_clock=False), NaiveEngine())
    types = tuple(schema_of(f"T{number}({'a' * 200}: int)") for number in range(400))
    node.receive_frames(b"p", wire.encode(Advertise(1, types)), 0.0)
    assert [code for code, _ in farewells(node.take_effects())] == [Code.UNKNOWN]
