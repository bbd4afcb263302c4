"""Subscriptions matched together find what each finds alone (SubscriberIndex; Selection)."""

from collections.abc import Iterable
from random import Random

import numpy as np
import pytest
from pairs import seeds

from matcher.matching import MATCHERS, Matching
from matcher.model import EventBatch, EventType
from matcher.rows import batch_of
from matcher.single import Row, Single, singles
from routing.config import NodeConfig
from routing.delivery.delivery_batch import DeliveryBatch
from routing.delivery.selection import BITS_MAX, Pattern, patterns_of
from routing.delivery.sinks import Sinks
from routing.delivery.subscriber_index import MANY, SubscriberIndex
from routing.delivery.subscriptions import Interests, delivery_batch_of, interest
from routing.deployment import Deployments
from routing.messages import Subscribe
from rules.filter_index import IN_TURN_MAX, FilterIndex
from rules.subscription import Subscription, parse_subscription

TEMP = EventType.of("Temp", room="string", value="float", n="int", ok="bool")
SCHEMAS = {"Temp": TEMP}
ROOMS = ["", "a", "ab", "aba", "b", "ba", "é"]
SEEDS = len(seeds(8, 20))


class Listener:
    """A sink, as far as the index sees it."""

    def __init__(self) -> None:
        self.interests = Interests()


def random_condition(random: Random) -> str:
    room, number = random.choice(ROOMS), random.choice([1, 2.5, 4])
    ordering = random.choice(["=", "!=", "<", "<=", ">", ">="])
    test = random.choice(["=", "!=", "<", ">=", "prefix", "suffix", "contains"])
    return random.choice(
        [
            f"room {test} '{room}'",
            f"value {ordering} {number}",
            f"{random.randrange(5)} {random.choice(['<', '=', '>='])} n",
            random.choice(["ok", "not ok", "ok = false"]),
            f"n % {random.randrange(2, 4)} = 0",
            f"room {random.choice(['in', 'not in'])} ('{room}', 'ab') or n in (1, {number})",
            f"lower(room) {test} '{room}'",
            f"room {random.choice(['matches', 'not matches'])} '^{room}.?$'",
            f"n > {random.randrange(4)} or room = '{room}'",
        ]
    )


def random_filter(random: Random) -> str:
    conditions = [random_condition(random) for _ in range(random.choice([0, 1, 1, 2, 2, 3]))]
    return f"Temp({' and '.join(f'({one})' for one in conditions)})" if conditions else "Temp"


def random_batch(random: Random) -> EventBatch:
    rows = [
        {
            "room": random.choice(ROOMS),
            "value": random.choice([0.0, 1.0, 2.5, 3.25, 4.0]),
            "n": random.randrange(-1, 6),
            "ok": random.random() < 0.5,
        }
        for _ in range(random.choice([1, 1, 2, 7, 40]))
    ]
    return batch_of(TEMP, rows, source="s", times=list(range(len(rows))))


def by_event(patterns: Iterable[Pattern], count: int) -> dict[int, tuple[int, ...]]:
    """The numbers of each event; every event is in one pattern at most."""
    found: dict[int, tuple[int, ...]] = {}
    for numbers, rows in patterns:
        assert list(numbers) == sorted(numbers)
        for row in range(count) if rows is None else rows.tolist():
            assert row not in found
            found[row] = numbers
    return found


def wanted(sink: Listener, batch: EventBatch) -> dict[int, tuple[int, ...]]:
    """The same, each subscription looked at for itself."""
    masks = {one.number: one.filter.mask(batch) for one in sink.interests if one.filter is not None}
    rows = {
        row: tuple(sorted(number for number, mask in masks.items() if mask[row]))
        for row in range(len(batch))
    }
    return {row: numbers for row, numbers in rows.items() if numbers}


