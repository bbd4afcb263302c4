"""The one rule by which sentences of the papers are judged."""

import math

import pytest

from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_ABOVE,
    ONCE,
    SAME,
    T_95,
    Estimate,
    Range,
    Verdict,
    judge,
    side,
)


@pytest.mark.parametrize(
    ("value", "spread", "range_", "verdict"),
    [
        (1.2, 0.1, ABOVE, Verdict.HOLDS),
        (1.2, 0.3, ABOVE, Verdict.OPEN),  # by chance alone it is on the right side
        (0.8, 0.1, ABOVE, Verdict.FAILS),
        (1.0, 0.0, BELOW, Verdict.FAILS),  # as much is not less
        (1.02, 0.05, SAME, Verdict.HOLDS),
        (1.02, 0.2, SAME, Verdict.OPEN),  # it may have changed: not to be seen is not constant
        (1.3, 0.1, SAME, Verdict.FAILS),
        (1.15, 0.1, MUCH_ABOVE, Verdict.OPEN),
    ],
)
def test_an_interval_decides(value: float, spread: float, range_: Range, verdict: Verdict) -> None:
    assert judge([(Estimate(value, spread), range_)]) is verdict


def test_all_that_is_asked_must_hold() -> None:
    holds, fails, open_ = ((Estimate(one, 0.1), ABOVE) for one in (2.0, 0.5, 1.05))
    assert judge([holds, open_]) is Verdict.OPEN
    assert judge([holds, open_, fails]) is Verdict.FAILS
    assert judge([]) is Verdict.UNMEASURED


def test_the_side_is_that_of_the_ratio_that_fails() -> None:
    assert side([(Estimate(0.5), SAME)]) == -1
    assert side([(Estimate(1.0), SAME), (Estimate(2.0), SAME)]) == 1
    assert side([(Estimate(1.05, 0.5), SAME)]) == 0


def test_seeds_are_compared_one_by_one() -> None:
    """Figures that differ tenfold by their seeds, and by a fifth by what is compared."""
    ones = {1: 12.0, 2: 121.0, 3: 1190.0, 4: 7.0}
    others = {1: 10.0, 2: 100.0, 3: 1000.0, 9: 1.0}
    ratio = Estimate.paired(ones, others)
    assert ratio is not None
    assert ratio.value == pytest.approx(1.2, rel=0.01)
    assert judge([(ratio, ABOVE)]) is Verdict.HOLDS
    logs = [math.log(ones[seed] / others[seed]) for seed in (1, 2, 3)]
    deviation = math.sqrt(sum((one - sum(logs) / 3) ** 2 for one in logs) / 2)
    assert math.log1p(ratio.spread) == pytest.approx(T_95[3] * deviation / math.sqrt(3))
    assert Estimate.paired(ones, {9: 1.0}) is None


def test_a_single_run_is_known_to_a_quarter_and_so_is_a_ratio_of_it() -> None:
    one, other = Estimate.measured(3.0, None), Estimate.measured(2.0, None)
    assert (one / other).spread == ONCE
    assert (one / other).times(2.0) == Estimate.single(3.0)
    assert (one / Estimate(2.0, 0.1)).spread == pytest.approx(math.hypot(ONCE, 0.1))
