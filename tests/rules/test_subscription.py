"""Filters of subscriptions: what may be written, and which events they ask for."""

import re

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules.errors import RuleErrors
from rules.subscription import check_filter, parse_subscription

TEMP = EventType.of("Temp", room="string", value="float", count="int")
SCHEMAS = {"Temp": TEMP, "Fire": EventType.of("Fire", area="string")}
ROWS = [("Room1", 21.0, 4), ("Room2", 25.0, 5), ("Room1", 20.0, 2**62), ("Hall", 30.5, 0)]


def batch() -> EventBatch:
    rooms, values, counts = zip(*ROWS, strict=True)
    ids = EventIds(StringColumn.constant("s", len(ROWS)), np.arange(len(ROWS)))
    columns = (StringColumn.from_strings(rooms), np.array(values), np.array(counts))
    return EventBatch(TEMP, np.arange(len(ROWS)), ids, columns)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Temp", [0, 1, 2, 3]),
        ("Temp()", [0, 1, 2, 3]),
        ('Temp(value > 20 and room = "Room1")', [0]),
        ('Temp(value > 20, room prefix "Room")', [0, 1]),
        ('Temp(not room contains "oo")', [3]),
        ("Temp((count = 5 or value = 30.5))", [1, 3]),
        ("Temp(20 < value < 30)", [0, 1]),
        ("Temp(count * 2 > 0)", [0, 1]),  # 2**63 is undefined, and 0 is not positive
        ("Temp(10 / count > 2)", [0]),  # and so is division by zero
        ("Temp((10 / count > 2 or value > 30))", [0, 3]),
        ("Temp(room = 'Hall' # the end\n)", [3]),
        ('Temp(room in ("Hall", "Room2"))', [1, 3]),
        ('Temp(room not in ("Hall", "Room2"), value in (21, 22))', [0]),
        ("Temp(10 / count in (2, 2.5))", [0, 1]),
        ("Temp(10 / count not in (2, 2.5))", [2]),  # of a division by zero nothing is said
        ('Temp(room matches "^Room[12]$", not room matches "2")', [0, 2]),
        ('Temp((lower(room) = "hall" or room matches "(?i)^ROOM2"))', [1, 3]),
        ("Temp(true)", [0, 1, 2, 3]),
        ("Temp(false)", []),
    ],
)
def test_which_events_are_asked_for(text: str, rows: list[int]) -> None:
    subscription = parse_subscription(text, SCHEMAS)
    assert subscription.type == TEMP
    assert np.flatnonzero(subscription.mask(batch())).tolist() == rows
    again = parse_subscription(subscription.text, SCHEMAS)
    assert again == subscription


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ["expected the type of an event"]),
        ("Tmep(value > 3)", ["unknown event type Tmep"]),
        ("Temp(valu > 3)", ["Temp has no attribute valu"]),
        ("Temp(value = room)", ["a float against a string"]),
        ("Temp(value)", ["a condition must be a bool"]),
        ("Temp($v)", ["a subscription has no parameters"]),
        ("Temp(value > $v, room = $r)", ["a subscription has no parameters"] * 2),
        (
            "Temp(value > $v, valu > 3, room = $r and room = 4)",
            ["no parameters", "no attribute valu", "no parameters", "a string against an int"],
        ),
        ("Temp(value > Temp.value)", ["a subscription knows one event"]),
        (
            "Temp(value > Avg(Temp().value within 5 min from Temp))",
            ["a subscription has no aggregates"],
        ),
        ("Temp(time > 3 s)", ["a subscription does not look at times"]),
        ("Timer(H = 9)", ["Timer ticks inside rules only"]),
        ("Temp() as t", ["expected the end"]),
        ("Temp(value > 3", ['expected an operator, ")"']),
        ("Temp(value > 3) Temp()", ["expected the end"]),
        ("Temp(value ? 3)", ["unexpected character ?"]),
    ],
)
def test_what_is_refused(text: str, messages: list[str]) -> None:
    with pytest.raises(RuleErrors) as caught:
        parse_subscription(text, SCHEMAS, file="<sink>")
    found = [problem.message for problem in caught.value.problems]
    assert len(found) == len(messages)
    for message, expected in zip(found, messages, strict=True):
        assert expected in message
    assert str(caught.value).startswith("<sink>:1:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Snow(depth > $a)", ":1:14: a subscription has no parameters"),
        ("Snow(depth > Wind.speed)", ":1:14: a subscription knows one event"),
        ("Snow(depth > Avg(Snow().d within 5 min from Snow))", ":1:14: a subscription has no aggr"),
        ("Snow(depth + 'a' > 3)", ":1:14: an operand of + must be a number, not a string"),
        ("Snow(depth prefix 3)", ":1:6: prefix compares strings, not an int"),
        ("Snow(depth < true)", ":1:6: bools have no order for <"),
        ("Snow(5)", ":1:6: a condition must be a bool, not an int"),
        ("Snow(depth > 9223372036854775808)", ":1:14: an integer beyond 64 bits"),
        ("Timer(M = 0)", ":1:1: Timer ticks inside rules only"),
        ("Snow(depth >", ":1:13: expected an expression"),
        ("Snow() as s", ":1:8: expected the end"),
    ],
)
def test_what_no_schema_could_mend_is_refused_before_there_is_one(text: str, message: str) -> None:
    with pytest.raises(RuleErrors, match=re.escape(message)):
        check_filter(text)


def test_what_depends_on_the_schema_waits_for_it() -> None:
    for text in (
        "Snow",
        "event(x > 1)",
        "Snow(depth > 1, room = 'a')",
        "Snow(open)",
        "Snow(time > 5)",
    ):
        assert check_filter(text) == text.partition("(")[0]
    with pytest.raises(RuleErrors, match="does not look at times"):
        parse_subscription("Temp(time > 5)", SCHEMAS)
    timed = {"Snow": EventType.of("Snow", time="int")}  # which has an attribute of that name
    assert parse_subscription("Snow(time > 5)", timed).type == timed["Snow"]


def test_a_batch_of_another_type_is_refused() -> None:
    subscription = parse_subscription("Fire(area = 'a1')", SCHEMAS)
    with pytest.raises(ValueError, match="for a subscription to Fire"):
        subscription.mask(batch())


@pytest.mark.parametrize("more", ["as t", "and Wind()", "or Wind()"])
def test_what_stands_behind_a_filter_is_told_what_a_filter_is(more: str) -> None:
    """Not by which words a statement of a file of rules begins."""
    with pytest.raises(RuleErrors) as raised:
        parse_subscription(f"Temp(value > 20) {more}", SCHEMAS)
    (problem,) = raised.value.problems
    assert problem.hint is not None
    assert "statement begins" not in problem.hint
    if not more.startswith("or"):  # that has a hint of its own
        assert problem.hint == "a subscription is one event: TYPE, or TYPE(conditions)"
