"""Every message that a client may say, of a user of whom every right is taken away."""

import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from event_batches import batch_of_events
from lone import fire, hear, lone
from plain_messages import PLAIN

from matcher.model import Causes, Event, EventBatch, EventIds, EventType, StringColumn
from routing.config import NodeConfig
from routing.effects import Send
from routing.messages import (
    VERSION,
    Act,
    Advertise,
    Code,
    Confirmed,
    Deploy,
    FromClient,
    Goodbye,
    Hello,
    KeepDurable,
    Permit,
    Promise,
    Publish,
    Refused,
    Rejected,
    RemoveDurable,
    ResendDurable,
    Rights,
    Unadvertise,
)
from routing.network.brokers.broker import Broker
from routing.serving.required_rights import REQUIRED, rights_table
from routing.serving.source_names import SourceNames

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
GAS = EventType.of("Gas", tank="string", level="float")
NONE = Rights("nobody", (), "access.toml", ("[user.nobody] (line 1)",))
MAKER = Rights(
    "maker", (Permit(Act.PUBLISH, "Gas", 2), Permit(Act.PUBLISH, "Steam", 2)), "access.toml"
)
BY_USER_OF_SINK = (RemoveDurable, KeepDurable, ResendDurable)
"""Asked of the sink that they name (test_durable)."""


def gas(*levels: float, source: str = "meter", first: int = 1) -> Publish:
    events = [
        Event("Gas", 1_000_000 * place, source, str(place), {"tank": "t", "level": level}, place)
        for place, level in enumerate(levels, first)
    ]
    return Publish((batch_of_events(GAS, events),), 0)


def met(rights: Rights, name: str = "") -> tuple[Broker, bytes]:
    """A broker that has welcomed a client of these rights, after another user's source was lost."""
    broker = lone(NodeConfig(wall_clock=False))
    broker.node.rights_of = lambda peer: MAKER if peer == b"maker" else rights
    hear(broker, b"maker", Hello(VERSION, "meter", 60.0))
    hear(broker, b"maker", Advertise(1, (GAS,)))
    broker.lose(b"maker", 0.0)
    hear(broker, b"other", Hello(VERSION, name, 60.0))
    fire(broker, 0.0)
    broker.take_effects()
    return broker, b"other"


def said(broker: Broker, peer: bytes) -> list[Any]:
    return [one.message for one in broker.take_effects() if isinstance(one, Send)]


def seen(broker: Broker) -> dict[str, Any]:
    """What others can see of it, but for the counts of refusals and the client itself."""
    facts = dict(broker.status(0.0))
    facts.pop("totals")
    facts.pop("clients"), facts.pop("users")
    return facts


def messages_that_need_a_right() -> list[Any]:
    kinds = [kind for kind in get_args(FromClient) if REQUIRED[kind].check is not None]
    plain = [one for one in PLAIN if type(one) in kinds and not isinstance(one, Hello)]
    return [*plain, gas(1.5), Unadvertise(3, ("Gas",))]


def test_no_message_is_without_an_entry_and_the_page_has_them_all() -> None:
    assert REQUIRED.keys() == set(get_args(FromClient))
    table = re.search(r"\| message \| needs \|\n(?:\|.*\n)+", PAGE.read_text())
    assert table is not None
    assert table[0].strip() == rights_table()


@pytest.mark.parametrize("message", messages_that_need_a_right(), ids=lambda one: repr(one)[:40])
def test_nothing_of_it_is_done(message: Any) -> None:
    broker, peer = met(NONE, "its-own")
    before = seen(broker)
    hear(broker, peer, message)
    answers = said(broker, peer)
    codes = [one.code for one in answers if isinstance(one, Refused | Goodbye)]
    assert codes
    assert set(codes) == {Code.NOT_ALLOWED}
    assert not any(isinstance(one, Confirmed) for one in answers)
    assert seen(broker) == before


def test_a_name_is_refused_before_it_can_be_used_or_taken_over() -> None:
    for name in ("meter", "meter#part-3", "meter#part-hold"):
        broker, peer = met(Rights("nobody"), name)
        hear(broker, peer, gas(9.0, source=name))
        hear(broker, peer, Promise(2**62))
        assert broker.context.sources.find("meter").peer is None
        assert broker.context.sources.find("meter").events == 0


def test_a_lost_source_is_promised_nothing_by_its_user_once_that_may_publish_no_more() -> None:
    """Asked of each message: no Advertise comes before it."""
    broker, peer = met(Rights("maker", (Permit(Act.PUBLISH, "Steam", 2),)), "meter")
    for message in (Promise(2**61), Unadvertise(2, ("Gas",)), gas(3.0)):
        hear(broker, peer, message)
    source = broker.context.sources.find("meter")
    assert (list(source.floors), source.events, source.promise < 0) == (["Gas"], 0, True)


