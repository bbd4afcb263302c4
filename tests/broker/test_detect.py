"""``rexmq detect`` as docs/cli.md has it, from the command line down to the engines."""

import gzip
import json
import random
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from broker.cli import main
from broker.detection import PORTIONS, marks_of
from matcher.checksum import checksum
from matcher.formats import jsonlines
from matcher.formats.files import EventFile
from matcher.formats.intake import Intake
from matcher.model import TIME_MAX, EventBatch, EventIds, EventType, StringColumn

FIRE = """\
event Temp(area: string, value: float)
rule fire: define Fire(area: string, measuredTemp: float)
from Smoke(area = $a) and last Temp(area = $a and value > 45) within 5 min from Smoke
where area = Smoke.area, measuredTemp = Temp.value

rule alarm: define Alarm(area: string)
from Fire() as F and not Drill(area = "a2") within 1 min from F
where area = F.area
"""
EVENTS = """\
{"type": "Temp", "time": 10, "source": "s/1", "id": "t-1", "data": {"area": "a1", "value": 46.5}}
{"type": "Temp", "time": 11.5, "source": "s/2", "id": "t-2", "data": {"area": "a2", "value": 50}}
{"type": "Smoke", "time": 12, "data": {"area": "a1"}}
{"type": "Drill", "time": 12.25, "data": {"area": "a2"}}
{"type": "Smoke", "time": 12.5, "data": {"area": "a2", "density": 7}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("fire.tesla").write_text(FIRE)
    Path("events.jsonl").write_text(EVENTS)
    return tmp_path


def run(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[int, str, str]:
    status = main(["detect", "--rules", "fire.tesla", "--events", "events.jsonl", *arguments])
    out, err = capfdbinary.readouterr()
    return status, out.decode(), err.decode()


@pytest.mark.parametrize("engine", ["naive", "cdp", "aip", "aip-published", "auto"])
def test_composite_events_are_printed_in_order(here, capfdbinary, engine: str) -> None:
    status, out, err = run(capfdbinary, "--engine", engine)
    assert (status, err) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert [list(event) for event in events] == [
        ["specversion", "type", "time", "source", "id", "data", "cause"]
    ] * 3
    assert [(event["type"], event["time"], event["source"], event["data"]) for event in events] == [
        ("Fire", "1970-01-01T00:00:12Z", "rexmq/rule/fire", {"area": "a1", "measuredTemp": 46.5}),
        ("Alarm", "1970-01-01T00:00:12Z", "rexmq/rule/alarm", {"area": "a1"}),
        (
            "Fire",
            "1970-01-01T00:00:12.500000Z",
            "rexmq/rule/fire",
            {"area": "a2", "measuredTemp": 50.0},
        ),
    ]
    assert events[0]["cause"] == ["3", "t-1"]
    assert events[1]["cause"] == [events[0]["id"]]


def test_the_first_events_of_a_file_are_evaluated_a_few_at_a_time() -> None:
    first, *_ = PORTIONS
    temp, place = EventType.of("Temp", v="int"), np.arange(3 * first)
    ids = EventIds(StringColumn.constant("s", len(place)), place + 1)
    batch = EventBatch(temp, place[::-1] * 10, ids, (place,))
    early = [10 * count for count in PORTIONS if count < len(batch)]
    assert list(marks_of((batch,), TIME_MAX, 0)) == [*early, TIME_MAX]
    assert list(marks_of((batch,), 5 * first, 0)) == [5 * first]
    assert list(marks_of((batch,), TIME_MAX, PORTIONS[-1])) == [TIME_MAX]


def test_options_of_printing(here, capfdbinary) -> None:
    _, out, _ = run(
        capfdbinary, "--cause", "full", "--time", "seconds", "--types", "Fire", "--engine", "naive"
    )
    first, second = (json.loads(line) for line in out.splitlines())
    assert (first["time"], second["time"]) == (12, 12.5)
    assert first["cause"] == ["events.jsonl#3", "s/1#t-1"]


def test_counts_and_checksums(here, capfdbinary) -> None:
    assert run(capfdbinary, "--format", "count")[:2] == (0, "Alarm\t1\nFire\t2\ntotal\t3\n")
    only = run(capfdbinary, "--format", "count", "--types", "Alarm")
    assert only[:2] == (0, "Alarm\t1\ntotal\t1\n")
    naive = run(capfdbinary, "--format", "checksum", "--engine", "naive")
    assert naive == run(capfdbinary, "--format", "checksum", "--engine", "cdp")
    assert run(capfdbinary, "--output", "found.jsonl")[:2] == (0, "")
    chunks = EventFile.of(Path("found.jsonl")).read(Intake())
    sums = {batch.type.name: checksum(batch) for chunk in chunks for batch in chunk.batches}
    assert f"Alarm\t1\t{_sum_of_digests(naive[1], 'Alarm')}" in naive[1]
    assert sums.keys() == {"Alarm", "Fire"}


def _sum_of_digests(text: str, name: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith(f"{name}\t")]
    digits = line.split("\t")[2]
    assert len(digits) == 16
    return digits


def test_output_goes_to_files_of_every_form(here, capfdbinary) -> None:
    _, printed, _ = run(capfdbinary)
    for arguments in (
        ["--output", "x.jsonl"],
        ["--output", "x.jsonl.gz"],
        ["--format", "jsonl", "--output", "x.txt"],
    ):
        assert run(capfdbinary, *arguments) == (0, "", "")
        data = Path(arguments[-1]).read_bytes()
        assert (gzip.decompress(data) if arguments[-1].endswith("gz") else data) == printed.encode()
    assert run(capfdbinary, "--format", "parquet", "--output", "x.parquet") == (0, "", "")
    assert run(capfdbinary, "--types", "Fire", "--output", "y.parquet") == (0, "", "")
    fires = pq.read_table("x.Fire.parquet")
    assert fires.equals(pq.read_table("y.parquet"))
    assert fires.column("measuredTemp").to_pylist() == [46.5, 50.0]
    assert fires.column("cause").to_pylist()[0] == ["3", "t-1"]
    assert pq.read_table("x.Alarm.parquet").num_rows == 1
    assert run(capfdbinary, "--format", "count", "--output", "n.txt") == (0, "", "")
    assert Path("n.txt").read_text().endswith("total\t3\n")


def test_a_summary_goes_to_standard_error(here, capfdbinary) -> None:
    status, out, err = run(capfdbinary, "--stats", "--format", "count", "--threads", "2")
    assert (status, out.count("\n")) == (0, 3)
    summary = dict(line.split("\t") for line in err.splitlines())
    assert (summary["events"], summary["composites"], summary["duplicates"]) == ("5", "3", "0")
    assert {"seconds", "events/s", "engine p50 us per event", "engine p99 us per event"} <= (
        summary.keys()
    )


def test_several_files_and_forms_are_one_stream(here, capfdbinary) -> None:
    _, expected, _ = run(capfdbinary, "--types", "Fire", "--format", "count")
    Path("temps.csv").write_text(
        "time,source,id,area,value,unit\n"
        "10,s/1,t-1,a1,46.5,C\n1970-01-01T00:00:11.5Z,s/2,t-2,a2,50,C\n"
    )
    Path("rest.jsonl").write_text("".join(EVENTS.splitlines(keepends=True)[2:]))
    files = ["--events", "rest.jsonl", "temps.csv", "--type", "Temp"]
    printed = ["--types", "Fire", "--format", "count", "--stats"]
    status = main(["detect", "--rules", "fire.tesla", *files, *printed])
    out, err = capfdbinary.readouterr()
    assert (status, out.decode()) == (0, expected)
    assert "surplus attributes\t3\n" in err.decode()
    assert re.search(r"^kept entries\t\d+$", err.decode(), re.MULTILINE)


def test_bad_events_end_it_or_are_skipped(here, capfdbinary) -> None:
    Path("events.jsonl").write_text(EVENTS + '{"type": "Temp", "time": 13, "data": {}}\nnonsense\n')
    status, _, err = run(capfdbinary)
    assert (status, err) == (1, "rexmq: events.jsonl:6: attribute area is missing\n")
    status, out, err = run(capfdbinary, "--skip-bad", "--format", "count")
    assert (status, out.splitlines()[-1]) == (0, "total\t3")
    first, *reasons = err.splitlines()
    assert first == "rexmq: 2 bad events skipped"
    assert "  1: attribute area is missing" in reasons


def test_a_disordered_file_gives_the_same_with_a_warning(here, capfdbinary) -> None:
    _, expected, _ = run(capfdbinary)
    lines = EVENTS.replace(', "density": 7', "").splitlines(keepends=True)
    for line, text in enumerate(lines):
        event = json.loads(text)
        lines[line] = json.dumps({"id": str(line + 1), "sequence": line + 1} | event) + "\n"
    Path("events.jsonl").write_text("".join(reversed(lines)))
    status, out, err = run(capfdbinary)
    assert (status, out) == (0, expected)
    assert "events.jsonl is not in order of time (by up to 2.5 s)" in err


@pytest.mark.parametrize("size", [60, 500, 4000])
def test_chunks_change_no_result(
    here, capfdbinary, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    seed = 3
    chance = random.Random(seed)
    lines = []
    for number in range(300):
        name = chance.choice(["Temp", "Smoke", "Drill"])
        data = {"area": chance.choice(["a1", "a2"])}
        if name == "Temp":
            data["value"] = chance.choice([40.5, 46.5, 50.0])
        event = {
            "type": name,
            "time": number // 10 * 5,
            "source": chance.choice("xy"),
            "data": data,
        }
        lines.append(json.dumps(event) + "\n")
    Path("events.jsonl").write_text("".join(lines))
    whole = run(capfdbinary, "--engine", "naive")
    assert whole[1].count("\n") > 50
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", size)
    assert run(capfdbinary, "--engine", "naive") == whole
    assert run(capfdbinary, "--engine", "cdp") == whole


WRONG = [
    (["--engine", "hybrid"], 1, "its event Fire comes from a rule"),
    (["--engine", "hybrid", "--device", "gpu"], 2, "the engine hybrid has no form for a GPU"),
    (
        ["--engine", "none"],
        2,
        "expected auto or cdp or aip or aip-published or hybrid or naive, found 'none'",
    ),
    (["--device", "tpu"], 2, "expected cpu or gpu or auto, found 'tpu'"),
    (["--device", "gpu", "--engine", "naive"], 2, "--device gpu: the engine naive has no form"),
    (["--device", "gpu", "--threads", "2"], 2, "--device gpu: one thread detects beside a device"),
    (["--format", "xml"], 2, "--format: expected"),
    (["--format", "parquet"], 2, "--output FILE.parquet"),
    (["--format", "parquet", "--output", "x.csv"], 2, "--output FILE.parquet"),
    (["--output", "x.txt"], 2, "ends in one of"),
    (["--types", "Fire,Flood"], 2, "--types Flood: the rules define Fire, Alarm"),
    (["--cause", "all"], 2, "--cause: expected ids or full"),
    (["--time", "days"], 2, "--time: expected rfc3339 or seconds"),
    (["--threads", "0"], 2, "threads"),
    (["--rules", "none.tesla"], 1, "none.tesla: No such file"),
    (["--events", "none.jsonl"], 1, "none.jsonl: No such file"),
    (["--events", "fire.tesla"], 1, "fire.tesla: a file of events ends in"),
    (["--output", "no/such/folder.jsonl"], 1, "No such file"),
]


@pytest.mark.parametrize(("arguments", "status", "message"), WRONG)
def test_mistakes_have_their_statuses(
    here, capfdbinary, arguments: list[str], status: int, message: str
) -> None:
    found, out, err = run(capfdbinary, *arguments)
    assert (found, out) == (status, "")
    assert message in err
    assert "Traceback" not in err


def test_errors_in_rules_have_their_places(here, capfdbinary) -> None:
    Path("fire.tesla").write_text(FIRE.replace("value > 45", "valve > 45"))
    status, _, err = run(capfdbinary)
    assert status == 1
    assert "fire.tesla:3:" in err
    Path("fire.tesla").write_text(FIRE.replace("from Smoke(", "form Smoke("))
    status, _, err = run(capfdbinary)
    assert status == 1
    assert "fire.tesla:3:" in err


def test_schemas_that_disagree_have_their_places(here, capfdbinary) -> None:
    Path("fire.tesla").write_text(FIRE + "event Temp(area: string)\n")
    status, _, err = run(capfdbinary)
    assert status == 1
    assert "fire.tesla:9:7: another schema for Temp" in err
    assert "line 1" in err


def test_a_type_may_be_published_and_defined(here, capfdbinary) -> None:
    """With one schema (S12); the file's first event of it settles what ``define`` leaves out."""
    Path("fire.tesla").write_text(
        "define Smoke(area) from Drill(area = $a) where area = $a "
        "define Out(area) from Smoke(area = $a) where area = $a"
    )
    Path("events.jsonl").write_text(EVENTS.replace(', "density": 7', ""))
    status, out, _ = run(capfdbinary, "--format", "count")
    assert (status, out) == (0, "Out\t3\nSmoke\t1\ntotal\t4\n")


