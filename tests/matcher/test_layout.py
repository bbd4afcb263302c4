"""What columns mean, and how times are written, by what is said of them (docs/files.md)."""

import io
import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matcher.errors import BadEvent, EventError, SchemaError
from matcher.formats import csvfiles, jsonarrays, parquetfiles, pieces
from matcher.formats.files import EventFile, output_to
from matcher.formats.intake import Intake, Place
from matcher.formats.layout import Layout, columns_of
from matcher.formats.tabular import batches_of
from matcher.formats.timeform import TimeForm
from matcher.model import Event, EventType

HERE = "t.csv"


def events_of(
    path: Path,
    content: str,
    layout: Layout,
    type_name: str | None = None,
    intake: Intake | None = None,
) -> list[Event]:
    path.write_text(content)
    chunks = EventFile.of(path, type_name, layout=layout).read(intake or Intake())
    return [event for chunk in chunks for batch in chunk.batches for event in batch.events()]


# --- columns ---


ROWS = "when,source,id,cause,v\n1,coal,7,x,1.5\n2,wind,8,y,2.5\n"
MEANT = [
    (Layout(time="when"), {"v": 1.5}, ("coal", "7")),
    (Layout(time="when", source=""), {"source": "coal", "v": 1.5}, ("t.csv", "7")),
    (Layout(time="when", source="", id=""), {"source": "coal", "id": 7, "v": 1.5}, ("t.csv", "1")),
    (Layout(time="when", id="source", source=""), {"id": 7, "v": 1.5}, ("t.csv", "coal")),
    (
        Layout(time="when", columns=(("cause", "cause"), ("id", "id"))),
        {"cause": "x", "id": 7, "v": 1.5},
        ("coal", "t.csv:1"),
    ),
    (Layout(time="when", columns=(("w", "v"),)), {"w": 1.5}, ("coal", "7")),
]


@pytest.mark.parametrize(("layout", "data", "who"), MEANT)
def test_columns_mean_what_is_said_of_them(
    layout: Layout, data: dict[str, object], who: tuple[str, str], tmp_path: Path
) -> None:
    event = events_of(tmp_path / HERE, ROWS, layout, "T")[0]
    assert ({**event.data}, (event.source, event.id)) == (data, who)
    lines = "".join(
        json.dumps(dict(zip(ROWS.split("\n")[0].split(","), row, strict=True))) + "\n"
        for row in ([1, "coal", 7, "x", 1.5], [2, "wind", 8, "y", 2.5])
    )
    flat = Layout(layout.time, layout.id, layout.source, layout.type, layout.columns, flat=True)
    source = who[0].replace("t.csv", "t.jsonl"), who[1].replace("t.csv", "t.jsonl")
    event = events_of(tmp_path / "t.jsonl", lines, flat, "T")[0]
    assert ({**event.data}, (event.source, event.id)) == (data, source)


def test_a_declared_event_may_have_a_column_that_an_option_names(tmp_path: Path) -> None:
    declared = {"T": EventType.of("T", area="string", at="int")}
    layout = Layout(time="at", source="area")
    [event] = events_of(tmp_path / HERE, "at,area\n3,a\n", layout, "T", Intake(declared))
    assert (event.time, event.source, event.data) == (3_000_000, "a", {"area": "a", "at": 3})
    intake = Intake(declared)
    lines = '{"at": 3, "area": "a"}\n'
    flat = Layout(time="at", source="area", flat=True)
    [event] = events_of(tmp_path / "t.jsonl", lines, flat, "T", intake)
    assert (event.source, event.data, intake.surplus) == ("a", {"area": "a", "at": 3}, 0)


def test_an_attribute_with_the_name_of_a_role_says_how_it_is_read(tmp_path: Path) -> None:
    declared = Intake({"T": EventType.of("T", source="string")})
    with pytest.raises(BadEvent, match=r"the events' own \(--columns source=source makes it"):
        events_of(tmp_path / HERE, "time,source\n1,a\n", Layout(), "T", declared)


