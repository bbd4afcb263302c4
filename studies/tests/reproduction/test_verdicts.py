"""The one rule by which sentences of the papers are judged."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_ABOVE,
    SAME,
    Asked,
    Estimate,
    Range,
    Verdict,
    claimed,
    decided_by,
    judge,
    side,
    student,
)


def within(value: float, low: float, high: float, name: str = "") -> Estimate:
    return Estimate(value, low, high, name=name)


@pytest.mark.parametrize(
    ("ratio", "range_", "verdict"),
    [
        (within(1.2, 1.1, 1.3), ABOVE, Verdict.HOLDS),
        (within(1.2, 0.9, 1.6), ABOVE, Verdict.OPEN),  # by chance alone it is on the right side
        (within(0.8, 0.7, 0.9), ABOVE, Verdict.FAILS),
        (Estimate.exact(1.0), BELOW, Verdict.FAILS),  # as much is not less
        (within(1.02, 0.97, 1.07), SAME, Verdict.HOLDS),
        (within(1.02, 0.85, 1.2), SAME, Verdict.OPEN),  # not to be seen is not constant
        (within(1.3, 1.2, 1.4), SAME, Verdict.FAILS),
        (within(1.15, 1.05, 1.26), MUCH_ABOVE, Verdict.OPEN),
        (Estimate.single(40.0), ABOVE, Verdict.ONCE_WITHIN),
        (Estimate.single(0.02), ABOVE, Verdict.ONCE_OUTSIDE),
    ],
)
def test_an_interval_decides(ratio: Estimate, range_: Range, verdict: Verdict) -> None:
    assert judge([(ratio, range_)]) is verdict


def test_all_that_is_asked_must_hold() -> None:
    holds, fails, open_ = (
        (within(*ends), ABOVE) for ends in ((2.0, 1.8, 2.2), (0.5, 0.4, 0.6), (1.05, 0.9, 1.2))
    )
    once = (Estimate.single(3.0), ABOVE)
    assert judge([holds, open_]) is Verdict.OPEN
    assert judge([holds, open_, fails]) is Verdict.FAILS
    assert judge([holds, once]) is Verdict.ONCE_WITHIN
    assert judge([once, open_]) is Verdict.OPEN
    assert judge([fails, once]) is Verdict.FAILS
    assert judge([]) is Verdict.UNMEASURED


def test_the_interval_that_decides_is_the_one_that_a_page_prints() -> None:
    """1.00004 is above 1, and is printed as 1: by that nobody could say that it is."""
    ratio = within(1.2, 1.00004, 1.5)
    assert str(ratio) == "1.2 (1 to 1.5)"
    assert judge([(ratio, ABOVE)]) is Verdict.OPEN
    low, high = map(float, re.findall(r"\((\S+) to (\S+)\)", decided_by([(ratio, ABOVE)]))[0])
    assert (low, high) == ratio.printed


def test_the_ratio_that_decides_is_named() -> None:
    near: Asked = (within(1.2, 1.05, 1.4, "CDP at 3"), ABOVE)
    far: Asked = (within(9.0, 8.0, 10.0, "AIP at 3"), ABOVE)
    assert decided_by([far, near]) == "CDP at 3: 1.2 (1.05 to 1.4); claimed above 1"
    out: Asked = (within(0.5, 0.4, 0.6, "AIP at 5"), ABOVE)
    assert decided_by([far, near, out]).startswith("AIP at 5: 0.5")
    assert decided_by([(Estimate.exact(2.0), (0.5, 3.0))]) == "2 exactly; claimed 0.5 to 3"
    assert decided_by([]) == ""
    assert (claimed(BELOW), claimed(ABOVE)) == ("below 1", "above 1")


def test_the_side_is_that_of_the_ratio_that_fails() -> None:
    assert side([(Estimate.exact(0.5), SAME)]) == -1
    assert side([(Estimate.exact(1.0), SAME), (Estimate.exact(2.0), SAME)]) == 1
    assert side([(within(1.05, 0.5, 2.0), SAME)]) == 0


def test_a_ratio_has_the_interval_that_follows_from_those_of_its_figures() -> None:
    """Fieller's: those ratios r for which the interval of a - r b has zero in it."""
    ours, theirs = Estimate.measured(3.94, 1.01, "CDP"), Estimate.measured(10.7, 5.55, "AIP")
    ratio = ours / theirs
    for end, sign in ((ratio.low, -1), (ratio.high, 1)):
        assert 3.94 - end * 10.7 == pytest.approx(-sign * math.hypot(1.01, end * 5.55))
    assert ratio.name == "CDP / AIP"
    alone = ours / Estimate.exact(2.0)
    assert (alone.low, alone.high) == pytest.approx((2.93 / 2, 4.95 / 2))
    assert (Estimate.measured(2.0, 0.1) / Estimate.measured(9.4, 10.4)).high == math.inf


def test_ratios_of_means_cover_the_truth_as_often_as_they_say() -> None:
    """Three seeds each, as the tables of chapter 5 have."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(2_000):
        one, other = (
            Estimate.measured(
                float(drawn.mean()), student(3) * float(drawn.std(ddof=1)) / math.sqrt(3)
            )
            for drawn in (rng.normal(3.0, 0.3, 3), rng.normal(2.0, 0.1, 3))
        )
        ratio = one / other
        covered += ratio.low <= 1.5 <= ratio.high
    assert 0.94 < covered / 2_000 < 0.995


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
    half = student(3) * deviation / math.sqrt(3)
    assert math.log(ratio.high / ratio.value) == pytest.approx(half)
    assert math.log(ratio.value / ratio.low) == pytest.approx(half)
    assert Estimate.paired(ones, {9: 1.0}) is None


def test_a_ratio_is_taken_seed_by_seed_where_both_figures_were_kept_so() -> None:
    """What a seed does to both is no part of how they differ."""
    ones, others = (1.0, 2.0, 4.0, 8.0), (2.0, 4.1, 7.9, 16.1)
    kept = Estimate.of_seeds(others) / Estimate.of_seeds(ones)
    assert 1.9 < kept.low < 2.0 < kept.high < 2.1
    assert judge([(kept, MUCH_ABOVE)]) is Verdict.HOLDS
    means = [replace(Estimate.of_seeds(seeds), seeds=()) for seeds in (others, ones)]
    assert judge([(means[0] / means[1], MUCH_ABOVE)]) is Verdict.OPEN
    fewer = Estimate.of_seeds(others) / Estimate.of_seeds(ones[:3])
    assert fewer == means[0] / Estimate.of_seeds(ones[:3]), "not the same seeds"
    line = Estimate.of_seeds(ones).times(2).plus(Estimate.of_seeds(others))
    assert (line / Estimate.of_seeds(ones)).seeds == (4.0, 4.05, 3.975, 4.0125)
    apart = Estimate.of_seeds(others).minus(Estimate.of_seeds(ones))
    assert apart.seeds == pytest.approx((1.0, 2.1, 3.9, 8.1))


def test_what_is_counted_in_one_run_is_exact_and_what_is_timed_has_no_interval() -> None:
    counted = Estimate.paired({1: 3.0}, {1: 2.0})
    assert counted == Estimate.exact(1.5)
    timed = Estimate.measured(3.0, None) / Estimate.exact(2.0)
    assert timed == Estimate.single(1.5)
    assert str(timed) == "1.5 (one run)"


def test_students_t_is_the_tables() -> None:
    assert [round(student(count), 3) for count in (2, 3, 10, 20)] == [12.706, 4.303, 2.262, 2.093]
