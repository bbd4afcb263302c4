"""``detect --explain-input`` tells what is guessed of files, and the option that says it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("r.tesla").write_text("define X(v: float) from Temp(value > 1.0) where v = Temp.value")


def told(*options):
    done = run("detect", "--rules", "r.tesla", "--events", *options, "--explain-input")
    return done.stderr.splitlines()


def test_guesses_are_told_with_their_options():
    Path("temps.csv").write_text("time;area;value\n2024-06-01 10:00;a;46.5\n2024-06-01 10:05;b;2\n")
    assert told("temps.csv", "--type", "Temp")[:9] == [
        "temps.csv: csv, 2 rows",
        "  columns between ';' (guessed; --delimiter)",
        "  columns: 'time', 'area', 'value'",
        "  time: 'time' (guessed; --time-column)",
        "  type: Temp (said by --type)",
        "  source: temps.csv, the name of the file (--source-column)",
        "  id: the number of the row (--id-column)",
        "  times without a zone: taken for UTC (guessed; --time-zone)",
        "event Temp(area: string, value: float) (guessed; declare it to say it)",
    ]


def test_what_options_say_is_told_as_said():
    Path("temps.csv").write_text("kind|at|value\nTemp|1|46,5\n")
    options = ("--delimiter", "|", "--type-column", "kind", "--time-column", "at", "--decimal", ",")
    lines = told("temps.csv", *options)
    assert "  columns between '|' (said by --delimiter)" in lines
    assert "  time: 'at' (said by --time-column)" in lines
    assert "  type: 'kind' (said by --type-column)" in lines
    assert "event Temp(value: float) (guessed; declare it to say it)" in lines


def test_tables_and_lines_are_told_of_too():
    pq.write_table(pa.table({"time": [1], "id": ["a"], "value": [2.5]}), "t.parquet")
    Path("t.jsonl").write_text('{"type": "Temp", "time": 2, "data": {"value": 3.5}}\n')
    lines = told("Temp=t.parquet", "--events", "t.jsonl")
    assert lines[0] == "t.parquet: parquet, 1 row"
    assert "  id: 'id' (guessed; --id-column)" in lines
    assert "t.jsonl: jsonl, 1 line" in lines
    assert "  type: 'type' (guessed; --type-column)" in lines


def test_a_decimal_comma_and_a_missing_array_have_hints():
    Path("t.csv").write_text("time;value\n1;46,5\n")
    Path("r.tesla").write_text("event Temp(value: float) define X() from Temp()")
    assert told("t.csv", "--type", "Temp")[-1].endswith("found '46,5' (--decimal , reads it)")
    Path("t.json").write_text('{"result": {"items": []}}')
    assert told("t.json", "--records", "result.rows")[-1] == (
        "rexmq: t.json: no member 'rows' of --records result.rows; the members are 'items'"
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--delimiter", ";;"), "--delimiter: expected one character, found ';;'"),
        (("--decimal", ";"), "--decimal: expected . or ,"),
    ],
)
def test_options_that_cannot_be_are_refused(options, reason):
    done = run("detect", "--rules", "r.tesla", "--events", "t.csv", *options)
    assert done.returncode == 2
    assert reason in done.stderr
