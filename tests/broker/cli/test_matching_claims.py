"""What chapter 4 says of its figures holds where tables bear it out, and only there."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from benchmarks.reproduction import matching_claims as claims
from benchmarks.reproduction import methods
from benchmarks.reproduction.experiment import Claim, Table
from benchmarks.reproduction.matching import (
    SWEEPS,
    figure_4_6,
    of_resetting,
    table_4_2,
    with_speedups,
)
from benchmarks.reproduction.methods import CCM, CORES, MAKERS, MEMSET, METHODS, OCM_1, SFF, ms
from matcher.gpu.device import NoDevice

Line = tuple[float, ...]


def table(points: Line, sff: Line, ocm: Line) -> Table:
    """Of a sweep; the methods beside SFF take as long as OCM."""
    times = {SFF: sff} | {method: ocm for method in METHODS if method != SFF}
    columns = ("value", *(ms(method) for method in METHODS))
    rows = zip(points, *(times[method] for method in METHODS), strict=True)
    return with_speedups(Table(columns, tuple(rows)))


def verdicts(told: tuple[Claim, ...]) -> list[bool | None]:
    return [claim.holds for claim in told]


@pytest.mark.parametrize(
    ("of", "points", "borne_out", "refuted"),
    [
        (claims.of_attributes, (1, 9), ((1, 9), (1, 3)), ((9, 1), (1, 3))),
        (claims.of_constraints, (1, 9), ((1, 9 * CORES), (2, 3)), ((4, 2), (2, 3))),
        (claims.of_filters, (250, 5e3, 1e5), ((1, 9, 9), (2, 3, 4)), ((9, 9, 90), (3, 3, 3))),
        (claims.of_interfaces, (10, 40), ((1, 5), (1, 6)), ((5, 4), (3, 2))),
        (
            claims.of_names,
            (10, 30, 100, 1_000),
            ((30, 12, 3, 2), (20, 3, 1.5, 1.5)),
            ((1, 1, 3, 9), (1, 2, 4, 7)),
        ),
        (claims.of_kinds, (0, 100), ((1, 2), (3, 3)), ((2, 1), (3, 3.5))),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_every_sentence_is_judged_by_the_figures(
    of: Callable[[Table], tuple[Claim, ...]],
    points: Line,
    borne_out: tuple[Line, Line],
    refuted: tuple[Line, Line],
) -> None:
    assert set(verdicts(of(table(points, *borne_out)))) <= {True, None}
    assert set(verdicts(of(table(points, *refuted)))) <= {False, None}


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.name)
def test_every_figure_is_judged_by_its_first_and_last_point_too(sweep) -> None:
    """Which is all that a quick run has."""
    ends = (float(sweep.points[0]), float(sweep.points[-1]))
    told = sweep.claims(table(ends, (1.0, 2.0), (1.0, 2.0)))
    assert any(claim.holds is not None for claim in told)


def test_ccm_has_lines_of_its_own_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "device", lambda: SimpleNamespace(simulated=False))
    assert list(methods.on_device()) == [CCM, MEMSET]

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
        slow, fast = (of(table((1, 9), (8, 150), (1, last)))[-1] for last in (90, 10))
        assert (slow.holds, fast.holds) == (False, True)
        assert fast.measured == "CCM / SFF: 8 to 15"
    for name in (CCM, MEMSET):
        monkeypatch.setitem(MAKERS, name, METHODS[OCM_1])
    for figure in (table_4_2, figure_4_6):
        outcome = figure(quick=True)
        assert CCM in outcome.table.column("method")
        assert outcome.claims[-1].holds is not None
    slower = of_resetting({CCM: 1.0, MEMSET: 1.3})
    assert (slower.measured, slower.holds) == ("1.3 times as fast", True)
    assert of_resetting({CCM: 1.0, MEMSET: 1.1}).holds is False
