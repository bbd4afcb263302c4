"""Events published one at a time become columns."""

import random

import pytest

from broker.client.outbox import Outbox
from matcher.errors import BadEvent
from matcher.model import EventType
from matcher.rows import values_of

TEMP = EventType.of("Temp", area="string", value="float", floor="int", on="bool")
TICK = EventType.of("Tick")
ONE = EventType.of("One", n="int")
GOOD = {"area": "a1", "value": 46.5, "floor": 3, "on": True}


@pytest.fixture
def outbox():
    outbox = Outbox("sensor")
    for event_type in (TEMP, TICK, ONE):
        outbox.know(event_type)
    return outbox


def add(outbox, name, data, time, text_id):
    outbox.add(outbox.check(name, data, time, text_id))


def take(outbox, first):
    batches = outbox.batches(first)
    outbox.clear()
    return batches


def test_events_keep_their_order_across_types(outbox):
    for number in range(6):
        name, data = (("Temp", GOOD), ("Tick", {}), ("One", {"n": number}))[number % 3]
        add(outbox, name, data, 100 - number, None)
    batches = take(outbox, 1)
    given = {int(s): batch.type.name for batch in batches for s in batch.ids.sequence}
    assert [given[number] for number in range(1, 7)] == ["Temp", "Tick", "One"] * 2
    assert {int(t) for batch in batches for t in batch.time} == set(range(95, 101))
    assert outbox.count == 0
    assert take(outbox, 1) == []


def test_events_with_text_ids_travel_apart_from_those_without(outbox):
    add(outbox, "One", {"n": 1}, 0, None)
    add(outbox, "One", {"n": 2}, 0, "a-17")
    first, second = take(outbox, 1)
    assert first.ids.text is None
    assert second.ids.text.tolist() == ["a-17"]
    assert [first.ids.sequence.tolist(), second.ids.sequence.tolist()] == [[1], [2]]


def test_values_arrive_as_they_were_given(outbox):
    add(outbox, "Temp", GOOD, 5, None)
    add(outbox, "Temp", {"area": "größer 🔥", "value": 3, "floor": -(2**63), "on": False}, 6, None)
    (batch,) = take(outbox, 1)
    assert [dict(event.data) for event in batch.events()] == [
        GOOD,
        {"area": "größer 🔥", "value": 3.0, "floor": -(2**63), "on": False},
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"area": 1}, "attribute area: expected string, found int"),
        ({"value": None}, "attribute value: expected float, found null"),
        ({"value": float("nan")}, "expected a finite float"),
        ({"floor": 2**63}, "an int beyond 64 bits"),
        ({"floor": True}, "expected int, found bool"),
        ({"area": "\ud800"}, "UTF-8"),
    ],
)
def test_a_bad_event_is_refused_at_once_and_changes_nothing(outbox, change, message):
    add(outbox, "Temp", GOOD, 1, None)
    with pytest.raises(BadEvent, match=message):
        add(outbox, "Temp", {**GOOD, **change}, 2, None)
    assert outbox.count == 1
    assert len(take(outbox, 1)[0]) == 1


def test_a_missing_attribute_is_named(outbox):
    with pytest.raises(BadEvent, match="attribute floor is missing"):
        add(outbox, "Temp", {"area": "a", "value": 1.0, "on": True}, 0, None)


def outcome(check, *arguments):
    try:
        return check(*arguments)
    except BadEvent as error:
        return str(error)


def test_the_quick_check_agrees_with_the_exact_one(outbox):
    seed = 11
    print("seed", seed)
    choose = random.Random(seed)
    values = [1, 1.5, True, "a", "ä", None, 2**63, float("inf"), -0.0, "\ud800", [], 2**62]
    rows = outbox._rows["Temp", False]
    for _ in range(2_000):
        data = {name: choose.choice(values) for name in TEMP.names}
        assert outcome(rows.check, data) == outcome(values_of, TEMP, data)


def test_an_attribute_that_the_type_does_not_have_is_named(outbox):
    reason = "event type Temp has no attribute colour; it has: area, value, floor, on"
    with pytest.raises(BadEvent, match=reason):
        add(outbox, "Temp", {**GOOD, "colour": 1}, 5, None)
    with pytest.raises(BadEvent, match="event type Tick has no attribute n; it has: none"):
        add(outbox, "Tick", {"n": 1}, 5, None)
    outbox.know(EventType.of("Heat", area="string", value="float?"))
    add(outbox, "Heat", {"area": "a"}, 5, None)
    with pytest.raises(BadEvent, match="event type Heat has no attribute colour"):
        add(outbox, "Heat", {"area": "a", "colour": 1}, 5, None)
    assert outbox.count == 1


def test_an_event_that_no_message_has_room_for_is_refused_at_its_line(outbox):
    with pytest.raises(BadEvent, match=r"an event of Temp of 8,388,608 characters: at most 8,"):
        add(outbox, "Temp", {**GOOD, "area": "a" * 2**23}, 5, None)
    assert outbox.count == 0
