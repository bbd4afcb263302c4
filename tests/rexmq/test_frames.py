"""Frames give what files of their rows give, whatever library made them."""

import json
import random
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import run
from pairs import seeds

import rexmq
from matcher.times import time_text

RULES = """
event Temp(area: string, value: float, spare: int?)
event Smoke(area: string?, dense: bool)

rule fire:
define Fire(area: string, temperature: float, spare: int?)
from   Smoke(area = $a and dense) and last Temp(area = $a and value > 20) within 40 s from Smoke
where  area = $a, temperature = Temp.value, spare = Temp.spare

rule calm:
define Calm(readings: int)
from   Smoke() as s where readings = Count(Temp(value < 15) within 30 s from s)
"""
FORMS = {
    "pandas": lambda table: table.to_pandas().convert_dtypes(),
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
}
WRITERS = {
    "pandas": pd.DataFrame.to_parquet,
    "polars": pl.DataFrame.write_parquet,
    "arrow": pq.write_table,
    "duckdb": lambda relation, path: relation.to_parquet(str(path)),
}


def shaped_times(rng, seconds):
    stamps = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us", "UTC"))
    return rng.choice(
        [
            stamps,
            stamps.cast(pa.timestamp("ns", "Europe/Rome")),
            stamps.cast(pa.timestamp("ms")),
            pa.array(seconds),
            pa.array(list(map(float, seconds))),
            pa.array([time_text(second * 1_000_000) for second in seconds]),
        ]
    )


def texts(rng, values):
    kind = rng.choice([pa.string(), pa.large_string(), pa.string_view()])
    array = pa.array(values, kind)
    return array if kind == pa.string_view() or rng.random() < 0.5 else array.dictionary_encode()


def tables(rng):
    """A table of Temp and one of Smoke, of columns of any form, out of order and with nulls."""
    made = {}
    for name in ("Smoke", "Temp"):
        count = rng.randrange(1, 40)
        columns = {"time": shaped_times(rng, [rng.randrange(100) for _ in range(count)])}
        areas = [rng.choice("ab") for _ in range(count)]
        if name == "Smoke":
            areas = [rng.choice([area, area, None]) for area in areas]
            columns["dense"] = pa.array([rng.random() < 0.7 for _ in range(count)])
        else:
            values = [rng.randrange(30) for _ in range(count)]
            kind = rng.choice([pa.int16(), pa.float32(), pa.decimal128(6, 2)])
            columns["value"] = pa.array(list(map(Decimal, values))).cast(kind)
            columns["spare"] = pa.array([rng.choice([None, 7]) for _ in range(count)], pa.int8())
        columns["area"] = texts(rng, areas)
        if rng.random() < 0.5:
            columns["source"] = pa.array([f"{name}/{rng.randrange(2)}" for _ in range(count)])
            columns["id"] = pa.array([str(row) for row in rng.sample(range(1000), count)])
        made[name] = pa.table(columns)
    return made


def rows_of(found, with_ids):
    return {
        name: [
            (event.time, dict(event.data), event.cause, event.id if with_ids else None)
            for event in table.events()
        ]
        for name, table in found.items()
    }


@pytest.mark.filterwarnings("ignore:.*times without a time zone")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", seeds(8, 60))
def test_a_frame_gives_what_the_file_of_its_rows_gives(tmp_path, form, seed):
    made = tables(random.Random(seed))
    paths = {name: tmp_path / f"{name}.parquet" for name in made}
    frames = {name: FORMS[form](table) for name, table in made.items()}
    for name, frame in frames.items():
        WRITERS[form](frame, paths[name])
    with_ids = all("id" in table.column_names for table in made.values())
    expected = rexmq.detect(RULES, paths)
    found = rexmq.detect(RULES, frames)
    assert rows_of(found, with_ids) == rows_of(expected, with_ids)
    assert found.counts == expected.counts


def test_the_cases_find_something():
    found = [rexmq.detect(RULES, tables(random.Random(seed))) for seed in (1, 2, 3, 4)]
    assert sum(len(one["Fire"]) for one in found) > 5
    assert sum(len(one["Calm"]) for one in found) > 20


