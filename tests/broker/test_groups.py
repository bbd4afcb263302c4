"""Groups: clients that share a subscription without a store, over sockets."""

import asyncio
import json
import time
from collections import defaultdict
from contextlib import ExitStack

import pytest
from command import run
from two_brokers import two_brokers

from broker import AsyncSubscriber, Publisher, RefusedError, RuleManager, Subscriber
from broker.process import BrokerProcess
from matcher.model import EventType

TEMP = EventType.of("Temp", area="string", n="int")
WIND = EventType.of("Wind", area="string")
FIRE = "rule fire: define Fire(n) from Temp(n >= 0) as T where n = T.n"


def sharing(stack, endpoint, count, text="Temp", **options):
    """So many subscribers of one group."""
    group = {"group": "workers", **options}
    return [stack.enter_context(Subscriber(endpoint, text, **group)) for _ in range(count)]


def publish(endpoint, rows, name="s"):
    with Publisher(endpoint, name=name, types=[TEMP]) as sensor:
        for area, n in rows:
            sensor.publish("Temp", area=area, n=n)
        sensor.flush()


def numbers(subscriber, timeout_s=0.5):
    """What a subscriber gets until nothing comes."""
    found = []
    while True:
        try:
            found.append(subscriber.receive(timeout_s).data["n"])
        except TimeoutError:
            return found


def test_each_event_goes_to_one_of_the_group_and_to_everybody_else(endpoint):
    with ExitStack() as stack:
        workers = sharing(stack, endpoint, 3)
        other = stack.enter_context(Subscriber(endpoint, "Temp"))
        alone = stack.enter_context(Subscriber(endpoint, "Temp", group="other"))
        publish(endpoint, [("a1", n) for n in range(90)])
        had = [numbers(one) for one in workers]
        assert sorted(n for own in had for n in own) == list(range(90))
        assert all(own == sorted(own) for own in had)
        assert min(map(len, had)) >= 10
        assert numbers(other) == numbers(alone) == list(range(90))


def test_what_a_client_did_not_take_goes_to_the_others_and_what_it_was_sent_is_lost(endpoint):
    with ExitStack() as stack:
        (busy,) = sharing(stack, endpoint, 1, credit=10)
        gone = Subscriber(endpoint, "Temp", group="workers", credit=10)
        publish(endpoint, [("a1", n) for n in range(100)])
        with RuleManager(endpoint) as manager:
            (sink,) = manager.status()["sinks"]
        assert sink["queued"] == 80
        gone.close()
        had = numbers(busy)
    assert len(had) == 90, "ten of them were sent to the other one"
    assert had == sorted(had)


def test_what_waits_for_the_last_client_ends_with_it(endpoint):
    with Subscriber(endpoint, "Temp", group="workers", credit=1):
        publish(endpoint, [("a1", n) for n in range(10)])
    with Subscriber(endpoint, "Temp", group="workers") as later:
        publish(endpoint, [("a1", 99)], name="t")
        assert later.receive(10).data["n"] == 99


def test_equal_values_go_to_one_client_also_of_asyncio(endpoint):
    rows = [(f"a{n % 17}", n) for n in range(340)]

    async def take(subscriber, found):
        async for event in subscriber:
            found.append((event.data["area"], event.data["n"]))

    async def share():
        options = {"group": "workers", "by": "area"}
        had = [[], [], []]
        async with (
            AsyncSubscriber(endpoint, "Temp", **options) as one,
            AsyncSubscriber(endpoint, "Temp", **options) as two,
            AsyncSubscriber(endpoint, "Temp", **options) as three,
        ):
            tasks = [
                asyncio.create_task(take(*pair))
                for pair in zip((one, two, three), had, strict=True)
            ]
            await asyncio.to_thread(publish, endpoint, rows)
            async with asyncio.timeout(30):
                while sum(map(len, had)) < len(rows):
                    await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
        return had

    had = asyncio.run(share())
    homes = defaultdict(set)
    for place, own in enumerate(had):
        for area, _ in own:
            homes[area].add(place)
        assert own == sorted(own, key=lambda one: one[1])
    assert sorted(row for own in had for row in own) == sorted(rows)
    assert all(len(places) == 1 for places in homes.values())
    assert all(had)


