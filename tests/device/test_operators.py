"""Operators on a device give what their sequential definitions give."""

import pytest
from conformance.operating import check_aggregate, check_filter, check_join, check_window

from matcher.gpu.device import device
from rules.operators.places import DevicePlace

PLACE = DevicePlace(device())
SIMULATED = PLACE.simulated
SEEDS = range(3) if SIMULATED else range(60)
SIZES = (5, 0, 9, 7) if SIMULATED else (7, 0, 1, 130, 2, 300)
PAIRS = ((4, 5), (0, 2), (7, 6)) if SIMULATED else ((7, 9), (0, 3), (4, 0), (200, 250), (120, 9))


@pytest.mark.parametrize("seed", [4, 7, 8, 13] if SIMULATED else SEEDS)
def test_random_filters(seed: int) -> None:
    check_filter(PLACE, seed, SIZES)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_windows(seed: int) -> None:
    check_window(PLACE, seed, SIZES)


@pytest.mark.parametrize("seed", [1, 3, 5, 7] if SIMULATED else SEEDS)
def test_random_joins(seed: int) -> None:
    check_join(PLACE, seed, PAIRS)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_aggregates(seed: int) -> None:
    check_aggregate(PLACE, seed, SIZES)
