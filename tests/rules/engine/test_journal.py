"""Explicit numbers are written on in chunks, which go to a table once one of them repeats."""

import numpy as np
import pytest

from rules.engine.intake import journal as journals
from rules.engine.intake.blocks import Explicit
from rules.engine.intake.journal import Journal
from rules.engine.kernels.seen import CONFLICT, REPEAT


def added(journal: Journal, numbers: range, contents: int = 1, time: int | None = None) -> None:
    """Enter numbers of source 0, each at its own time where none is given."""
    column = np.array(numbers, np.int64)
    times = column.copy() if time is None else np.full(len(numbers), time, np.int64)
    digests = np.full(len(numbers), contents, np.uint64)
    journal.add(np.zeros(len(numbers), np.int64), column, times, digests)


def compared(journal: Journal, *numbers: int, contents: int) -> list[tuple[int, int]]:
    column, sources = np.array(numbers, np.int64), np.zeros(len(numbers), np.int64)
    digests = np.full(len(numbers), contents, np.uint64)
    verdicts, before = journal.compare(sources, column, digests)
    found = zip(verdicts.tolist(), before.tolist(), strict=True)
    return [(verdict, time if verdict == CONFLICT else 0) for verdict, time in found]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "CHUNK", 16)
    monkeypatch.setattr(journals, "FREE_MIN", 2)


def test_what_repeats_is_compared_whether_it_is_in_a_chunk_or_in_the_table():
    journal = Journal(Explicit.none())
    added(journal, range(100), 5)
    assert len(journal) == 0  # of the table
    assert compared(journal, 3, 99, contents=5) == [(REPEAT, 0)] * 2
    assert len(journal) == 13
    added(journal, range(200, 203), 7)
    assert compared(journal, 98, 201, contents=6) == [(CONFLICT, 98), (CONFLICT, 201)]
    assert compared(journal, 5000, contents=6) == [(REPEAT, 0)]  # nothing is known of it


def test_of_a_number_that_was_forgotten_and_came_again_the_later_event_counts():
    journal = Journal(Explicit.none())
    added(journal, range(5), 1)
    added(journal, range(5), 2, time=9)
    assert compared(journal, 4, contents=2) == [(REPEAT, 0)]
    assert compared(journal, 4, contents=1) == [(CONFLICT, 9)]


def test_chunks_that_are_older_are_used_again():
    journal, chunks = Journal(Explicit.none()), set()
    for number in range(0, 10_000, 8):
        added(journal, range(number, number + 8))
        chunks.add(journal.chunk.ctypes.data)
        journal.drop(number - 40)
    assert len(chunks) <= 6
    journal.forget(20_000)
    assert compared(journal, 9_999, contents=2) == [(REPEAT, 0)]


def test_a_late_chunk_does_not_keep_those_behind_it():
    journal = Journal(Explicit.none())
    added(journal, range(8), time=10**9)
    for number in range(16, 1_000, 16):
        added(journal, range(number, number + 16))
    journal.drop(2_000)
    journal.forget(2_000)
    assert compared(journal, 7, 500, contents=2) == [(CONFLICT, 10**9), (REPEAT, 0)]


def test_more_numbers_than_a_chunk_has_room_for_have_one_of_their_own():
    journal = Journal(Explicit.none())
    added(journal, range(3))
    added(journal, range(100, 200))
    assert len(journal.chunk) == 101
    assert compared(journal, 2, 199, contents=2) == [(CONFLICT, 2), (CONFLICT, 199)]