def test_no_events_detect_nothing(here, capfdbinary) -> None:
    Path("events.jsonl").write_text("")
    Path("fire.tesla").write_text(
        "event A() define B(x: int) from A() where x = 1 "
        "define C(x: int) from Timer(S % 5 == 0) where x = Timer.S"
    )
    assert run(capfdbinary) == (0, "", "")
    assert run(capfdbinary, "--format", "checksum")[1] == (
        "B\t0\t0000000000000000\nC\t0\t0000000000000000\ntotal\t0\t0000000000000000\n"
    )


# --- ids -----------------------------------------------------------------------------------------

HOT = """\
event Reading(temp: float)
define Hot(temp) from Reading(temp > 45) as r where temp = r.temp
"""
READINGS = "time,id,temp\n1,7,20\n2,7,50\n3,8,60\n4,7,70\n"
FIRE_IN = """\
event Temp(area: string, value: float)
event Smoke(area: string)
rule fire:
define Fire(area, temperature)
from   Smoke(area = $a) and last Temp(area = $a and value > 45) within 5 min from Smoke
where  area = $a, temperature = Temp.value
"""


def detected(capfdbinary, *arguments: str) -> tuple[int, list[dict[str, object]], str]:
    status = main(["detect", *arguments])
    out, err = capfdbinary.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.fixture
