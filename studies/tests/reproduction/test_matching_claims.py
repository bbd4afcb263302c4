"""What chapter 4 says of its figures holds where tables bear it out, and only there."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from benchmarks.matching import Scenario
from matcher.gpu.device import NoDevice
from matcher.methods.pcm import PcmMatcher
from studies.reproduction import matching_claims as claims, methods, system
from studies.reproduction.experiment import Claim, Table
from studies.reproduction.matching import (
    SWEEPS,
    figure_4_6,
    table_4_2,
    with_speedups,
)
from studies.reproduction.methods import (
    BATCHED,
    CCM,
    CORES,
    MAKERS,
    MEMSET,
    METHODS,
    OCM_1,
    ONCE,
    ORDERED,
    SFF,
    ms,
)
from studies.reproduction.verdicts import Estimate, Verdict

Line = tuple[float, ...]


def table(points: Line, sff: Line, ocm: Line) -> Table:
    """Of a sweep; the methods beside SFF take as long as OCM."""
    times = {SFF: sff} | {method: ocm for method in METHODS if method != SFF}
    columns = ("value", *(ms(method) for method in METHODS))
    rows = zip(points, *(times[method] for method in METHODS), strict=True)
    return with_speedups(Table(columns, tuple(rows)))


def verdicts(told: tuple[Claim, ...]) -> set[Verdict]:
    """Those of what is measured on a processor."""
    return {claim.verdict for claim in told} - {Verdict.UNMEASURED}


@pytest.mark.parametrize(
    ("of", "points", "borne_out", "refuted"),
    [
        (claims.of_attributes, (1, 9), ((8, 90), (2, 9)), ((9, 1), (3, 1))),
        (
            claims.of_constraints,
            (1, 9),
            ((1, 90), (3, 90 / (2 * CORES))),
            ((4, 1), (2, 1)),
        ),
        (
            claims.of_filters,
            (250, 5e4, 1e5),
            ((1, 1e3, 3e3), (2, 250, 1_300)),
            ((9, 3, 3), (5, 5, 3)),
        ),
        (claims.of_interfaces, (10, 40), ((20, 80), (5, 45)), ((5, 3), (3, 1))),
        (
            claims.of_names,
            (10, 30, 100, 1_000),
            ((80, 40, 12, 5), (50, 10, 3, 2.5)),
            ((1, 1, 3, 9), (5, 6, 40, 20)),
        ),
        (claims.of_kinds, (0, 100), ((10, 25), (5, 4)), ((2, 1), (1, 4))),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_every_sentence_is_judged_by_the_figures(
    of: Callable[[Table], tuple[Claim, ...]],
    points: Line,
    borne_out: tuple[Line, Line],
    refuted: tuple[Line, Line],
) -> None:
    assert verdicts(of(table(points, *borne_out))) == {Verdict.ONCE_WITHIN}
    assert verdicts(of(table(points, *refuted))) == {Verdict.ONCE_OUTSIDE}


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.name)
def test_every_figure_is_judged_by_its_first_and_last_point_too(sweep) -> None:
    """Which is all that a quick run has."""
    ends = (float(sweep.points[0]), float(sweep.points[-1]))
    told = sweep.claims(table(ends, (1.0, 2.0), (1.0, 2.0)))
    assert any(claim.verdict is not Verdict.UNMEASURED for claim in told)


def test_ccm_has_lines_of_its_own_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "device", lambda: SimpleNamespace(simulated=False))
    assert list(methods.on_device()) == [CCM, MEMSET, ORDERED, ONCE, BATCHED]

    def without() -> None:
        raise NoDevice("there is none")

    for other in (lambda: SimpleNamespace(simulated=True), without):
        monkeypatch.setattr(methods, "device", other)
        assert methods.on_device() == {}


def test_what_is_said_of_ccm_is_judged_where_it_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(METHODS, CCM, METHODS[OCM_1])  # in its place, for there is no GPU
    for of in (claims.of_attributes, claims.of_interfaces):
        slow, fast = (
            next(one for one in of(table((1, 9), (8, 180), (1, last))) if "CCM" in one.published)
            for last in (90, 10)
        )
        assert (slow.verdict, fast.verdict) == (Verdict.ONCE_OUTSIDE, Verdict.ONCE_WITHIN)
        assert fast.measured == "CCM / SFF: 8, 18"
    for name in (CCM, MEMSET, ORDERED, ONCE):
        monkeypatch.setitem(MAKERS, name, METHODS[OCM_1])
    for figure in (table_4_2, figure_4_6):
        outcome = figure(quick=True)
        assert CCM in outcome.table.column("method")
        assert all(one.measured != claims.ON_GPU for one in outcome.claims)


def test_ccm_has_lines_in_the_last_two_figures_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def together(events: int) -> PcmMatcher:
        asked.append(events)
        return PcmMatcher()

    monkeypatch.setitem(METHODS, CCM, PcmMatcher)
    for method in (CCM, BATCHED):
        monkeypatch.setitem(MAKERS, method, PcmMatcher)
    monkeypatch.setattr(system, "ccm_together", together)
    monkeypatch.setattr(system, "RATES", (500, 2_000))
    small = Scenario("small", constraints=400)
    outcome = system.parallel(small, 100, (1,))
    assert asked == list(system.AT_ONCE)
    assert ms(CCM) in outcome.table.columns
    assert outcome.claims[-1].measured.startswith(ms(CCM))
    outcome = system.system(small, 0.05, (1,))
    assert asked[-1] == 10
    names = ("CCM", "CCM, several at once", "OCM, atomic counts", "batched, all queued")
    assert {f"{name} [1/s]" for name in names} <= {*outcome.table.columns}
    assert outcome.claims[-1].measured == claims.SHARED_LOCK


@pytest.mark.parametrize(
    ("ordered", "zipf", "later", "once", "verdict"),
    [(1.0, 0.7, 2.0, 2.0, Verdict.HOLDS), (0.5, 2.0, 1.0, 0.5, Verdict.FAILS)],
)
def test_what_is_said_of_variants_of_ccm_is_judged(
    ordered: float, zipf: float, later: float, once: float, verdict: Verdict
) -> None:
    plain, skewed, deployed = (
        {CCM: Estimate.exact(1.0), ORDERED: Estimate.exact(own), ONCE: Estimate.exact(once)}
        for own in (ordered, zipf, later)
    )
    told = claims.by_variants(plain, skewed, deployed)
    assert [one.verdict for one in told] == [verdict] * 4


def test_an_advantage_that_is_none_neither_grows_nor_falls() -> None:
    """Half as fast, and then a quarter: the thesis's sentence has nothing to be about."""
    falling = claims.of_interfaces(table((10, 40), (10, 40), (20, 160)))
    assert falling[2].verdict is Verdict.ONCE_OUTSIDE
