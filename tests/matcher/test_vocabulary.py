"""Words and texts: what is remembered, forgotten and stale."""

import random

import pytest

from matcher.filters.constraint import OPERATORS, Constraint, Filter, Sort
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.methods.choose import AutoMatcher, make
from matcher.methods.indexed import GATHERED_MIN
from matcher.model import EventType
from matcher.rows import batch_of

EVENTS = MixedEvents.of([{"a": "abc"}, {"a": 2.0, "b": "x"}])
PAIRS = [("tu", "tu"), ("x", "t"), ("x", "tu"), ("t", "tu")]


def test_encoded_events_are_matched_until_the_words_change():
    matcher = AutoMatcher()
    matcher.add(1, 1, Filter.of(("a", "contains", "b")))
    encoded = matcher.encode(EVENTS)
    assert matcher.match(encoded).interface_lists() == [[1], []]
    matcher.add(2, 2, Filter.of(("a", "contains", "b")))
    assert matcher.match(encoded).interface_lists() == [[1, 2], []]
    matcher.add(3, 3, Filter.of(("b", "=", "x")))
    with pytest.raises(ValueError, match="other words"):
        matcher.match(encoded)
    assert matcher.match(EVENTS).interface_lists() == [[1, 2], [3]]


def test_parts_of_encoded_events_match_like_the_whole():
    matcher = AutoMatcher()
    matcher.add(1, 1, Filter.of(("a", "=", 2)))
    encoded = matcher.encode(EVENTS)
    parts = [matcher.match(encoded.take(slice(place, place + 1))) for place in range(2)]
    assert [part.interface_lists() for part in parts] == [[[]], [[1]]]
    assert len(matcher.match(encoded.take(slice(2, 2)))) == 0


def test_events_of_several_types_are_answered_in_their_own_order_however_they_are_cut():
    matcher = AutoMatcher()
    for number, name in enumerate("TUV"):
        matcher.add(number, number, Filter.of(("a", ">", number), type=name))
    types = ["U", "T", "W", "V", "T", "U"]
    events = MixedEvents.of([{"a": 2 - place % 2} for place in range(6)], types)
    expected = [[1], [0], [], [], [0], []]
    encoded = matcher.encode(events)
    assert matcher.match(encoded, filters=True).filter_lists() == expected
    for first in range(7):
        for last in range(first, 7):
            part = encoded.take(slice(first, last))
            assert matcher.match(part, filters=True).filter_lists() == expected[first:last]
            assert matcher.match(part).interface_lists() == expected[first:last]
            again = matcher.match(part.take(slice(1, 3)))
            assert again.interface_lists() == expected[first:last][1:3]


def test_texts_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr("matcher.filters.texts.TEXTS_MAX", 8)
    matcher = make("index")
    matcher.add(1, 1, Filter.of(("a", "prefix", "t1"), ("a", ">", "t11")))
    for first in range(0, 60, 3):
        texts = [f"t{number}" for number in range(first, first + 3)]
        found = matcher.match(MixedEvents.of([{"a": text} for text in texts]))
        expected = [[1] if text.startswith("t1") and text > "t11" else [] for text in texts]
        assert found.interface_lists() == expected
        assert len(matcher.table.vocabulary._texts) <= 8


def test_a_long_text_is_held_against_the_operands_themselves():
    matcher = make("index")
    matcher.add(1, 1, Filter.of(("a", "contains", "needle")))
    matcher.add(2, 2, Filter.of(("a", "contains", "pin")))
    found = matcher.match(MixedEvents.of([{"a": "hay" * 100_000 + "needle" + "hay"}]))
    assert found.interface_lists() == [[1]]


def test_operands_of_order_come_and_go_a_few_and_many_at_once() -> None:
    seed = 11
    rng = random.Random(seed)
    matcher, alive, fresh = make("index"), dict[int, str](), iter(range(10**6))
    texts = ["".join(rng.choice("ab") for _ in range(rng.randrange(8))) for _ in range(60)]
    for many in (200, 3, 1, 90, 2, 500, 4):
        for identifier, _ in zip(fresh, range(many), strict=False):
            alive[identifier] = "".join(rng.choice("abc") for _ in range(rng.randrange(8)))
            matcher.add(identifier, 1, Filter.of(("a", "<", alive[identifier])))
        for _ in range(many // 2):
            gone = rng.choice(list(alive))
            matcher.remove(gone)
            del alive[gone]
        found = matcher.match(MixedEvents.of([{"a": text} for text in texts]), filters=True)
        expected = [
            [identifier for identifier, operand in alive.items() if text < operand]
            for text in texts
        ]
        assert found.filter_lists() == expected


def test_a_hundred_thousand_constraints_on_one_text() -> None:
    seed = 12
    rng = random.Random(seed)
    letters = "abcdefgh"
    filters = []
    for number in range(100_000):
        operator = rng.choice(sorted(OPERATORS[Sort.TEXT]))
        operand = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 7)))
        filters.append((number, number % 10, Filter((Constraint("a", operator, operand),))))
    matcher = make("auto")
    matcher.add_all(FilterBatch.of(filters))
    texts = ["".join(rng.choice(letters) for _ in range(rng.randrange(12))) for _ in range(4)]
    found = matcher.match(MixedEvents.of([{"a": text} for text in texts]), filters=True)
    for text, told in zip(texts, found.filter_lists(), strict=True):
        assert told == [number for number, _, one in filters if one.constraints[0].holds(text)]


def test_a_group_is_searched_by_operands_of_order_whose_filters_are_gone() -> None:
    matcher = make("index")
    operands = [f"t{number:03}" for number in range(256)]
    for number, operand in enumerate(operands):
        matcher.add(number, 1, Filter.of(("a", "<", operand), type="T"))
    for number in range(0, GATHERED_MIN, 2):
        matcher.remove(number)
        matcher.add(1000 + number, 1, Filter.of(("b", "<", f"z{number}"), type="U"))
    found = matcher.match(
        MixedEvents.of([{"a": text} for text in operands], ["T"] * 256), filters=True
    )
    for place, told in enumerate(found.filter_lists()):
        gone = range(0, GATHERED_MIN, 2)
        assert told == [number for number in range(place + 1, 256) if number not in gone]


def test_a_text_that_several_columns_bring_is_learnt_once():
    schema = EventType.of("T", a="string", n="int", b="string")
    rows = [{"a": text, "n": place, "b": other} for place, (text, other) in enumerate(PAIRS)]
    batch = batch_of(schema, rows, times=[0] * len(rows), source="s")
    events = MixedEvents.of_batch(batch)
    assert [events.data(place) for place in range(len(rows))] == rows
    matcher = make("index")
    matcher.add(1, 1, Filter.of(("a", "prefix", "t"), ("b", "=", "tu")))
    matcher.add(2, 2, Filter.of(("b", "contains", "u"), ("n", ">", 1)))
    assert matcher.match(batch).interface_lists() == [[1], [], [2], [1, 2]]
    assert len(matcher.table.vocabulary._texts) == len({text for pair in PAIRS for text in pair})
