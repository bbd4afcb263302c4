"""Delivery without Spark: what a lost broker has, the next is not sent; what it has not, it is."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from two_brokers import two_brokers

from broker import Publisher, RuleManager, Subscriber
from broker.errors import BrokerUnreachable, LateEvents, PublishBlocked
from broker.process import BrokerProcess
from broker.spark import delivery as deliveries
from broker.spark.delivery import Delivery
from broker.spark.options import WriteOptions
from broker.spark.target import Target
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing.names import part_name

MOVED = EventType.of("Moved", value="int")
HALF = 5_000


def moved(first: int, count: int) -> EventBatch:
    numbers = np.arange(first, first + count)
    texts = StringColumn.from_strings([str(number) for number in numbers])
    ids = EventIds(StringColumn.constant("", count), numbers, texts)
    return EventBatch(MOVED, numbers * 1_000, ids, (numbers,))


def delivered(subscriber: Subscriber, count: int) -> list[int]:
    values: list[int] = []
    while len(values) < count:
        for batch in subscriber.receive_delivery(timeout_s=60).batches:
            values += batch.columns[0].tolist()
    return values


@pytest.fixture(scope="module")
def both():
    """Two brokers, for both of the tests that follow."""
    with two_brokers() as found:
        yield found


def test_what_came_by_another_broker_is_given_out_once(both):
    """As when a broker passed events on and was lost before its confirmation came back."""

    def at(broker, part):
        return Delivery(
            [broker.endpoint],
            part_name("passed", part),
            [MOVED],
            acks="broker",
            batch_events=512,
            timeout_s=60.0,
        )

    first, second = both
    with (
        Subscriber(first.endpoint, "Moved()") as far,
        Subscriber(second.endpoint, "Moved()") as near,
    ):
        delivery = at(first, 0)
        delivery.send([moved(0, HALF)])
        delivery.confirm()
        delivery.give_up()
        assert delivered(far, HALF) == delivered(near, HALF) == [*range(HALF)]
        delivery = at(second, 1)
        delivery.send([moved(HALF - 600, 700)])
        delivery.finish()
        rest = [*range(HALF, HALF + 100)]
        assert delivered(far, 100) == delivered(near, 100) == rest


def test_the_next_broker_gets_what_the_lost_one_had_not_confirmed(both):
    """The first is linked to the second, and is killed when it has confirmed the first half: this
    is the last test that has it. Its events are later than those of the other.
    """
    start = 2 * HALF
    first, second = both
    with Subscriber(second.endpoint, "Moved()") as subscriber:
        delivery = Delivery(
            [first.endpoint, second.endpoint],
            part_name("mover", 0),
            [MOVED],
            acks="broker",
            batch_events=512,
            timeout_s=2.0,
        )
        delivery.send([moved(start, HALF)])
        delivery.confirm()
        assert delivery.unconfirmed == 0
        values = delivered(subscriber, HALF)
        first.kill()
        delivery.send([moved(start + HALF, HALF)])
        delivery.finish()
        values += delivered(subscriber, HALF)
        assert values == [*range(start, start + 2 * HALF)]
        assert delivery.resent <= HALF


def attempt_at(broker, attempt: int) -> Delivery:
    name = part_name("twice", 0)
    options = {"acks": "broker", "batch_events": 64, "timeout_s": 5.0, "attempt": attempt}
    return Delivery([broker.endpoint], name, [MOVED], **options)


def standing_at(broker) -> str:
    with RuleManager(broker.endpoint) as manager:
        return {one["name"]: one["standing"] for one in manager.status()["sources"]}[
            part_name("twice", 0)
        ]


def test_a_later_attempt_at_a_part_supersedes_an_earlier_one(monkeypatch):
    """As with speculation: the first one hangs. It ends nothing that the second has begun, and
    where that is lost, it goes on.
    """
    monkeypatch.setattr(deliveries, "TURN_S", 0.05)
    with BrokerProcess("--engine", "naive") as broker:

        def go_on(delivery: Delivery, start: int) -> None:
            delivery.send([moved(start, 400 - start)])
            delivery.finish()

        with Subscriber(broker.endpoint, "Moved()") as subscriber, ThreadPoolExecutor(1) as pool:
            first = attempt_at(broker, 0)
            first.send([moved(0, 100)])
            first.confirm()
            second = attempt_at(broker, 1)
            second.send([moved(0, 200)])
            second.confirm()
            going = pool.submit(go_on, first, 100)
            with pytest.raises(TimeoutError):
                going.result(1.0)
            assert standing_at(broker) == "live"
            second.give_up()
            going.result(60)
            assert standing_at(broker) == "closed"
            assert delivered(subscriber, 400) == [*range(400)]


def test_an_attempt_stands_by_while_a_part_has_just_ended(monkeypatch):
    """Spark ends it then. Were it at work, rules would wait for the part that it leaves."""
    monkeypatch.setattr(deliveries, "TURN_S", 0.05)
    with BrokerProcess("--engine", "naive") as broker, ThreadPoolExecutor(2) as pool:
        first = attempt_at(broker, 0)
        first.send([moved(0, 100)])
        first.confirm()
        second = attempt_at(broker, 1)
        second.send([moved(0, 100)])
        second.finish()
        waiting = [pool.submit(first.finish), pool.submit(attempt_at, broker, 2)]
        with pytest.raises(TimeoutError):
            waiting[1].result(2.0)
        assert not waiting[0].done()
        assert standing_at(broker) == "closed"
        waiting[0].result(60)
        waiting[1].result(60).finish()
        assert standing_at(broker) == "closed"


class Slow:
    """A publisher whose broker answers, and takes nothing the first few times."""

    def __init__(self, endpoint, **options):
        self.blocked = {"publish_batch": 3, "wait": 2}
        self.taken, self.unacknowledged, self.is_connected = [], 0, True

    def _take(self, step):
        if self.blocked[step]:
            self.blocked[step] -= 1
            raise PublishBlocked("no credit")

    def publish_batch(self, batch):
        self._take("publish_batch")
        self.taken += batch.columns[0].tolist()

    def wait(self):
        self._take("wait")

    def close(self):
        pass


def test_a_broker_that_is_slow_is_waited_for_and_one_that_is_gone_is_not(monkeypatch):
    monkeypatch.setattr(deliveries, "Publisher", Slow)
    options = {"acks": "broker", "batch_events": 512, "timeout_s": 0.0}
    delivery = Delivery(["slow"], "mover#part-0", [MOVED], **options)
    delivery.send([moved(0, 600)])
    delivery.finish()
    assert delivery._publisher.taken == [*range(600)]
    assert not any(delivery._publisher.blocked.values())
    assert delivery.resent == 0
    delivery = Delivery(["gone"], "mover#part-0", [MOVED], **options)
    delivery._publisher.is_connected = False
    delivery._publisher.pause = lambda: None
    with pytest.raises(BrokerUnreachable, match="no broker is left: no credit"):
        delivery.send([moved(0, 600)])


def test_what_was_confirmed_is_not_kept():
    with BrokerProcess() as broker:
        delivery = Delivery(
            [broker.endpoint],
            part_name("keeper", 0),
            [MOVED],
            acks="broker",
            batch_events=100,
            timeout_s=30.0,
        )
        for number in range(14):
            delivery.send([moved(number * HALF, HALF)])
            assert delivery.unconfirmed <= 65_536 + 100
        delivery.confirm()
        assert delivery.unconfirmed == 0
        delivery.finish()


def test_tasks_that_are_repeated_at_a_broker_started_again_are_not_late():
    """It has forgotten that rules were held; the first part that ends there holds them anew."""
    text = "event Moved(value: int)\nrule low: define Low() from Moved(value < 0)"
    options = WriteOptions.of({"type": "Moved", "source": "held", "batch": "512"})

    def declared(broker):
        with RuleManager(broker.endpoint) as manager:
            manager.add(text)

    def run(part, first, broker, *, holds=True):
        here = replace(target, options=replace(options, brokers=(broker.endpoint,)))
        delivery = here.delivery(part)
        delivery.send([moved(first, HALF)])
        delivery.confirm()
        if holds:
            here.hold_again(delivery.endpoint)
        delivery.finish()

    target = Target(options, (MOVED,), None)
    with BrokerProcess() as broker:
        declared(broker)
        replace(target, options=replace(options, brokers=(broker.endpoint,))).hold(None)
    with BrokerProcess() as broker:
        declared(broker)
        run(1, HALF, broker)
        run(0, 0, broker)
        with RuleManager(broker.endpoint) as manager:
            standings = {one["name"]: one["standing"] for one in manager.status()["sources"]}
        assert standings == {
            "held#part-1": "closed",
            "held#part-0": "closed",
            "held#part-hold": "lost",
        }
        here = replace(target, options=replace(options, brokers=(broker.endpoint,)))
        here.hold(None, ends=True)
        here.hold_again(broker.endpoint)  # a straggler: all is over, and stays so
        with RuleManager(broker.endpoint) as manager:
            assert {one["standing"] for one in manager.status()["sources"]} == {"closed"}
    with BrokerProcess() as broker:
        declared(broker)
        run(1, HALF, broker, holds=False)
        with pytest.raises(LateEvents):
            run(0, 0, broker, holds=False)


def test_a_lost_broker_that_is_back_does_not_wait_for_a_part_that_ended_at_the_next(tmp_path):
    """It knew the part by its store, and had rules wait for it for an hour."""
    common = ("--heartbeat-s", "0.5", "--engine", "naive", "--strategy", "centralized")

    def start(second, **where):
        link = ("--link", second.endpoint)
        return BrokerProcess("--name", "first", "--data", str(tmp_path), *common, *link, **where)

    with BrokerProcess("--name", "second", *common) as second:
        with start(second) as first:
            with RuleManager(second.endpoint) as manager:
                manager.add("event Moved(value: int)\nrule low: define Low() from Moved(value < 0)")
            delivery = Delivery(
                [first.endpoint, second.endpoint],
                part_name("writer", 0),
                [MOVED],
                acks="broker",
                batch_events=512,
                timeout_s=2.0,
            )
            delivery.send([moved(0, HALF)])
            delivery.confirm()
            first.kill()
            delivery.send([moved(HALF, HALF)])
            delivery.finish()
            assert delivery.endpoint == second.endpoint
        with (
            start(second, listen=(first.endpoint,)) as first,
            Subscriber(first.endpoint, "Low()") as subscriber,
            Publisher(first.endpoint, name="other", types=[MOVED], increasing=True) as other,
        ):
            other.publish("Moved", at=2 * HALF * 1_000, value=-1)
            other.publish("Moved", at=2 * HALF * 1_000 + 1, value=0)
            assert subscriber.receive(timeout_s=15).type == "Low"
            with RuleManager(first.endpoint) as manager:
                standings = {one["name"]: one["standing"] for one in manager.status()["sources"]}
            assert standings.get(part_name("writer", 0), "closed") == "closed"
