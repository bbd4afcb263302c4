"""Delivery batches are cut, joined and held back, and no event is lost, doubled or misplaced."""

from random import Random

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from routing.delivery.delivery_batch import DeliveryBatch, join, joined_once, select
from routing.delivery.holdback import HoldBack

TYPES = [EventType.of(name, n="int") for name in "AB"]


def batch(random: Random, times: list[int]) -> EventBatch:
    count = len(times)
    names = EventIds(StringColumn.constant("p", count), np.arange(count))
    values = np.array([random.randrange(10**9) for _ in range(count)])
    return EventBatch(random.choice(TYPES), np.array(times), names, (values,))


def delivery_batch(random: Random, spread: int = 20) -> DeliveryBatch:
    batches = tuple(
        batch(random, [random.randrange(spread) for _ in range(random.randint(1, 6))])
        for _ in range(random.randint(1, 3))
    )
    total = sum(map(len, batches))
    order = None if random.random() < 0.3 else np.array(random.sample(range(total), total))
    return DeliveryBatch.of(batches, tuple((number,) for number, _ in enumerate(batches)), order)


def events(one: DeliveryBatch) -> list[tuple[int, int, tuple[int, ...]]]:
    """(time, value, subscriptions) in the order of delivery."""
    rows = [
        (time, value, numbers)
        for own, numbers in zip(one.batches, one.subscriptions, strict=True)
        for time, value in zip(own.time.tolist(), own.columns[0].tolist(), strict=True)
    ]
    return [rows[place] for place in one.places.tolist()]


@pytest.mark.parametrize("seed", range(50))
def test_cutting_and_joining(seed: int) -> None:
    random = Random(seed)
    whole = delivery_batch(random)
    if len(whole) > 1:
        head, rest = whole.cut(random.randint(1, len(whole) - 1))
        assert events(head) + events(rest) == events(whole)
        assert events(join([head, rest])) == events(whole)
    more = [delivery_batch(random) for _ in range(3)]
    assert events(join(more)) == [event for one in more for event in events(one)]


def test_sinks_that_were_offered_the_same_share_what_it_makes_together() -> None:
    one, other = delivery_batch(Random(1)), delivery_batch(Random(2))
    together = joined_once(one, other)
    assert events(together) == events(one) + events(other)
    assert joined_once(one, other) is together
    again = DeliveryBatch(one.delivery, one.events)
    assert joined_once(again, other) is not together
    assert joined_once(one) is one


@pytest.mark.parametrize("seed", range(50))
def test_a_subscription_that_ends_takes_what_was_for_it_alone(seed: int) -> None:
    random = Random(seed)
    batches, order = (whole := delivery_batch(random)).batches, whole.order
    numbers = [tuple(sorted(random.sample(range(3), random.randint(1, 3)))) for _ in batches]
    whole = DeliveryBatch.of(batches, tuple(numbers), order)
    left = [
        (time, value, tuple(one for one in own if one != 1))
        for time, value, own in events(whole)
        if own != (1,)
    ]
    rest = whole.without(1)
    assert (events(rest) if rest is not None else []) == left
    held = HoldBack()
    held.hold(whole, np.zeros((len(whole), 2), np.int64))
    held.forget(1)
    assert held.events == len(left)
    released = held.release(2**62)
    assert sorted(events(released) if released is not None else []) == sorted(left)


@pytest.mark.parametrize("seed", range(50))
def test_selecting(seed: int) -> None:
    random = Random(seed)
    whole = DeliveryBatch.of(delivery_batch(random).batches, ((1,),) * 3, None)
    places = random.sample(range(len(whole)), random.randint(1, len(whole)))
    batches, numbers = whole.batches, whole.subscriptions[: len(whole.batches)]
    everything = events(DeliveryBatch.of(batches, numbers))
    chosen = select(batches, numbers, np.array(places))
    assert events(chosen) == [everything[place] for place in places]


@pytest.mark.parametrize("seed", range(100))
def test_what_is_held_comes_out_in_order_of_time_rule_and_rank(seed: int) -> None:
    """Beside a plain sorted list (E4): what was detected later may come before what is held."""
    random = Random(seed)
    held, plain, mark = HoldBack(), [], 0
    for _ in range(12):
        arrived = delivery_batch(random)
        arrived = DeliveryBatch.of(
            tuple(
                EventBatch(one.type, one.time + mark, one.ids, one.columns)
                for one in arrived.batches
            ),
            arrived.subscriptions,
            arrived.order,
        )
        rule = (random.choice([-(2**63), 5, 9]), random.randint(1, 3))
        held.hold(arrived, np.array([rule] * len(arrived)))
        plain += [((event[0], *rule, rank), event) for rank, event in enumerate(events(arrived))]
        if random.random() < 0.3 and held.events:
            count = random.randint(1, held.events)
            dropped = sorted(key for key, _ in plain)[:count]
            held.drop(count)
            # Ranks of different arrivals may tie, so that only what all agree on is compared.
            plain = [one for one in plain if one[0] not in dropped]
            if len(plain) != held.events:
                return
        mark += random.randint(0, 12)
        due = sorted((one for one in plain if one[0][0] < mark), key=lambda one: one[0])
        plain = [one for one in plain if one[0][0] >= mark]
        released = held.release(mark)
        got = [] if released is None else events(released)
        keys = [(event[0], *key[1:]) for key, event in due]
        assert [event[0] for event in got] == [event[0] for _, event in due]
        assert sorted(got) == sorted(event for _, event in due)
        if len(set(keys)) == len(keys):
            assert got == [event for _, event in due]
        assert held.events == len(plain)