def test_composite_events_are_shared_in_their_order(endpoint):
    with ExitStack() as stack:
        with RuleManager(endpoint) as manager:
            manager.add(f"event Temp(area: string, n: int)\n{FIRE}")
        workers = sharing(stack, endpoint, 2, "Fire")
        publish(endpoint, [("a1", n) for n in range(60)])
        had = [numbers(one) for one in workers]
        assert sorted(n for own in had for n in own) == list(range(60))
        assert all(own == sorted(own) and own for own in had)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"queue": 5}, "the group 'workers' is already block with 65536 events"),
        ({"by": "area"}, "the group 'workers' is already block"),
        ({"group": "others", "by": "aera"}, "Temp has no attribute 'aera' to share events by"),
        ({"group": "others", "when_full": "disconnect"}, "it has no link to end"),
    ],
)
def test_what_cannot_be_shared_is_refused(endpoint, options, reason):
    with ExitStack() as stack:
        stack.enter_context(Publisher(endpoint, name="s", types=[TEMP]))
        sharing(stack, endpoint, 1)
        with pytest.raises(RefusedError, match=reason):
            sharing(stack, endpoint, 1, **options)


def test_all_of_a_group_hear_that_their_type_has_not_what_they_share_by(endpoint):
    with ExitStack() as stack:
        workers = sharing(stack, endpoint, 2, "Wind", by="aera")
        stack.enter_context(Publisher(endpoint, name="s", types=[WIND]))
        for worker in workers:
            with pytest.raises(TimeoutError):
                worker.receive(0.3)
            reason = "Wind has no attribute 'aera' to share events by"
            assert list(worker.paused.values()) == [reason]


def test_all_of_a_durable_subscription_hear_that_it_is_paused(tmp_path):
    flags = "--engine", "naive", "--data", str(tmp_path / "b1")
    with BrokerProcess(*flags) as broker, ExitStack() as stack:
        workers = [
            stack.enter_context(Subscriber(broker.endpoint, "Temp(n > 1)", name="d", durable=True))
            for _ in range(2)
        ]
        other = EventType.of("Temp", n="string")
        stack.enter_context(Publisher(broker.endpoint, name="s", types=[other]))
        for worker in workers:
            with pytest.raises(TimeoutError):
                worker.receive(0.3)
            assert worker.paused


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"by": "area"}, "name it"),
        ({"group": "g", "durable": True, "name": "n"}, "without a group"),
        ({"group": "g", "start": "earliest"}, "no past"),
    ],
)
def test_mistakes_are_raised_at_once(options, reason):
    with pytest.raises(ValueError, match=reason):
        Subscriber("tcp://127.0.0.1:1", "Temp", **options)


def test_a_group_is_of_one_broker_of_a_network():
    with two_brokers() as (first, second), ExitStack() as stack:
        here = sharing(stack, first.endpoint, 2)
        there = sharing(stack, second.endpoint, 1)
        publish(second.endpoint, [("a1", n) for n in range(40)])
        assert [there[0].receive(30).data["n"] for _ in range(40)] == list(range(40))
        had = [numbers(one) for one in here]
        assert sorted(n for own in had for n in own) == list(range(40))


def test_the_command_shares_events(endpoint):
    with Subscriber(endpoint, "Temp", group="workers", by="area", credit=1) as other:
        publish(endpoint, [("a1", 0)])
        words = "sub", "Temp", "--group", "workers", "--by", "area", "--count", 1
        began = time.monotonic()
        with Publisher(endpoint, name="t", types=[TEMP]) as sensor:
            for n in range(1, 20):
                sensor.publish("Temp", area=f"a{n}", n=n)
            sensor.flush()
            done = run(*words, "--broker", endpoint, "--for", "10s")
        assert time.monotonic() - began < 10
        (line,) = done.stdout.splitlines()
        assert json.loads(line)["data"]["n"] not in (0, other.receive(10).data["n"])


@pytest.mark.parametrize(
    "words", [("--by", "area"), ("--group", "g", "--durable", "d"), ("Smoke", "--group", "g")]
)
def test_the_command_says_what_a_group_is_not(words):
    done = run("sub", "Temp", *words, "--broker", "tcp://127.0.0.1:1")
    assert done.returncode == 2
    assert "--group" in done.stderr
