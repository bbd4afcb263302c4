"""What is expected of events: by how few were seen, and how full windows were."""

import math

import pytest

from matcher.model import EventType
from routing.network.ways.forecast import Forecast
from rules.language import load

TYPES = "".join(f"event {EventType.of(name, p='int')}\n" for name in "ABC")
EACH, LAST, BOTH = load(
    f"{TYPES}"
    "rule each: define X() from A() as a and each B() within 60 s from a\n"
    "rule last: define Y() from A() as a and last C() within 60 s from a\n"
    "rule both: define Z() from A() as a and each B() within 60 s from a and last C() within 60 s"
    " from a\n",
    file="rules.tesla",
).rules
RATES = {"A": 4.0, "B": 1.0, "C": 0.25, "D": 0.0}
SECOND = 1_000_000


def test_what_was_watched_for_long_is_as_it_was_seen() -> None:
    long = Forecast(RATES, seconds=1e6, age=1e6)
    assert long.rate("B") == pytest.approx(1.0, rel=1e-3)
    assert long.awake("C", 4 * SECOND) == pytest.approx(1 - math.exp(-1), rel=1e-3)


def test_what_was_never_seen_is_rarer_the_longer_one_looks() -> None:
    awake = [Forecast(RATES, t, t).awake("D", 60 * SECOND) for t in (1.0, 8.0, 60.0, 600.0)]
    assert awake == sorted(awake, reverse=True)
    assert 1 > awake[0] > 0.5 > awake[-1] > 0
    assert Forecast(RATES, 8.0, 8.0).rate("D") < 1 / 8


def test_how_different_rates_are_says_how_rare_what_is_not_seen_may_be() -> None:
    alike = Forecast({"A": 1.1, "B": 0.9, "D": 0.5}, 8.0, 8.0)
    assert Forecast(RATES, 8.0, 8.0).rate("D") < alike.rate("D")
    same = Forecast({"A": 1.0, "B": 1.0}, 8.0, 8.0)
    assert same.rate("A") == 1.0
    assert same.awake("A", 0) == 0.0


def test_rules_find_more_as_windows_fill() -> None:
    young = Forecast(RATES, seconds=8.0, age=14.0)  # 10 s on average while they were watched
    assert young.growth(EACH) == pytest.approx(6.0)
    assert young.growth(LAST) == pytest.approx((1 - math.exp(-15)) / (1 - math.exp(-2.5)))
    assert young.growth(BOTH) == pytest.approx(young.growth(EACH) * young.growth(LAST))
    assert Forecast(RATES, seconds=30.0, age=75.0).growth(BOTH) == pytest.approx(1.0)
