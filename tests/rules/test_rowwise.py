"""Expressions as functions of one event; their values are tried beside those of whole columns
(test_columnar.py).
"""

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, Kind, StringColumn
from rules.planning.rowwise import evaluator
from rules.subscription import FEW, parse_subscription
from rules.terms import Slot

TEMP = EventType.of("Temp", room="string", value="float", count="int", on="bool")
TICK = EventType.of("Tick")
SCHEMAS = {"Temp": TEMP, "Tick": TICK}


def temps(length: int) -> EventBatch:
    numbers = np.arange(length)
    ids = EventIds(StringColumn.constant("s", length), numbers)
    rooms = StringColumn.from_strings([f"Room{number % 3}" for number in range(length)])
    return EventBatch(TEMP, numbers, ids, (rooms, numbers / 2, numbers - 5, numbers % 2 == 0))


@pytest.mark.parametrize(
    "text",
    [
        "Temp(value > 2)",
        'Temp((room = "Room1" or count * value > -3))',
        "Temp(10 / count > value, on)",
        "Temp(not (count % 3 = 1 and on))",
        'Temp(room suffix "0", -count > 2)',
        "Temp(count * 4611686018427387904 >= 0)",
        'Temp(lower(room) in ("room1", "room2"))',
        'Temp(room matches "[12]$", not lower(room) matches "R|1")',
    ],
)
def test_few_events_are_judged_as_many_are(text: str) -> None:
    subscription = parse_subscription(text, SCHEMAS)
    many = temps(2 * FEW)
    pieces = [many.take(slice(place, place + 1)) for place in range(len(many))]
    expected = subscription.mask(many).tolist()
    assert 0 < sum(expected) < len(expected)
    assert [subscription.mask(piece).tolist() for piece in pieces] == [[one] for one in expected]
    assert subscription.mask(many.take(slice(0, FEW))).tolist() == expected[:FEW]
    assert subscription.mask(many.take(slice(0, 0))).tolist() == []


def test_events_without_attributes_are_judged_too() -> None:
    ids = EventIds(StringColumn.constant("s", 2), np.arange(2))
    ticks = EventBatch(TICK, np.arange(2), ids, ())
    assert parse_subscription("Tick(1 < 2)", SCHEMAS).mask(ticks).tolist() == [True, True]
    assert parse_subscription("Tick(1 > 2)", SCHEMAS).mask(ticks).tolist() == [False, False]


def test_what_speaks_of_more_than_one_event_is_refused() -> None:
    with pytest.raises(ValueError, match="Slot speaks of more than one event"):
        evaluator(Slot(0, Kind.BOOL))
