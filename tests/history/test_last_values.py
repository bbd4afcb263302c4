"""Last values: what a subscription gives of the past where one event of each key is enough."""

import asyncio
import json
import threading
from collections import defaultdict

import command
import pytest

from broker import AsyncSubscriber, BrokerError, Publisher, RuleManager, Subscriber
from broker.client import last_values
from matcher import EventType

TYPES = [
    EventType.of("Temp", room="string", n="int", x="float?"),
    EventType.of("Smoke", room="string"),
]
WAIT_S = 60.0
HOT = """
event Temp(room: string, n: int, x: float?)
rule hot: define Hot(room: string, n: int) from Temp(n > 10) as t where room = t.room, n = t.n
"""


def publish(endpoint, rows, name="s"):
    """Temps of rooms, with a number each."""
    with Publisher(endpoint, name=name, types=TYPES, increasing=True) as source:
        for room, n, *x in rows:
            source.publish("Temp", room=room, n=n, x=x[0] if x else None)
        source.wait(WAIT_S)


def received(subscriber, count):
    return [(one.data["room"], one.data["n"]) for one in some(subscriber, count)]


def some(subscriber, count):
    return [subscriber.receive(WAIT_S) for _ in range(count)]


def test_the_last_event_of_each_value_comes_first_and_then_what_follows(alone):
    publish(alone, [("hall", 1), ("shed", 2), ("hall", 3), ("loft", 4)])
    with Subscriber(alone, "Temp()", last=["room"]) as subscriber:
        assert received(subscriber, 3) == [("shed", 2), ("hall", 3), ("loft", 4)]
        publish(alone, [("shed", 5)])
        assert received(subscriber, 1) == [("shed", 5)]
        with pytest.raises(TimeoutError):
            subscriber.receive(0.2)


def test_only_what_the_filter_asks_for_counts(alone):
    publish(alone, [("hall", 9), ("shed", 8), ("hall", 1)])
    with Subscriber(alone, "Temp(n > 5)", last=["room"]) as subscriber:
        assert received(subscriber, 2) == [("hall", 9), ("shed", 8)]


def test_sources_nulls_and_types_are_values_too(alone):
    publish(alone, [("a", 1), ("a", 2, 0.0), ("a", 3), ("a", 4, 0.0)], name="one")
    publish(alone, [("a", 5)], name="two")
    with Publisher(alone, name="three", types=TYPES, increasing=True) as source:
        source.publish("Smoke", room="a").wait(WAIT_S)
    with Subscriber(alone, "Temp()", last=["x"]) as subscriber:
        assert [n for _, n in received(subscriber, 2)] == [4, 5]
    with Subscriber(alone, "Temp()", last=["source", "none"]) as subscriber:
        assert [n for _, n in received(subscriber, 2)] == [4, 5]
    with Subscriber(alone, "*", last=["room"]) as subscriber:
        assert [one.type for one in some(subscriber, 2)] == ["Temp", "Smoke"]


def test_of_composite_events_the_last_ones_are_given_with_their_causes(alone):
    with RuleManager(alone) as manager:
        manager.add(HOT)
    publish(alone, [("hall", 11), ("shed", 12), ("hall", 13)])

    async def take():
        async with AsyncSubscriber(alone, "Hot()", last=["room"]) as subscriber:
            had = [await subscriber.receive(WAIT_S) for _ in range(2)]
            await asyncio.to_thread(publish, alone, [("shed", 14)])
            return [*had, await subscriber.receive(WAIT_S)]

    had = asyncio.run(take())
    assert [one.data["n"] for one in had] == [12, 13, 14]
    assert all(len(one.cause) == 1 for one in had)


def test_nothing_is_missing_twice_or_out_of_order_at_the_seam(alone):
    rooms, count = ["hall", "shed", "loft"], 1_500
    expected = {room: list(range(place, count, 3)) for place, room in enumerate(rooms)}
    publish(alone, [(rooms[n % 3], n) for n in range(300)])
    rest = [(rooms[n % 3], n) for n in range(300, count)]
    writer = threading.Thread(target=publish, args=(alone, rest))
    writer.start()
    try:
        for _ in range(3):
            had = defaultdict(list)
            with Subscriber(alone, "Temp()", last=["room"]) as subscriber:
                while any(had[room][-1:] != expected[room][-1:] for room in rooms):
                    event = subscriber.receive(WAIT_S)
                    had[event.data["room"]].append(event.data["n"])
            for room in rooms:
                assert had[room] == expected[room][-len(had[room]) :]
    finally:
        writer.join()


def test_there_is_a_bound(alone, monkeypatch):
    monkeypatch.setattr(last_values, "KEYS_MAX", 3)
    publish(alone, [("hall", n) for n in range(4)])
    with (
        Subscriber(alone, "Temp()", last=["n"]) as subscriber,
        pytest.raises(BrokerError, match="more than 3 last values by n"),
    ):
        subscriber.receive(WAIT_S)


def test_the_command_prints_them(alone):
    publish(alone, [("hall", 1), ("shed", 2), ("hall", 3)])
    words = "sub", "Temp()", "--last", "room, x", "--count", 2, "--broker", alone
    done = command.run(*words)
    assert [json.loads(line)["data"]["n"] for line in done.stdout.splitlines()] == [2, 3]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"last": "room"}, r"list of attributes: \['room'\]"),
        ({"last": ["room"], "durable": True, "name": "n"}, "durable"),
        ({"last": ["room"], "group": "g"}, "no past"),
    ],
)
def test_mistakes_are_raised_at_once(options, reason):
    with pytest.raises(ValueError, match=reason):
        Subscriber("tcp://127.0.0.1:1", "Temp", **options)
