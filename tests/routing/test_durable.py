"""Durable sinks: numbers, acknowledgements, what comes again, clients that share one, a restart."""

from random import Random

import numpy as np
import pytest
from event_batches import batch_of_events
from msgspec import structs

from matcher.model import TIME_MIN, Event, EventType
from routing.config import NodeConfig
from routing.delivery.delivery_batch import DeliveryBatch
from routing.delivery.durable import BEYOND_MAX, WINDOW, DurableSink, Numbered, QueueBounds
from routing.delivery.durables import Durables
from routing.delivery.remainder import event_numbers, last_position, left_of, positions_of
from routing.delivery.sinks import Sinks
from routing.delivery.subscriptions import interest
from routing.deployment import Deployments
from routing.errors import Refusal
from routing.given import Given
from routing.messages import Act, Code, Delivery, Nack, Permit, Rights, Subscribe, WhenFull

TEMP = EventType.of("Temp", n="int")
MOST = 2**31 - 1


def delivery_batch(*values: int) -> DeliveryBatch:
    """Temps of these values, which are their times, too; subscription 1 wants them."""
    events = [Event("Temp", one, "s", str(one), {"n": one}, one) for one in values]
    return DeliveryBatch.of((batch_of_events(TEMP, events),), ((1,),))


class Kept:
    """A keeper of sinks that has all of one at once, in memory, unless it is told to wait."""

    def __init__(self, *, waits: bool = False) -> None:
        self.now = 0.0
        self.elsewhere: dict[str, str] = {}
        self.records: dict[int, Numbered] = {}
        self.reads = 0
        self.is_full = False
        self._waits = waits

    def check_room(self) -> None:
        if self.is_full:
            raise Refusal(Code.STORE_FULL, "the store takes nothing more")

    def note(self, sink: DurableSink) -> None:
        if not self._waits:
            self.flush(sink)
            sink.kept = sink.last

    def flush(self, sink: DurableSink) -> None:
        for one in sink.take_new():
            size = BYTES * one.events
            delivery_batch = structs.replace(one, at=round(self.now * 1e6), size=size)
            self.records[one.first] = delivery_batch
            sink.keep(delivery_batch)
        for first in sink.take_done():
            del self.records[first]

    brokers = ()

    def begin(self, sink: DurableSink) -> None:
        self.records.clear()

    def forget(self, sink: DurableSink) -> None:
        self.records.clear()

    def read(self, name: str, after: int) -> list[Numbered]:
        self.reads += 1
        return [self.records[one] for one in sorted(self.records) if one > after][:3]


BYTES = 10
"""Of an event in the store."""


def sink(
    limit: int = 100,
    when_full: WhenFull = WhenFull.BLOCK,
    size: int | None = None,
    age_s: float | None = None,
    keeper: Kept | None = None,
) -> DurableSink:
    """A sink of which all is kept at once, for subscription 1."""
    made = DurableSink("billing", QueueBounds(when_full, limit, size, age_s), keeper or Kept())
    made.interests.add(interest(1, "Temp()", {"Temp": TEMP}))
    return made


def attach(to: DurableSink, peer: bytes, credit: int = 100) -> None:
    to.attach(peer).numbers[7] = 1
    to.grant(peer, credit, MOST)


def values(delivery: Delivery | None) -> list[int]:
    assert delivery is not None
    return [n for batch in delivery.batches for n in batch.columns[0].tolist()]


def test_events_are_numbered_and_come_again_from_the_first_that_was_not_acknowledged() -> None:
    billing = sink()
    attach(billing, b"one")
    for n in range(1, 6):
        billing.offer(delivery_batch(n))
    delivery = billing.take(100)
    assert delivery is not None
    assert (values(delivery), delivery.number, delivery.again) == ([1, 2, 3, 4, 5], 5, False)
    assert delivery.subscriptions == ((7,),) * 5, "the client's own number"
    assert billing.acknowledge(b"one", 1, 3) == 3
    assert billing.acknowledged == 3
    billing.detach(b"one")
    billing.offer(delivery_batch(6))
    attach(billing, b"two")
    again, new = billing.take(100), billing.take(100)
    assert again is not None
    assert new is not None
    assert (values(again), again.number, again.again) == ([4, 5], 5, True)
    assert (values(new), new.number, new.again) == ([6], 6, False)
    assert billing.to == b"two"


