"""A queue is bounded by the bytes of its events, too (Sink, ClientGroup)."""

import pytest

from matcher.model import TIME_MIN, EventType
from matcher.single import Row, Single
from routing.delivery.delivery_batch import DeliveryBatch
from routing.delivery.group import ClientGroup
from routing.delivery.sink import QUEUE_BYTES_MAX, Sink
from routing.messages import Delivery, Subscribe, WhenFull

LONG = EventType.of("Long", key="int", text="string")
SIZE = QUEUE_BYTES_MAX // 16
LIMIT = 1_000
"""So many events may wait; a sixteenth of a queue's bytes is one of them."""
GROUPS = ["", "key"]
"""By which attribute a group shares events out."""


def waiting(number: int) -> DeliveryBatch:
    event = Single(LONG, Row(number, "s", number, None, (number, "x" * SIZE)))
    return DeliveryBatch(Delivery((event,), ((1,),), None, 0, False), 1)


def sink_of(when_full: WhenFull, by: str | None = None) -> Sink:
    """A sink, or with ``by`` a group of three clients."""
    if by is None:
        return Sink(b"a", "a", when_full, LIMIT)
    group = ClientGroup(b"g", Subscribe(1, 1, "Long", when_full, LIMIT, group="g", by=by))
    for number in range(3):
        group.attach(bytes([number]), 1)
    return group


@pytest.mark.parametrize("by", [None, *GROUPS])
def test_the_oldest_of_long_events_are_dropped(by: str | None) -> None:
    sink = sink_of(WhenFull.DROP_OLDEST, by)
    for number in range(100):
        sink.offer(waiting(number))
        if sink.is_over:
            sink.drop_oldest()
    # What begins a queue is not counted, nor is what is there when it is counted out.
    assert 100 - 20 <= sink.dropped <= 100 - 12
    assert sink.queued == 100 - sink.dropped
    assert sink.untold == sink.dropped


@pytest.mark.parametrize("by", [None, *GROUPS])
def test_a_queue_of_long_events_holds_up_who_feeds_it(by: str | None) -> None:
    sink = sink_of(WhenFull.BLOCK, by)
    for number in range(8):
        sink.offer(waiting(number))
    assert sink.full_from is None
    for number in range(8, 20):
        sink.offer(waiting(number))
    assert sink.full_from == TIME_MIN
    assert sink.is_over


def test_what_is_taken_is_counted_no_more() -> None:
    sink = sink_of(WhenFull.BLOCK)
    for rounds in range(3):
        for number in range(30):
            sink.offer(waiting(number))
        assert sink.full_from == TIME_MIN, rounds
        sink.credit = 30
        while sink.take(4) is not None:
            pass
        assert (sink.queued, sink.size, sink.full_from) == (0, 0, None)


def test_what_a_subscription_that_has_ended_leaves_is_counted_anew() -> None:
    sink = sink_of(WhenFull.BLOCK)
    for number in range(30):
        sink.offer(waiting(number))
    sink.forget(1)
    assert (sink.queued, sink.size, sink.full_from) == (0, 0, None)


def test_small_events_fill_a_queue_by_their_number_alone() -> None:
    sink = sink_of(WhenFull.DROP_OLDEST)
    event = Single(LONG, Row(1, "s", 1, None, (1, "x")))
    for _ in range(LIMIT + 5):
        sink.offer(DeliveryBatch(Delivery((event,), ((1,),), None, 0, False), 1))
    assert sink.is_over
    sink.drop_oldest()
    assert (sink.queued, sink.dropped) == (LIMIT, 5)
