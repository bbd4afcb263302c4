"""Subscriptions that begin in the past, over three live brokers with stores."""

import asyncio
import json
import random
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import command
import pytest
from live_hosts import Hosts
from pairs import some_of

from broker import AsyncSubscriber, Publisher, RefusedError, RuleManager, Subscriber
from broker.network import Member
from matcher import EventType
from matcher.model import Event
from matcher.times import EPOCH

TYPES = [EventType.of("Temp", room="string", value="float"), EventType.of("Smoke", room="string")]
FIRE = """
event Temp(room: string, value: float)
event Smoke(room: string)
rule fire: define Fire(room: string, value: float)
  from Smoke(room = $r) as s and each Temp(room = $r, value > 40) as t within 30 s from s
  where room = s.room, value = t.value
"""
ALARM = """
rule alarm: define Alarm(room: string) from Fire(room = $r) as f
  and not Smoke(room = "shed") within 5 s from f where room = f.room
"""
LINE = (Member("b1", ()), Member("b2", ("b1",)), Member("b3", ("b2",)))
FILTERS = ("Fire()", "Alarm()", "Temp(value > 60)")
WAIT_S = 60.0


@pytest.fixture
def strategy() -> str:
    return "push-pull-mt"


@pytest.fixture
def network(tmp_path: Path, strategy: str) -> Iterator[Hosts]:
    class Stored(Hosts):
        def start(self, broker: str, **options: object) -> None:
            super().start(broker, data=str(tmp_path / "stores" / broker), **options)

    hosts = Stored(tmp_path, LINE, strategy=strategy, engine="naive")
    try:
        await_settled(hosts)
        yield hosts
    finally:
        hosts.kill()


def await_settled(hosts: Hosts) -> None:
    for name, _ in hosts.await_ready():
        with RuleManager(hosts.address(name)) as manager:
            while True:
                found = manager.status()["network"]
                if found["settled"] and len(found["brokers"]) == len(LINE):
                    break
                time.sleep(0.05)


class Sources:
    """One at each broker, whose times go by a clock of the test's."""

    def __init__(self, hosts: Hosts, seed: int) -> None:
        self._random = random.Random(seed)
        self._now = 1_700_000_000
        self._all = [
            Publisher(hosts.address(name), name=f"s-{name}", types=TYPES, replay=True)
            for name, _ in hosts.await_ready()
        ]

    def publish(self, events: int) -> None:
        """Publish events, and promise that nothing before the last follows."""
        for _ in range(events):
            self._now += self._random.randint(0, 3)
            room = self._random.choice(("hall", "shed", "attic"))
            source = self._random.choice(self._all)
            if self._random.random() < 0.7:
                value = self._random.randint(20, 80)
                source.publish("Temp", at=self._now * 1_000_000, room=room, value=float(value))
            else:
                source.publish("Smoke", at=self._now * 1_000_000, room=room)
        self.promise()

    def promise(self) -> None:
        for one in self._all:
            one.promise(self._now * 1_000_000)
            one.wait(WAIT_S)

    def close(self) -> None:
        for one in self._all:
            one.close()


def told(event: Event) -> tuple[object, ...]:
    return event.type, event.time, event.source, event.id, str(event.data)


def text_of(time: int) -> str:
    return f"{EPOCH + timedelta(microseconds=time):%Y-%m-%dT%H:%M:%SZ}"


def taken(subscriber: Subscriber, quiet_s: float = 1.5) -> list[tuple[object, ...]]:
    found = []
    while True:
        try:
            found.append(told(subscriber.receive(quiet_s)))
        except TimeoutError:
            return found


@pytest.mark.parametrize("seed", some_of([1, 2], 0))
def test_it_gives_what_a_subscription_from_the_beginning_was_given(
    network: Hosts, seed: int
) -> None:
    with RuleManager(network.address("b2")) as manager:
        manager.add(FIRE)
        manager.add(ALARM)
    with (
        closing(Sources(network, seed)) as sources,
        Subscriber(network.address("b3"), *FILTERS) as always,
    ):
        sources.publish(200)
        with Subscriber(network.address("b1"), *FILTERS, start="earliest") as late:
            found = [told(late.receive(WAIT_S))]  # it has begun
            sources.publish(100)
            found += taken(late)
            sources.publish(100)
            sources.close()
            found += taken(late)
        expected = taken(always)
    print(f"seed {seed}: {len(expected)} events")
    assert len(expected) > 100
    assert sorted(found) == sorted(expected)


