"""The files that commands are given: what is written, pipes, standard streams, options twice."""

import gzip
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command import run as rexmq
from pairs import some_of

RULES = """event T(area: string, value: float)
define Hot(area, value) from T(value >= 0) where area = T.area, value = T.value
"""
LINE = '{{"type": "T", "time": {0}, "data": {{"area": "a{0}", "value": {0}.5}}}}\n'
EVENTS = "".join(map(LINE.format, range(5)))
DETECT = ("detect", "--rules", "r.tesla", "--format", "count", "--events")
COUNTED = "Hot\t5\ntotal\t5\n"
FILTER = '{"filter": 1, "interface": 1}'


def shell(text: str) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a line, ``$R`` being this project's command."""
    environment = {**os.environ, "R": f"{sys.executable} -m broker"}
    return subprocess.run(
        ["bash", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = str(Path(__file__).resolve().parents[3])
    monkeypatch.setenv("PYTHONPATH", root)
    monkeypatch.chdir(tmp_path)
    Path("r.tesla").write_text(RULES)
    Path("e.jsonl").write_text(EVENTS)
    return tmp_path


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"r.tesla", "e.jsonl"}


# --- outputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["e.jsonl", "./e.jsonl", "soft.jsonl", "hard.jsonl"])
@pytest.mark.parametrize("form", [(), ("--format", "count")])
def test_an_input_is_not_written_to_by_whatever_name(output: str, form: tuple[str, ...]) -> None:
    Path("soft.jsonl").symlink_to("e.jsonl")
    Path("hard.jsonl").hardlink_to("e.jsonl")
    done = rexmq("detect", "--rules", "r.tesla", "--events", "e.jsonl", "--output", output, *form)
    assert done.returncode == 1
    assert done.stderr == (
        f"rexmq: e.jsonl is read and written (as {Path(output)}): "
        "give the results a file of their own\n"
    )
    assert Path("e.jsonl").read_text() == EVENTS


def test_neither_are_tables_of_types_rules_or_what_standard_output_goes_to() -> None:
    assert (
        rexmq("detect", "--rules", "r.tesla", "--events", "e.jsonl", "--output", "t.csv").returncode
        == 0
    )
    Path("f.jsonl").write_text(FILTER)
    more = RULES + "define Cold(area) from T(value < 0) where area = T.area\n"
    Path("two.tesla").write_text(more)
    Path("t.Hot.csv").write_bytes(Path("t.csv").read_bytes())
    before = Path("t.Hot.csv").read_bytes()
    done = rexmq(
        "detect",
        "--rules",
        "two.tesla",
        "--events",
        "t.Hot.csv",
        "--type",
        "T",
        "--output",
        "t.csv",
    )
    assert (done.returncode, Path("t.Hot.csv").read_bytes()) == (1, before)
    events = Path("e.jsonl")
    detect = ("detect", "--rules", "r.tesla", "--events", "e.jsonl")
    for done in (
        rexmq(*detect, "--output", "r.tesla", "--format", "jsonl"),
        rexmq(*detect, append_to=events),
        rexmq("match", "--filters", "f.jsonl", "--events", "-", stdin=events, append_to=events),
    ):
        assert (done.returncode, "is read and written" in done.stderr) == (1, True)
    assert (Path("r.tesla").read_text(), Path("e.jsonl").read_text()) == (RULES, EVENTS)


@pytest.mark.parametrize("name", ["o.jsonl", "o.csv", "o.parquet", "o.arrow.zst", "o.jsonl.gz"])
def test_an_old_output_stays_where_a_command_fails(here: Path, name: str) -> None:
    Path(name).write_text("old")
    Path("bad.jsonl").write_text(EVENTS + '{"type": "T", "time": 9, "data": {"area": 1}}\n')
    done = rexmq("detect", "--rules", "r.tesla", "--events", "bad.jsonl", "--output", name)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "bad.jsonl:6: attribute" in done.stderr
    assert Path(name).read_text() == "old"
    assert left_in(here) == {name, "bad.jsonl"}


def test_an_output_takes_the_place_of_what_a_link_leads_to(here: Path) -> None:
    Path("real.jsonl").write_text("old")
    Path("real.jsonl").chmod(0o640)
    Path("link.jsonl").symlink_to("real.jsonl")
    done = rexmq("detect", "--rules", "r.tesla", "--events", "e.jsonl", "--output", "link.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("link.jsonl").is_symlink()
    assert Path("real.jsonl").read_text().count("\n") == 5
    assert stat.S_IMODE(Path("real.jsonl").stat().st_mode) == 0o640
    assert left_in(here) == {"real.jsonl", "link.jsonl"}


def test_what_is_no_file_is_written_to_as_it_comes() -> None:
    Path("o").write_text("before\n")
    words = ("detect", "--rules", "r.tesla", "--events", "e.jsonl", "--output", "/dev/stdout")
    done = rexmq(*words, append_to=Path("o"))
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("o").read_text().count("\n") == 6
    os.mkfifo("p.jsonl")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("p.jsonl").read_text()))
    reader.start()
    assert rexmq(*words[:-1], "p.jsonl").returncode == 0
    reader.join()
    assert read[0].count("\n") == 5
    assert rexmq(*DETECT, "e.jsonl", "--output", "/dev/null").returncode == 0


