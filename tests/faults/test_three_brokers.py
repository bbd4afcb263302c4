"""Three real brokers in a row, each with a store: durable sinks have homes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker import Publisher, RuleManager, Subscriber
from broker.errors import PublishBlocked, RefusedError
from broker.process import BrokerProcess
from matcher import EventType

A = EventType.of("A", n="int")
WAIT_S = 60.0
PATIENT = {"timeout_s": WAIT_S, "connect_timeout_s": WAIT_S}


class Row:
    """b1 - b2 - b3."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.brokers: dict[str, BrokerProcess] = {}
        for name in ("b1", "b2", "b3"):
            self.start(name, "tcp://127.0.0.1:*")

    def start(self, name: str, listen: str) -> None:
        last = list(self.brokers.values())[-1:] if name not in self.brokers else []
        links = [one for broker in last for one in ("--link", broker.endpoint)]
        with (self._folder / "log").open("a") as log:
            data = ("--name", name, "--strategy", "centralized", "--data", str(self._folder / name))
            self.brokers[name] = BrokerProcess(*data, *links, listen=(listen,), log=log)

    def kill(self, name: str) -> None:
        endpoint = self.endpoint(name)
        self.brokers[name].kill()
        self.start(name, endpoint)

    def endpoint(self, name: str) -> str:
        return self.brokers[name].endpoint

    def is_one_network(self) -> bool:
        found = []
        for name in self.brokers:
            with RuleManager(self.endpoint(name), connect_timeout_s=WAIT_S) as manager:
                found.append(manager.status()["network"])
        return all(len(one["brokers"]) == 3 and one["settled"] for one in found)

    def homes(self, name: str) -> dict[str, str]:
        with RuleManager(self.endpoint(name), connect_timeout_s=WAIT_S) as manager:
            return {one["name"]: one["home"] for one in manager.durables()}


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    found = Row(tmp_path_factory.mktemp("row"))
    try:
        wait_for(found.is_one_network)
        yield found
    finally:
        for broker in found.brokers.values():
            broker.stop()


def wait_for(what: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def test_a_durable_sink_is_served_at_its_home_which_is_known_everywhere(row: Row) -> None:
    with Subscriber(row.endpoint("b1"), "A()", name="billing", durable=True, **PATIENT):
        pass
    wait_for(lambda: row.homes("b3") == {"billing": "b1"})
    assert row.homes("b1") == {"billing": "b1"}
    with pytest.raises(RefusedError, match="'billing' is at broker b1") as refused:
        Subscriber(row.endpoint("b3"), "A()", name="billing", durable=True, **PATIENT)
    assert refused.value.code == "elsewhere"
    with (
        RuleManager(row.endpoint("b3"), **PATIENT) as manager,
        pytest.raises(RefusedError, match="'billing' is at broker b1"),
    ):
        manager.remove_durable("billing")
    with Publisher(
        row.endpoint("b3"), name="s", types=[A], increasing=True, **PATIENT
    ) as publisher:
        publisher.publish("A", n=7)
    with Subscriber(
        row.endpoint("b1"), "A()", name="billing", durable=True, **PATIENT
    ) as subscriber:
        assert subscriber.receive(timeout_s=WAIT_S).data == {"n": 7}
    row.kill("b1")
    wait_for(lambda: row.homes("b3") == {"billing": "b1"})
    with RuleManager(row.endpoint("b1"), **PATIENT) as manager:
        manager.remove_durable("billing")
    wait_for(lambda: row.homes("b3") == {})
    with Subscriber(row.endpoint("b3"), "A()", name="billing", durable=True, **PATIENT):
        pass
    wait_for(lambda: row.homes("b1") == {"billing": "b3"})


B = EventType.of("B", n="int")
RULE = """
event A(n: int)
event B(n: int)
rule pair: define Pair(n: int) from B() as b and last A() as a within 1 h from b where n = a.n
"""


def test_what_is_committed_has_come_to_the_sinks_of_all_brokers(row: Row) -> None:
    """A durable sink at b1 has the pair in its store when b3 says that B is committed."""
    with RuleManager(row.endpoint("b2"), **PATIENT) as manager:
        manager.add(RULE)
    with Subscriber(row.endpoint("b1"), "Pair()", name="pairs", durable=True, **PATIENT):
        pass
    patient = {**PATIENT, "close_timeout_s": WAIT_S}
    own = {"acks": "committed", "increasing": True, **patient}
    with (
        Publisher(row.endpoint("b1"), name="a", types=[A], live=False, **patient) as first,
        Publisher(row.endpoint("b3"), name="b", types=[B], **own) as second,
    ):
        for n in range(20):
            first.publish("A", n=n)
            first.wait()
            second.publish("B", n=n)
            second.flush()
            with pytest.raises(PublishBlocked):
                second.wait(timeout_s=0.2)  # an A between the two may come
            first.promise(time.time_ns() // 1_000)
            second.wait()
            with RuleManager(row.endpoint("b1"), **PATIENT) as manager:
                (pairs,) = [one for one in manager.durables() if one["name"] == "pairs"]
            assert pairs["last"] == n + 1
    row.kill("b1")
    with Subscriber(
        row.endpoint("b1"), "Pair()", name="pairs", durable=True, **PATIENT
    ) as subscriber:
        assert [subscriber.receive(timeout_s=WAIT_S).data["n"] for _ in range(20)] == [*range(20)]
