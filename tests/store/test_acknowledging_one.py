"""Events of a durable subscription are acknowledged one by one, in any order."""

from pathlib import Path

import pytest
from live_hosts import Hosts, await_acknowledged

from broker import Publisher, Subscriber
from broker.network import Member
from matcher import EventType

A = EventType.of("A", n="int")
WAIT_S = 30.0


def given(subscriber: Subscriber, events: int) -> dict[int, int]:
    """The positions of the next events, by their n."""
    found = {}
    for _ in range(events):
        event = subscriber.receive(WAIT_S)
        found[event.data["n"]] = subscriber.position
    return found


def test_one_acknowledged_alone_counts_once_all_before_it_are(tmp_path: Path) -> None:
    options = {"name": "billing", "durable": True, "acks": "explicit"}
    own = {"strategy": "centralized", "engine": "naive", "data": str(tmp_path / "store")}
    with Hosts(tmp_path, (Member("b1", ()),), **own) as hosts:
        endpoint = hosts.address("b1")
        with Subscriber(endpoint, "A()", **options) as billing:
            with Publisher(endpoint, name="s", types=[A], increasing=True) as source:
                for n in range(6):
                    source.publish("A", n=n)
            places = given(billing, 6)
            billing.acknowledge_one(places[1])
            billing.acknowledge_one(places[0])
            await_acknowledged(endpoint, "billing", places[1])
            billing.acknowledge_one(places[4])
            with pytest.raises(ValueError, match="no event of position 2 "):
                billing.acknowledge_one(places[1])
        with Subscriber(endpoint, "A()", **options) as again:
            places = given(again, 4)
            assert list(places) == [2, 3, 4, 5]
            again.acknowledge_one(places[5])
            again.acknowledge(places[3])
            again.acknowledge_one(places[4])
            await_acknowledged(endpoint, "billing", places[5])