def agree(index: SubscriberIndex[Listener], sinks: Iterable[Listener], batch: EventBatch) -> None:
    found = {sink: by_event(patterns, len(batch)) for sink, patterns in index.match(batch)}
    expected = {sink: wanted(sink, batch) for sink in sinks}
    assert found == {sink: rows for sink, rows in expected.items() if rows}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_many_subscriptions_find_what_each_finds(seed: int) -> None:
    random = Random(seed)
    index: SubscriberIndex[Listener] = SubscriberIndex()
    sinks = [Listener() for _ in range(random.choice([1, 3, 30]))]
    # One sink alone has more than BITS_MAX of them now and then.
    most = random.choice([MANY // 2, 2 * MANY, 4 * MANY])
    held: list[tuple[Listener, int]] = []
    fresh = iter(range(10**6))
    for _ in range(6):
        for _ in range(random.randrange(most)):
            sink, number = random.choice(sinks), next(fresh)
            known = {} if random.random() < 0.1 else SCHEMAS
            added = interest(number, random_filter(random), known)
            sink.interests.add(added)
            index.add(sink, added)
            held.append((sink, number))
        agree(index, sinks, random_batch(random))
        random.shuffle(held)
        for _ in range(min(len(held), random.choice([0, 1, len(held) // 2, len(held)]))):
            sink, number = held.pop()
            (ended,) = sink.interests.remove(number)
            index.remove(sink, ended)
        agree(index, sinks, random_batch(random))
        for sink in sinks:
            for one in list(sink.interests):
                sink.interests.add(one.checked(SCHEMAS))
        index.forget()
        agree(index, sinks, random_batch(random))
    assert len(index) == len(held)


def test_who_gets_an_event_first_is_no_matter_of_the_matcher() -> None:
    random = Random(3)
    sinks = [Listener() for _ in range(40)]
    added = [(sink, interest(0, random_filter(random), SCHEMAS)) for sink in sinks]
    indices = [SubscriberIndex[Listener](Matching(name)) for name in MATCHERS[:6]]
    for sink, one in added:
        sink.interests.add(one)
        for index in indices:
            index.add(sink, one)
    for _ in range(30):
        batch = random_batch(random)
        orders = {tuple(sinks.index(sink) for sink, _ in index.match(batch)) for index in indices}
        assert len(orders) == 1


def test_a_sink_may_have_more_subscriptions_to_a_type_than_a_word_has_bits() -> None:
    index: SubscriberIndex[Listener] = SubscriberIndex()
    sink = Listener()
    for number in range(3 * BITS_MAX):
        added = interest(number, f"Temp(n >= {number})", SCHEMAS)
        sink.interests.add(added)
        index.add(sink, added)
    rows = [{"room": "", "value": 0.0, "n": n, "ok": True} for n in (-1, 100, 3, 100)]
    batch = batch_of(TEMP, rows, source="s", times=[0] * 4)
    [(_, patterns)] = index.match(batch)
    assert by_event(patterns, 4) == {
        1: tuple(range(101)),
        2: tuple(range(4)),
        3: tuple(range(101)),
    }


def test_numbers_that_go_with_every_event_are_in_each_pattern() -> None:
    events, numbers = np.array([0, 2, 2]), np.array([7, 3, 7])
    found = by_event(patterns_of(events, numbers, [5], 4), 4)
    assert found == {0: (5, 7), 1: (5,), 2: (3, 5, 7), 3: (5,)}


def delivered(delivery_batch: DeliveryBatch | None) -> list[tuple[str, int, tuple[int, ...]]]:
    """Type, sequence number and subscriptions of each event, in the order of delivery."""
    if delivery_batch is None:
        return []
    flat = [
        (batch.type.name, sequence, tuple(sorted(numbers)))
        for batch, numbers in zip(delivery_batch.batches, delivery_batch.subscriptions, strict=True)
        for sequence in batch.ids.sequence.tolist()
    ]
    return [flat[place] for place in delivery_batch.places.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_sinks_get_what_each_would_get_alone(seed: int) -> None:
    random = Random(seed)
    other = EventType.of("Other", room="string", value="float", n="int", ok="bool")
    schemas = {"Temp": TEMP, "Other": other}
    config = NodeConfig("b")
    sinks = Sinks(config, Deployments(config))  # without any rule
    peers = [f"p{number}".encode() for number in range(6)]
    for number in range(90):
        text = random_filter(random)
        if number % 15 == 0:  # few enough to be looked at one by one
            text = text.replace("Temp", "Other", 1)
        message = Subscribe(1, number, text)
        sinks.subscribe(random.choice(peers), "k", message, schemas)
    for peer in peers[:2]:
        for one in list(found.interests)[::2] if (found := sinks.find(peer)) else ():
            sinks.unsubscribe(peer, one.number)
    sinks.remove(peers[2])
    for _ in range(6):
        temp, rest = random_batch(random), random_batch(random)
        moved = EventBatch(other, rest.time, rest.ids, rest.columns)
        batches = random.choice([(temp,), (temp, moved), (moved, temp), (moved,)])
        count = sum(map(len, batches))
        order = random.choice([None, np.array(random.sample(range(count), count))])
        expected = {
            sink.peer: delivered(
                delivery_batch_of(batches, list(map(sink.interests.patterns, batches)), order)
            )
            for sink in sinks
        }
        sinks.offer(batches, order)
        touched = sinks.take_touched()
        for sink in touched:
            sink.credit = count
            delivery = sink.take(count)
            assert delivery is not None
            delivery_batch = DeliveryBatch.of(
                delivery.batches, delivery.subscriptions, delivery.order
            )
            assert delivered(delivery_batch) == expected[sink.peer]
        assert {sink.peer for sink in touched} == {peer for peer, told in expected.items() if told}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_one_event_is_looked_up_by_its_values(seed: int) -> None:
    """Few filters may take an event: they are asked in turn; many: they are matched."""
    random = Random(seed)
    index: FilterIndex[int] = FilterIndex()
    filters: dict[int, Subscription] = {}
    for _ in range(8):
        for name in range(random.choice([5, 4 * IN_TURN_MAX])):
            text = f"Temp(n = {random.randrange(6)} and ({random_condition(random)}))"
            kept = name in filters
            if kept and random.random() < 0.5:
                del filters[name]
                index.remove(name)
            elif not kept:
                text = text if random.random() < 0.9 else random_filter(random)
                filters[name] = parse_subscription(text, SCHEMAS)
                index.add(name, filters[name])
        for event in singles(random_batch(random)):
            found = [index.names.words[place] for place in index.single(event)]
            expected = {name for name, one in filters.items() if one.takes(event)}
            assert set(found) == expected
            assert len(found) == len(expected)
            assert index.takes(event) is bool(expected) is bool(index.mask(event)[0])
    for name in filters:
        index.remove(name)
    assert index.single(singles(random_batch(random))[0]) == []


def test_values_are_looked_up_as_they_compare() -> None:
    """An int equals a float of its value, 0.0 equals -0.0, and a text itself alone (S10)."""
    schema = EventType.of("Temp", room="string", value="float", n="int", ok="bool")
    texts = ["value = 1", "value = 0", "n = 1.0", "n = 1.5", "ok", "not ok", "room = '1'"]
    index: FilterIndex[str] = FilterIndex()
    for text in texts:
        index.add(text, parse_subscription(f"Temp({text})", {"Temp": schema}))
    for values in [("1", 1.0, 1, True), ("", -0.0, 0, False), ("1", 1.5, 2, True)]:
        event = Single(schema, Row(1, "s", 1, None, values))
        found = {index.names.words[place] for place in index.single(event)}
        assert found == {
            text
            for text in texts
            if parse_subscription(f"Temp({text})", {"Temp": schema}).mask(event)[0]
        }
