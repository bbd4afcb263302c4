"""Arrays and dictionaries that grow keep what is in them (runtime.growing)."""

import numpy as np
import pytest

from runtime.growing import MOVED_MIN, Growing

BEYOND = 4 * MOVED_MIN // 16
"""Rows of two numbers that have to be moved more than once."""


def test_rows_stay_as_they_are_while_pages_move() -> None:
    array = Growing(np.int64, 2)
    for number in range(0, BEYOND, 1000):
        first = array.extend(np.arange(2 * number, 2 * number + 2000).reshape(-1, 2))
        assert first == number
    expected = np.arange(2 * array.size).reshape(-1, 2)
    assert (array.rows[: array.size] == expected).all()
    assert not array.rows[array.size :].any()


def test_an_array_that_somebody_looks_at_is_copied() -> None:
    array = Growing(np.int64, 2, room=BEYOND)
    array.extend(np.arange(20).reshape(-1, 2))
    seen = array.rows[:10]
    array.make_room(2 * BEYOND)
    array.rows[0] = 7
    assert (seen == np.arange(20).reshape(-1, 2)).all()
    assert (array.rows[1:10] == seen[1:]).all()
    assert len(array.rows) >= 2 * BEYOND


@pytest.mark.parametrize("room", [0, BEYOND])
def test_rows_that_come_at_once_stay_as_they_are_when_others_follow_one_by_one(room: int) -> None:
    array = Growing(np.int64, 2, room=room)
    array.expect()
    for number in range(0, 8 * BEYOND, BEYOND):
        array.extend(np.arange(2 * number, 2 * (number + BEYOND)).reshape(-1, 2))
    array.settle(array.size)
    array.settle(array.size)  # nothing is expected any more
    while array.size < 20 * BEYOND:
        first = array.reserve(BEYOND // 2)
        array.rows[first : array.size] = np.arange(2 * first, 2 * array.size).reshape(-1, 2)
    expected = np.arange(2 * array.size).reshape(-1, 2)
    assert (array.rows[: array.size] == expected).all()
    assert not array.rows[array.size :].any()
