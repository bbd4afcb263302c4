"""``rexmq reproduce`` at its smallest size, and how what it gives is written."""

import csv
from pathlib import Path

import pytest
from pairs import some_of

from broker.cli import checkout, main
from broker.cli.reproduce import _parts
from routing.network import strategy
from studies.reproduction import writing
from studies.reproduction.engine_curves import held
from studies.reproduction.engine_runs import engines
from studies.reproduction.engine_workloads import Sequences
from studies.reproduction.experiment import Chart, Claim, Experiment, Outcome, Table
from studies.reproduction.registry import EXPERIMENTS
from studies.reproduction.verdicts import Verdict

OUTCOME = Outcome(
    Table(("names", "SFF [ms]"), ((10, 1.25), (100, None))),
    (Chart(("SFF [ms]",), "ms"),),
    (
        Claim("it falls", "it does not", Verdict.FAILS),
        Claim("faster on a GPU", "needs one", Verdict.UNMEASURED),
    ),
)


def experiment(name: str) -> Experiment:
    return Experiment(name, "matching", "names", "All names.", lambda quick: OUTCOME)


def test_a_figure_is_run_and_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "thesis-4.7", "--quick", "--out", str(tmp_path)]) == 0
    written = capfd.readouterr().out.splitlines()
    assert str(tmp_path / "matching.md") in written
    heading, *rows = csv.reader((tmp_path / "thesis-4.7.csv").open())
    assert heading[:3] == ["attributes", "SFF [ms]", "OCM, 1 thread [ms]"]
    assert [row[0] for row in rows] == ["1", "9"]
    assert all(float(figure) > 0 for row in rows for figure in row)
    assert (
        "| the thesis says | measured here | decided by | verdict |"
        in (tmp_path / "matching.md").read_text()
    )


@pytest.mark.parametrize(
    "name",
    [
        *("thesis-table-4.2", "thesis-4.6", "thesis-4.13", "thesis-4.14"),
        *("thesis-5.10", "thesis-5.14", "thesis-5.25", "thesis-5.27", "thesis-5.13b"),
        *("thesis-6.5", "thesis-6.9", "thesis-6.13"),
        # One figure of the simulated study, which differ in what they vary.
        *some_of((name for name in EXPERIMENTS if name.startswith("thesis-7.")), 1),
        *("thesis-5.24", "thesis-6.10"),
        *("growth-window", "growth-rules", "growth-states"),
        *("hybrid-6a", "hybrid-7d", "hybrid-10b", "hybrid-indexes"),
        *("hybrid-roles", "hybrid-replay"),
    ],
)
def test_experiments_run(name: str) -> None:
    outcome = EXPERIMENTS[name].run(True)
    columns = outcome.table.columns
    assert all(set(chart.lines) <= set(outcome.drawn.columns) for chart in outcome.charts)
    assert all(len(row) == len(columns) for row in outcome.table.rows)
    assert all(len(row) == len(outcome.drawn.columns) for row in outcome.drawn.rows)
    assert outcome.claims


def test_adaptive_stands_beside_the_strategy_with_the_least_traffic() -> None:
    outcome = EXPERIMENTS["adaptive"].run(True)
    (row,) = outcome.table.rows
    _, least, traffic, own, share, single, delay = row
    assert least in strategy.names()
    assert own == pytest.approx(share * traffic)
    assert share < 2
    assert delay <= 2 * single


def test_throughput_is_counted_once_windows_are_full() -> None:
    """From empty windows a quarter or so of the matches are not there yet."""
    making = Sequences("each", rules=20, triggered=2).workload
    engines()
    empty, full = (held(making, "cdp", 100.0, fill_s, 16.0) for fill_s in (0.0, 16.0))
    assert (empty.dropped, full.dropped) == (0.0, 0.0)
    assert 1.3 < full.throughput / empty.throughput < 3.0


def test_an_unknown_name_is_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "thesis-9.9"]) == 2
    assert "there is no 'thesis-9.9'; there are thesis-table-4.2," in capfd.readouterr().err


def test_without_a_checkout_there_are_no_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    assert main(["reproduce"]) == 2
    assert "needs a source checkout" in capfd.readouterr().err


def test_a_table_as_csv() -> None:
    assert writing.csv_of(OUTCOME.table) == "names,SFF [ms]\n10,1.25\n100,\n"


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    for name in ("thesis-4.8", "thesis-4.7", "thesis-4.8"):
        writing.write(experiment(name), OUTCOME, tmp_path)
    page = (tmp_path / "matching.md").read_text()
    sections = [line for line in page.splitlines() if line.startswith("## ")]
    assert sections == ["## thesis-4.7: names", "## thesis-4.8: names"]
    assert "| it falls | it does not |  | does not hold |" in page
    assert "**The count** of what the thesis says, measured here: " in page
    assert "2 *does not hold*, 2 *not measured*, of 4." in page
    assert "| faster on a GPU | needs one |  | not measured |" in page


def test_a_table_of_many_columns_is_left_to_its_file(tmp_path: Path) -> None:
    columns = ("names", *(f"line {number} [ms]" for number in range(20)))
    chart = Chart(columns[1:2], "ms")
    wide = Outcome(Table(columns, ((10, *map(float, range(20))),)), (chart,), OUTCOME.claims)
    writing.write(experiment("thesis-4.7"), wide, tmp_path)
    page = (tmp_path / "matching.md").read_text()
    assert "line 3" not in page, "its columns"
    assert "[thesis-4.7.csv](thesis-4.7.csv)" in page


def test_pictures_need_matplotlib(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (_, picture, _) = writing.write(experiment("thesis-4.7"), OUTCOME, tmp_path)
    assert b"<svg" in picture.read_bytes()
    drawn = picture.read_bytes()
    writing.write(experiment("thesis-4.7"), OUTCOME, tmp_path)
    assert picture.read_bytes() == drawn, "the same figures, the same picture"


def test_a_figures_name_stands_for_its_parts() -> None:
    there = dict.fromkeys(("hybrid-6a", "hybrid-6b", "hybrid-10a", "thesis-5.13", "thesis-5.13b"))
    assert _parts("hybrid-6", there) == ["hybrid-6a", "hybrid-6b"]
    assert _parts("thesis-5.13", there) == ["thesis-5.13"]
