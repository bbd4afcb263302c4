"""Repeats of (source, id) are dropped exactly, whatever the kind and order of the ids (E1)."""

import random
from dataclasses import replace

import numpy as np
import pytest

from matcher.contents import SEED
from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules.engine.conflict import Conflict
from rules.engine.intake import duplicates
from rules.engine.intake.duplicates import DuplicateFilter

TICK = EventType.of("Tick")
VALUE = EventType.of("Value", v="int")


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


def explicit(*rows: tuple[str, str, int], given: bool = False) -> EventBatch:
    """A batch of (source, id, value) at 0 s; with ``given`` the ids stand as numbers."""
    sources = StringColumn.from_strings([source for source, _, _ in rows])
    texts = StringColumn.from_strings([text for _, text, _ in rows])
    zeros = np.zeros(len(rows), np.int64)
    ids = EventIds(sources, zeros, texts)
    if given:
        ids = EventIds(sources, np.array([int(text) for _, text, _ in rows]), given=True)
    values = np.array([value for _, _, value in rows], np.int64)
    return EventBatch(VALUE, zeros, ids, (values,))


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


# --- conflicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["7", "x7", "-7", "007"])
def test_a_repeat_with_other_contents_is_a_conflict(text: str):
    seen = DuplicateFilter()
    seen.accept(explicit(("a", text, 1)))
    assert len(seen.accept(explicit(("a", text, 1)))) == 0
    assert (seen.dropped, seen.conflicts, seen.take_conflict()) == (1, 0, None)
    assert kept(seen.accept(explicit(("a", text, 2), ("b", text, 2)))) == [("b", text)]
    assert (seen.dropped, seen.conflicts) == (2, 1)
    assert seen.take_conflict() == Conflict("a", text, "Value", 0, 0)
    assert seen.take_conflict() is None


def test_an_explicit_id_that_stands_as_a_number_is_compared_too():
    seen = DuplicateFilter()
    seen.accept(explicit(("a", "1", 1), ("a", "2", 1), given=True))
    seen.accept(explicit(("a", "1", 1), ("a", "2", 3)))
    seen.accept(explicit(("a", "1", 2), given=True))
    assert (seen.dropped, seen.conflicts) == (3, 2)


def test_another_type_is_another_event():
    seen = DuplicateFilter()
    seen.accept(texted(("a", "x"), ("a", "5")))
    seen.accept(explicit(("a", "x", 0), ("a", "5", 0)))
    assert seen.conflicts == 2


def test_numbers_given_by_us_are_not_compared():
    seen = DuplicateFilter()
    seen.accept(numbered(("a", 1)))
    seen.accept(explicit(("a", "1", 1), ("a", "2", 1)))
    seen.accept(numbered(("a", 2)))
    assert (seen.dropped, seen.conflicts) == (2, 0)


def test_what_another_process_kept_is_compared_where_it_hashes_alike():
    first = DuplicateFilter()
    first.accept(explicit(("a", "x", 1), ("a", "1", 1), ("b", "x", 1)))
    for seed, conflicts in ((SEED, 3), (SEED + 1, 0)):
        seen = DuplicateFilter()
        seen.resume(replace(first.kept(), seed=seed))
        assert len(seen.accept(explicit(("a", "x", 2), ("a", "1", 2), ("b", "x", 2)))) == 0
        assert (seen.dropped, seen.conflicts) == (3, conflicts)


@pytest.mark.parametrize("seed", range(10))
def test_random_conflicts_agree_with_a_dictionary(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(duplicates, "SWEEP_MIN", 8)
    rng = random.Random(seed)
    seen, known, dropped, conflicts = DuplicateFilter(), dict[tuple[str, str], int](), 0, 0
    for _ in range(150):
        form = rng.choice(("", "x", "7"))
        rows = [
            (rng.choice("abc"), f"{form}{rng.randint(0, 300)}", rng.randint(0, 1))
            for _ in range(rng.randint(1, 12))
        ]
        for source, text, value in rows:
            is_new = (source, text) not in known
            dropped += not is_new
            conflicts += known.setdefault((source, text), value) != value
        seen.accept(explicit(*rows, given=form != "x" and rng.random() < 0.5))
        seen.forget(0)  # nothing is older
    assert (seen.dropped, seen.conflicts) == (dropped, conflicts)
