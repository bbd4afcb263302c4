"""Frames with other names of columns, and other forms of times, are read as files are."""

import pytest

from broker.cli.options import layout_of
from broker.spark import detect, explain_plan, of_type
from matcher.errors import BadEvent, SchemaError
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from tests.file_kinds import KINDS

pytestmark = pytest.mark.filterwarnings("ignore:the events have no column")
COLUMNS = {
    "hourly.csv": "day string, temp double",
    "daily.csv": "date date, wind double, weather string",
    "prices.csv": "symbol string, date string, price double",
    "people.csv": "name string, age long, type string, date date",
    "plants.csv": "year date, source string, made long",
    "flat.ndjson": "origin string, temp double, at long",
    "nozone.csv": "time timestamp_ntz, area string, value double",
    "glucose.csv.gz": "datetime string, glucose decimal(10, 0)",
    "headings.csv": "`Time (UTC)` string, `Sea Temp (C)` double, from string, `Station-Id` long",
    "mixed.csv": "kind string, time long, room string, value double, level long",
}
"""What Spark makes of the files."""
DECLARED = {
    "mixed.csv": "event Smoke(room: string, level: int)\n",
    "people.csv": "event Seen(age: int?, type: string)\n",
}
"""What is said of frames, whose rows nobody looks at beforehand."""
FILES = [kind for kind in KINDS if kind.name in COLUMNS]


def layout_said(options: tuple[str, ...]) -> tuple[Layout, str | None]:
    """The layout of options of the command line, and their --type."""
    said: dict[str, str | bool | None] = {}
    words = list(options)
    while words:
        name = words.pop(0).removeprefix("--").replace("-", "_")
        said[name] = True if name == "flat" else words.pop(0)
    type_name = said.pop("type", None)
    return layout_of(**said), type_name if isinstance(type_name, str) else None  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FILES, ids=[kind.name for kind in FILES])
def test_frames_are_read_as_files_are(spark, tmp_path, kind):
    (tmp_path / kind.name).write_bytes(kind.as_bytes)
    reader = spark.read.schema(COLUMNS[kind.name])
    path = str(tmp_path / kind.name)
    frame = reader.json(path) if "json" in kind.name else reader.option("header", True).csv(path)
    layout, type_name = layout_said(kind.options)
    events = frame if type_name is None else {type_name: frame}
    rules = DECLARED.get(kind.name, "") + kind.rules
    found = detect(events, rules, layout=layout).selectExpr("unix_micros(time) as at", "Found.it")
    times = [TimeForm().time_of(time)[0] for time in kind.times]
    rows = sorted((row["at"], row["it"]) for row in found.collect())  # of distinct times
    assert rows == [*zip(times, kind.values, strict=True)]


def test_frames_have_a_layout_each(spark):
    rooms = spark.createDataFrame([(10.0, "r1", 50.0)], "at double, room string, temp double")
    smoke = spark.createDataFrame([(12.0, "r1")], "seen double, place string")
    rule = (
        "event Temp(area: string, value: float)\nevent Smoke(area: string)\n"
        "rule fire: define Fire(area: string, it: float) from Smoke(area = $a) and "
        "last Temp(area = $a) within 1 min from Smoke where area = $a, it = Temp.value"
    )
    layouts = {
        "Temp": Layout(time="at", columns=(("area", "room"), ("value", "temp"))),
        "Smoke": Layout(time="seen", columns=(("area", "place"),)),
    }
    frames = {"Temp": rooms, "Smoke": smoke}
    (fire,) = detect(frames, rule, layout=layouts, cells=1).collect()
    assert (fire["Fire"]["area"], fire["Fire"]["it"]) == ("r1", 50.0)
    with pytest.raises(ValueError, match="layouts of Temp, and frames of Smoke, Temp"):
        detect(frames, rule, layout={"Temp": layouts["Temp"]})
    with pytest.raises(ValueError, match="layouts by type are for frames by type"):
        detect(rooms, rule, layout=layouts)
    other = Layout(time="seen", columns=(("area", "place"),), times=TimeForm(zone="Europe/Rome"))
    with pytest.raises(ValueError, match="write times alike"):
        detect(frames, rule, layout={**layouts, "Smoke": other})


def test_a_layout_leaves_files_to_the_workers(spark, tmp_path):
    made = spark.sql(
        "select timestamp_seconds(id) as at, 's' || (id % 2) as station, 'n' || id as source,"
        " id as sequence, id as v from range(1, 5)"
    )
    made.write.parquet(f"{tmp_path}/t")
    frames = {"T": spark.read.parquet(f"{tmp_path}/t")}
    layout = Layout(time="at", source="station", columns=(("name", "source"), ("x", "v")))
    rules = (
        "event T(name: string, x: int, station: string)\n"
        "define Found(it, of) from T(x > 2) where it = T.name, of = T.station\n"
    )
    assert "read by the workers themselves" in explain_plan(frames, rules, layout=layout)
    found = of_type(detect(frames, rules, layout=layout), "Found").sort("it").collect()
    assert [(row.it, row.of) for row in found] == [("n3", "s1"), ("n4", "s0")]


def test_what_does_not_fit_is_named(spark):
    frame = spark.sql("select '2013-03-31 02:30:00' as time, 1 as v")
    rules = "event T(v: int)\ndefine Found() from T(v > 0)\n"
    with pytest.raises(SchemaError, match="the frame of T: no column 'at', which --time-column"):
        detect({"T": frame}, rules, layout=Layout(time="at"))
    with pytest.raises(ValueError, match="either a layout, or time and time_zone"):
        detect({"T": frame}, rules, time="time", time_zone="UTC", layout=Layout())
    for zone in (None, "Europe/Rome"):  # its clocks skip that hour
        with pytest.raises(BadEvent, match="no time that can be read"):
            detect({"T": frame}, rules, time_zone=zone)
        clock = frame.selectExpr("cast(time as timestamp_ntz) as time", "v")
        if zone:
            with pytest.raises(BadEvent, match="no time that can be read"):
                detect({"T": clock}, rules, time_zone=zone)


def test_decimals_are_ints_or_floats(spark):
    select = "1 as time, 1.10 as f, cast(7 as decimal(38, 0)) as i"
    frames = {"T": spark.sql(f"select {select}")}
    rules = "define Found(f, i) from T(f = 1.1) where f = T.f, i = T.i\n"
    [row] = of_type(detect(frames, rules), "Found").collect()
    assert (row.f, row.i) == (1.1, 7)
    beyond = {"T": spark.sql("select 1 as time, 1.10 as f, 9223372036854775808BD as i")}
    with pytest.raises(BadEvent, match="attribute i: an int beyond 64 bits"):
        detect(beyond, rules)
