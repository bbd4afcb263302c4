"""What parts of a source publish is taken once, whoever publishes it (routing.serving.parts)."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from matcher.model import Causes, EventBatch, EventIds, EventType, StringColumn
from routing.config import NodeConfig
from routing.errors import ProtocolError
from routing.names import part_name, whole_of
from routing.serving.parts import numbers_of
from routing.serving.published import PublishedIds

TEMP = EventType.of("Temp", value="float")


def batch(texts, part="f#part-0"):
    count = len(texts)
    ids = EventIds(
        StringColumn.constant(part, count), np.arange(count), StringColumn.from_strings(texts)
    )
    return EventBatch(TEMP, np.arange(count), ids, (np.arange(count) / 2,))


def test_the_name_of_a_part_names_the_whole():
    assert whole_of(part_name("a#b", 12)) == "a#b"
    assert whole_of(part_name("a", None)) == "a"
    assert [whole_of(name) for name in ("a", "a#1", "#part-1", "a#part-", "a#part-x")] == [None] * 5


def test_every_event_is_taken_once_however_parts_share_and_repeat_them():
    """Against a plain set, within the window in which repeats are known."""
    for seed in range(50):
        random = Random(seed)
        parts, seen = PublishedIds(NodeConfig(repeat_ids_max=200)), set()
        for _ in range(20):
            texts = [f"e{random.randint(0, 150)}" for _ in range(random.randint(0, 12))]
            expected = [text for text in dict.fromkeys(texts) if text not in seen]
            seen.update(texts)
            cut = random.randint(0, len(texts))
            sent = [batch(some) for some in (texts[:cut], texts[cut:]) if some]
            taken = parts.joined("f", parts.unseen("f", sent).batches).batches
            assert [one for part in taken for one in part.ids.printed()] == expected, f"seed {seed}"


def recorded(events, part="f#part-0"):
    """A batch of recorded events: their sources, numbers and ids (None: the number is the id)."""
    count = len(events)
    sources, numbers, texts = zip(*events, strict=True)
    named = np.array([text is not None for text in texts])
    ids = EventIds(
        StringColumn.from_strings(sources),
        np.array(numbers, np.int64),
        StringColumn.from_strings([text or "" for text in texts]) if named.any() else None,
    )
    own = EventIds(StringColumn.constant(part, count), np.arange(count))
    causes = Causes(np.arange(count + 1), ids, ~np.ones(count, np.bool_), named)
    return EventBatch(TEMP, np.arange(count), own, (np.arange(count) / 2,), causes)


def test_recorded_events_are_those_that_were_recorded_and_each_is_taken_once():
    """Of sources whose names and ids run into one another, and beside events that are not."""
    known = [
        (source, number, text)
        for number, (source, text) in enumerate(
            (
                (source, text)
                for source in ("a", "a1", "1:a", "é")
                for text in ("1", "11", "x", None)
            ),
            100,
        )
    ]
    for seed in range(50):
        random = Random(seed)
        parts, seen = PublishedIds(NodeConfig()), set()
        parts.joined("f", parts.unseen("f", [batch(["1:a1", "1:ax", "3:1:ax"])]).batches)
        for _ in range(10):
            events = random.choices(known, k=random.randint(1, 12))
            expected = [event for event in dict.fromkeys(events) if event not in seen]
            seen.update(events)
            cut = random.randint(0, len(events))
            sent = [recorded(some) for some in (events[:cut], events[cut:]) if some]
            taken = parts.joined("f", parts.unseen("f", sent).batches).batches
            assert all(part.causes is None and part.ids.text is not None for part in taken)
            assert [
                name
                for part in taken
                for name in zip(
                    part.ids.source.tolist(),
                    part.ids.sequence.tolist(),
                    part.ids.printed(),
                    strict=True,
                )
            ] == [(source, number, text or str(number)) for source, number, text in expected], seed


def test_a_part_names_one_event_for_each_that_it_recorded():
    one, two = recorded([("a", 1, "x")]), recorded([("a", 1, "x"), ("a", 2, "y")])
    both = replace(two.causes, offsets=np.array([0, 2]))
    made = replace(one.causes.ids, digest=np.zeros((1, 2), np.uint64))
    refused = {
        "other causes": [replace(one, causes=both)],
        "other causes than": [replace(one, causes=replace(one.causes, ids=made))],
        "recorded ones and others": [one, batch(["z"])],
        "1 to 255": [recorded([("", 1, "x")])],
        "reserved": [recorded([("a", 1, "x"), ("rexmq/rule/fire", 1, "x")])],
    }
    for reason, sent in refused.items():
        with pytest.raises(ProtocolError, match=reason):
            PublishedIds(NodeConfig()).unseen("f", sent)


def test_the_window_of_ids_has_a_bound():
    parts = PublishedIds(NodeConfig(repeat_ids_max=10))
    for first in range(0, 100, 5):
        parts.joined("f", [batch([f"e{number}" for number in range(first, first + 5)])])
    recent = parts.unseen("f", [batch(["e90", "e99", "e0"])]).batches
    (taken,) = parts.joined("f", recent).batches
    assert taken.ids.printed() == ["e0"]
    assert taken.ids.source.tolist() == ["f"]


def test_places_are_numbers_where_ids_are_and_depend_on_the_id_alone():
    assert numbers_of(["7", "12", "-3"]).tolist() == [7, 12, -3]
    for texts in (
        ["0", "00"],
        ["1", "", "12"],
        ["١"],
        ["9" * 19],
        ["9" * 18, "0", "10", "9"],
        ["-"],
    ):
        apart = [int(numbers_of([text])[0]) for text in texts]
        assert numbers_of(texts).tolist() == apart, texts
    assert numbers_of(["0", "10", "99", "9" * 18]).tolist() == [0, 10, 99, 10**18 - 1]
    mixed = ["007", "7", "seven", "a" * 40, "", "é", "1" * 30]
    together = dict(zip(mixed, numbers_of(mixed).tolist(), strict=True))
    assert together["7"] == 7
    assert {text: int(numbers_of([text])[0]) for text in mixed} == together
    assert len(set(together.values())) == len(mixed)
