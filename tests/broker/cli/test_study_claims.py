"""The claims of the simulation study hold where figures bear them out, and only there."""

import pytest

from benchmarks.reproduction import distribution_claims as claims
from benchmarks.reproduction.distribution_claims import Readings
from benchmarks.reproduction.distribution_plots import PLOTS
from benchmarks.reproduction.distribution_runs import T_95, WHOLE, Spread, Study, scenario
from benchmarks.reproduction.experiment import Table

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


def default(**changed: float) -> list[bool | None]:
    columns = ("strategy", "seeds", "delay [ms]", "traffic [kB/s]")
    rows = []
    for name in ALL:
        traffic = changed.get(name.replace("-", "_"), TRAFFIC[name])
        rows.append((name, 1, DELAY[name], traffic))
    return [claim.holds for claim in claims.default(Table(columns, tuple(rows)))]


def test_what_the_thesis_found_bears_its_claims_out() -> None:
    assert set(default()) == {True}


def test_what_it_did_not_find_does_not() -> None:
    assert default(distributed_st=45.0).count(False) == 3
    assert default(distributed_mt=10.0).count(False) == 1


def test_strategies_are_compared_by_what_both_have_run() -> None:
    columns = ("strategy", "simulated [h]", "delay [ms]", "traffic [kB/s]")
    every = Table(columns, tuple((name, 9.0, 1.0, 1.0) for name in ALL))
    common = Table(columns, (("centralized", 2.0, 9.0, 50.0), ("distributed-st", 2.0, 9.5, 20.0)))
    idle = Table(columns, tuple((name, 0.0, None, None) for name in ALL))
    found = claims.default(every, lambda *pair: common if "centralized" in pair else idle)
    told = {claim.measured: claim.holds for claim in found}
    assert told["centralized 50, distributed-st 20"]
    assert told["distributed-st 9.5, centralized 9"]
    assert told["not run: distributed-mt, distributed-st"] is None


@pytest.mark.parametrize(
    ("delays", "holds"),
    [
        ((5.0, 8.0, 8.5, 9.0), True),
        ((5.0, 8.0, 9.0, 12.0), False),  # a clear trend
        ((5.0, 4.0, 4.5), False),
    ],
)
def test_delays_rise_at_first_and_no_more(delays: tuple[float, ...], holds: bool) -> None:
    readings = plot({"centralized": (1.0,) * len(delays)}, delays)
    assert next(PLOTS["7.15"].claims(readings)).holds is holds


def plot(traffic: dict[str, tuple[float, ...]], delay: tuple[float, ...]) -> Readings:
    columns, rows = ["x"], [[float(place)] for place in range(len(delay))]
    for name, line in traffic.items():
        columns += [f"{name} delay [ms]", f"{name} traffic [kB/s]"]
        for row, late, sent in zip(rows, delay, line, strict=True):
            row += [late, sent]
    return Readings(Table(tuple(columns), tuple(map(tuple, rows))))


@pytest.mark.parametrize("number", PLOTS)
def test_claims_about_strategies_that_are_missing_are_not_measured(number: str) -> None:
    readings = plot({"centralized": (1.0, 2.0)}, (5.0, 6.0))
    found = list(PLOTS[number].claims(readings))
    assert any(claim.holds is None for claim in found)
    assert all("there is no" in claim.measured for claim in found if claim.holds is None)


def test_claims_follow_the_figures() -> None:
    filtered = {"centralized": (50.0, 25.0), "distributed-st": (40.0, 4.0)}
    steady, growing = (10.0, 10.5), (10.0, 15.0)
    assert [one.holds for one in claims.filtering(plot(filtered, steady))] == [True, True, True]
    swapped = {"centralized": (40.0, 4.0), "distributed-st": (50.0, 60.0)}
    assert [one.holds for one in claims.filtering(plot(swapped, growing))] == [False] * 3


def test_a_spread_is_a_mean_and_half_an_interval() -> None:
    spread = Spread.of([1.0, 2.0, 3.0])
    assert spread.mean == 2.0
    assert spread.half == pytest.approx(T_95[3] / 3**0.5)
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
