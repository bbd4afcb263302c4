"""Files of the kinds that people have, through every command that reads events, by options."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Subscriber
from broker.cli import main
from tests.file_kinds import KINDS, FileKind, zipped

Rexmq = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def rexmq(capfd: pytest.CaptureFixture[str]) -> Rexmq:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        status = main(words)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(words, status, out, err)

    return run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kinds() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@kinds()
def test_each_kind_of_file_is_detected_over_and_explained(kind: FileKind, rexmq: Rexmq) -> None:
    Path(kind.name).write_bytes(kind.as_bytes)
    Path("r.tesla").write_text(kind.rules)
    reading = ("--events", kind.name, *kind.options)
    assert rexmq("check", "r.tesla", *reading).stdout.endswith(": ok\n")
    reading = ("--rules", "r.tesla", *reading)
    done = rexmq("detect", *reading)
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert tuple(one["time"] for one in found) == kind.times
    assert tuple(one["data"]["it"] for one in found) == kind.values
    cause = found[0]["cause"][0]
    done = rexmq("explain", *reading, "--rule", "Found", "--event", cause)
    assert (done.returncode, done.stderr) == (0, "")
    assert "It fires" in done.stdout


@kinds()
def test_each_kind_of_file_is_matched(kind: FileKind, rexmq: Rexmq) -> None:
    Path(kind.name).write_bytes(kind.as_bytes)
    value = kind.values[0]
    wanted = {"filter": 1, "interface": 4, "type": kind.type}
    constraint = {"constraints": [[kind.attribute, "=", value]]}
    Path("f.jsonl").write_text(json.dumps(wanted | constraint) + "\n")
    reading = ("--filters", "f.jsonl", "--events", kind.name, *kind.options)
    done = rexmq("match", *reading, "--format", "count")
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.split()[-1]) == kind.values.count(value)


@kinds()
def test_each_kind_of_file_is_published(kind: FileKind, rexmq: Rexmq, endpoint: str) -> None:
    name = kind.name.replace(".", "")
    # Another type for each, for the broker keeps what it knows of one.
    options = [f"{kind.type}{name}" if word == kind.type else word for word in kind.options]
    found = kind.found if "--type-column" in options else kind.found.replace("(", f"{name}(", 1)
    Path(kind.name).write_bytes(kind.as_bytes)
    with Subscriber(endpoint, found) as subscriber:
        done = rexmq("pub", "--file", kind.name, *options, "--broker", endpoint)
        assert done.stderr == ""
        events = [subscriber.receive(timeout_s=20) for _ in kind.times]
    assert tuple(event.data[kind.attribute] for event in events) == kind.values


NO_ZONE = "time,area\n2013-01-01 05:17:00,a\n"


def test_it_is_said_once_that_times_are_taken_for_utc(rexmq: Rexmq) -> None:
    Path("r.tesla").write_text("define Found(it) from T() where it = T.area\n")
    for name in ("a.csv", "b.csv"):
        Path(name).write_text(NO_ZONE)
    reading = ("detect", "--rules", "r.tesla", "--type", "T", "--events", "a.csv", "b.csv")
    done = rexmq(*reading)
    assert done.stdout.count("2013-01-01T05:17:00Z") == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("rexmq: a.csv and 1 more: times without a time zone are taken for UTC")
    assert rexmq(*reading, "--time-zone", "UTC").stderr == ""


MISSING = [
    ("t.csv", "date,v\n1,2\n", (), r"no column 'time'; .* 'date', 'v' \(--time-column"),
    ("t.csv", "time,v\n1,2\n", ("--time-column", "at"), "'at', which --time-column names"),
    ("t.csv", "time,v\n1,2\n", ("--columns", "a=b"), "'b', which --columns names"),
    ("t.csv", "time,v\n1,2\n", ("--columns", "v=w"), r"ATTRIBUTE=COLUMN"),
    ("t.csv", "time,v\nJan 1 2000,2\n", (), "'Jan 1 2000' .*--time-format"),
    ("t.csv", "time,v\nJan 1 2000,2\n", ("--time-format", "%d %b %Y"), "is not of --time-format"),
    ("t.csv", "time,v\n2000-01-01T00:00:00.1234567Z,2\n", (), "finer .*--time-cut"),
    ("t.csv", "time,v\n1,NA\n2,3\n", (), "attribute v: expected int, found 'NA' .*--null NA"),
    ("t.csv", "time,v\n2013-03-31 02:30,1\n", ("--time-zone", "Europe/Rome"), "clocks skip it"),
    ("t.jsonl", '{"date": 1, "v": 2}\n', (), r"no member 'time' \(--time-column .*'date', 'v'"),
    ("t.zip", zipped(a_csv="time\n1\n", b_csv="time\n1\n"), (), r"2 files \(a.csv, b.csv\)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "message"), MISSING)
def test_an_error_names_the_option(
    name: str, content: str | bytes, options: tuple[str, ...], message: str, rexmq: Rexmq
) -> None:
    Path("r.tesla").write_text("define Found(it) from T(v > 0) where it = T.v\n")
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = rexmq("detect", "--rules", "r.tesla", "--type", "T", "--events", name, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(message, done.stderr), done.stderr


WRONG = [
    (("--time-zone", "Nowhere"), "--time-zone: no time zone is called 'Nowhere'"),
    (("--time-format", "%H:%M"), "--time-format: '%H:%M' does not say the year"),
    (("--time-format", "%Q"), "--time-format: 'Q' is a bad directive"),
    (("--time-unit", "min"), "--time-unit: expected s or ms or us or ns, found 'min'"),
    (("--columns", "a"), "--columns: expected ATTRIBUTE=COLUMN"),
    (("--columns", "a=b,a=c"), "--columns: attribute a is given twice"),
    (("--time-column", ""), "--time-column: events have a time"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_an_option_that_says_what_cannot_be_is_wrong_usage(
    options: tuple[str, ...], message: str, rexmq: Rexmq
) -> None:
    Path("r.tesla").write_text("define Found() from T(v > 0)\n")
    Path("t.csv").write_text("time,v\n1,2\n")
    reading = ("--events", "t.csv", "--type", "T", *options)
    for command in (("detect", "--rules", "r.tesla"), ("match", "--filters", "none")):
        done = rexmq(*command, *reading)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
