"""Real brokers with real stores, killed at random moments: nothing acknowledged is lost.

A broker is a process that gets SIGKILL, its store SQLite in a folder, its clients those that users
have. Larger campaigns: ``python -m benchmarks.campaign faults``.
"""

import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import command
import pytest
from pairs import some_of

from broker import Publisher, RuleManager, Subscriber
from broker.errors import BrokerError, RefusedError
from broker.process import BrokerProcess
from matcher import EventType

A = EventType.of("A", n="int")
RULE = """
event A(n: int)
rule pair: define P(n: int, m: int)
  from A() as a and last A() as before within 30 s from a where n = a.n, m = before.n
"""
EVENTS = 3_000
WAIT_S = 60.0


class Killed:
    """One broker that can be killed and started again where it was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.process = self.start("tcp://127.0.0.1:*")
        self.endpoint = self.process.endpoint

    def start(self, listen: str) -> BrokerProcess:
        with (self._folder / "log").open("a") as log:
            return BrokerProcess(
                "--name", "b1", "--data", str(self._folder / "b1"), listen=(listen,), log=log
            )

    def kill(self) -> None:
        self.process.kill()
        self.process = self.start(self.endpoint)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Killed]:
    found = Killed(tmp_path)
    try:
        yield found
    finally:
        found.process.stop()


def publish(endpoint: str, numbers: range, begun: threading.Event) -> None:
    with Publisher(
        endpoint,
        name="s",
        types=[A],
        increasing=True,
        connect_timeout_s=WAIT_S,
        close_timeout_s=WAIT_S,
    ) as publisher:
        for n in numbers:
            publisher.publish("A", n=n)
            time.sleep(0.001)
            begun.set()
        publisher.wait(timeout_s=WAIT_S)


def taken(endpoint: str, name: str, wanted: int) -> list[tuple[int, ...]]:
    """The events of a durable subscription, each as its values, without those marked as having
    come before.
    """
    found: dict[int, tuple[int, ...]] = {}
    with Subscriber(endpoint, name=name, durable=True, connect_timeout_s=WAIT_S) as subscriber:
        subscriber.subscribe({"pairs": "P()", "tens": "A(n % 10 = 0)"}[name])
        while len(found) < wanted:
            delivery = subscriber.receive_delivery(timeout_s=WAIT_S)
            events = [event for batch in delivery.batches for event in batch.events()]
            first = delivery.number - len(events) + 1
            for number, event in enumerate(events, start=first):
                values = tuple(event.data.values())
                assert found.setdefault(number, values) == values, "one number, one event"
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("seed", some_of([1, 2], 0))
def test_what_was_acknowledged_survives_and_durable_subscriptions_miss_nothing(
    broker: Killed, seed: int
) -> None:
    print(f"seed {seed}")
    moments = random.Random(seed)
    with RuleManager(broker.endpoint) as manager:
        manager.add(RULE)
    for name, text in (("pairs", "P()"), ("tens", "A(n % 10 = 0)")):
        with Subscriber(broker.endpoint, text, name=name, durable=True):
            pass
    begun = threading.Event()
    source = threading.Thread(target=publish, args=(broker.endpoint, range(EVENTS), begun))
    source.start()
    assert begun.wait(WAIT_S)
    for _ in range(2):
        time.sleep(moments.uniform(0.1, 1.0))
        broker.kill()
    source.join(WAIT_S)
    assert not source.is_alive()
    tens = [(n,) for n in range(0, EVENTS, 10)]
    pairs = [(n, n - 1) for n in range(1, EVENTS)]
    assert taken(broker.endpoint, "tens", len(tens)) == tens
    assert taken(broker.endpoint, "pairs", len(pairs)) == pairs
    with RuleManager(broker.endpoint) as manager:
        assert [rule["name"] for rule in manager.list()] == ["pair"]
        given = {one["name"]: one for one in manager.durables()}
    assert (given["tens"]["last"], given["pairs"]["last"]) == (len(tens), len(pairs))


def test_a_publisher_goes_on_where_it_was_though_the_broker_was_killed(broker: Killed) -> None:
    publish(broker.endpoint, range(50), threading.Event())
    broker.kill()
    with Subscriber(broker.endpoint, "A()", connect_timeout_s=WAIT_S) as subscriber:
        publish(broker.endpoint, range(50, 60), threading.Event())
        events = [subscriber.receive(timeout_s=WAIT_S) for _ in range(10)]
    assert [(int(one.id), one.data["n"]) for one in events] == [(n + 1, n) for n in range(50, 60)]


def test_a_publisher_that_has_closed_is_not_waited_for_after_a_kill(broker: Killed) -> None:
    publish(broker.endpoint, range(50), threading.Event())
    broker.kill()
    with RuleManager(broker.endpoint, connect_timeout_s=WAIT_S) as manager:
        [source] = manager.status()["sources"]
    assert (source["standing"], source["closed_by"]) == ("closed", "goodbye")


def test_a_truncated_store_is_refused_and_once_repaired_the_broker_goes_on(
    broker: Killed, tmp_path: Path
) -> None:
    with RuleManager(broker.endpoint) as manager:
        manager.add(RULE)
    with Subscriber(broker.endpoint, "A(n % 10 = 0)", name="tens", durable=True):
        pass
    publish(broker.endpoint, range(EVENTS), threading.Event())
    broker.process.kill()
    file = tmp_path / "b1" / "broker.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(file, file.stat().st_size // 4096 * 3 // 4 * 4096)
    with pytest.raises(BrokerError):
        broker.process = broker.start(broker.endpoint)
    assert f"log check --data {tmp_path / 'b1'} --repair" in (tmp_path / "log").read_text()
    repaired = command.run("log", "check", "--repair", "--data", tmp_path / "b1")
    assert repaired.returncode == 0
    assert "are damaged or missing" in repaired.stdout + repaired.stderr
    broker.process = broker.start(broker.endpoint)
    with Subscriber(broker.endpoint, "P()", connect_timeout_s=WAIT_S) as subscriber:
        publish(broker.endpoint, range(EVENTS, EVENTS + 10), threading.Event())
        found = []
        while not found or found[-1] < EVENTS + 9:
            found.append(subscriber.receive(timeout_s=WAIT_S).data["n"])
    assert found[-9:] == [*range(EVENTS + 1, EVENTS + 10)]


def test_a_durable_subscription_is_removed_once_nobody_uses_it(broker: Killed) -> None:
    with (
        RuleManager(broker.endpoint) as manager,
        Subscriber(broker.endpoint, "A()", name="tens", durable=True),
        pytest.raises(RefusedError, match="1 clients are attached"),
    ):
        manager.remove_durable("tens")
    with RuleManager(broker.endpoint) as manager:
        manager.remove_durable("tens")
        assert manager.durables() == []
    broker.kill()
    with RuleManager(broker.endpoint, connect_timeout_s=WAIT_S) as manager:
        assert manager.durables() == []
        with pytest.raises(RefusedError, match="no durable sink is named 'tens'"):
            manager.remove_durable("tens")


def test_one_broker_has_a_store_and_no_other_by_another_name(
    broker: Killed, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "b1")
    with pytest.raises(BrokerError):
        BrokerProcess("--name", "b1", "--data", data, log=None)
    assert f"in use by process {broker.process.child.pid}" in capfd.readouterr().err
    broker.process.stop()
    with pytest.raises(BrokerError):
        BrokerProcess("--name", "b2", "--data", data, log=None)
    assert "this is the store of broker 'b1', not of 'b2'" in capfd.readouterr().err


def test_a_broker_without_a_store_refuses_what_it_could_not_keep() -> None:
    with (
        BrokerProcess("--name", "b1") as process,
        pytest.raises(RefusedError, match="keeps nothing"),
    ):
        Subscriber(process.endpoint, "A()", name="x", durable=True)