def test_columns_are_given_as_pairs() -> None:
    text = 'temp="Sea ""T"" (C), x", station = Station-Id ,a=b=c'
    pairs = (("temp", 'Sea "T" (C), x'), ("station", "Station-Id"), ("a", "b=c"))
    assert columns_of(text) == pairs
    assert columns_of("") == ()
    for wrong in ("a", "=b", 'a="b', "a=b,,c=d"):
        with pytest.raises(EventError, match="expected ATTRIBUTE=COLUMN"):
            columns_of(wrong)


def test_members_of_objects_may_be_called_otherwise(tmp_path: Path) -> None:
    line = '{"kind": "T", "at": 5, "data": {"x y": 1, "z": 2}}\n'
    layout = Layout(time="at", type="kind", columns=(("x", "x y"),))
    [event] = events_of(tmp_path / "t.jsonl", line, layout)
    assert (event.type, event.time, event.data) == ("T", 5_000_000, {"z": 2, "x": 1})


# --- types ---


WIDE = "kind,time,v,s\nA,1,2.5,\nB,2,,x\n,3,1,\nA,4,3.5,\n"


def test_a_table_may_hold_several_types(tmp_path: Path) -> None:
    intake = Intake(skip_bad=True)
    layout = Layout(type="kind")
    events = events_of(tmp_path / HERE, WIDE, layout, intake=intake)
    assert [(one.type, one.id, {**one.data}) for one in events] == [
        ("A", "1", {"v": 2.5}),
        ("A", "4", {"v": 3.5}),
        ("B", "2", {"s": "x"}),
    ]
    assert (intake.bad, intake.surplus) == ({"no type": 1}, 0)
    named = events_of(tmp_path / HERE, WIDE, layout, "A", Intake())
    assert sorted(one.id for one in named if one.type == "A") == ["1", "3", "4"]
    with pytest.raises(BadEvent, match="no type") as caught:
        events_of(tmp_path / HERE, WIDE, layout)
    assert caught.value.place == f"{tmp_path / HERE}:row 3"
    with pytest.raises(BadEvent, match="row 2: time ''") as caught:
        events_of(tmp_path / HERE, WIDE.replace("B,2", "B,"), layout)
    assert caught.value.place == f"{tmp_path / HERE}:row 2"


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_a_first_look_finds_types_that_come_late(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "ROWS", 2)
    monkeypatch.setattr(csvfiles, "ROWS", 2)
    columns = {"type": ["A", "A", "A", "B"], "time": [1, 2, 3, 4], "v": [1, 2, 3, 4]}
    path = tmp_path / f"t{ending}"
    if ending == ".csv":
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join(",".join(map(str, row)) for row in ((*columns,), *rows)))
    elif ending == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        with pa.ipc.new_file(path, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns))
    intake = Intake()
    glances = list(EventFile.of(path).scan(intake))
    assert sum(len(one.times) for one in glances) == 4
    assert set(intake.schemas) == {"A", "B"}


GUESSED = [
    (["1", "2.5"], "float"),
    (["1", "", "2"], "int?"),
    (["", "true"], "bool?"),
    (["", "x"], "string"),
    (["NA", "3"], "int"),
    (["true", "False"], "bool"),
    (["1", "x"], "string"),
    (["true", "1"], "string"),
    (["9223372036854775808", "1"], "float"),
    (["", ""], "string"),
    (["NA", "NA"], "string"),
    (["-1", "+2", ".5e3"], "float"),
]


@pytest.mark.parametrize(("texts", "kind"), GUESSED)
def test_kinds_are_guessed_from_many_rows(texts: list[str], kind: str, tmp_path: Path) -> None:
    intake = Intake(skip_bad=True)
    content = "time,v\n" + "".join(f"1,{text}\n" for text in texts)
    events_of(tmp_path / HERE, content, Layout(), "T", intake)
    assert intake.schemas["T"] == EventType.of("T", v=kind)


def test_texts_that_mean_null_are_no_values(tmp_path: Path) -> None:
    intake = Intake({"T": EventType.of("T", v="int", s="string")}, skip_bad=True)
    content = "time,v,s,source\n1,2,a,x\n1,NA,b,x\n1,3,-,x\n1,4,c,NA\nNA,5,d,x\n"
    events = events_of(tmp_path / HERE, content, Layout(nulls=("NA", "-")), "T", intake)
    assert [(one.data["v"], one.source) for one in events] == [(2, "x"), (4, "t.csv")]
    assert intake.bad == {
        "attribute v: expected int, found null": 1,
        "attribute s: expected string, found null": 1,
        "no time": 1,
    }


