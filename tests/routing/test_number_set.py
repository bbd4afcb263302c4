"""Sets of numbers as runs, beside sets."""

from random import Random

import numpy as np
import pytest

from routing.number_set import NumberSet


@pytest.mark.parametrize("seed", range(30))
def test_a_set_of_runs_is_a_set(seed: int) -> None:
    print(f"seed {seed}")
    random, runs, numbers = Random(seed), NumberSet(), set[int]()
    for _ in range(200):
        first = random.randint(1, 80)
        last = first + random.randint(-1, 6)
        run = set(range(first, last + 1))
        assert runs.add(first, last) == len(run - numbers)
        numbers |= run
        found = list(runs)
        assert {one for low, high in found for one in range(low, high + 1)} == numbers
        ends = [one for low, high in found for one in (low - 1, high)]
        assert ends == sorted(set(ends)), "they rise and do not touch"
        low = random.randint(0, 80)
        high = low + random.randint(0, 20)
        asked = set(range(low, high + 1))
        assert runs.has_all(low, high) == (asked <= numbers)
        assert runs.missing(low, high) == len(asked - numbers)
        gaps, within = list(runs.gaps(low, high)), list(runs.within(low, high))
        assert {one for a, b in gaps for one in range(a, b + 1)} == asked - numbers
        assert {one for a, b in within for one in range(a, b + 1)} == asked & numbers
        chosen = np.array(random.sample(range(90), 9))
        assert runs.lacks(chosen).tolist() == [one not in numbers for one in chosen.tolist()]


def test_a_set_with_a_bound_forgets_the_lowest_runs() -> None:
    runs = NumberSet(runs_max=3)
    for number in (5, 1, 9, 3):
        runs.add(number, number)
    assert list(runs) == [(3, 3), (5, 5), (9, 9)]
    runs.add(4, 8)
    assert list(runs) == [(3, 9)]
    runs.add(1, 1)
    assert list(NumberSet(runs)) == [(1, 1), (3, 9)]
