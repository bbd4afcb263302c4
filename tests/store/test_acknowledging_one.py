"""Events of a durable subscription are acknowledged one by one, in any order, over all failures."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_hosts import Hosts, await_acknowledged, await_durables

from broker import AsyncSubscriber, Publisher, Subscriber
from broker.network import Member
from broker.process import BrokerProcess
from matcher import EventType

A = EventType.of("A", n="int")
WAIT_S = 30.0
OPTIONS = {"name": "billing", "durable": True, "acks": "explicit"}


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """One broker with a store, in a thread."""
    own = {"strategy": "centralized", "engine": "naive", "data": str(tmp_path / "store")}
    with Hosts(tmp_path, (Member("b1", ()),), **own) as hosts:
        yield hosts.address("b1")


DYING = """
import sys
from broker import Subscriber
billing = Subscriber(sys.argv[1], "A()", name="billing", durable=True, acks="explicit")
print("subscribed", flush=True)
for event in billing:
    if event.data["n"] % 2:
        billing.acknowledge_one(billing.position)
"""


def publish(endpoint: str, *values: int) -> None:
    with Publisher(endpoint, name="s", types=[A], increasing=True) as source:
        for n in values:
            source.publish("A", n=n)


def given(subscriber: Subscriber, events: int) -> dict[int, int]:
    """The positions of the next events, by their n."""
    found = {}
    for _ in range(events):
        event = subscriber.receive(WAIT_S)
        found[event.data["n"]] = subscriber.position
    return found


def given_again(subscriber: Subscriber, events: int) -> list[int]:
    """The values of the next events, all of which are marked, and behind which nothing comes."""
    found: list[int] = []
    while len(found) < events:
        delivery = subscriber.receive_delivery(WAIT_S)
        assert delivery.again
        found += [event.data["n"] for one in delivery.batches for event in one.events()]
    with pytest.raises(TimeoutError):
        subscriber.receive(0.3)
    return found


def await_heard(endpoint: str, acknowledged: int, beyond: int) -> None:
    """Return when the broker has heard of both."""

    def holds(durables: dict[str, Any]) -> bool:
        billing = durables["billing"]
        return (billing["acknowledged"], billing["beyond"]) == (acknowledged, beyond)

    await_durables(endpoint, holds)


def await_kept(endpoint: str) -> None:
    """Return when the broker's store has all that the broker has heard: a new type is confirmed
    behind that.
    """
    Publisher(endpoint, name="t", types=[EventType.of("B", n="int")]).close()


def test_what_was_acknowledged_alone_does_not_come_again_and_the_others_do(endpoint: str) -> None:
    with Subscriber(endpoint, "A()", **OPTIONS) as billing:
        publish(endpoint, *range(6))
        places = given(billing, 6)
        assert list(places.values()) == list(range(1, 7))
        for n in (1, 4, 0):
            billing.acknowledge_one(places[n])
        await_heard(endpoint, places[1], 1)
        with pytest.raises(ValueError, match="no event of position 2 "):
            billing.acknowledge_one(places[1])
    with Subscriber(endpoint, "A()", **OPTIONS) as again:
        assert given_again(again, 3) == [2, 3, 5]
        again.acknowledge_one(places[5])
        again.acknowledge(places[3])
        await_acknowledged(endpoint, "billing", places[5])


def test_a_client_that_dies_leaves_what_it_has_not_acknowledged(endpoint: str) -> None:
    program = [sys.executable, "-c", DYING, endpoint]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as client:
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == b"subscribed\n"
            publish(endpoint, *range(6))
            await_heard(endpoint, 0, 3)
        finally:
            client.kill()
    with Subscriber(endpoint, "A()", **OPTIONS) as again:
        assert given_again(again, 3) == [0, 2, 4]


def test_of_two_clients_each_speaks_for_what_it_was_given(endpoint: str) -> None:
    with Subscriber(endpoint, "A()", credit=4, **OPTIONS) as one:
        publish(endpoint, *range(4))
        places = given(one, 4)
        one.acknowledge_one(places[2])
        await_heard(endpoint, 0, 1)
        with Subscriber(endpoint, "A()", **OPTIONS) as two:
            other = Subscriber(endpoint, "A()", **OPTIONS)
            one.close()
            other.close()
            assert given_again(two, 3) == [0, 1, 3]
            two.acknowledge_one(places[3])
            await_heard(endpoint, 0, 2)
            two.acknowledge(places[1])
            await_acknowledged(endpoint, "billing", places[3])


def test_the_broker_is_killed_and_keeps_what_was_acknowledged_alone(tmp_path: Path) -> None:
    options = "--engine", "naive", "--data", str(tmp_path / "store"), "--heartbeat-s", "0.5"
    with (
        BrokerProcess(*options) as broker,
        Subscriber(broker.endpoint, "A()", **OPTIONS) as billing,
    ):
        publish(broker.endpoint, *range(10))
        places = given(billing, 10)
        for n in (1, 2, 5, 9):
            billing.acknowledge_one(places[n])
        await_heard(broker.endpoint, 0, 4)
        await_kept(broker.endpoint)
        broker.kill()
    with BrokerProcess(*options) as broker:
        await_heard(broker.endpoint, 0, 4)
        with Subscriber(broker.endpoint, "A()", **OPTIONS) as again:
            assert given_again(again, 6) == [0, 3, 4, 6, 7, 8]
            publish(broker.endpoint, 10)
            assert list(given(again, 1)) == [10]
            again.acknowledge()
            await_acknowledged(broker.endpoint, "billing", 11)


def test_a_link_that_breaks_loses_no_acknowledgement(tmp_path: Path) -> None:
    options, endpoint = (
        ("--engine", "naive", "--data", str(tmp_path / "store")),
        f"ipc://{tmp_path}/b",
    )
    with (
        BrokerProcess(*options, listen=(endpoint,)) as broker,
        Subscriber(endpoint, "A()", **OPTIONS) as billing,
    ):
        publish(endpoint, *range(6))
        places = given(billing, 6)
        billing.acknowledge_one(places[4])
        await_heard(endpoint, 0, 1)
        broker.kill()
        with pytest.raises(TimeoutError):  # the subscriber notices
            billing.receive(0.3)
        billing.acknowledge_one(places[1])
        with BrokerProcess(*options, listen=(endpoint,)):
            publish(endpoint, 6)
            assert list(given(billing, 1)) == [6], "the others it has had"
            await_heard(endpoint, 0, 2)
            billing.acknowledge(places[5])
            await_heard(endpoint, places[5], 0)


def test_the_same_with_asyncio(endpoint: str) -> None:
    async def story() -> None:
        async with AsyncSubscriber(endpoint, "A()", **OPTIONS) as billing:
            await asyncio.to_thread(publish, endpoint, *range(4))
            places = []
            for _ in range(4):
                await billing.receive(WAIT_S)
                places.append(billing.position)
            billing.acknowledge_one(places[2])
            with pytest.raises(ValueError, match="no event of position 3 "):
                billing.acknowledge_one(places[2])
            await asyncio.to_thread(await_heard, endpoint, 0, 1)

    asyncio.run(story())
    with Subscriber(endpoint, "A()", **OPTIONS) as again:
        assert given_again(again, 3) == [0, 1, 3]
