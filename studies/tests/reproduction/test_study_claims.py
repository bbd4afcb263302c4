"""The claims of the simulation study hold where figures bear them out, and only there."""

import pytest

from studies.reproduction import distribution_claims as claims
from studies.reproduction.distribution_claims import Readings
from studies.reproduction.distribution_plots import PLOTS
from studies.reproduction.distribution_runs import WHOLE, Spread, Study, scenario
from studies.reproduction.gathering import Row
from studies.reproduction.verdicts import Verdict, student

ALL = ("centralized", "distributed-st", "distributed-mt", "push-pull-st", "push-pull-mt")
DELAY = {
    "centralized": 10.0,
    "distributed-st": 10.1,
    "distributed-mt": 6.0,
    "push-pull-st": 11.0,
    "push-pull-mt": 7.0,
}
TRAFFIC = {
    "centralized": 50.0,
    "distributed-st": 20.0,
    "distributed-mt": 30.0,
    "push-pull-st": 19.0,
    "push-pull-mt": 29.0,
}


HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
NOISE = (0.99, 1.0, 1.01)
"""What three seeds differ by."""


def rows(delay: float, traffic: float, noise: tuple[float, ...] = NOISE) -> dict[int, Row]:
    return {
        seed: {"delay_ms_mean": delay * one, "bytes": 1e3 * traffic * one, "measured_s": 1.0}
        for seed, one in enumerate(noise, 1)
    }


def default(**changed: float) -> list[Verdict]:
    found = {
        name: rows(DELAY[name], changed.get(name.replace("-", "_"), TRAFFIC[name])) for name in ALL
    }
    return [claim.verdict for claim in claims.default(Readings.of([0], [found]))]


def test_what_the_thesis_found_bears_its_claims_out() -> None:
    assert set(default()) == {HOLDS}


def test_what_it_did_not_find_does_not() -> None:
    assert default(centralized=25.0).count(FAILS) == 1, "less than multiple trees"
    assert default(distributed_mt=10.0).count(FAILS) == 2


@pytest.mark.parametrize(("more", "verdict"), [(1.02, HOLDS), (1.2, FAILS)])
def test_processing_is_marginal_within_a_tenth(more: float, verdict: Verdict) -> None:
    usual, busy = (
        Readings.of([0], [{name: rows(DELAY[name] * by, 1.0) for name in ALL}])
        for by in (1.0, more)
    )
    assert claims.processing(usual, busy).verdict is verdict


def test_what_is_concluded_from_all_figures_is_judged_at_all_places() -> None:
    def final(mt: float, pull: float) -> list[Verdict]:
        late = DELAY | {"distributed-mt": mt, "push-pull-mt": 1.1 * mt}
        found = {name: rows(late[name], TRAFFIC[name]) for name in ALL}
        found["push-pull-st"] = rows(DELAY["push-pull-st"], TRAFFIC["distributed-st"] * pull)
        found["push-pull-mt"] = rows(1.1 * mt, TRAFFIC["distributed-mt"] * pull)
        readings = {name: Readings.of([1.0, 2.0], [found, found]) for name in ("7.10", "7.15")}
        return [claim.verdict for claim in claims.final(readings)]

    assert final(6.0, 0.9) == [HOLDS] * 4
    assert final(12.0, 0.4) == [FAILS, HOLDS, FAILS, HOLDS]


def test_strategies_are_compared_by_the_seeds_that_both_have() -> None:
    every = {name: rows(1.0, 1.0) for name in ALL}
    every["centralized"] = {1: rows(9.0, 50.0)[1], 7: rows(1.0, 1.0)[1]}
    told = {one.published: one for one in claims.default(Readings.of([0], [every]))}
    same = told["Delays of Centralized and Distributed (ST) are almost the same"]
    assert same.verdict is FAILS
    assert same.measured.startswith("ST/central: 0.111")


@pytest.mark.parametrize(
    ("delays", "rise", "trend"),
    [
        ((5.0, 8.0, 8.1, 8.1), HOLDS, HOLDS),
        ((5.0, 8.0, 9.0, 12.0), HOLDS, FAILS),
        ((5.0, 4.0, 4.1), FAILS, HOLDS),
    ],
)
def test_delays_rise_at_first_and_no_more(
    delays: tuple[float, ...], rise: Verdict, trend: Verdict
) -> None:
    found = list(PLOTS["7.15"].claims(plot(dict.fromkeys(ALL, (1.0,) * len(delays)), delays)))
    assert [one.verdict for one in found[:2]] == [rise, trend]


def plot(traffic: dict[str, tuple[float, ...]], delay: tuple[float, ...]) -> Readings:
    found = [
        {name: rows(late, line[place]) for name, line in traffic.items()}
        for place, late in enumerate(delay)
    ]
    return Readings.of([float(place) for place in range(len(delay))], found)


@pytest.mark.parametrize("number", PLOTS)
def test_claims_about_strategies_that_are_missing_are_not_measured(number: str) -> None:
    readings = plot({"centralized": (1.0, 2.0)}, (5.0, 6.0))
    found = list(PLOTS[number].claims(readings))
    assert {claim.verdict for claim in found} == {Verdict.UNMEASURED}
    assert any("there is no" in claim.measured for claim in found)


def test_claims_follow_the_figures() -> None:
    filtered = dict.fromkeys(ALL, (40.0, 4.0)) | {"centralized": (50.0, 25.0)}
    steady, growing = (10.0, 10.2), (10.0, 15.0)
    assert [one.verdict for one in claims.filtering(plot(filtered, steady))] == [HOLDS] * 4
    swapped = dict.fromkeys(ALL, (50.0, 60.0)) | {"centralized": (40.0, 4.0)}
    assert [one.verdict for one in claims.filtering(plot(swapped, growing))] == [FAILS] * 4


def test_the_strategy_that_is_not_the_thesis_s_decides_nothing() -> None:
    both = dict.fromkeys(ALL, (40.0, 4.0)) | {"centralized": (50.0, 25.0)}
    with_own = plot(both | {"adaptive": (1.0, 99.0)}, (10.0, 10.2))
    assert list(claims.filtering(with_own)) == list(claims.filtering(plot(both, (10.0, 10.2))))


def test_an_advantage_is_needed_for_it_to_stay() -> None:
    """7.18: multiple trees against Centralized."""
    has_none = dict.fromkeys(ALL, (60.0, 30.0)) | {"centralized": (50.0, 25.0)}
    has_one = dict.fromkeys(ALL, (40.0, 20.0)) | {"centralized": (50.0, 25.0)}
    text = "That of multiple trees over Centralized does not change significantly"
    for traffic, verdict in ((has_none, FAILS), (has_one, HOLDS)):
        told = {one.published: one.verdict for one in claims.rates(plot(traffic, (1.0, 1.0)))}
        assert told[text] is verdict


def test_a_spread_is_a_mean_and_half_an_interval() -> None:
    spread = Spread.of([1.0, 2.0, 3.0])
    assert spread.mean == 2.0
    assert spread.half == pytest.approx(student(3) / 3**0.5)
    assert Spread.of([4.0]) == Spread(4.0, None)
    assert Spread.of([]) == Spread(None, None)


def test_figures_share_their_default_scenario() -> None:
    """What two figures ask for is run once, so their points are the same scenario."""
    study = Study(WHOLE)
    named = {
        number: {
            run.hash
            for point in PLOTS[number].points
            for run in study._runs(scenario(WHOLE, **point.change))["centralized"]
        }
        for number in ("7.10", "7.11", "7.12", "7.13", "7.14", "7.15", "7.18")
    }
    assert len(set.intersection(*named.values())) == WHOLE.seeds