def test_a_folder_that_is_not_there_is_named() -> None:
    done = rexmq(*DETECT, "e.jsonl", "--output", "none/o.jsonl")
    assert (done.returncode, done.stderr) == (1, "rexmq: none/o.jsonl: No such file or directory\n")


# --- inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", ["-", "/dev/stdin", "in.jsonl"])
def test_a_pipe_is_a_file_of_events(events: str) -> None:
    Path("in.jsonl").symlink_to("/dev/stdin")
    compressed = [] if events == "in.jsonl" else [gzip.compress(EVENTS.encode())]
    for stdin in (EVENTS, Path("e.jsonl"), *compressed):
        done = rexmq(*DETECT, events, stdin=stdin)
        assert (done.returncode, done.stdout, done.stderr) == (0, COUNTED, "")


def test_so_is_a_pipe_with_a_name_and_one_of_a_shell() -> None:
    os.mkfifo("p")
    writer = threading.Thread(target=Path("p").write_text, args=(EVENTS,))
    writer.start()
    assert rexmq(*DETECT, "p").stdout == COUNTED
    writer.join()
    reading, writing = os.pipe()  # as a shell makes of <(gzip < e.jsonl)
    os.write(writing, gzip.compress(EVENTS.encode()))
    os.close(writing)
    done = rexmq(*DETECT, f"/dev/fd/{reading}")
    os.close(reading)
    assert (done.returncode, done.stdout, done.stderr) == (0, COUNTED, "")


@pytest.mark.parametrize(
    "name", ["o.jsonl", "o.csv", "o.csv.gz", "o.parquet", "o.arrow", "o.arrow.zst"]
)
def test_the_form_of_a_pipe_is_recognised(name: str) -> None:
    rexmq("detect", "--rules", "r.tesla", "--events", "e.jsonl", "--output", name)
    Path("again.tesla").write_text("define Again() from Hot()\n")
    Path("f.jsonl").write_text(FILTER)
    last = ("--format", "count", "--events", "-")
    done = rexmq("detect", "--rules", "again.tesla", *last, stdin=Path(name).read_bytes())
    assert (done.returncode, done.stdout) == (0, "Again\t5\ntotal\t5\n")
    done = rexmq("match", "--filters", "f.jsonl", *last, stdin=Path(name).read_bytes())
    assert (done.returncode, done.stdout) == (0, "1\t5\ntotal\t5\n")


def test_rules_and_explanations_read_pipes_too() -> None:
    for name in ("-", "/dev/stdin"):
        assert rexmq("check", name, stdin=RULES).stdout == "1 rule, 1 schema: ok\n"
    assert rexmq("format", "-", stdin=RULES).stdout.startswith("event T(")
    assert rexmq("check", "-", stdin="event").stderr.startswith("rexmq: standard input:1:")
    words = ("--events", "-", "--rule", "Hot", "--event", "3")
    done = rexmq("explain", "--rules", "r.tesla", *words, stdin=EVENTS)
    assert (done.returncode, "stdin#3" in done.stdout) == (0, True)
    words = ("--events", "e.jsonl", "--rule", "Hot", "--event", "3")
    assert rexmq("explain", "--rules", "-", *words, stdin=RULES).returncode == 0


def test_a_pipe_is_read_once() -> None:
    for words in (("--rules", "-", "--events", "-"), ("--rules", "r.tesla", "--events", "-", "-")):
        done = rexmq("detect", *words, stdin=EVENTS)
        assert done.returncode == 1
        assert done.stderr == (
            "rexmq: standard input is given twice, and a pipe can be read only once\n"
        )


# --- standard streams --------------------------------------------------------------------------


CLOSED = """
import os, sys
from broker.cli import main
for line in sys.argv[2:]:
    for number in map(int, sys.argv[1]):
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    print(main(line.split()), file=open("statuses", "a"), flush=True)
"""
"""One process, which begins each command anew with its streams closed."""
LINES = [
    "--version",
    "--help",
    "check r.tesla",
    "format r.tesla",
    "detect --rules r.tesla --events e.jsonl",
    "detect --rules r.tesla --events e.jsonl --output o.jsonl",
    "explain --rules r.tesla --events e.jsonl --rule Hot --event 3",
    "match --filters f.jsonl --events e.jsonl",
]