def test_from_a_time_on(network: Hosts) -> None:
    with RuleManager(network.address("b1")) as manager:
        manager.add(FIRE)
    with (
        closing(Sources(network, 3)) as sources,
        Subscriber(network.address("b1"), "Fire()", "Smoke()") as always,
    ):
        sources.publish(150)
        middle = sources._now
        sources.publish(150)
        sources.close()
        expected = [one for one in taken(always) if one[1] >= middle * 1_000_000]
    with Subscriber(network.address("b3"), "Fire()", "Smoke()", start=middle) as late:
        found = taken(late)
    assert len(expected) > 30
    assert sorted(found) == sorted(expected)


def test_a_broker_without_a_log_is_named(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, LINE[:1], strategy="centralized", engine="naive")
    try:
        with pytest.raises(RefusedError, match="broker 'b1' keeps no log") as refusal:
            Subscriber(hosts.address("b1"), "Temp()", start="earliest")
        assert refusal.value.code == "no-store"
    finally:
        hosts.kill()


def test_a_broker_that_is_out_of_reach_is_named(network: Hosts, monkeypatch) -> None:
    monkeypatch.setattr("broker.client.logs.PATIENCE_S", 1.0)
    with closing(Sources(network, 4)) as sources:
        sources.publish(20)
    network.crash("b3")
    with (
        pytest.raises(RefusedError, match="'b3' is out of reach"),
        Subscriber(network.address("b1"), "Temp()", start="earliest") as subscriber,
    ):
        taken(subscriber)


def test_the_past_is_read_while_the_network_changes(network: Hosts) -> None:
    with closing(Sources(network, 7)) as sources:
        sources.publish(50)
        for broker in ("b2", "b3"):
            network.break_links(broker)
            with Subscriber(network.address("b1"), "Temp()", "Smoke()", start="earliest") as late:
                assert len([told(late.receive(WAIT_S)) for _ in range(50)]) == 50


def test_the_logs_of_a_network_as_one_file(network: Hosts, tmp_path: Path) -> None:
    with RuleManager(network.address("b1")) as manager:
        manager.add(FIRE)
    with (
        closing(Sources(network, 5)) as sources,
        Subscriber(network.address("b2"), "Fire()") as always,
    ):
        sources.publish(200)
        sources.close()
        expected = taken(always)
    rules, events = tmp_path / "fire.tesla", tmp_path / "events.jsonl"
    rules.write_text(FIRE)
    broker = ("--broker", network.address("b1"), "--output", str(events))
    done = command.run("log", "export", "--network", *broker)
    assert done.returncode == 0, done.stderr
    done = command.run("detect", "--rules", str(rules), "--events", str(events))
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > 50
    assert [(one["time"], str(one["data"])) for one in found] == [
        (text_of(one[1]), one[4]) for one in expected
    ]


@pytest.mark.parametrize(
    "strategy", some_of(["centralized", "distributed-st", "push-pull-mt", "adaptive"], 1, 3)
)
def test_a_rule_since_a_past_instant_finds_what_detect_finds_in_the_logs(
    network: Hosts, tmp_path: Path
) -> None:
    rules, events = tmp_path / "fire.tesla", tmp_path / "events.jsonl"
    rules.write_text(FIRE)
    with (
        closing(Sources(network, 6)) as sources,
        RuleManager(network.address("b3")) as manager,
        Subscriber(network.address("b2"), "Fire()") as subscriber,
    ):
        sources.publish(150)
        since = sources._now
        sources.publish(150)
        taken(subscriber)
        done = manager.add(FIRE, since=since)
        assert done["rules"][0]["since"] == since * 1_000_000
        found = taken(subscriber)
        assert found, "what was found in the past"
        sources.publish(100)
        sources.close()
        found += taken(subscriber)
    begin = ("--from", text_of(since * 1_000_000))
    broker = ("--broker", network.address("b1"), "--output", str(events), *begin)
    assert command.run("log", "export", "--network", *broker).returncode == 0
    done = command.run("detect", "--rules", str(rules), "--events", str(events))
    expected = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(expected) > 50
    assert [
        (f"{EPOCH + timedelta(microseconds=one[1]):%Y-%m-%dT%H:%M:%SZ}", one[4]) for one in found
    ] == [(one["time"], str(one["data"])) for one in expected]