def test_events_beside_the_conditions_are_rejected_one_by_one() -> None:
    filters = 'Gas(tank = "t" and level < 5)', "Gas(level > 90)"
    rights = Rights("some", tuple(Permit(Act.PUBLISH, "Gas", 7, one) for one in filters), "a.toml")
    broker, peer = met(rights, "gauge")
    hear(broker, peer, Advertise(1, (GAS,)))
    said(broker, peer)
    levels = [1.0, 50.0, 95.0, 60.0, 70.0] + [2.0] * 40
    hear(broker, peer, gas(*levels, source="gauge"))
    hear(broker, peer, gas(40.0, source="gauge", first=46))
    rejections = [one for one in said(broker, peer) if isinstance(one, Rejected)]
    assert [one.sequences for one in rejections] == [((2, 2), (4, 5)), ((46, 46),)]
    assert {one.code for one in rejections} == {Code.NOT_ALLOWED}
    source = broker.context.sources.find("gauge")
    assert (source.events, source.rejected, source.last_sequence) == (42, 4, 46)


def test_a_type_without_what_the_conditions_ask_for_is_not_advertised() -> None:
    rights = Rights("some", (Permit(Act.PUBLISH, "Gas", 7, "Gas(valve = 3)"),), "a.toml")
    broker, peer = met(rights, "gauge")
    hear(broker, peer, Advertise(1, (GAS,)))
    (refused,) = [one for one in said(broker, peer) if isinstance(one, Refused)]
    assert refused.code is Code.NOT_ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        "rule r: define Mine() from {0}(nothing = 1)",
        "rule r: define Mine() from Own() and last {0}(nothing = 1) within 1 s from Own",
        "rule r: define Mine(n: int) from Own() where n = Count({0}(x = 1) within 1 s from Own)",
        "event {0}(tank: int) rule r: define Mine() from Own(y = 2)",
        "rule r: define {0}(level: string) from Own() where level = Own.none",
        "event {0}(tank: int) event Own() rule r: define Mine() from Own()",
        "event {0}(tank: string, level: float) event Own() rule r: define Mine() from Own()",
    ],
)
def test_errors_of_a_text_are_alike_for_types_that_are_there_and_those_that_are_not(
    text: str,
) -> None:
    acts = (Act.DEPLOY, "r"), (Act.DEFINE, "Mine"), (Act.SUBSCRIBE, "Own")
    rights = Rights("reader", tuple(Permit(act, name, 1) for act, name in acts), "access.toml")
    reasons = []
    for name in ("Gas", "Fog"):
        broker, peer = met(rights)
        hear(broker, peer, Deploy(1, text.format(name)))
        fire(broker, 0.0)
        (refused,) = [one for one in said(broker, peer) if isinstance(one, Refused)]
        assert refused.code is Code.NOT_ALLOWED
        reasons.append(refused.reason.replace(name, "?"))
    assert reasons[0] == reasons[1]


def recorded(source: str, by: str = "tape#part-0") -> Publish:
    """An event that is published as one recorded by that source."""
    (batch,) = gas(1.0, source=by).batches
    ids = EventIds(StringColumn.constant(source, 1), np.array([7]), None)
    causes = Causes(np.array([0, 1]), ids, np.ones(1, np.bool_), np.zeros(1, np.bool_))
    ids = EventIds(batch.ids.source, batch.ids.sequence)
    return Publish((EventBatch(GAS, batch.time, ids, batch.columns, causes),), 0)


def test_a_recorded_event_is_nobodys_else_than_its_publishers() -> None:
    rights = Rights("archivist", (Permit(Act.PUBLISH, "Gas", 2),), "access.toml")
    for source, is_taken in (("attic", True), ("meter", False), ("meter#part-1", False)):
        broker, peer = met(rights, "tape#part-0")
        hear(broker, peer, Advertise(1, (GAS,)))
        hear(broker, peer, recorded(source))
        found = broker.context.sources.find("tape#part-0")
        assert (found.events == 1) is is_taken, source


@pytest.mark.parametrize(("name", "times"), [("tape", 1), ("tape#part-0", 9_000)])
def test_names_that_are_refused_anyway_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, name: str, times: int
) -> None:
    """Of a source that is no part, and in messages with more events than there is credit for."""
    rights = Rights("archivist", (Permit(Act.PUBLISH, "Gas", 2),), "access.toml")
    broker, peer = met(rights, name)
    hear(broker, peer, Advertise(1, (GAS,)))
    found = list[str]()
    monkeypatch.setattr(SourceNames, "check", lambda self, rights, *names: found.extend(names))
    (batch,) = recorded("attic", name).batches
    hear(broker, peer, Publish((batch.take(np.zeros(2, np.int64)),) * times, 0))
    assert any(isinstance(one, Goodbye) for one in said(broker, peer))
    assert not found


def test_who_knows_the_instance_of_anothers_client_does_not_take_its_place() -> None:
    broker, peer = met(Rights("ann"), "board")
    broker.node.rights_of = lambda other: Rights("ben" if other == b"thief" else "ann")
    hear(broker, b"first", Hello(VERSION, "desk", 60.0, 7))
    hear(broker, b"thief", Hello(VERSION, "desk", 60.0, 7))
    (refused,) = [one for one in said(broker, peer) if isinstance(one, Refused)]
    assert refused.code is Code.NAME_TAKEN
    hear(broker, b"again", Hello(VERSION, "desk", 60.0, 7))
    assert broker.context.links.named("desk").peer == b"again"