def test_what_is_not_kept_yet_does_not_leave() -> None:
    keeper = Kept(waits=True)
    billing = sink(keeper=keeper)
    attach(billing, b"one")
    billing.offer(delivery_batch(1, 2))
    billing.offer(delivery_batch(3))
    assert billing.take(100) is None
    keeper.flush(billing)
    assert billing.take(100) is None
    billing.kept = 2
    assert values(billing.take(100)) == [1, 2]
    assert billing.take(100) is None
    billing.kept = 3
    assert values(billing.take(100)) == [3]


def test_part_of_a_batch_can_be_acknowledged() -> None:
    billing = sink()
    attach(billing, b"one")
    billing.offer(delivery_batch(1, 2, 3, 4))
    billing.take(100)
    assert [billing.acknowledge(b"one", 1, number) for number in (2, 2, 3, 9)] == [2, 0, 1, 1]
    assert billing.acknowledged == 4


def test_clients_of_one_name_share_its_events() -> None:
    billing = sink()
    attach(billing, b"one", credit=2)
    attach(billing, b"two")
    billing.offer(delivery_batch(*range(1, 8)))
    given = {b"one": list[int](), b"two": list[int]()}
    while (delivery := billing.take(3)) is not None:
        given[billing.to] += values(delivery)
    assert given == {b"one": [1, 2], b"two": [3, 4, 5, 6, 7]}
    assert billing.acknowledge(b"two", 1, 2**62) == 5
    assert billing.acknowledged == 0, "one has not said that it has dealt with its own"
    billing.detach(b"one")
    billing.grant(b"two", 10, MOST)
    assert values(billing.take(100)) == [1, 2]


def test_what_exceeds_the_queue_is_dropped_and_told_with_what_comes_next() -> None:
    billing = sink(limit=3, when_full=WhenFull.DROP_OLDEST)
    for n in range(1, 6):
        billing.offer(delivery_batch(n))
    assert billing.excess == 2
    billing.drop_oldest()
    assert billing.dropped == 2
    assert billing.acknowledged == 2, "what was dropped does not come again"
    attach(billing, b"one")
    delivery = billing.take(100)
    assert delivery is not None
    assert (values(delivery), delivery.dropped, delivery.number) == ([3, 4, 5], 2, 5)


def test_a_restart_leaves_out_what_was_acknowledged_and_what_was_queued_before() -> None:
    keeper = Kept()
    billing = sink(keeper=keeper)
    kept = [Numbered.from_(delivery_batch(11, 12, 13), 1), Numbered.from_(delivery_batch(14), 4)]
    keeper.records = {one.first: one for one in kept}
    billing.recall(last=4, acknowledged=2, beyond=(), floor=15, size=40)
    billing.offer_found(delivery_batch(14, 15))
    attach(billing, b"one")
    first, second = billing.take(100), billing.take(100)
    assert first is not None
    assert second is not None
    assert (values(first), first.again) == ([13, 14], True)
    assert (values(second), second.number, second.again) == ([15], 5, False)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_every_event_is_acknowledged_once_and_in_order(seed: int) -> None:
    """One client at a time, which goes at any moment; a session leaves out what it has had."""
    print(f"seed {seed}")
    random, billing, given = Random(seed), sink(), Given()
    came: list[int] = []
    offered = acknowledged = peer = 0
    while acknowledged < 200:
        does = random.random()
        if does < 0.4 and offered < 200:
            count = random.randint(1, min(5, 200 - offered))
            billing.offer(delivery_batch(*range(offered + 1, offered + count + 1)))
            offered += count
        elif does < 0.5 and billing.attached:
            billing.detach(str(peer).encode())
        elif not billing.attached:
            peer += 1
            attach(billing, str(peer).encode(), credit=0)
        else:
            billing.grant(str(peer).encode(), random.randint(1, 4), MOST)
            delivery = billing.take(random.randint(1, 6))
            if delivery is not None:
                new, unheard = given.take(delivery)
                came += values(new) if new is not None else []
                assert not (unheard and not delivery.again)
                for run in unheard:
                    assert billing.acknowledge(str(peer).encode(), *run) == 0, "all was heard"
                if random.random() < 0.6:
                    first = delivery.number - len(delivery) + 1
                    acknowledged = random.randint(first, delivery.number)
                    for run in given.deal_with_all(acknowledged):
                        billing.acknowledge(str(peer).encode(), *run)
    assert came == list(range(1, 201))


