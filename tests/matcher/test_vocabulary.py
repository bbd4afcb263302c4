"""Words and texts: what is remembered, forgotten and stale."""

import pytest

from matcher import vocabulary
from matcher.choose import AutoMatcher, make
from matcher.constraint import Filter
from matcher.mixed import MixedEvents

EVENTS = MixedEvents.of([{"a": "abc"}, {"a": 2.0, "b": "x"}])


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


def test_texts_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(vocabulary, "TEXTS_MAX", 8)
    matcher = make("index")
    matcher.add(1, 1, Filter.of(("a", "prefix", "t1"), ("a", ">", "t11")))
    for first in range(0, 60, 3):
        texts = [f"t{number}" for number in range(first, first + 3)]
        found = matcher.match(MixedEvents.of([{"a": text} for text in texts]))
        expected = [[1] if text.startswith("t1") and text > "t11" else [] for text in texts]
        assert found.interface_lists() == expected
        assert matcher.table.vocabulary.texts_known <= 8


def test_a_long_text_is_held_against_the_operands_themselves():
    matcher = make("index")
    matcher.add(1, 1, Filter.of(("a", "contains", "needle")))
    matcher.add(2, 2, Filter.of(("a", "contains", "pin")))
    found = matcher.match(MixedEvents.of([{"a": "hay" * 100_000 + "needle" + "hay"}]))
    assert found.interface_lists() == [[1]]
