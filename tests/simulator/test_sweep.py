"""Sweeps: every combination once, in one tidy table; and traces that are replayed."""

import csv
import tomllib
from pathlib import Path

import pytest
from simulator_text import SMALL

from broker.cli import main
from simulator import scenario, sweep
from simulator.scenario import ScenarioError

TEXT = """
engine = "naive"
duration_s = 6.0
[topology]
kind = "ring"
brokers = 3
[workload]
types = 6
rules = 4
length = 2
window_s = 5.0
rates = [0.5, 2.0]
subscriptions = 2
horizon_s = 8.0
[sweep]
seed = [1, 2]
workload.rules = [3, 4]
"strategy" = ["centralized", "distributed-st"]
"""


def table(path: Path, text: str = TEXT) -> list[dict[str, str]]:
    file = path / "sweep.toml"
    file.write_text(text)
    sweep.write(sweep.runs(tomllib.loads(text), file), path / "runs.csv", 1)
    with (path / "runs.csv").open() as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return table(tmp_path_factory.mktemp("sweep"))


def test_every_combination_is_a_row(rows: list[dict[str, str]]) -> None:
    keys = [(row["seed"], row["workload.rules"], row["strategy"]) for row in rows]
    assert len(set(keys)) == len(rows) == 8
    assert len({row["scenario"] for row in rows}) == 8
    assert all(int(row["messages"]) > 0 and int(row["published"]) > 0 for row in rows)
    # What differs in the strategy alone has the same events.
    published = {(row["seed"], row["workload.rules"]): row["published"] for row in rows}
    assert all(row["published"] == published[row["seed"], row["workload.rules"]] for row in rows)


def test_a_row_can_be_had_again(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    same = ("scenario", "delivered", "bytes", "delay_ms_mean", "trace")
    text = TEXT.replace("[1, 2]", "[2]").replace("[3, 4]", "[4]")
    others = table(tmp_path, text)
    assert len(others) == 2
    for other in others:
        (one,) = (row for row in rows if row["scenario"] == other["scenario"])
        assert {key: one[key] for key in same} == {key: other[key] for key in same}


def test_a_hash_is_of_the_files_too(written) -> None:
    file = written(f'{SMALL}\n[sweep]\nstrategy = ["centralized"]\n')
    (one,) = sweep.runs(scenario.parse(file), file)
    before = one.hash
    (file.parent / "s1.jsonl").write_text('{"type": "Temp", "time": 1, "data": {}}')
    assert one.hash != before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = [1, 2]", "seed = 1", "sweep.seed: expected a list of values"),
        ("seed = [1, 2]", "seed = []", "sweep.seed: expected a list of values"),
        ("rules = [3, 4]", "rules = [0]", "workload: subscriptions: there are no 2 rules"),
        ("workload.rules = [3, 4]", "workload.sizes = [1]", "unknown field `sizes`"),
        ('"distributed-st"]', '"best"]', "strategy: expected one of"),
        ("seed = [1, 2]", "engine.x = [1]", "sweep.engine.x: expected a table, but engine is none"),
        ("[3, 4]", f"{[3] * 100_000}", "sweep: 400000 runs, and at most 100000"),
    ],
)
def test_a_bad_sweep_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ScenarioError) as caught:
        table(tmp_path, TEXT.replace(old, new))
    assert message in str(caught.value)


def test_the_command_runs_a_sweep(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    file = tmp_path / "sweep.toml"
    file.write_text(TEXT.replace("[3, 4]", "[3]"))
    assert main(["simulate", str(file), "--out", str(tmp_path)]) == 0
    assert "4 runs" in capsys.readouterr().out
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 5
    assert main(["simulate", str(file), "--check"]) == 1
    assert "a sweep gives one table" in capsys.readouterr().err


def test_a_saved_trace_is_replayed(written, capsys) -> None:
    file = written()
    trace = file.parent / "trace.txt"
    assert main(["simulate", str(file), "--trace", str(trace)]) == 0
    assert main(["simulate", str(file), "--replay", str(trace)]) == 0
    assert "replay                    the same" in capsys.readouterr().out
    lines = trace.read_text().splitlines()
    for changed, message in (
        ([*lines[:5], lines[5].replace(">", "<"), *lines[6:]], "line 6: "),
        (lines[:-2], f"line {len(lines) - 1}: "),
        ([*lines, "once more"], f"line {len(lines) + 1}: nothing, where it was 'once more'"),
    ):
        trace.write_text("".join(f"{line}\n" for line in changed))
        assert main(["simulate", str(file), "--replay", str(trace)]) == 1
        assert message in capsys.readouterr().err
    trace.write_bytes(b"\xff\xfe")
    assert main(["simulate", str(file), "--replay", str(trace)]) == 1
    assert "line 1: " in capsys.readouterr().err