def test_a_durable_sink_belongs_to_the_user_that_made_it() -> None:
    config = NodeConfig()
    sinks = Sinks(config, Deployments(config))
    durables = Durables(sinks, Kept())
    alice, bob = Rights("alice"), Rights("bob")
    asked = Subscribe(1, 1, "Temp(n > 2)", durable="billing")
    durables.subscribe(b"a", asked, {"Temp": TEMP}, alice)
    for one in (asked, structs.replace(asked, limit=7)):  # nor is bob told of its bounds
        with pytest.raises(Refusal, match="another user's than 'bob'"):
            durables.subscribe(b"b", one, {"Temp": TEMP}, bob)
    durables.detach(b"a")
    with pytest.raises(Refusal, match="another user's than 'bob'"):
        durables.remove("billing", bob)
    narrow = Rights("alice", (Permit(Act.SUBSCRIBE, "Temp", 3, "Temp(n < 9)"),))
    durables.subscribe(b"a", asked, {"Temp": TEMP}, narrow)
    (billing,) = durables
    sinks.offer((delivery_batch(1, 5, 10).batches[0],), None)
    assert billing.queued == 1, "what the rights leave"
    durables.detach(b"a")
    assert durables.remove("billing", alice) == billing.queued


def test_a_queue_of_too_many_bytes_holds_up_its_sources_or_drops_the_oldest_records() -> None:
    blocking = sink(size=3 * BYTES)
    blocking.offer(delivery_batch(1, 2))
    assert blocking.full_from is None
    blocking.offer(delivery_batch(3))
    assert blocking.full_from == TIME_MIN
    attach(blocking, b"one")
    assert values(blocking.take(1)) == [1]
    assert (blocking.full_from, blocking.bytes) == (None, 2 * BYTES)
    dropping = sink(when_full=WhenFull.DROP_OLDEST, size=3 * BYTES)
    dropping.offer(delivery_batch(1, 2))
    dropping.offer(delivery_batch(3))
    assert not dropping.is_over
    dropping.offer(delivery_batch(4))
    assert dropping.is_over
    dropping.drop_oldest()
    assert (dropping.bytes, dropping.dropped) == (2 * BYTES, 2)
    attach(dropping, b"one")
    delivery = dropping.take(100)
    assert delivery is not None
    assert (values(delivery), delivery.dropped) == ([3, 4], 2)


@pytest.mark.parametrize("when_full", [WhenFull.BLOCK, WhenFull.DROP_OLDEST])
def test_what_has_waited_for_too_long_is_dropped_and_told(when_full: WhenFull) -> None:
    keeper = Kept()
    billing = sink(when_full=when_full, age_s=10.0, keeper=keeper)
    for n in (1, 2, 3):
        keeper.now = n * 5.0
        billing.offer(delivery_batch(n))
    assert not billing.has_old
    keeper.now = 20.5
    assert billing.has_old
    attach(billing, b"one")
    delivery = billing.take(100)
    assert delivery is not None
    assert (values(delivery), delivery.dropped, billing.dropped) == ([3], 2, 2)
    keeper.now = 100.0
    billing.detach(b"one")
    attach(billing, b"two")
    assert billing.take(100) is None, "what was not acknowledged is too old, too"
    assert (billing.dropped, billing.acknowledged, len(keeper.records)) == (3, 3, 0)


