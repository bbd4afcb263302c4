"""Folders of files give the events of one file, with the columns of their names."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from broker.recorded import RecordedEvents
from matcher.errors import BadEvent, EventError
from matcher.formats.folders import datum_of
from matcher.formats.inputs import InputFile, inputs_of
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.model import EventType, Kind

READING = EventType.of("Reading", day="string", room="string?", level="int", value="float")


def write(rows, path):
    """Rows without the columns of the folder in a file of the form that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        lines = ({"time": row.pop("time"), "data": row} for row in map(dict, rows))
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def events_of(recorded):
    batches = [batch for step in recorded.steps() for batch in step.batches]
    events = [(one.time, tuple(one.data.items())) for batch in batches for one in batch.events()]
    return sorted(events, key=repr)


@pytest.mark.parametrize("declared", [{"Reading": READING}, {}], ids=["declared", "inferred"])
@pytest.mark.parametrize("seed", range(3))
def test_a_folder_is_the_files_below_it(tmp_path, seed, declared):
    rng, expected = random.Random(seed), []
    for number, ending in enumerate(("csv", "parquet", "arrow", "jsonl")):
        day = f"2024-06-0{rng.randrange(1, 9)}"
        room = rng.choice(["a b", "x/y", *([None] if declared else [])])
        named = "__HIVE_DEFAULT_PARTITION__" if room is None else room.replace("/", "%2F")
        level = rng.randrange(9)
        rows = [{"time": rng.randrange(100), "value": rng.randrange(9) + 0.5} for _ in range(5)]
        folder = tmp_path / f"day={day}" / f"room={named}" / f"level={level}"
        write(rows, folder / f"part-{number}.{ending}")
        for row in rows:
            data = {"day": day, "room": room, "level": level, "value": row["value"]}
            expected.append((row["time"] * 1_000_000, data))
    events = events_of(RecordedEvents([tmp_path], declared=declared, type_name="Reading"))
    names = [name for name, _ in events[0][1]]
    assert set(names) == {"day", "room", "level", "value"}
    rows = ((time, tuple((name, data[name]) for name in names)) for time, data in expected)
    assert events == sorted(rows, key=repr)


def test_hidden_files_and_those_of_other_forms_are_passed_over(tmp_path):
    write([{"time": 1, "v": 1}], tmp_path / "b" / "one.csv")
    for name in ("_SUCCESS", ".hidden.csv", "_temporary.csv", "notes.txt"):
        (tmp_path / name).write_text("nothing")
    assert len(events_of(RecordedEvents([tmp_path], type_name="T"))) == 1
    (tmp_path / "b" / "one.csv").unlink()
    with pytest.raises(EventError, match="a folder without files of events"):
        RecordedEvents([tmp_path], type_name="T")


def test_a_column_of_a_name_may_be_that_of_the_dates(tmp_path):
    write([{"clock": "10:00:00", "v": 1}], tmp_path / "day=2024-06-01" / "one.parquet")
    layout = Layout(time="clock", date="day", times=TimeForm(zone="UTC"))
    ((time, _),) = events_of(RecordedEvents([tmp_path], type_name="T", layout=layout))
    assert time == 1_717_236_000_000_000


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_that_a_file_has_itself_is_refused(tmp_path, ending):
    write([{"time": 1, "day": "x"}], tmp_path / "day=2024-06-01" / f"one.{ending}")
    with pytest.raises(EventError, match="two columns have the same name: day"):
        RecordedEvents([tmp_path], type_name="T")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_name_that_is_no_number_is_a_bad_event(tmp_path, ending):
    write([{"time": 1, "v": 1}], tmp_path / "n=many" / f"one.{ending}")
    declared = {"T": EventType.of("T", n="int", v="int")}
    with pytest.raises(BadEvent, match=f"one.{ending}.*1: attribute n: expected int, found"):
        events_of(RecordedEvents([tmp_path], declared=declared, type_name="T"))


def test_values_of_names_are_of_the_kind_that_is_declared():
    assert datum_of("07", None) == datum_of("07", Kind.INT) == 7
    assert datum_of("07", Kind.STRING) == "07"
    assert datum_of("2", Kind.FLOAT) == 2.0
    assert datum_of("true", Kind.BOOL) is True
    assert datum_of("2024-06-01", None) == "2024-06-01"


def test_words_of_a_command_may_bear_a_type(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day=1.csv").write_text("")
    words = ["Temp=temps.csv", "day=1.csv", "year/day=2024-06-01/a.csv", "plain.csv", "="]
    assert inputs_of(list(map(Path, words))) == [
        InputFile(Path("temps.csv"), "Temp"),
        *(InputFile(Path(word)) for word in words[1:]),
    ]
