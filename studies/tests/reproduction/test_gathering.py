"""The simulation study in parts: rows are kept, found again, and lost when the code says something
else; what is written says how many there are.
"""

import csv
import json
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from broker.cli import main
from routing.network import strategy
from simulator import scenario, sweep
from simulator.experiment import Experiment
from simulator.generation import horizon_s
from simulator.workload import Workload
from studies.reproduction import gathering, study, writing
from studies.reproduction.distribution_long import DAY, REACH_S, SEED
from studies.reproduction.distribution_plots import COSTS, DEFAULTS, PLOTS
from studies.reproduction.distribution_runs import QUICK, THESIS, WHOLE, Study
from studies.reproduction.experiment import Claim, Outcome
from studies.reproduction.gathering import Rows, estimate_s, gather, missing
from studies.reproduction.verdicts import Verdict
from studies.rows import add, text_of

FIGURES = {
    "published": 200,
    "delivered": 40,
    "measured_s": 4.0,
    "delay_ms_mean": 3.0,
    "messages": 50,
    "bytes": 8_000,
    "memory_mb_node": None,
    "cpu_s": 0.5,
}


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the code sends with each strategy, where it is not the first; and nothing is run."""
    sent: dict[str, str] = {}
    monkeypatch.setattr(gathering, "traffic", lambda name, ordering: sent.get(name, "first"))
    monkeypatch.setattr(study, "prepare", lambda: None)
    monkeypatch.setattr(sweep, "row", lambda run: dict(FIGURES))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    return sent


def runs_of(file: Path | None = None) -> tuple[Study, list[sweep.Run]]:
    found = Study(replace(WHOLE, seeds=3), Rows(file))
    return found, found.runs(DEFAULTS.settings(WHOLE)[:1])


def test_what_was_run_is_not_run_again(tmp_path: Path, code: dict[str, str]) -> None:
    file = tmp_path / "rows.jsonl"
    one, todo = runs_of(file)
    begun = gather(missing(todo, one.rows), one.rows)
    seeds = [next(begun)["seed"] for _ in range(8)]  # and then it is interrupted
    assert seeds == sorted(seeds), "all points with one seed come before the second"
    other, todo = runs_of(file)
    assert len(other.rows) == 8
    left = missing(todo, other.rows)
    assert len(left) == len(todo) - 8
    assert {run.hash for run in left}.isdisjoint(row["scenario"] for row in other.rows)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.xz"])
def test_a_file_of_rows_may_be_compressed(tmp_path: Path, name: str) -> None:
    for number in (1, 2):
        add(tmp_path / name, {"number": number})
    assert text_of(tmp_path / name) == '{"number": 1}\n{"number": 2}\n'


def test_a_row_that_was_being_written_is_none(tmp_path: Path, code: dict[str, str]) -> None:
    file = tmp_path / "rows.jsonl"
    one, todo = runs_of(file)
    rows = gather(todo, one.rows)
    next(rows), next(rows)
    file.write_bytes(file.read_bytes()[:-20])
    other, todo = runs_of(file)
    assert len(other.rows) == 1
    next(gather(missing(todo, other.rows), other.rows))
    assert [json.loads(line)["seed"] for line in file.read_text().splitlines()] == [1, 1]


def test_code_that_says_something_else_loses_the_rows_of_that_strategy(
    tmp_path: Path, code: dict[str, str]
) -> None:
    file = tmp_path / "rows.jsonl"
    one, todo = runs_of(file)
    assert len(list(gather(todo, one.rows))) == len(todo)
    assert missing(todo, one.rows) == []
    code["adaptive"] = "second"
    left = missing(todo, runs_of(file)[0].rows)
    assert [run.document["strategy"] for run in left] == ["adaptive"] * 3


def test_traffic_is_what_is_sent() -> None:
    names = ("centralized", "distributed-st", "centralized")
    one, other, again = (gathering.traffic.__wrapped__(name) for name in names)
    assert one == again != other


def test_what_chooses_is_run_where_it_does() -> None:
    assert len(gathering.traffic("adaptive")) == 2 * len(gathering.traffic("centralized"))
    document = {**gathering.CHOSEN, "strategy": "adaptive"}
    experiment = Experiment(scenario.of(document, Path("traffic.toml")))
    end = experiment.run().ended_at
    brokers = [host.broker.status(end) for host in experiment.brokers.values()]
    (root,) = (facts for facts in brokers if facts["father"] is None)
    assert root["network"]["places"] == {}  # all have left the single tree


def test_what_is_missing_is_estimated_by_what_is_there(code: dict[str, str]) -> None:
    one, todo = runs_of()
    list(gather(todo[:1], one.rows))
    (run,) = todo[:1]
    share = FIGURES["cpu_s"] / (FIGURES["published"] * run.document["topology"]["brokers"])
    rate, seconds = 60 * (10 - 0.001) / 9.2103, 61.0  # 60 types, exponential between the bounds
    expected = share * rate * seconds * 10
    assert estimate_s([run], one.rows) == pytest.approx(expected, rel=1e-3)
    assert estimate_s([run] * 3, one.rows) == pytest.approx(3 * expected, rel=1e-3)


def test_a_table_says_how_many_seeds_its_points_have(
    tmp_path: Path,
    code: dict[str, str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "draw", lambda title, outcome, file: False)
    words = ["reproduce", "thesis-7.12", "--size", "quick", "--out", str(tmp_path)]
    one_point = len(strategy.names())
    runs, count = one_point + 1, 4 * one_point  # two points, in order and by arrival
    assert main([*words, "--runs", str(runs)]) == 0
    told = capfd.readouterr()
    assert f"rexmq: {count} of {count} runs are missing: about " in told.err
    assert f"rexmq: {runs} of {runs}: " in told.err
    assert str(tmp_path / "distribution-study.md") in told.out
    _, *rows = csv.reader((tmp_path / "thesis-7.12.csv").open())
    assert [row[1] for row in rows] == 2 * list(strategy.names())
    assert [row[2] for row in rows] == [*("1",) * runs, *("0",) * (one_point - 1)]
    assert main(words) == 0
    assert f"{count - runs} of {count} runs are missing" in capfd.readouterr().err
    assert main([*words, "--runs", "0", "--strategy", "adaptive"]) == 0
    assert f"rexmq: 0 of {count} runs are missing: about 0 hours" in capfd.readouterr().err
    assert len((tmp_path / "study.jsonl").read_text().splitlines()) == count


def test_what_exactness_costs_goes_by_seeds_that_were_run_both_ways(code: dict[str, str]) -> None:
    study, plot = Study(replace(QUICK, seeds=3)), PLOTS["7.12"]
    exact, _, by_arrival, _ = plot.settings(study.size)
    for point, seeds, late, sent in ((exact, 3, 5.0, 12_000), (by_arrival, 2, 3.5, 8_000)):
        for run in study.runs([point])[:seeds]:  # of the first strategy
            own = {"delay_ms_mean": late * run.document["seed"], "bytes": sent}
            study.rows.add(run, {**FIGURES, **own})
    table = plot.outcome(study).table
    cost, other = [dict(zip(table.columns, row, strict=True)) for row in table.rows][:2]
    assert [cost[name] for name in ("seeds", "delay [ms]", *COSTS)] == [3, 10.0, 2, 2.25, 1.0]
    assert [other[name] for name in ("seeds", *COSTS)] == [0, 0, None, None]


def test_claims_are_judged_by_arrival_too_where_all_have_been_run(code: dict[str, str]) -> None:
    study, plot = Study(replace(QUICK, seeds=3)), PLOTS["7.12"]
    *exact, first, last = plot.settings(study.size)
    for point, sent in ((exact[0], 4_000), (exact[1], 8_000), (first, 4_000)):
        for run in study.runs([point]):
            study.rows.add(run, {**FIGURES, "bytes": sent})
    claim = limited(plot.outcome(study))
    assert (claim.measured, claim.verdict) == ("MT 2, pull MT 2", Verdict.FAILS)
    assert claim.otherwise is not None
    assert claim.otherwise.verdict is Verdict.UNMEASURED
    for run in study.runs([last]):
        if run.document["seed"] == 1:
            study.rows.add(run, {**FIGURES, "bytes": 4_400})
    claim = limited(plot.outcome(study))
    assert claim.verdict is Verdict.FAILS
    assert claim.otherwise is not None
    told = (claim.otherwise.measured, claim.otherwise.verdict)
    assert told == ("MT 1.1, pull MT 1.1", Verdict.HOLDS)  # what one seed sends is counted


def limited(outcome: Outcome) -> Claim:
    """The sentence of figure 7.12 on strategies with multiple trees."""
    return next(one for one in outcome.claims if "to a limited degree" in one.published)


def test_the_full_size_is_that_of_the_thesis() -> None:
    exact, by_arrival, *_ = DEFAULTS.settings(THESIS)
    assert exact["topology"] == {
        "kind": "waxman",
        "brokers": 20,
        "degree": 5.0,
        "delay_ms": 5.0,
    }
    assert exact["warm_up_s"] == 30
    assert (exact["workload"]["types"], exact["workload"]["rules"]) == (120, 100)
    assert (exact["workload"]["window_s"], exact["workload"]["rates"]) == (60.0, [0.001, 10.0])
    assert by_arrival["ordering"] == "arrival"
    assert THESIS.seeds == 10
    places = [point.place for point in PLOTS["7.15"].points_of(THESIS)]
    assert (places[0], places[-1]) == (5, 50)


def test_the_default_scenario_is_a_file_too() -> None:
    file = Path(__file__).parents[3] / "examples" / "thesis" / "scenario.toml"
    default, *_ = DEFAULTS.settings(THESIS)
    assert tomllib.loads(file.read_text()) == {**default, "seed": 1, "strategy": "distributed-st"}


def test_the_whole_day_is_made_in_parts_that_follow_one_another() -> None:
    parts = DAY.settings(THESIS)
    assert 20 < len(parts) < 36
    assert {part["workload"]["rarest_count"] for part in parts} == {100}
    assert not any("horizon_s" in part["workload"] for part in parts)
    counted = [
        (begin + part["warm_up_s"], begin + part["duration_s"])
        for part in parts
        for begin, _ in [part["workload"]["part"]]
    ]
    assert counted[0][0] == REACH_S
    assert all(one[1] == other[0] for one, other in pairwise(counted))
    assert counted[-1][1] == horizon_s(
        msgspec.convert(parts[0]["workload"] | {"part": None}, Workload), SEED, REACH_S
    )
    runs = Study(THESIS).runs(parts[:1])
    assert [run.document["strategy"] for run in runs] == list(strategy.names())
    for run in (*runs, *Study(QUICK).runs(DAY.settings(QUICK))):
        sweep.scenario.of(run.document, run.file)  # they are scenarios


def test_parts_come_together_as_one_run(code: dict[str, str]) -> None:
    study = Study(QUICK)
    first, second = DAY.settings(QUICK)
    for part, delivered, delay in ((first, 10, 2.0), (second, 30, 4.0)):
        for run in study.runs([part])[: 1 if part is second else None]:
            told = {"delivered": delivered, "delay_ms_mean": delay, "measured_s": 1800.0}
            study.rows.add(run, {**FIGURES, **told, "bytes": 3_600_000, "messages": 900})
    outcome = DAY.outcome(study)
    whole, part = outcome.table.rows[:2]
    assert whole[:3] == (strategy.names()[0], 1.0, 3.5)
    assert part[:4] == (strategy.names()[1], 0.5, 2.0, None)
    assert whole[4:] == (2.0, 0.0, 0.5)
    assert outcome.claims[1].measured == "ST/central: 1"  # the common part


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "huge", "thesis-7.9"], "--size: expected one of quick, whole, full"),
        (["--size", "quick", "thesis-4.7"], "the runs of thesis-4.7 are not kept"),
        (["--runs", "3", "thesis-7.9"], "--rows, --runs and --strategy go with --size"),
        (["--size", "quick", "--strategy", "none", "thesis-7.9"], "--strategy: there is no 'none'"),
    ],
)
def test_wrong_words_exit_2(
    words: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words]) == 2
    assert message in " ".join(capfd.readouterr().err.split())