def test_decimals_are_the_nearest_floats_or_ints() -> None:
    table = pa.table(
        {
            "time": pa.array([Decimal("1.5")]),
            "f": pa.array([Decimal("1.10")]),
            "i": pa.array([Decimal(7)]),
            "tiny": pa.array([Decimal("0.0000001")]),
        }
    )
    [batch] = batches_of(table, Place("t", "t"), Intake(), "T")
    assert batch.type == EventType.of("T", f="float", i="int", tiny="float")
    assert batch.event(0).data == {"f": 1.1, "i": 7, "tiny": 1e-7}
    assert batch.time.tolist() == [1_500_000]
    beyond = pa.table({"time": [1], "i": pa.array([Decimal(2**63)])})
    with pytest.raises(BadEvent, match="attribute i: an int beyond 64 bits"):
        batches_of(beyond, Place("t", "t"), Intake(), "T")


# --- times ---


NEW_YORK = "America/New_York"
READ = [
    ("2013-01-01 05:17:00", {"zone": "UTC"}, "2013-01-01T05:17:00+00:00"),
    ("2013-01-01T05:17", {"zone": "+02:00"}, "2013-01-01T03:17:00+00:00"),
    ("2012-01-01", {"zone": "Europe/Rome"}, "2011-12-31T23:00:00+00:00"),
    ("2010/01/01 00:30", {"zone": "UTC"}, "2010-01-01T00:30:00+00:00"),
    ("2013-11-03 01:30:00", {"zone": NEW_YORK}, "2013-11-03T05:30:00+00:00"),  # the first of two
    ("2060-07-01 00:00:00", {"zone": NEW_YORK}, "2060-07-01T04:00:00+00:00"),
    ("2013-01-01T05:17:00+01:00", {"zone": NEW_YORK}, "2013-01-01T04:17:00+00:00"),
    ("Jan 1 2000", {"format": "%b %d %Y", "zone": "UTC"}, "2000-01-01T00:00:00+00:00"),
    ("01.02.2000", {"format": "%d.%m.%Y", "zone": "UTC"}, "2000-02-01T00:00:00+00:00"),
    ("20000203", {"format": "%Y%m%d", "zone": "UTC"}, "2000-02-03T00:00:00+00:00"),
    (20000203, {"format": "%Y%m%d", "zone": "UTC"}, "2000-02-03T00:00:00+00:00"),
    ("1/2/2000 3:04 PM +0100", {"format": "%m/%d/%Y %I:%M %p %z"}, "2000-01-02T14:04:00+00:00"),
    ("2000-01-01 1.25", {"format": "%Y-%m-%d %S.%f", "zone": "UTC"}, "2000-01-01T00:00:01.250Z"),
    ("2016-12-31T23:59:60Z", {}, "2017-01-01T00:00:00+00:00"),
    ("2016-12-31 18:59:60.5", {"zone": NEW_YORK}, "2017-01-01T00:00:00.5+00:00"),
    ("2013-01-01T00:00:00.1234569Z", {"cuts": True}, "2013-01-01T00:00:00.123456+00:00"),
    ("2013-01-01 00:00:00.1234569", {"cuts": True, "zone": "UTC"}, "2013-01-01T00:00:00.123456Z"),
    (1.0000019, {"cuts": True}, "1970-01-01T00:00:01.000002+00:00"),
    (-1.0000011, {"cuts": True}, "1969-12-31T23:59:58.999999+00:00"),
    (1_000_000_001_999, {"cuts": True, "unit": "ns"}, "1970-01-01T00:16:40.000001+00:00"),
    ("1357020000000", {"unit": "ms"}, "2013-01-01T06:00:00+00:00"),
    ("2013-01-01T05:17:00+0130", {}, "2013-01-01T03:47:00+00:00"),
    ("2013-01-01 05:17:00 -05", {}, "2013-01-01T10:17:00+00:00"),
    ("2013-01-01 05:17:00,125 +02:00", {}, "2013-01-01T03:17:00.125+00:00"),
    ("2013/01/01 05:17:00.5 UTC", {"zone": NEW_YORK}, "2013-01-01T05:17:00.5+00:00"),
    ("2013-01-01T05:17Z", {}, "2013-01-01T05:17:00+00:00"),
    ("2013-01-01 05:17:00,5", {"zone": "+02:00"}, "2013-01-01T03:17:00.5+00:00"),
]  # fmt: skip
REFUSED = [
    ("2013-01-01 05:17:00", {}, "it lacks its time zone, as Z for UTC"),
    ("2013-03-10 02:30:00", {"zone": NEW_YORK}, "does not exist in America/New_York"),
    ("2013-02-30", {"zone": "UTC"}, "does not exist"),
    ("Feb 30 2000", {"format": "%b %d %Y", "zone": "UTC"}, "is not of --time-format"),
    ("Feb 3 2000", {"format": "%b %d %Y"}, "lacks its zone: say it with --time-zone"),
    ("2013-01-01T12:59:60Z", {}, "60 seconds are no leap second"),
    ("2013-01-01T00:00:00.1234567Z", {}, r"finer than a microsecond \(--time-cut"),
    ("2013-01-01T05:17:00+2", {}, r"neither RFC 3339 .*\(--time-format says"),
    ("2013-01/01 05:17Z", {}, r"neither RFC 3339 .*\(--time-format says"),
    ("soon", {}, r"neither RFC 3339 .*\(--time-format says"),
]


