"""Delivery without Spark: what a lost broker has, the next is not sent; what it has not, it is."""

import numpy as np
import pytest
from two_brokers import two_brokers

from broker import Subscriber
from broker.errors import BrokerUnreachable, PublishBlocked
from broker.process import BrokerProcess
from broker.spark import delivery as deliveries
from broker.spark.delivery import Delivery
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


def test_the_next_broker_gets_what_the_lost_one_had_not_confirmed():
    """The first is linked to the second, and is killed when it has confirmed the first half."""
    with (
        two_brokers() as (first, second),
        Subscriber(second.endpoint, "Moved()") as subscriber,
    ):
        delivery = Delivery(
            [first.endpoint, second.endpoint],
            part_name("mover", 0),
            [MOVED],
            acks="broker",
            batch_events=512,
            timeout_s=2.0,
        )
        delivery.send([moved(0, HALF)])
        delivery.confirm()
        assert delivery.unconfirmed == 0
        values = delivered(subscriber, HALF)
        first.kill()
        delivery.send([moved(HALF, HALF)])
        delivery.finish()
        values += delivered(subscriber, HALF)
        assert values == [*range(2 * HALF)]
        assert delivery.resent <= HALF


def test_what_came_by_another_broker_is_given_out_once():
    """As when a broker passed events on and was lost before its confirmation came back."""

    def at(broker, part):
        return Delivery(
            [broker.endpoint],
            part_name("mover", part),
            [MOVED],
            acks="broker",
            batch_events=512,
            timeout_s=60.0,
        )

    with (
        two_brokers() as (first, second),
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
        for number in range(20):
            delivery.send([moved(number * HALF, HALF)])
            assert delivery.unconfirmed <= 65_536 + 100
        delivery.confirm()
        assert delivery.unconfirmed == 0
        delivery.finish()