def test_a_rule_since_before_what_a_broker_keeps_is_refused(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, LINE[:2], strategy="centralized", engine="naive")
    try:
        with closing(Publisher(hosts.address("b1"), name="s", types=TYPES)) as source:
            source.publish("Smoke", room="hall")
            source.wait(WAIT_S)
            with (
                RuleManager(hosts.address("b2")) as manager,
                pytest.raises(RefusedError, match="broker 'b1' keeps no log") as refusal,
            ):
                manager.add(FIRE, since=1_700_000_000)
            assert refusal.value.code == "no-store"
    finally:
        hosts.kill()


def publish(endpoint: str, values: range) -> None:
    with Publisher(endpoint, name="s", types=TYPES, increasing=True) as source:
        for value in values:
            source.publish("Temp", room="hall", value=float(value))
        source.wait(WAIT_S)


def values_of(events: list[Event]) -> list[float]:
    return [event.data["value"] for event in events]


def test_a_durable_subscription_is_given_the_past_until_something_behind_it_is_acknowledged(
    alone: str,
) -> None:
    def billing() -> Subscriber:
        options = {"name": "billing", "durable": True, "acks": "explicit", "start": "earliest"}
        return Subscriber(alone, "Temp()", **options)

    publish(alone, range(5))
    with billing() as first:
        assert values_of([first.receive(WAIT_S) for _ in range(3)]) == [0, 1, 2]
    with billing() as second:  # the first died in the past
        assert values_of([second.receive(WAIT_S) for _ in range(5)]) == [0, 1, 2, 3, 4]
        with pytest.raises(TimeoutError):
            second.receive(1)
        publish(alone, range(5, 7))
        assert values_of([second.receive(WAIT_S)]) == [5]
        second.acknowledge()
    with billing() as third:
        assert values_of([third.receive(WAIT_S)]) == [6]


def test_with_asyncio(alone: str) -> None:
    publish(alone, range(5))

    async def take() -> list[Event]:
        async with AsyncSubscriber(alone, "Temp(value > 1)", start="earliest") as subscriber:
            found = [await subscriber.receive(WAIT_S) for _ in range(3)]
            with pytest.raises(TimeoutError):
                await subscriber.receive(1)
            await asyncio.to_thread(publish, alone, range(5, 7))
            return found + [await subscriber.receive(WAIT_S) for _ in range(2)]

    assert values_of(asyncio.run(take())) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("start", ["soon", True])
def test_what_is_no_time_is_said(alone: str, start: object) -> None:
    with pytest.raises(ValueError, match="start is 'new', 'earliest' or a time"):
        Subscriber(alone, "Temp()", start=start)  # type: ignore[arg-type]


def test_a_filter_that_is_none_is_refused(alone: str) -> None:
    with pytest.raises(RefusedError, match="expected") as refusal:
        Subscriber(alone, "Temp(", start="earliest")
    assert refusal.value.code == "bad-filter"


def test_the_past_bears_its_trace_contexts(alone: str) -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    with Publisher(alone, name="s", types=TYPES, increasing=True) as source:
        for value in range(3):
            own = trace if value == 1 else None
            source.publish("Temp", room="hall", value=float(value), traceparent=own)
        source.wait(WAIT_S)
    with Subscriber(alone, "Temp()", start="earliest") as sink:
        found = [sink.receive(WAIT_S) for _ in range(3)]
    assert [one.traces for one in found] == [(), (trace,), ()]
