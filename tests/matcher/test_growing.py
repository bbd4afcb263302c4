"""Arrays and dictionaries that grow keep what is in them (matcher.growing)."""

from random import Random

import numpy as np
import pytest

from matcher.growing import MOVED_MIN, Growing, Places

BEYOND = 4 * MOVED_MIN // 16
"""Rows of two numbers that have to be moved more than once."""


def test_rows_stay_as_they_are_while_pages_move() -> None:
    growing = Growing(np.int64, 2)
    for number in range(0, BEYOND, 1000):
        first = growing.extend(np.arange(2 * number, 2 * number + 2000).reshape(-1, 2))
        assert first == number
    expected = np.arange(2 * growing.size).reshape(-1, 2)
    assert (growing.rows[: growing.size] == expected).all()
    assert not growing.rows[growing.size :].any()


def test_an_array_that_somebody_looks_at_is_copied() -> None:
    growing = Growing(np.int64, 2, room=BEYOND)
    growing.extend(np.arange(20).reshape(-1, 2))
    seen = growing.rows[:10]
    growing.make_room(2 * BEYOND)
    growing.rows[0] = 7
    assert (seen == np.arange(20).reshape(-1, 2)).all()
    assert (growing.rows[1:10] == seen[1:]).all()
    assert len(growing.rows) >= 2 * BEYOND


def test_places_are_a_dictionary() -> None:
    seed = 5
    random, places, expected = Random(seed), Places(), dict[int, int]()
    for place in range(3_000):
        identifier = random.choice([random.randrange(-500, 500), random.randrange(2**62)])
        if identifier in expected:
            assert places[identifier] == expected[identifier]
            if random.random() < 0.5:
                assert places.pop(identifier) == expected.pop(identifier)
        elif place % 100 == 0:
            several = {10**9 + 10 * place + more: more for more in range(10)}
            places.add_all(list(several), several.values())
            expected |= several
        else:
            places.add(identifier, place)
            expected[identifier] = place
        assert len(places) == len(expected)
    assert sorted(places) == sorted(expected.values())
    assert all(identifier in places for identifier in expected)
    assert 10**18 + 1 not in places
    with pytest.raises(KeyError):
        places.pop(10**18 + 1)


@pytest.mark.parametrize("room", [0, BEYOND])
def test_rows_that_come_at_once_stay_as_they_are_when_others_follow_one_by_one(room: int) -> None:
    growing = Growing(np.int64, 2, room=room)
    growing.expect()
    for number in range(0, 8 * BEYOND, BEYOND):
        growing.extend(np.arange(2 * number, 2 * (number + BEYOND)).reshape(-1, 2))
    growing.settle(growing.size)
    growing.settle(growing.size)  # nothing is expected any more
    while growing.size < 20 * BEYOND:
        first = growing.reserve(BEYOND // 2)
        growing.rows[first : growing.size] = np.arange(2 * first, 2 * growing.size).reshape(-1, 2)
    expected = np.arange(2 * growing.size).reshape(-1, 2)
    assert (growing.rows[: growing.size] == expected).all()
    assert not growing.rows[growing.size :].any()
