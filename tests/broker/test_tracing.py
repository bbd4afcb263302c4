"""The path of an event through live brokers, and through a tracer alone."""

import json
import subprocess
import time
from pathlib import Path

import command
import pytest
from event_batches import batch_of_events
from forked import started

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from broker.traces import Tracer
from matcher.errors import BadEvent
from matcher.model import Event, EventType
from routing import wire
from routing.effects import Close, Send
from routing.errors import WireError
from routing.messages import Hello, Publish

TEMP = EventType.of("Temp", n="int")
TRACE, OTHER = f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'c' * 32}-{'d' * 16}-00"
RULE = "event Temp(n: int) rule hot: define Hot(n: int) from Temp(n > 40) where n = Temp.n"


def published(*numbers: int, traces: tuple[tuple[int, tuple[str, ...]], ...] = ()) -> list[bytes]:
    events = [Event("Temp", one, "t", str(one), {"n": one}, one) for one in numbers]
    return wire.encode(Publish((batch_of_events(TEMP, events),), traces=traces))


def test_a_trace_context_crosses_with_its_event_and_costs_others_nothing() -> None:
    message = wire.decode(published(1, 2, traces=((1, (TRACE,)),)))
    assert isinstance(message, Publish)
    assert message.traces == ((1, (TRACE,)),)
    assert sum(map(len, published(1, 2, traces=((1, (TRACE,)),)))) > sum(map(len, published(1, 2)))
    with pytest.raises(WireError):
        wire.decode(published(1, traces=((0, ("00-abc",)),)))


def test_the_latest_events_are_kept_and_no_others() -> None:
    tracer = Tracer(3)
    tracer.note_received(b"p", wire.encode(Hello(1, "t", 1.0)))
    for number in range(5):
        tracer.note_received(b"p", published(number, traces=((0, (TRACE,)),)))
    assert tracer.find("t#1") == {"traced": 3, "events": []}
    (facts,) = tracer.find("t#4")["events"]
    assert [step[1:] for step in facts["steps"]] == [["came from", "client t"]]
    assert facts["traces"] == [TRACE]
    tracer.note_effect(Close(b"p", ""))
    tracer.note_effect(Send(b"p", wire.decode(published(4))))
    assert [step[1:] for step in tracer.find("4")["events"][0]["steps"]][1:] == [
        ["sent to", "a peer"]
    ]


def test_an_event_is_followed_through_a_network_from_any_of_its_brokers() -> None:
    common = ("--engine", "naive", "--trace-events-max", "100", "--strategy", "centralized")
    with (
        BrokerProcess("--name", "b1", *common) as first,
        BrokerProcess("--name", "b2", *common, "--link", first.endpoint) as second,
        BrokerProcess("--name", "b3", *common[:2], *common[4:], "--link", second.endpoint) as third,
        RuleManager(second.endpoint) as manager,
    ):
        while not (is_whole := manager.status()["network"])["settled"] or (
            len(is_whole["brokers"]) < 3
        ):
            time.sleep(0.05)
        with (
            Publisher(first.endpoint, name="t", types=[TEMP], increasing=True) as source,
            Subscriber(third.endpoint, "Hot()", "Temp()", name="k") as sink,
        ):
            manager.add(RULE)
            with pytest.raises(BadEvent, match="traceparent"):
                source.publish("Temp", n=1, traceparent="00-ab")
            with pytest.raises(BadEvent):
                source.publish("Temp", m=1, traceparent=OTHER)
            source.publish("Temp", n=1)
            source.publish("Temp", n=50, traceparent=TRACE)
            source.publish("Temp", n=51, traceparent=OTHER)
            got = [sink.receive(timeout_s=30) for _ in range(5)]
            assert [one.traces for one in got if one.type == "Temp"] == [(), (TRACE,), (OTHER,)]
            hot, other = (one for one in got if one.type == "Hot")
            assert (hot.traces, other.traces) == ((TRACE,), (OTHER,))
            for broker in (first, second, third):
                found = trace("t#2", broker.endpoint)
                assert f"traces {TRACE}\n" in found
                assert "b1  came from client t" in found
                assert "b2  came from broker b1" in found
                assert f"followed by rexmq/rule/hot#{hot.id}" in found
                found = trace(hot.id, broker.endpoint)
                assert f"traces {TRACE}\n" in found
                assert "causes t#2" in found
                assert "b2  sent to broker b3" in found
                assert "no traces are kept at b3" in found
            assert "not any more" in trace("t#999", third.endpoint)
            with BrokerProcess("--engine", "naive", "--name", "b9") as alone:
                assert "no traces are kept at b9" in trace("t#2", alone.endpoint)


LINES = """
{{"type": "Temp", "time": 1, "source": "t", "id": "a", "data": {{"n": 50}}, "traceparent": "{0}"}}
{{"type": "Temp", "time": 2, "source": "t", "id": "b", "data": {{"n": 51}}, "traceparent": "00-x"}}
{{"type": "Temp", "time": 3, "source": "t", "id": "c", "data": {{"n": 52}}, "tracelinks": ["{1}"]}}
"""


def test_cloudevents_bear_their_contexts(tmp_path: Path) -> None:
    events, rules = tmp_path / "events.jsonl", tmp_path / "hot.tesla"
    events.write_text(LINES.format(TRACE, OTHER).lstrip())
    rules.write_text(RULE)
    lines = run("detect", "--rules", str(rules), "--events", str(events)).splitlines()
    found = [json.loads(one) for one in lines]
    assert [one.get("tracelinks") for one in found] == [[TRACE], None, [OTHER]]
    with (
        BrokerProcess("--engine", "naive", "--name", "b1") as broker,
        started(
            *("sub", "Temp()", "--count", "3", "--broker", broker.endpoint),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as printing,
    ):
        with RuleManager(broker.endpoint) as manager:
            while not manager.status()["sinks"]:
                time.sleep(0.05)
        run("pub", "--file", str(events), "--replay", "--broker", broker.endpoint)
        out, _ = printing.communicate(timeout=30)
    printed = [json.loads(one).get("traceparent") for one in out.splitlines()]
    assert printed == [TRACE, None, OTHER]


def run(*words: str) -> str:
    done = command.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def trace(event: str, broker: str) -> str:
    """The answer of all brokers; on a machine that has much else to do one may come late."""
    while "no answer of" in (found := run("trace", event, "--broker", broker)):
        pass
    return found