@pytest.mark.parametrize("closed", some_of(["01", "012"], 1))
def test_closed_streams_are_as_dev_null(closed: str) -> None:
    Path("f.jsonl").write_text(FILTER)
    words = [sys.executable, "-c", CLOSED, closed, *LINES]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path("statuses").read_text() == "0\n" * len(LINES)
    assert Path("o.jsonl").read_text().count("\n") == 5


def test_what_is_printed_goes_into_no_file(tmp_path: Path) -> None:
    """The descriptors of closed streams are taken before files are opened."""
    done = shell("$R detect --rules r.tesla --events e.jsonl --output o.jsonl --stats 2>&- >&-")
    assert done.returncode == 0
    assert all(line.startswith('{"spec') for line in Path("o.jsonl").read_text().splitlines())


def test_a_broker_starts_without_streams() -> None:
    line = "$R broker --listen ipc://b.sock >&- 2>&- <&- & P=$!; "
    line += "for i in $(seq 600); do [ -S b.sock ] && break; sleep 0.1; done; "
    line += "$R status --broker ipc://b.sock --json | head -c 1; kill $P; wait $P; echo $?"
    done = shell(line)
    assert (done.stdout, done.stderr) == ("{0\n", "")


def test_a_reader_that_goes_away_ends_a_command_quietly() -> None:
    Path("many.jsonl").write_text("".join(map(LINE.format, range(20_000))))
    line = "$R detect --rules r.tesla --events many.jsonl | head -n 1"
    done = shell(f"set -o pipefail; {line}")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


# --- options -----------------------------------------------------------------------------------


def test_rules_of_several_files_are_one_set() -> None:
    Path("more.tesla").write_text(
        "# no event line\ndefine Very(area) from Hot(value > 3) as h where area = h.area"
    )
    words = ("detect", "--rules", "r.tesla", "--rules", "more.tesla", "--events", "e.jsonl")
    assert rexmq(*words, "--format", "count").stdout == "Hot\t5\nVery\t2\ntotal\t7\n"
    for first in ("more.tesla", "r.tesla"):
        other = {"more.tesla": "r.tesla", "r.tesla": "more.tesla"}[first]
        done = rexmq(
            "explain",
            "--rules",
            first,
            "--rules",
            other,
            "--events",
            "e.jsonl",
            "--rule",
            "Very",
            "--summary",
        )
        assert done.returncode == 0


def test_an_error_of_several_files_names_its_own() -> None:
    Path("a.tesla").write_text("define X(y) from Nope() where y = 1")
    Path("b.tesla").write_text("\nevent T(area: int)\n")
    words = (
        "--rules",
        "r.tesla",
        "--rules",
        "a.tesla",
        "--rules",
        "b.tesla",
        "--events",
        "e.jsonl",
    )
    found = rexmq("detect", *words)
    assert found.returncode == 1
    assert "a.tesla:1:18: unknown event type Nope\n  define X(y) from Nope()" in found.stderr
    assert "b.tesla:2:7: another schema for T\n  event T(area: int)" in found.stderr
    assert "hint: r.tesla: line 1 has event T(" in found.stderr
    Path("a.tesla").write_text("define X(y) from T() wher")
    Path("b.tesla").write_bytes(b"event \xff")
    found = rexmq("detect", *words)
    assert "b.tesla:1:7: not UTF-8" in found.stderr


@pytest.mark.parametrize("option", ["--output", "--format", "--types", "--engine"])
def test_an_option_with_one_value_is_given_once(option: str) -> None:
    done = rexmq(*DETECT[:3], "--events", "e.jsonl", option, "o.jsonl", option, "p.jsonl")
    assert done.returncode == 2
    assert f"{option} is given twice" in done.stderr


def test_milliseconds_are_no_seconds() -> None:
    Path("ms.jsonl").write_text(LINE.format(1541000542290))
    done = rexmq(*DETECT, "ms.jsonl")
    assert done.returncode == 1
    assert done.stderr == (
        "rexmq: ms.jsonl:1: time 1541000542290 as seconds is the year 50802: milliseconds? "
        "say --time-unit ms\n"
    )
    done = rexmq("detect", "--rules", "r.tesla", "--events", "ms.jsonl", "--time-unit", "ms")
    assert '"time":"2018-10-31T15:42:22.290000Z"' in done.stdout
    assert rexmq(*DETECT, "ms.jsonl", "--time-unit", "min").returncode == 2


def test_compressed_outputs_are_whole_too() -> None:
    assert (
        rexmq(
            "detect", "--rules", "r.tesla", "--events", "e.jsonl", "--output", "o.jsonl.gz"
        ).returncode
        == 0
    )
    assert gzip.decompress(Path("o.jsonl.gz").read_bytes()).count(b"\n") == 5