def column_of(form: TimeForm, value: object) -> list[int] | None:
    """The time of a value alone in its column, and of two of it, read together."""
    read = form.times_of([value, value])
    return None if read is None else read.times.tolist()


@pytest.mark.parametrize(("value", "said", "time"), READ)
def test_times_are_read_as_is_said(value: object, said: dict[str, object], time: str) -> None:
    form = TimeForm(**said)  # type: ignore[arg-type]
    expected = (datetime.fromisoformat(time) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    assert form.time_of(value)[:2] == (expected, False)
    assert column_of(form, value) in ([expected, expected], None)


@pytest.mark.parametrize(("value", "said", "reason"), REFUSED)
def test_other_times_are_refused(value: object, said: dict[str, object], reason: str) -> None:
    form = TimeForm(**said)  # type: ignore[arg-type]
    with pytest.raises(BadEvent, match=reason):
        form.time_of(value)
    assert column_of(form, value) is None


def test_a_time_that_clocks_show_twice_is_given_as_both() -> None:
    first = TimeForm(zone=NEW_YORK).time_of("2013-11-03 01:30:00")
    assert first.second == first.time + 3_600_000_000
    assert TimeForm(zone=NEW_YORK).time_of("2013-11-03 02:30:00").second is None
    stamped = TimeForm(zone=NEW_YORK, format="%d.%m.%Y %H:%M %z", cuts=True)
    assert stamped.time_of("03.11.2013 01:30 -0500").second is None


def test_utc_is_assumed_aloud() -> None:
    form = TimeForm(zone="")
    for value in ("2013-01-01", "2013-01-01 05:17:00", date(2013, 1, 1), datetime(2013, 1, 1)):
        assert form.time_of(value)[1]
    assert form.times_of(["2013-01-01"]).lacks_zone  # type: ignore[union-attr]
    assert not form.times_of(["2013-01-01T00:00:00Z"]).lacks_zone  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(3))
def test_local_times_are_read_together_as_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    zone = dice.choice([NEW_YORK, "Europe/Rome", "Asia/Kolkata", "Australia/Lord_Howe"])
    start = datetime(2013, 1, 1) + timedelta(hours=dice.randrange(8760))
    clocks = [start + timedelta(minutes=7 * n) for n in range(300)]
    form, texts = TimeForm(zone=zone), [clock.isoformat(" ") for clock in clocks]
    read = form.times_of(texts)
    single = []
    for text in texts:
        try:
            single.append(form.time_of(text)[0])
        except BadEvent:
            single.append(None)
    assert read is None if None in single else read.times.tolist() == single
    stamps = form.of_stamps(pa.array(clocks, pa.timestamp("us")))
    assert (stamps is None) == (read is None)
    for text, time in zip(texts, single, strict=True):
        if time is not None:
            moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
            assert moment.timestamp() * 1e6 == time