def readings(here: Path) -> list[str]:
    Path("hot.tesla").write_text(HOT)
    Path("readings.csv").write_text(READINGS)
    return ["--rules", "hot.tesla", "--type", "Reading", "--events", "readings.csv"]


@pytest.mark.parametrize("engine", ["naive", "cdp"])
def test_an_id_that_repeats_with_other_contents_ends_with_the_places_of_both(
    readings: list[str], capfdbinary, engine: str
) -> None:
    status, found, err = detected(capfdbinary, *readings, "--engine", engine)
    assert (status, found) == (1, [])
    assert err.startswith(
        "rexmq: readings.csv:row 2: id 7 of source readings.csv is that of another event, at "
        "readings.csv:row 1, with other contents; "
    )


def test_such_events_are_counted_where_bad_ones_are_skipped(
    readings: list[str], capfdbinary
) -> None:
    status, found, err = detected(capfdbinary, *readings, "--skip-bad")
    assert (status, [event["data"] for event in found]) == (0, [{"temp": 60.0}])
    assert err == "rexmq: 2 bad events skipped\n  2: the id of another event\n"


def test_explain_ends_with_the_places_of_both(readings: list[str], capfdbinary) -> None:
    arguments = [*readings, "--rule", "Hot", "--event", "8"]
    assert main(["explain", *arguments]) == 1
    assert b"readings.csv:row 1, with other contents" in capfdbinary.readouterr().err
    assert main(["explain", *arguments, "--skip-bad"]) == 0
    assert b"2 bad events skipped" in capfdbinary.readouterr().err


