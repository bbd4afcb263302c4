"""Repeats of (source, id) are dropped exactly, whatever the kind and order of the ids (E1)."""

import random

import numpy as np
import pytest

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules.engine import duplicates
from rules.engine.duplicates import DuplicateFilter

TICK = EventType.of("Tick")


def numbered(*rows: tuple[str, int], times: list[int] | None = None) -> EventBatch:
    """A batch of (source, sequence number); the time is the number where none is given."""
    sequence = np.array([number for _, number in rows], np.int64)
    time = sequence.copy() if times is None else np.array(times, np.int64)
    ids = EventIds(StringColumn.from_strings([source for source, _ in rows]), sequence)
    return EventBatch(TICK, time, ids, ())


def texted(*rows: tuple[str, str]) -> EventBatch:
    sources = StringColumn.from_strings([source for source, _ in rows])
    texts = StringColumn.from_strings([text for _, text in rows])
    time = np.arange(len(rows), dtype=np.int64)
    return EventBatch(TICK, time, EventIds(sources, time, texts), ())


def digested(*numbers: int) -> EventBatch:
    digest = np.array([(number, number) for number in numbers], np.uint64)
    zeros = np.zeros(len(numbers), np.int64)
    source = StringColumn.constant("rexmq/rule/fire", len(numbers))
    return EventBatch(TICK, zeros, EventIds(source, zeros, None, digest), ())


def kept(batch: EventBatch) -> list[tuple[str, str]]:
    return list(zip(batch.ids.source.tolist(), batch.ids.printed(), strict=True))


def test_a_batch_without_repeats_is_returned_itself():
    seen = DuplicateFilter()
    batch = numbered(("a", 1), ("a", 2), ("b", 1))
    assert seen.accept(batch) is batch
    assert seen.dropped == 0


def test_repeats_within_a_batch_and_across_batches_are_dropped():
    seen = DuplicateFilter()
    assert kept(seen.accept(numbered(("a", 1), ("a", 1), ("b", 1)))) == [("a", "1"), ("b", "1")]
    assert kept(seen.accept(numbered(("b", 1), ("a", 2)))) == [("a", "2")]
    assert len(seen.accept(numbered(("a", 2)))) == 0
    assert seen.dropped == 3


def test_a_number_out_of_order_is_new_when_it_was_not_seen():
    seen = DuplicateFilter()
    seen.accept(numbered(("a", 1), ("a", 5), ("a", 9)))
    assert kept(seen.accept(numbered(("a", 9), ("a", 4), ("a", 5), ("a", 10)))) == [
        ("a", "4"),
        ("a", "10"),
    ]


def test_a_decimal_text_is_the_number_and_other_texts_are_themselves():
    seen = DuplicateFilter()
    seen.accept(numbered(("a", 17)))
    batch = texted(("a", "17"), ("a", "017"), ("b", "17"), ("a", "x"), ("a", "x"))
    assert kept(seen.accept(batch)) == [("a", "017"), ("b", "17"), ("a", "x")]
    assert len(seen.accept(numbered(("b", 17)))) == 0


def test_digests_are_ids_too():
    seen = DuplicateFilter()
    assert len(seen.accept(digested(1, 2, 2))) == 2
    assert len(seen.accept(digested(2, 3))) == 1


def test_an_empty_batch_passes():
    batch = numbered()
    assert DuplicateFilter().accept(batch) is batch


def test_forgotten_events_leave_and_later_ones_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(duplicates, "SWEEP_MIN", 0)
    seen = DuplicateFilter()
    seen._sweep_above = 0
    for number in range(50):
        seen.accept(numbered(("a", number)))
        seen.accept(texted(("b", f"x{number}")))
    seen.forget(10**6)
    assert len(seen) == 0
    seen.accept(numbered(("a", 2_000_000)))
    seen.forget(10**6)
    assert len(seen.accept(numbered(("a", 2_000_000)))) == 0


def test_memory_is_bounded_by_what_is_young(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(duplicates, "SWEEP_MIN", 4)
    seen = DuplicateFilter()
    seen._sweep_above = 4
    for number in range(10_000):
        seen.accept(numbered(("a", number), ("b", 1000 * number), times=[number, number]))
        seen.forget(number - 100)
        # The young ones are 100 numbers in a row, and 100 that are far apart.
        assert len(seen) <= 2 * (100 + 3) + 2
        assert len(seen.table) <= 8 * 256 + 1


@pytest.mark.parametrize("seed", range(20))
def test_random_batches_agree_with_a_set(seed: int):
    rng = random.Random(seed)
    far = rng.choice((1, 63, 2**40, -(2**50)))
    seen, expected = DuplicateFilter(), set()
    dropped = 0
    for _ in range(60):
        count = rng.randint(1, 12)
        rows = [(rng.choice("abc"), far * rng.randint(0, 200)) for _ in range(count)]
        if rng.random() < 0.5:
            rows.sort()
        texts = rng.random() < 0.3
        batch = texted(*((s, str(n)) for s, n in rows)) if texts else numbered(*rows)
        fresh = []
        for row in rows:
            if row not in expected:
                expected.add(row)
                fresh.append((row[0], str(row[1])))
        dropped += count - len(fresh)
        assert kept(seen.accept(batch)) == fresh, f"seed {seed}"
    assert seen.dropped == dropped
