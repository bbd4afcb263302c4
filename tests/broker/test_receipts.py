"""Receipts of published events, against a real broker: waited for, refused, late, after the end."""

import asyncio

import pytest

from broker import (
    AsyncPublisher,
    ClientClosed,
    LateEvents,
    PublishBlocked,
    Publisher,
    RefusedError,
)
from broker.process import BrokerProcess
from matcher.model import MICROSECONDS

SECOND = MICROSECONDS


def test_a_receipt_is_acknowledged_once_the_broker_has_its_event(endpoint, temp):
    with Publisher(endpoint, name="receipts", types=[temp]) as publisher:
        for value in range(5):
            receipt = publisher.publish(temp.name, area="a", value=float(value))
            receipt.wait()
            assert receipt.is_acknowledged
            assert publisher.unacknowledged == 0
        receipts = [publisher.publish(temp.name, area="a", value=1.0) for _ in range(2_000)]
        first = receipts[0].number
        assert [one.number for one in receipts] == list(range(first, first + 2_000))
        receipts[999].wait()
        assert all(one.is_acknowledged for one in receipts[:1_000])
        rows = [{"area": "a", "value": 1.0}] * 10_000
        last = publisher.publish_batch(rows, type=temp.name)
        assert last.number == publisher.published == receipts[-1].number + 10_000
        last.wait()
        assert all(one.is_acknowledged for one in receipts)
        assert publisher.publish_batch([], type=temp.name) == last
        assert repr(last) == f"Receipt({last.number})"


def test_the_same_with_asyncio(endpoint, temp):
    async def publish():
        async with AsyncPublisher(endpoint, name="async receipts", types=[temp]) as publisher:
            one = await publisher.publish(temp.name, area="a", value=1.0)
            await one
            assert one.is_acknowledged
            rows = [{"area": "a", "value": 1.0}] * 10_000
            many = await publisher.publish_batch(rows, type=temp.name)
            assert many.number == one.number + 10_000
            await asyncio.gather(*(many for _ in range(3)))
            assert many.is_acknowledged
            await many.wait(timeout_s=1.0)
        await many
        async with AsyncPublisher(endpoint, name="none", types=[temp], acks="none") as careless:
            receipt = await careless.publish(temp.name, area="a", value=1.0)
            with pytest.raises(ValueError, match="no acknowledgement"):
                await receipt

    asyncio.run(publish())


def test_a_refused_event_is_raised_by_waiting_for_it_or_is_dealt_with(endpoint, temp):
    with Publisher(endpoint, name="refused", types=[temp], increasing=True) as publisher:
        publisher.publish(temp.name, area="a", value=1.0, at=2 * SECOND).wait()
        publisher.promise(4 * SECOND)
        late = publisher.publish(temp.name, area="a", value=1.0, at=3 * SECOND)
        with pytest.raises(LateEvents):
            late.wait()
        late.wait()
        assert late.is_acknowledged
    with Publisher(endpoint, name="kept", types=[temp], on_refusal="keep") as publisher:
        far = publisher.publish(temp.name, area="a", value=1.0, at=32_503_680_000 * SECOND)
        far.wait()
        (refusal,) = publisher.take_refusals()
        assert isinstance(refusal, RefusedError)
        assert (far.is_acknowledged, publisher.rejected) == (True, 1)


def test_without_acknowledgements_there_is_nothing_to_wait_for(endpoint, temp):
    with Publisher(endpoint, name="no receipts", types=[temp], acks="none") as publisher:
        receipt = publisher.publish(temp.name, area="a", value=1.0)
        with pytest.raises(ValueError, match="acks='none'"):
            receipt.wait()
        with pytest.raises(ValueError, match="acks='none'"):
            _ = receipt.is_acknowledged


def test_after_the_end_a_receipt_says_whether_its_event_had_arrived(temp):
    with BrokerProcess("--engine", "naive") as first:
        publisher = Publisher(
            first.endpoint, name="ended", types=[temp], timeout_s=0.2, close_timeout_s=0.2
        )
        arrived = publisher.publish(temp.name, area="a", value=1.0)
        arrived.wait()
        first.kill()
        lost = publisher.publish(temp.name, area="a", value=1.0)
        with pytest.raises(PublishBlocked):
            lost.wait()
        arrived.wait()
        with pytest.raises(PublishBlocked):
            publisher.close()
        arrived.wait()
        with pytest.raises(ClientClosed):
            lost.wait()
        assert (arrived.is_acknowledged, lost.is_acknowledged) == (True, False)
