"""Every message twice, before Hello, and while the first one waits to be answered: what comes of it
for its sender, and that nothing does for another client.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import pytest
from lone import fire, hear, lone
from plain_messages import PLAIN

from matcher.model import EventType
from matcher.single import Row, Single
from routing.config import NodeConfig
from routing.effects import Close, Send
from routing.messages import (
    VERSION,
    Acknowledged,
    Advertise,
    Code,
    Confirmed,
    Credit,
    Deploy,
    FromBroker,
    FromClient,
    Goodbye,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Promise,
    Publish,
    Refused,
    Remove,
    SendAway,
    ShowRule,
    StatusRequest,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from routing.network.brokers.broker import Broker

GAS = EventType.of("Gas", tank="string", level="float")
LEVEL = Publish((Single(GAS, Row(1_000_000, "meter", 1, None, ("t", 1.5))),))
TEXT = "rule low: define Low(tank: string) from Gas(level < 1) as g where tank = g.tank"
ADVERTISE, SUBSCRIBE, DEPLOY = Advertise(1, (GAS,)), Subscribe(1, 1, "Gas()"), Deploy(2, TEXT)
SENT = b"sent twice"


class Case(NamedTuple):
    """A message behind others, and the answers to the first and to the second time."""

    message: Message
    answers: tuple[object, object]
    behind: Sequence[Message] = ()


def refused(code: Code) -> tuple[type, Code]:
    return Refused, code


def parted(code: Code) -> tuple[type, Code]:
    return Goodbye, code


UNKNOWN = refused(Code.UNKNOWN)
CASES = [
    Case(ADVERTISE, (Confirmed, Confirmed)),
    Case(Unadvertise(2, ("Gas",)), (Confirmed, UNKNOWN), [ADVERTISE]),
    Case(LEVEL, (Acknowledged, Acknowledged), [ADVERTISE]),
    Case(Promise(5), (None, None), [ADVERTISE]),
    Case(SUBSCRIBE, (Confirmed, refused(Code.IN_USE))),
    Case(Unsubscribe(2, 1), (Confirmed, UNKNOWN), [SUBSCRIBE]),
    Case(Credit(5), (None, None), [SUBSCRIBE]),
    Case(Nack(1, 1), (parted(Code.PROTOCOL), parted(Code.UNKNOWN)), [SUBSCRIBE]),
    Case(DEPLOY, (Confirmed, refused(Code.IN_USE)), [ADVERTISE]),
    Case(Remove(3, "low"), (Confirmed, UNKNOWN), [ADVERTISE, DEPLOY]),
    Case(ShowRule(3, "low"), (Confirmed, Confirmed), [ADVERTISE, DEPLOY]),
    Case(SendAway(3, 1), (Confirmed, UNKNOWN)),
    Case(Goodbye("over", Code.CLOSING), (parted(Code.CLOSING), parted(Code.UNKNOWN))),
    Case(Heartbeat(), (None, None)),
]
TOLD = ["ListRules", "StatusRequest", "Drain", "ShowTrace", "ShowNetwork", "ShowUsers", "ShowLog"]
NOT_THERE = ["RemoveDurable", "KeepDurable", "ResendDurable", "ShowQueue"]


def cases() -> list[Case]:
    """A case for each kind that a client or a broker says; of the others the first plain one."""
    known = {Hello, *(type(case.message) for case in CASES)}
    found = list(CASES)
    for one in {type(one): one for one in reversed(PLAIN)}.values():
        kind, name = type(one), type(one).__name__
        if kind in known or kind not in {*get_args(FromClient), *get_args(FromBroker)}:
            continue
        if name in TOLD:
            found.append(Case(one, (Confirmed, Confirmed)))
        elif name in NOT_THERE:
            found.append(Case(one, (UNKNOWN, UNKNOWN)))
        elif name == "ReadLog":
            found.append(Case(one, (refused(Code.NO_STORE), refused(Code.NO_STORE))))
        else:  # what has to follow something else, and what brokers say
            found.append(Case(one, (parted(Code.PROTOCOL), parted(Code.UNKNOWN))))
    return found


def met(case: Case) -> Broker:
    broker = lone(NodeConfig(wall_clock=False))
    hear(broker, b"gone", Hello(VERSION, "", 60.0))
    hear(broker, SENT, Hello(VERSION, "meter", 60.0, 7))
    hear(broker, b"other", Hello(VERSION, "other", 60.0))
    for message in case.behind:
        hear(broker, SENT, message)
    broker.take_effects()
    return broker


def answers(broker: Broker) -> list[object]:
    """The answers that went to the sender, and nothing to others but to one who was sent away."""
    effects = broker.take_effects()
    sent = [one for one in effects if isinstance(one, Send)]
    assert {one.peer for one in [*sent, *effects] if isinstance(one, Send | Close)} <= {
        SENT,
        b"gone",
    }
    return [
        (type(one.message), one.message.code)
        if isinstance(one.message, Refused | Goodbye)
        else type(one.message)
        for one in sent
        if one.peer == SENT and not isinstance(one.message, Heartbeat)
    ]


def expected(case: Case) -> list[Any]:
    return [one for one in case.answers if one is not None]


def each() -> pytest.MarkDecorator:
    kinds = [type(case.message).__name__ for case in cases()]
    return pytest.mark.parametrize("case", cases(), ids=kinds)


def test_every_kind_that_a_client_says_has_a_case() -> None:
    assert {Hello, *(type(case.message) for case in cases())} >= set(get_args(FromClient))


def test_hello_twice_costs_the_link() -> None:
    case = Case(Hello(VERSION, "meter", 60.0, 7), (parted(Code.PROTOCOL), None))
    broker = met(case)
    hear(broker, SENT, case.message)
    assert answers(broker) == expected(case)


@each()
def test_twice(case: Case) -> None:
    broker = met(case)
    said = []
    for _ in range(2):
        hear(broker, SENT, case.message)
        said += answers(broker)
    assert said == expected(case)
    hear(broker, b"other", StatusRequest(9))
    (told,) = [one.message for one in broker.take_effects() if isinstance(one, Send)]
    assert isinstance(told, Confirmed)
    if case.message is LEVEL:
        (source,) = told.detail["sources"]
        assert (source["events"], source["duplicates"]) == (1, 1)


@each()
def test_the_second_one_comes_before_the_first_is_answered(case: Case) -> None:
    """Both bear one number."""
    broker = met(case)
    for _ in range(2):
        broker.node.receive(SENT, case.message, 0.0)
    fire(broker, 0.0)
    assert sorted(map(str, answers(broker))) == sorted(map(str, expected(case)))


@each()
def test_before_hello_it_costs_the_link_and_changes_nothing(case: Case) -> None:
    broker = met(case)
    before = broker.status(0.0)
    hear(broker, b"stranger", case.message)
    sent = [one.message for one in broker.take_effects() if isinstance(one, Send)]
    assert [(type(one), getattr(one, "code", None)) for one in sent] == [parted(Code.UNKNOWN)]
    assert broker.status(0.0) == before
