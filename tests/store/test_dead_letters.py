"""A subscriber gives events of a durable subscription back, at a broker with a store."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_hosts import Hosts, await_durables

from broker import AsyncSubscriber, Publisher, Subscriber
from broker.cli import main
from broker.network import Member
from matcher import EventType

A = EventType.of("A", n="int")
WAIT_S = 30.0
OWN = {"name": "billing", "durable": True}


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """One broker with a store, in a thread."""
    own = {"strategy": "centralized", "engine": "naive", "data": str(tmp_path / "store")}
    with Hosts(tmp_path, (Member("b1", ()),), **own) as hosts:
        yield hosts.address("b1")


def publish(endpoint: str, *values: int) -> None:
    with Publisher(endpoint, name="s", types=[A], increasing=True) as source:
        for n in values:
            source.publish("A", n=n)


def await_waiting(endpoint: str, expected: dict[str, tuple[int, int]]) -> None:
    """Return when of each durable subscription so many events wait, and all is acknowledged up to
    there.
    """

    def holds(durables: dict[str, Any]) -> bool:
        said = {name: (one["queued"], one["acknowledged"]) for name, one in durables.items()}
        return said == expected

    await_durables(endpoint, holds)


def test_a_loop_gives_back_what_it_cannot_deal_with_and_the_dead_are_sent_again(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of nine events every third fails; each is given three times."""
    tries: dict[int, int] = dict.fromkeys(range(9), 0)
    with Subscriber(endpoint, "A()", **OWN) as billing:
        publish(endpoint, *range(9))
        while sum(tries.values()) < 6 + 3 * 3:
            n = billing.receive(WAIT_S).data["n"]
            tries[n] += 1
            if n % 3 == 0:
                billing.nack(deliveries_max=3)
    assert tries == {n: 3 if n % 3 == 0 else 1 for n in range(9)}
    await_waiting(endpoint, {"billing": (0, 9), "billing.dead": (3, 0)})
    assert main(["durable", "resend", "billing", "--broker", endpoint]) == 0
    assert capsys.readouterr().out == "3 dead letters wait again\n"
    with Subscriber(endpoint, "A()", **OWN) as billing:
        assert [billing.receive(WAIT_S).data["n"] for _ in range(3)] == [0, 3, 6]
    await_waiting(endpoint, {"billing": (0, 12), "billing.dead": (0, 3)})


def test_it_comes_again_after_its_delay_to_whoever_is_there(endpoint: str) -> None:
    async def run() -> list[tuple[int, bool]]:
        async with AsyncSubscriber(endpoint, "A()", acks="explicit", **OWN) as billing:
            await asyncio.to_thread(publish, endpoint, 1, 2)
            first = await billing.receive_delivery(WAIT_S)
            while first.number < 2:
                first = await billing.receive_delivery(WAIT_S)
            begun = time.monotonic()
            billing.nack(2, delay_s=0.5)
            billing.acknowledge()
            again = await billing.receive_delivery(WAIT_S)
            assert time.monotonic() - begun > 0.45
            billing.acknowledge_one(again.number)
            with pytest.raises(ValueError, match="position 1 was given and is unack"):
                billing.nack(1)
            with pytest.raises(ValueError, match="delay_s is 0 to"):
                billing.nack(1, delay_s=-1)
            return [(one.number, one.again) for one in (first, again)]

    numbers = asyncio.run(run())
    assert numbers[-1][1]
    await_waiting(endpoint, {"billing": (0, 2)})


def test_dead_letters_are_subscribed_to_by_their_name(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Subscriber(endpoint, "A()", **OWN) as billing:
        publish(endpoint, 5)
        billing.receive(WAIT_S)
        billing.nack(deliveries_max=1)
    own = {**OWN, "name": "billing.dead"}
    with Subscriber(endpoint, "A()", **own) as dead:
        assert dead.receive(WAIT_S).data == {"n": 5}
    assert main(["durable", "show", "billing.dead", "--broker", endpoint]) == 0
    assert json.loads(capsys.readouterr().out)["acknowledged"] == 1