def test_a_table_of_several_types_gives_what_the_command_finds_in_its_file(tmp_path):
    table = pa.table(
        {
            "type": ["Temp", "Smoke", "Temp", "Smoke"],
            "time": [1.5, 2.5, 3, 4],
            "source": ["roof"] * 4,
            "area": ["a", "a", "b", "c"],
            "value": [21.5, None, 9.0, None],
            "dense": [None, True, None, True],
        }
    )
    file, rules = tmp_path / "all.parquet", tmp_path / "fire.tesla"
    pq.write_table(table, file)
    rules.write_text(RULES)
    done = run("detect", "--rules", rules, "--events", file)
    found = rexmq.detect(RULES, table.to_pandas())
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["data"] for line in lines if line["type"] == "Fire"] == [
        dict(event.data) for event in found["Fire"].events()
    ]
    assert len(lines) == len(found["Fire"]) + len(found["Calm"]) == 3


def test_a_frame_may_be_an_index_of_times_with_columns():
    index = pd.date_range("2024-06-01", periods=3, freq="min", tz="Europe/Rome", name="time")
    frame = pd.DataFrame({"v": [1, 5, 9]}, index=index)
    found = rexmq.detect("define High(v: int) from R(v > 4) where v = R.v", {"R": frame})
    times = found.to_pandas()["time"]
    assert list(times) == list(index[1:].tz_convert("UTC"))


def test_times_finer_than_a_microsecond_are_refused_or_cut():
    frame = pd.DataFrame({"time": pd.to_datetime([1_123_456_789], utc=True), "v": [1]})
    rules = "define X(v: int) from R() where v = R.v"
    with pytest.raises(rexmq.BadEvent, match=r"^frame R:row 1: time .*finer than a microsecond"):
        rexmq.detect(rules, {"R": frame})
    layout = rexmq.Layout(times=rexmq.TimeForm(cuts=True))
    (event,) = rexmq.detect(rules, {"R": frame}, layout=layout)["X"].events()
    assert event.time == 1_123_456


def test_times_without_a_zone_are_told_of():
    frame = pd.DataFrame({"time": pd.to_datetime(["2024-06-01 10:00"]), "v": [1]})
    with pytest.warns(UserWarning, match="frame R: times without a time zone are taken for UTC"):
        rexmq.detect("define X() from R()", {"R": frame})


def test_categories_of_numbers_are_numbers():
    frame = pd.DataFrame({"time": [0, 1], "v": pd.Categorical([4, 7])})
    found = rexmq.detect("define X(v: int) from R(v > 5) where v = R.v", frame, type="R")
    assert [event.data for event in found["X"].events()] == [{"v": 7}]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"time": [1], "v": ["x"]}), "frame R:row 1: attribute v: expected int"),
        (pl.DataFrame({"time": [1, 2], "v": [1, None]}), "frame R:row 2: attribute v: .* null"),
        (pl.DataFrame({"at": [1], "v": [1]}), "frame R: no column 'time'; the columns are 'at'"),
        (pl.LazyFrame({"v": [1]}), r"frame R: expected a frame of .*LazyFrame, collect\(\) it"),
        (pl.Series([1]), "frame R: not a table that Arrow takes"),
        (pd.DataFrame({"v": [1, "x"]}), "frame R: not a table .*column v"),
        ([{"time": 1}], "frame R: expected a frame .*builtins.list"),
        ("r.parquet", r"events are frames or a Path: Path\('r.parquet'\)"),
    ],
)
def test_a_frame_that_does_not_fit_is_named_with_column_and_row(frame, message):
    with pytest.raises(rexmq.EventError, match=message):
        rexmq.detect("event R(v: int) define X() from R()", {"R": frame})


def test_frames_of_a_list_are_told_apart():
    first, second = (pd.DataFrame({"time": [time], "v": [time]}) for time in (1, 2))
    found = rexmq.detect("define X(v: int) from R() where v = R.v", [first, second], type="R")
    assert [event.cause_full for event in found["X"].events()] == [
        ("frame/1/R#1",),
        ("frame/2/R#1",),
    ]
    second["v"] = "text"
    with pytest.raises(rexmq.BadEvent, match=r"^frame 2 R:row 1: attribute v"):
        rexmq.detect("define X(v: int) from R() where v = R.v", [first, second], type="R")


def test_an_empty_frame_is_of_its_columns():
    frame = pl.DataFrame(schema={"time": pl.Int64, "v": pl.Float64})
    found = rexmq.detect("define X(v: float) from R(v > 1.5) where v = R.v", {"R": frame})
    assert found.to_pandas().empty
    assert list(found.to_polars().columns) == ["type", "time", "source", "id", "v", "cause"]


def test_bad_rows_are_counted():
    frame = pl.DataFrame({"time": [1, 2], "v": [1, None]})
    rules = "event R(v: int) define X() from R()"
    found = rexmq.detect(rules, {"R": frame}, skip_bad=True)
    assert found.counts.events == 1
    assert found.counts.bad == {"attribute v: expected int, found null": 1}
