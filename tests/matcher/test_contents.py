"""Digests of contents: equal where events hold the same, alone or in columns (matcher.contents)."""

import random

import numpy as np
from event_batches import batch_of_events

from matcher.contents import contents_of, marked_time, marks_of
from matcher.model import Event, EventType
from matcher.rows import batch_of
from matcher.single import singles

KINDS = EventType.of("Kinds", i="int", f="float", b="bool", s="string")


def test_source_id_and_place_are_no_contents():
    rows = [{"i": 1, "f": 2.5, "b": True, "s": "a"}] * 2
    batch = batch_of(KINDS, rows, source="s", times=[5, 5], ids=["x", "y"])
    other = batch_of(KINDS, rows[:1], source="t", times=[5], first_sequence=9)
    assert len({*contents_of(batch).tolist(), *contents_of(other).tolist()}) == 1


def test_values_are_those_of_the_schema():
    """An int for a float is that float, and -0.0 is 0.0."""
    event_type = EventType.of("F", f="float")
    rows = [{"f": 1}, {"f": 1.0}, {"f": 0.0}, {"f": -0.0}]
    one, same, zero, below = contents_of(
        batch_of(event_type, rows, source="s", times=[1] * 4)
    ).tolist()
    assert (one, zero) == (same, below)
    assert one != zero


def test_type_time_and_each_value_count():
    base = Event("Kinds", 7, "s", "1", {"i": 1, "f": 1.0, "b": False, "s": "a"})
    changed = [{"i": 2}, {"f": 2.0}, {"b": True}, {"s": "b"}]
    events = [base, *(Event("Kinds", 7, "s", "1", {**base.data, **one}) for one in changed)]
    events.append(Event("Kinds", 8, "s", "1", base.data))
    found = contents_of(batch_of_events(KINDS, events)).tolist()
    renamed = batch_of_events(EventType("Other", KINDS.attributes), [base])
    assert len({*found, *contents_of(renamed).tolist()}) == len(events) + 1


def test_an_event_alone_and_a_slice_are_digested_as_columns_are():
    rng = random.Random(5)
    rows = [
        {
            "i": rng.randint(-(2**63), 2**63 - 1),
            "f": rng.choice([-0.0, 1e300, rng.random()]),
            "b": rng.random() < 0.5,
            "s": rng.choice(["", "a", "ä" * 50, str(number)]),
        }
        for number in range(200)
    ]
    times = [rng.randint(-(2**62), 2**62) for _ in rows]
    batch = batch_of(KINDS, rows, source="s", times=times)
    whole = contents_of(batch).tolist()
    assert [contents_of(one)[0] for one in singles(batch)] == whole
    assert contents_of(batch.take(np.array([3, 77]))).tolist() == [whole[3], whole[77]]
    assert [marked_time(mark) for mark in marks_of(batch)] == times
