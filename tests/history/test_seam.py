"""The seam between the past of a subscription and the present, where it could come apart."""

import asyncio

import pytest

from broker import AsyncSubscriber, BrokerError, Publisher, RuleManager, Subscriber
from broker.client.history import History
from matcher import EventType

TYPES = [EventType.of("Temp", room="string", value="float"), EventType.of("Smoke", room="string")]
HOT = """
event Temp(room: string, value: float)
rule hot: define Hot(value: float) from Temp(value > 40) as t where value = t.value
"""
TICKS = "rule tick: define Tick(n: int) from Timer(S % 1 == 0) as t where n = t.S"
WAIT_S = 60.0
T0 = 1_700_000_000


def publish(endpoint: str, values: range) -> None:
    with Publisher(endpoint, name="s", types=TYPES, replay=True) as source:
        for value in values:
            at = (T0 + value) * 1_000_000
            source.publish("Temp", at=at, room="hall", value=float(value))
        source.wait(WAIT_S)


def test_ticks_of_the_past_though_nobody_publishes(alone: str) -> None:
    with RuleManager(alone) as manager:
        manager.add(TICKS)
    with Subscriber(alone, "Tick()") as always:
        expected = [always.receive(WAIT_S).time for _ in range(3)]
        with Subscriber(alone, "Tick()", start="earliest") as late:
            found = [late.receive(WAIT_S).time for _ in range(6)]
        expected += [always.receive(WAIT_S).time for _ in range(3)]
    second = 1_000_000  # always may have come a tick later than the rule
    assert found == [*range(found[0], found[0] + 6 * second, second)]
    assert expected == [*range(expected[0], expected[0] + 6 * second, second)]
    assert found[0] <= expected[0]


def test_who_is_cancelled_while_the_past_is_read_misses_nothing(alone: str) -> None:
    publish(alone, range(3))

    async def take() -> list[float]:
        async with AsyncSubscriber(alone, "Temp()", start="earliest") as subscriber:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(subscriber.receive(), 0)
            task = asyncio.create_task(subscriber.receive())
            await asyncio.sleep(0)
            task.cancel()
            return [(await subscriber.receive(WAIT_S)).data["value"] for _ in range(3)]

    assert asyncio.run(take()) == [0, 1, 2]


def test_a_past_that_was_broken_off_is_not_followed_by_the_present(alone: str) -> None:
    publish(alone, range(3))
    with (
        RuleManager(alone) as manager,
        Subscriber(alone, "Temp()", "Hot()", start="earliest") as subscriber,
    ):
        for _ in range(3):
            subscriber.receive(WAIT_S)
        manager.add(HOT)
        with pytest.raises(BrokerError, match="rules were changed"):
            subscriber.receive(WAIT_S)
        with pytest.raises(BrokerError, match="was not read to its end"):
            subscriber.receive(1)


def test_a_source_that_comes_without_a_promise_keeps_nothing_back(alone: str) -> None:
    with RuleManager(alone) as manager:
        manager.add(HOT)
    publish(alone, range(40, 50))
    with (
        Publisher(alone, name="other", types=TYPES, replay=True),
        Subscriber(alone, "Hot()", start="earliest") as subscriber,
    ):
        assert [subscriber.receive(WAIT_S).data["value"] for _ in range(9)] == [*range(41, 50)]


def test_an_acknowledgement_at_the_seam_covers_nothing_that_was_not_given(
    alone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a delivery of the present some events were given in the past, here those of odd values:
    who acknowledges 0 has dealt with it and with these, and with nothing else.
    """
    monkeypatch.setattr(History, "_is_new", lambda self, batch: batch.columns[1] % 2 == 0)

    def billing(start: str) -> Subscriber:
        options = {"name": "billing", "durable": True, "acks": "explicit", "start": start}
        return Subscriber(alone, "Temp()", **options)

    with Publisher(alone, name="s", types=TYPES, replay=True) as source:
        with billing("earliest") as first:
            with pytest.raises(TimeoutError):
                first.receive(0.5)  # the past is over
            times = [{"time": T0 + n, "room": "hall", "value": float(n)} for n in range(6)]
            source.publish_batch(times, type="Temp")
            found = []
            for _ in range(2):
                found.append((first.receive(WAIT_S).data["value"], first.position))
            assert found == [(0.0, 1), (2.0, 3)]
            first.acknowledge(1)
        with billing("new") as second:
            assert [second.receive(WAIT_S).data["value"] for _ in range(2)] == [2, 4]
            with pytest.raises(TimeoutError):
                second.receive(0.5)