def test_an_id_that_is_its_row_s_number_is_compared_with_what_follows(
    readings: list[str], capfdbinary
) -> None:
    Path("more.csv").write_text("time,id,source,temp\n5,1,s,50\n6,2,s,50\n")
    Path("other.jsonl").write_text(
        '{"type": "Reading", "time": 7, "source": "s", "id": 3, "data": {"temp": 50}}\n'
        '{"type": "Reading", "time": 8, "source": "s", "id": "1", "data": {"temp": 50}}\n'
    )
    files = ["--events", "more.csv", "other.jsonl"]
    status, _, err = detected(capfdbinary, *readings[:4], *files)
    assert status == 1
    assert (
        "rexmq: other.jsonl:2: id 1 of source s is that of another event, at more.csv:row 1" in err
    )


def test_what_is_the_same_again_is_counted_on_standard_error(
    readings: list[str], capfdbinary
) -> None:
    Path("readings.csv").write_text("time,id,temp\n1,7,50\n1,7,50\n2,x,60\n2,x,60\n")
    status, found, err = detected(capfdbinary, *readings)
    assert (status, len(found)) == (0, 2)
    assert err == "rexmq: 2 duplicates dropped: events of a source and an id that came before\n"
    Path("readings.csv").write_text("time,id,temp\n1,7,50\n1,7,50\n")
    assert detected(capfdbinary, *readings)[2].startswith("rexmq: 1 duplicate dropped: ")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("engine", ["naive", "cdp"])
