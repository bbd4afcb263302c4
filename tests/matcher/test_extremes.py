"""Extremes by their places are what numpy's reductions give."""

import numpy as np
import pytest

from matcher.extremes import are_finite, greatest, holds_of_all, least

LENGTHS = (1, 2, 15, 16, 17, 255, 256, 1_000, 70_000)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint8])
def test_extremes_are_those_of_the_reductions(length: int, dtype: type) -> None:
    numbers = np.random.default_rng(length).integers(0, 200, length).astype(dtype)
    found = least(numbers), greatest(numbers)
    assert found == (numbers.min(), numbers.max())
    assert type(found[0]) is int


@pytest.mark.parametrize("length", LENGTHS)
def test_one_row_that_is_otherwise_is_found_wherever_it_stands(length: int) -> None:
    mask, values = np.ones(length, np.bool_), np.zeros(length)
    assert holds_of_all(mask)
    assert are_finite(values)
    for place in {0, length // 2, length - 1}:
        mask[place] = False
        assert not holds_of_all(mask)
        mask[place] = True
        for strange in (np.nan, np.inf, -np.inf):
            values[place] = strange
            assert not are_finite(values)
        values[place] = 1e308
        assert are_finite(values)


def test_of_no_rows_anything_holds() -> None:
    assert holds_of_all(np.ones(0, np.bool_))


def test_a_nan_hides_no_infinity_and_none_hides_it() -> None:
    assert not are_finite(np.array([np.inf, np.nan, -np.inf]))
    assert not are_finite(np.array([-np.inf, 0.0, np.nan]))