STAMPS = [
    (pa.array([date(2012, 1, 1)]), "Europe/Rome", "2011-12-31T23:00:00+00:00"),
    (pa.array([datetime(2012, 1, 1)], pa.timestamp("ns")), None, "2012-01-01T00:00:00+00:00"),
    (pa.array([datetime(2012, 1, 1)], pa.timestamp("ms")), NEW_YORK, "2012-01-01T05:00:00+00:00"),
    (pa.array([datetime(2060, 7, 1)], pa.timestamp("s")), NEW_YORK, "2060-07-01T04:00:00+00:00"),
    (pa.array([0], pa.timestamp("us", "Asia/Tokyo")), NEW_YORK, "1970-01-01T00:00:00+00:00"),
]


@pytest.mark.parametrize(("column", "zone", "time"), STAMPS)
def test_timestamps_and_dates_are_times(column: pa.Array, zone: str | None, time: str) -> None:
    layout = Layout(times=TimeForm(zone=zone))
    table = pa.table({"time": column})
    [batch] = batches_of(table, Place("t", "t", layout), Intake(), "T")
    moment = datetime.fromisoformat(time)
    assert batch.time.tolist() == [int(moment.timestamp()) * 10**6]


def test_a_clock_that_never_was_is_a_bad_row() -> None:
    clocks = pa.array([datetime(2013, 3, 10, 1), datetime(2013, 3, 10, 2)], pa.timestamp("us"))
    place = Place("t", "t", Layout(times=TimeForm(zone=NEW_YORK)))
    with pytest.raises(BadEvent, match=r"t:row 2: time '2013-03-10T02:00:00' does not exist in"):
        batches_of(pa.table({"time": clocks}), place, Intake(), "T")


# --- arrays ---


def test_an_array_is_read_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonarrays, "ROWS", 2)
    objects = [{"type": "T", "time": n, "data": {"s": "a\n", "x": n / 4}} for n in range(1, 6)]
    path = tmp_path / "t.json"
    events = events_of(path, json.dumps(objects, indent=2), Layout())
    assert [(one.time, one.id, one.data["x"]) for one in events] == [
        (n * 1_000_000, str(n), n / 4) for n in range(1, 6)
    ]
    lines = "".join(json.dumps(one) + "\n" for one in objects)
    assert [one.data for one in events_of(path, lines, Layout())] == [one.data for one in events]
    with pytest.raises(BadEvent, match=r"t\.json:row 3: not an event"):
        events_of(path, json.dumps([*objects[:2], 7]), Layout())
    with pytest.raises(BadEvent, match="not an array of events"):
        events_of(path, "[{}", Layout())


@pytest.mark.parametrize("name", ["out.json", "out.csv.zip"])
def test_what_is_read_alone_is_not_written(name: str, tmp_path: Path) -> None:
    with (
        pytest.raises(EventError, match="not written like this"),
        output_to(tmp_path / name, [EventType("T")], composite=False),
    ):
        pass


def test_a_column_of_parquet_with_a_dot_in_its_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"at.utc": [1], "Sepal.Length": [1.5]}), path)
    layout = Layout(time="at.utc", columns=(("length", "Sepal.Length"),))
    file = EventFile.of(path, "T", layout=layout)
    [chunk] = file.read(Intake())
    assert chunk.batches[0].event(0).data == {"length": 1.5}
    [glance] = file.scan(Intake())
    assert glance.times.tolist() == [1_000_000]


def test_a_column_that_is_not_there_is_named_with_its_option() -> None:
    for options, message in (
        ({"id": "nr"}, "no column 'nr', which --id-column names; the columns are 'time', 'v'"),
        ({"time": "at"}, "no column 'at', which --time-column names"),
        ({"columns": (("a", "b"),)}, "no column 'b', which --columns names"),
        ({"columns": (("v", "w"),)}, "ATTRIBUTE=COLUMN"),
    ):
        layout = Layout(**options)  # type: ignore[arg-type]
        for form in (csvfiles, parquetfiles):
            sink = io.BytesIO(b"time,v\n1,2\n")
            if form is parquetfiles:
                pq.write_table(pa.table({"time": [1], "v": [2]}), sink)
            sink.seek(0)
            with pytest.raises(SchemaError, match=message):
                list(form.read(sink, Place("t", "t", layout), Intake(), "T"))