def test_files_without_ids_number_apart_what_is_of_one_source(
    here: Path, capfdbinary, form: str, engine: str
) -> None:
    """A recording that is cut by type has the rows of each numbered from 1."""
    Path("in.tesla").write_text(FIRE_IN)
    if form == "csv":
        Path("Temp.csv").write_text("time,type,source,area,value\n1,Temp,plc,hall,50\n")
        Path("Smoke.csv").write_text("time,type,source,area\n2,Smoke,plc,hall\n")
    else:
        for name, time, data in (("Temp", 1, {"area": "hall", "value": 50}), ("Smoke", 2, {})):
            line = {"type": name, "time": time, "source": "plc", "data": {"area": "hall", **data}}
            Path(f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    files = [f"Temp.{form}", f"Smoke.{form}"]
    status, found, err = detected(
        capfdbinary, "--rules", "in.tesla", "--engine", engine, "--events", *files
    )
    assert (status, err) == (0, "")
    assert [event["data"] for event in found] == [{"area": "hall", "temperature": 50.0}]
    assert found[0]["cause"] == [f"Smoke.{form}:1", f"Temp.{form}:1"]


@pytest.mark.parametrize("engine", ["naive", "cdp"])
def test_simultaneous_rows_of_one_source_go_by_their_numbers_and_then_by_their_files(
    here: Path, capfdbinary, engine: str
) -> None:
    line = '{"type": "A", "time": 1, "source": "s", "data": {"n": %d}}\n'
    Path("b.jsonl").write_text("".join(line % number for number in range(10)))
    Path("a.jsonl").write_text("".join(line % number for number in range(10, 20)))
    Path("seen.tesla").write_text("event A(n: int)\ndefine Seen(n) from A() as a where n = a.n\n")
    for files in (["a.jsonl", "b.jsonl"], ["b.jsonl", "a.jsonl"]):
        _, found, err = detected(
            capfdbinary, "--rules", "seen.tesla", "--engine", engine, "--events", *files
        )
        assert err == ""
        expected = [name for row in range(1, 11) for name in (f"a.jsonl:{row}", f"b.jsonl:{row}")]
        assert [event["cause"] for event in found] == [[name] for name in expected]


@pytest.mark.parametrize("engine", ["naive", "cdp", "aip", "aip-published", "auto"])
def test_detection_goes_until_a_time_and_timers_tick_up_to_there(
    here, capfdbinary, engine: str
) -> None:
    Path("fire.tesla").write_text(
        "define Hot(v) from Temp(value = $v) where v = $v\n"
        "define Tick(n) from Timer(S % 5 = 0) and Count(Temp() within 1 min from Timer) > 1\n"
        "where n = Count(Temp() within 1 min from Timer)\n"
    )

    def found(*options: str) -> list[tuple[str, str]]:
        status, out, err = run(capfdbinary, "--engine", engine, *options)
        assert (status, err) == (0, ""), err
        return [(one["type"], one["time"][17:22]) for one in map(json.loads, out.splitlines())]

    assert found() == [("Hot", "10Z"), ("Hot", "11.50")]
    assert found("--until", "11.499999") == [("Hot", "10Z")]
    until = ("--until", "1970-01-01T00:00:20Z")
    assert found(*until) == [*found(), ("Tick", "15Z"), ("Tick", "20Z")]
    status, out, err = run(capfdbinary, "--until", "tomorrow")
    assert (status, out) == (2, "")
    assert "--until: time 'tomorrow'" in err


def test_hybrid_has_threads_for_one_rule_and_says_once_that_processors_are_fewer(
    here, capfdbinary
) -> None:
    Path("fire.tesla").write_text(
        "event Temp(area: string, value: float) event Smoke(area: string)\n"
        "rule near: define Near(value: float) from Smoke() and each Temp(value > 40)\n"
        "within 1 min from Smoke where value = Temp.value\n"
    )
    expected = run(capfdbinary, "--engine", "naive")
    assert expected[1].count("\n") > 1
    assert run(capfdbinary, "--engine", "hybrid")[:2] == expected[:2]
    status, out, err = run(capfdbinary, "--engine", "hybrid", "--threads", "300")
    assert (status, out) == expected[:2]
    assert err.count("--threads 300: there are ") == 1


def test_a_rule_that_an_engine_does_not_take_is_named(here, capfdbinary) -> None:
    Path("fire.tesla").write_text(
        "rule near: define Near() from all Temp(value > 40), Smoke() within 2 s\n"
        "event Temp(area: string, value: float) event Smoke(area: string)\n"
    )
    status, out, err = run(capfdbinary, "--engine", "aip-published")
    assert (status, out) == (1, "")
    assert "rule near: events in any order (all ... within) form no sequence" in err
    assert "aip-published is a reference: let another engine have this rule" in err
