"""The path of an event through live brokers, and through a tracer alone."""

import subprocess
import sys
import time

import pytest
from event_batches import batch_of_events

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from broker.tracing import Tracer
from matcher.errors import BadEvent
from matcher.model import Event, EventType
from routing import wire
from routing.effects import Close, Send
from routing.errors import WireError
from routing.messages import Hello, Publish

TEMP = EventType.of("Temp", n="int")
TRACE, OTHER = f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'c' * 32}-{'d' * 16}-00"
RULE = "event Temp(n: int) rule hot: define Hot(n: int) from Temp(n > 40) where n = Temp.n"


def published(*numbers: int, traces: tuple[tuple[int, str], ...] = ()) -> list[bytes]:
    events = [Event("Temp", one, "t", str(one), {"n": one}, one) for one in numbers]
    return wire.encode(Publish((batch_of_events(TEMP, events),), traces=traces))


def test_a_trace_context_crosses_with_its_event_and_costs_others_nothing() -> None:
    message = wire.decode(published(1, 2, traces=((2, TRACE),)))
    assert isinstance(message, Publish)
    assert message.traces == ((2, TRACE),)
    assert sum(map(len, published(1, 2, traces=((2, TRACE),)))) > sum(map(len, published(1, 2)))
    with pytest.raises(WireError):
        wire.decode(published(1, traces=((1, "00-abc"),)))


def test_the_latest_events_are_kept_and_no_others() -> None:
    tracer = Tracer(3)
    tracer.note_received(b"p", wire.encode(Hello(1, "t", 1.0)))
    for number in range(5):
        tracer.note_received(b"p", published(number, traces=((number, TRACE),)))
    assert tracer.find("t#1") == {"traced": 3, "events": []}
    (facts,) = tracer.find("t#4")["events"]
    assert [step[1:] for step in facts["steps"]] == [["came from", "client t"]]
    assert facts["traceparent"] == TRACE
    tracer.note_effect(Close(b"p", ""))
    tracer.note_effect(Send(b"p", wire.decode(published(4))))
    assert [step[1:] for step in tracer.find("4")["events"][0]["steps"]][1:] == [
        ["sent to", "a peer"]
    ]


def test_an_event_is_followed_through_a_network() -> None:
    common = ("--engine", "naive", "--trace-events-max", "100", "--strategy", "centralized")
    with (
        BrokerProcess("--name", "b1", *common) as first,
        BrokerProcess("--name", "b2", *common, "--link", first.endpoint) as second,
        RuleManager(second.endpoint) as manager,
    ):
        while not (is_whole := manager.status()["network"])["settled"] or (
            len(is_whole["brokers"]) < 2
        ):
            time.sleep(0.05)
        with (
            Publisher(first.endpoint, name="t", types=[TEMP], increasing=True) as source,
            Subscriber(second.endpoint, "Hot()", name="k") as sink,
        ):
            manager.add(RULE)
            with pytest.raises(BadEvent, match="traceparent"):
                source.publish("Temp", n=1, traceparent="00-ab")
            source.publish("Temp", n=1)
            source.publish("Temp", n=50, traceparent=TRACE)
            source.publish("Temp", n=51, traceparent=OTHER)
            hot, _ = (sink.receive(timeout_s=10) for _ in range(2))
            brokers = f"{first.endpoint},{second.endpoint}"
            found = trace("t#2", brokers)
            assert f"trace {TRACE}" in found
            assert "b1  came from client t" in found
            assert f"followed by rexmq/rule/hot#{hot.id}" in found
            found = trace(hot.id, brokers)
            assert f"links {TRACE}\n" in found
            assert "causes t#2" in found
            assert "b2  delivered to client k" in found
            assert "not any more" in trace("t#999", brokers)
            with BrokerProcess("--engine", "naive", "--name", "b9") as other:
                assert "no traces are kept at b9" in trace("t#2", other.endpoint)


def trace(event: str, brokers: str) -> str:
    words = [sys.executable, "-m", "broker", "trace", event, "--broker", brokers]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
