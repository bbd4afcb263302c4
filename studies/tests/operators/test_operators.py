"""Operators on the processor give what their sequential definitions give."""

import pytest
from operating import check_aggregate, check_filter, check_join, check_window

from studies.operators.places import HOST

SIZES = (7, 0, 1, 30, 2, 19)


@pytest.mark.parametrize("part", range(4))
def test_random_filters(part: int) -> None:
    for seed in range(part * 20, part * 20 + 20):
        check_filter(HOST, seed, SIZES)


@pytest.mark.parametrize("part", range(4))
def test_random_windows(part: int) -> None:
    for seed in range(part * 20, part * 20 + 20):
        check_window(HOST, seed, SIZES)


@pytest.mark.parametrize("part", range(6))
def test_random_joins(part: int) -> None:
    for seed in range(part * 20, part * 20 + 20):
        check_join(HOST, seed, ((7, 9), (0, 3), (4, 0), (20, 25), (0, 0), (12, 9)))


@pytest.mark.parametrize("part", range(4))
def test_random_aggregates(part: int) -> None:
    for seed in range(part * 20, part * 20 + 20):
        check_aggregate(HOST, seed, SIZES)