def test_what_is_beyond_the_window_is_in_the_store_alone_and_read_in_order() -> None:
    keeper, count = Kept(), 3 * WINDOW
    billing = sink(limit=count, keeper=keeper)
    for n in range(1, count + 1, 16):
        billing.offer(delivery_batch(*range(n, n + 16)))
    assert sum(one.events for one in billing._queue) == WINDOW
    assert (billing.queued, billing.bytes, keeper.reads) == (count, count * BYTES, 0)
    assert billing.full_from == TIME_MIN
    attach(billing, b"one", credit=count + 1)
    came: list[int] = []
    while (delivery := billing.take(1_000)) is not None:
        came += values(delivery)
        billing.acknowledge(b"one", 1, delivery.number)
        assert sum(one.events for one in billing._queue) <= WINDOW
    assert came == list(range(1, count + 1))
    assert (billing.queued, billing.bytes, billing.stored_bytes) == (0, 0, 0)
    keeper.note(billing)
    assert not keeper.records
    billing.offer(delivery_batch(0))
    assert values(billing.take(100)) == [0], "in memory again"


@pytest.mark.parametrize("seed", range(20))
def test_a_queue_is_the_same_whatever_is_in_memory_of_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offers, clients that come and go, drops and restarts beside a queue that is a list."""
    print(f"seed {seed}")
    monkeypatch.setattr("routing.delivery.durable.WINDOW", 4)
    random, keeper = Random(seed), Kept()
    limit = random.choice([8, 30])
    billing = sink(limit=limit, when_full=WhenFull.DROP_OLDEST, keeper=keeper)
    waiting: list[int] = []
    given: list[int] = []
    last = dropped = 0
    has_gaps = False
    for _ in range(300):
        does = random.random()
        if does < 0.5:
            count = random.randint(1, 5)
            billing.offer(delivery_batch(*range(last + 1, last + count + 1)))
            waiting += range(last + 1, last + count + 1)
            last += count
            if billing.is_over:
                billing.drop_oldest()
            dropped += max(0, len(waiting) - limit)
            waiting = waiting[max(0, len(waiting) - limit) :]
        elif does < 0.7 and billing.attached:
            delivery = billing.take(random.randint(1, 6))
            came = [] if delivery is None else values(delivery)
            assert came == waiting[: len(came)]
            assert came or not waiting
            given, waiting = given + came, waiting[len(came) :]
        elif does < 0.8 and given:
            low, high = sorted(random.choices(given, k=2))
            if random.random() < 0.3:
                low = 0
            left = [one for one in given if not low <= one <= high]
            assert billing.acknowledge(b"one", low, high) == len(given) - len(left)
            given = left
        elif does < 0.9 and billing.attached:
            billing.detach(b"one")
            given, waiting = [], given + waiting
        elif billing.attached:
            before, beyond = billing, tuple(billing.beyond)
            billing = sink(limit=limit, when_full=WhenFull.DROP_OLDEST, keeper=keeper)
            billing.recall(last, before.acknowledged, beyond, 0, before.stored_bytes)
            billing.dropped, given, waiting = before.dropped, [], given + waiting
            has_gaps |= bool(beyond)
        else:
            attach(billing, b"one", credit=1_000)
        assert (billing.queued, billing.dropped, billing.given) == (
            len(waiting),
            dropped,
            len(given),
        )
        done = last - len(given) - len(waiting)
        assert billing.acknowledged_beyond + billing.acknowledged == done
        more = billing.bytes - BYTES * len(waiting)  # of records that were partly done at a restart
        assert more >= 0
        assert has_gaps or more < 5 * BYTES


def test_what_has_ended_is_left_out_of_what_is_read() -> None:
    keeper = Kept()
    billing = sink(limit=10**6, keeper=keeper)
    billing.interests.add(interest(2, "Temp()", {"Temp": TEMP}))
    first = delivery_batch(*range(WINDOW))
    billing.offer(first)
    both = delivery_batch(1, 2)
    billing.offer(DeliveryBatch.of(both.batches, ((2,),)))
    billing.offer(DeliveryBatch.of(both.batches, ((1, 2),)))
    billing.interests.remove(2)
    billing.forget(2)
    attach(billing, b"one", credit=10**6)
    came = []
    while (delivery := billing.take(5_000)) is not None:
        came += values(delivery)
        last = delivery.number
    assert (came[-3:], last, billing.queued) == ([WINDOW - 1, 1, 2], WINDOW + 4, 0)


def test_a_queue_has_the_bounds_that_it_was_made_with() -> None:
    config = NodeConfig(durable_bytes_max=1_000, durable_age_max_s=60.0)
    durables = Durables(Sinks(config, Deployments(config)), Kept())
    asked = Subscribe(1, 1, "Temp()", durable="billing")
    durables.subscribe(b"a", asked, {"Temp": TEMP})
    (billing,) = durables
    assert str(billing.bounds) == "block with 65536 events, 1000 bytes, 60 s", "the broker's"
    durables.detach(b"a")
    other = Subscribe(1, 1, "Temp()", durable="billing", limit_bytes=2_000)
    with pytest.raises(Refusal, match="the queue of 'billing' is already block with 65536 events"):
        durables.subscribe(b"a", other, {"Temp": TEMP})
    durables.subscribe(b"a", Subscribe(1, 1, "Temp()", durable="billing"), {"Temp": TEMP})
    more = Subscribe(1, 1, "Temp()", durable="more", limit_bytes=2_000, limit_age_s=5.0)
    durables.subscribe(b"b", more, {"Temp": TEMP})
    assert [str(one.bounds) for one in durables][1] == "block with 65536 events, 2000 bytes, 5 s"


def test_a_full_store_takes_no_new_sink_or_filter_whatever_its_client_says() -> None:
    config, keeper = NodeConfig(), Kept()
    durables = Durables(Sinks(config, Deployments(config)), keeper)
    there = Subscribe(1, 1, "Temp()", durable="billing")
    durables.subscribe(b"a", there, {"Temp": TEMP})
    durables.detach(b"a")
    keeper.is_full = True
    durables.subscribe(b"b", structs.replace(there, again=True), {"Temp": TEMP})
    filtered = structs.replace(there, number=2, filter="Temp(n > 2)", again=True)
    with pytest.raises(Refusal, match="takes nothing more"):
        durables.subscribe(b"b", filtered, {"Temp": TEMP})
    with pytest.raises(Refusal, match="takes nothing more"):
        durables.subscribe(b"c", structs.replace(filtered, durable="other"), {"Temp": TEMP})


def test_a_name_that_another_broker_has_is_refused_with_that_broker() -> None:
    keeper = Kept()
    keeper.elsewhere = {"billing": "b1"}
    config = NodeConfig()
    durables = Durables(Sinks(config, Deployments(config)), keeper)
    with pytest.raises(Refusal, match="the durable sink 'billing' is at broker b1"):
        durables.subscribe(b"a", Subscribe(1, 1, "Temp()", durable="billing"), {"Temp": TEMP})
    with pytest.raises(Refusal, match="is at broker b1"):
        durables.remove("billing")
    durables.subscribe(b"a", Subscribe(1, 1, "Temp()", durable="other"), {"Temp": TEMP})


def test_who_acknowledges_has_said_nothing_of_older_events_that_came_behind() -> None:
    billing = sink()
    attach(billing, b"one", credit=2)
    attach(billing, b"two", credit=2)
    billing.offer(delivery_batch(1, 2))
    billing.offer(delivery_batch(3, 4))
    assert [values(billing.take(2)), billing.to] == [[1, 2], b"one"]
    assert [values(billing.take(2)), billing.to] == [[3, 4], b"two"]
    billing.detach(b"one")
    billing.grant(b"two", 10, MOST)
    assert values(billing.take(100)) == [1, 2], "to two, which has 3 and 4"
    assert billing.acknowledge(b"two", 3, 4) == 2
    billing.detach(b"two")
    attach(billing, b"three")
    assert values(billing.take(100)) == [1, 2], "two has not said that it has dealt with these"
    assert [billing.acknowledge(b"three", 1, number) for number in (1, 2)] == [1, 1]


def test_a_delivery_has_numbers_without_a_gap() -> None:
    billing = sink()
    attach(billing, b"one", credit=2)
    attach(billing, b"two", credit=2)
    for first in (1, 3, 5):
        billing.offer(delivery_batch(first, first + 1))
    assert [values(billing.take(2)), billing.to] == [[1, 2], b"one"]
    assert [values(billing.take(2)), billing.to] == [[3, 4], b"two"]
    billing.grant(b"one", 2, MOST)
    assert [values(billing.take(2)), billing.to] == [[5, 6], b"one"]
    billing.detach(b"one")
    billing.grant(b"two", 10, MOST)
    found = []
    while (delivery := billing.take(100)) is not None:
        found.append((values(delivery), delivery.number, delivery.again))
    assert found == [([1, 2], 2, True), ([5, 6], 6, True)]


def test_what_is_left_of_a_delivery_keeps_its_numbers() -> None:
    delivery = structs.replace(delivery_batch(7, 8, 9, 10).delivery, number=10, again=True)
    left = left_of(delivery, np.array([True, False, True, False]))
    assert left is not None
    assert (values(left), left.number, left.again) == ([7, 9], 10, True)
    assert event_numbers(left).tolist() == [7, 9]
    assert (positions_of(left), last_position(left)) == ([7, 9], 9)
    assert (positions_of(delivery), last_position(delivery)) == ([7, 8, 9, 10], 10)
    assert positions_of(delivery_batch(1, 2).delivery) == [0, 0]
    second = left_of(left, np.array([False, True]))
    assert second is not None
    assert (values(second), positions_of(second)) == ([9], [9])
    assert left_of(left, np.array([False, False])) is None
    assert left_of(left, np.array([True, True])) is left


def test_events_acknowledged_one_by_one_do_not_come_again_and_the_others_do() -> None:
    keeper = Kept()
    billing = sink(keeper=keeper)
    attach(billing, b"one")
    billing.offer(delivery_batch(*range(1, 9)))
    assert values(billing.take(100)) == list(range(1, 9))
    assert [billing.acknowledge(b"one", number, number) for number in (6, 2, 3, 6)] == [1, 1, 1, 0]
    assert (billing.acknowledged, list(billing.beyond), billing.given) == (0, [(2, 3), (6, 6)], 5)
    assert billing.acknowledge(b"one", 1, 1) == 1
    assert (billing.acknowledged, list(billing.beyond)) == (3, [(6, 6)])
    copy = Kept()
    copy.records = dict(keeper.records)
    restarted = sink(keeper=copy)
    restarted.recall(8, billing.acknowledged, tuple(billing.beyond), 0, billing.stored_bytes)
    for again in (billing, restarted):
        again.attach(b"one")
        again.detach(b"one")
        attach(again, b"two")
        found = []
        while (delivery := again.take(100)) is not None:
            found.append((values(delivery), delivery.number, delivery.again))
        assert found == [([4, 5], 5, True), ([7, 8], 8, True)]
        assert again.acknowledge(b"two", 4, 8) == 4
        assert (again.acknowledged, again.acknowledged_beyond) == (8, 0)
        assert (again.stored_bytes, again.queued, again.bytes) == (0, 0, 0)
    assert not keeper.records
    assert not copy.records


def test_numbers_that_a_client_was_not_given_say_nothing() -> None:
    billing = sink()
    attach(billing, b"one", credit=2)
    attach(billing, b"two", credit=2)
    billing.offer(delivery_batch(1, 2))
    billing.offer(delivery_batch(3, 4))
    billing.offer(delivery_batch(5, 6))
    assert [values(billing.take(2)), values(billing.take(2))] == [[1, 2], [3, 4]]
    assert [billing.acknowledge(b"one", *run) for run in ((3, 6), (9, 2**62), (5, 1))] == [0, 0, 0]
    assert billing.acknowledge(b"one", 0, 2**62) == 2
    assert (billing.acknowledged, billing.given, billing.queued) == (2, 2, 2)


def test_who_acknowledges_every_second_event_has_a_bound_which_holds_as_soon_as_he_goes() -> None:
    """What comes again is in few pieces then, as after a restart: else the broker would stand still
    while it cut thousands of events out of what others are to get.
    """
    keeper, count = Kept(), 2 * BEYOND_MAX + 202
    billing = sink(limit=count, keeper=keeper)
    attach(billing, b"one", credit=count)
    for n in range(1, count + 1, 50):
        billing.offer(delivery_batch(*range(n, n + 50)))
        assert len(billing.take(50) or ()) == 50
        for even in range(n + 1, n + 50, 2):
            assert billing.acknowledge(b"one", even, even) == 1
    expected = sorted({*range(1, count + 1, 2), *range(2 * BEYOND_MAX + 2, count + 1, 2)})
    beyond = tuple(billing.beyond)
    assert len(beyond) == BEYOND_MAX
    assert beyond[-1] == (2 * BEYOND_MAX, 2 * BEYOND_MAX)
    copy = Kept()
    copy.records = dict(keeper.records)
    restarted = sink(limit=count, keeper=copy)
    restarted.recall(count, 0, beyond, 0, billing.stored_bytes)
    billing.detach(b"one")
    for again in (billing, restarted):
        attach(again, b"two", credit=count)
        came = []
        while (delivery := again.take(count)) is not None:
            assert delivery.again
            came += values(delivery)
        assert came == expected
        assert again.acknowledge(b"two", 1, count) == len(expected)
        assert (again.acknowledged, again.queued, again.given) == (count, 0, 0)


def test_who_gives_back_what_has_many_gaps_is_given_it_in_few_pieces() -> None:
    count = 2 * BEYOND_MAX + 202
    billing = sink(limit=count)
    attach(billing, b"one", credit=2 * count)
    billing.offer(delivery_batch(*range(1, count + 1)))
    assert len(billing.take(count) or ()) == count
    for even in range(2, count + 1, 2):
        billing.acknowledge(b"one", even, even)
    assert not billing.take_back(b"one", Nack(1, 2**62))
    billing.take_due(0.0)
    came = []
    while (delivery := billing.take(count)) is not None:
        came.append(values(delivery))
    *alone, behind = came
    assert alone == [[n] for n in range(1, 2 * BEYOND_MAX, 2)]
    assert behind == [*range(2 * BEYOND_MAX + 1, count + 1)]
    assert billing.acknowledge(b"one", 1, count) == sum(map(len, came))
    assert (billing.acknowledged, billing.queued, billing.given) == (count, 0, 0)


def test_what_was_dropped_behind_an_open_event_leaves_no_gap() -> None:
    billing = sink(limit=1, when_full=WhenFull.DROP_OLDEST)
    attach(billing, b"one", credit=1)
    billing.offer(delivery_batch(1))
    assert values(billing.take(1)) == [1]
    for n in range(2, 100):
        billing.offer(delivery_batch(n))
        if n % 7 == 0:
            billing.grant(b"one", 1, 1)
            assert values(billing.take(1)) == [n - 1]
            billing.acknowledge(b"one", n - 1, n - 1)
        billing.drop_oldest()
    assert list(billing.beyond) == [(2, 98)], "99 waits"
    billing.acknowledge(b"one", 1, 1)
    assert billing.acknowledged == 98


def test_events_keep_their_numbers_when_a_subscription_ends() -> None:
    """Else what was not acknowledged would be taken for done with after a restart."""
    billing = sink()
    billing.interests.add(interest(2, "Temp()", {"Temp": TEMP}))
    attach(billing, b"one")
    both = [delivery_batch(n).batches[0] for n in range(1, 6)]
    numbers = ((1,), (2,), (1, 2), (2,), (1,))
    billing.offer(DeliveryBatch.of(tuple(both), numbers))
    billing.interests.remove(2)
    billing.forget(2)
    assert (billing.queued, billing.acknowledged) == (3, 0)
    given = []
    while (delivery := billing.take(100)) is not None:
        given += zip(values(delivery), event_numbers(delivery).tolist(), strict=True)
    assert given == [(1, 1), (3, 3), (5, 5)]
    assert billing.acknowledge(b"one", 3, 3) == 1
    assert billing.acknowledged == 0
    assert billing.acknowledge(b"one", 1, 1) == 1
    assert billing.acknowledged == 4


def test_what_waits_is_seen_and_still_waits() -> None:
    billing = sink()
    for n in range(1, 6):
        billing.offer(delivery_batch(2 * n - 1, 2 * n))
    seen = billing.waiting(5)
    assert [(number, event.data["n"]) for number, event in seen] == [(n, n) for n in range(1, 6)]
    attach(billing, b"one")
    assert values(billing.take(4)) == [1, 2, 3, 4]
    assert [number for number, _ in billing.waiting(100)] == [5, 6, 7, 8, 9, 10]
