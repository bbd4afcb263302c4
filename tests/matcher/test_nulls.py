"""Optional attributes in columns, rows and files (matcher.model, Rule 5; tesla.md E1, E5)."""

import itertools
import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from event_batches import batch_of_events

from matcher.contents import contents_of
from matcher.errors import BadEvent, SchemaError
from matcher.filters.constraint import Filter
from matcher.filters.mixed import MixedEvents
from matcher.formats import csvfiles
from matcher.formats.files import EventFile, output_to
from matcher.formats.intake import Intake, Place
from matcher.formats.layout import Layout
from matcher.formats.tabular import from_arrow, to_arrow
from matcher.methods.choose import make
from matcher.model import Attribute, Event, EventType, Kind
from matcher.rows import batch_of
from matcher.single import singles

SCHEMA = EventType.of("T", i="int?", n="int", f="float?", b="bool?", s="string?")
ENDINGS = list(itertools.product((".jsonl", ".parquet", ".arrow", ".csv"), ("", ".gz")))


def random_events(random: Random, count: int) -> list[Event]:
    values = {
        "i": (0, -(2**63), 2**63 - 1),
        "f": (0.0, 0.1, -1e300),
        "b": (False, True),
        "s": ("a", "b", "nul"),
    }
    events = []
    for number in range(1, count + 1):
        data = {name: random.choice((None, *some)) for name, some in values.items()}
        data = {"i": data.pop("i"), "n": number, **data}
        events.append(Event("T", number * 1_000, "here", str(number), data, number))
    return events


def test_a_type_is_written_as_it_was_declared():
    assert str(SCHEMA) == "T(i: int?, n: int, f: float?, b: bool?, s: string?)"
    assert SCHEMA.names == ("i", "n", "f", "b", "s", "i?", "f?", "b?", "s?")
    assert SCHEMA.presences == (5, -1, 6, 7, 8)
    assert [one.name for one in SCHEMA.declared] == ["i", "n", "f", "b", "s"]
    assert EventType.of("T", i="int", n="int", f="float", b="bool", s="string") != SCHEMA


@pytest.mark.parametrize("kinds", [("ok?",), ("a", "b?"), ("b?", "b"), ("a", "a?", "c")])
def test_a_sign_of_a_name_makes_nothing_optional_alone(kinds: tuple[str, ...]):
    plain = EventType("T", tuple(Attribute(name, Kind.BOOL) for name in kinds))
    assert not plain.has_optional
    assert [one.name for one in plain.declared] == list(kinds)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("form", "compression"), ENDINGS)
def test_nulls_come_back_from_files(form: str, compression: str, seed: int, tmp_path: Path):
    events = random_events(Random(seed), 50)
    path = tmp_path / f"events{form}{compression}"
    with output_to(path, [SCHEMA], composite=False) as output:
        output.write([batch_of_events(SCHEMA, events[:20])])
        output.write([batch_of_events(SCHEMA, events[20:])])
    chunks = EventFile.of(path).read(Intake({"T": SCHEMA}))
    batches = [batch for chunk in chunks for batch in chunk.batches]
    assert [event for batch in batches for event in batch.events()] == events


def test_equal_events_have_equal_contents_whatever_they_were_made_of():
    events = random_events(Random(1), 40)
    rows = batch_of_events(SCHEMA, events)
    table = from_arrow(to_arrow(rows), Place("t", "here"), Intake({"T": SCHEMA}))
    assert contents_of(rows).tolist() == contents_of(table).tolist()
    alone = [int(contents_of(one)[0]) for one in singles(rows)]
    assert alone == contents_of(rows).tolist()
    assert [one for single in singles(rows) for one in single.events()] == events


def test_what_is_left_out_is_null_and_what_is_not_optional_is_asked_for():
    batch = batch_of(SCHEMA, [{"time": 1, "n": 1}, {"time": 2, "n": 2, "f": 3}], source="s")
    assert [event.data for event in batch.events()] == [
        {"i": None, "n": 1, "f": None, "b": None, "s": None},
        {"i": None, "n": 2, "f": 3.0, "b": None, "s": None},
    ]
    with pytest.raises(BadEvent, match="row 1: attribute n: expected int, found null"):
        batch_of(SCHEMA, [{"time": 1, "n": None}], source="s")
    with pytest.raises(BadEvent, match="attribute n is missing"):
        batch_of(SCHEMA, [{"time": 1, "f": 1.0}], source="s")
    with pytest.raises(BadEvent, match="attribute f: expected float, found string"):
        batch_of(SCHEMA, [{"time": 1, "n": 1, "f": "x"}], source="s")


def test_json_lines_count_what_is_surplus_and_not_what_is_left_out(tmp_path: Path):
    path = tmp_path / "e.jsonl"
    path.write_text(
        '{"type": "T", "time": 1, "data": {"n": 1, "z": 3}}\n'
        '{"type": "T", "time": 2, "data": {"n": 2, "s": null, "b": false}}\n'
    )
    intake = Intake({"T": SCHEMA})
    batches = [one for chunk in EventFile.of(path).read(intake) for one in chunk.batches]
    assert [event.data["b"] for batch in batches for event in batch.events()] == [None, False]
    assert intake.surplus == 1


def test_a_column_that_a_table_lacks_is_null():
    table = pa.table({"time": [1, 2], "n": [1, 2], "f": pa.nulls(2), "s": ["", None]})
    batch = from_arrow(table, Place("t", "t"), Intake({"T": SCHEMA}), "T")
    assert [tuple(event.data.values()) for event in batch.events()] == [
        (None, 1, None, None, ""),
        (None, 2, None, None, None),
    ]
    dictionary = pa.array(["x", None]).dictionary_encode()
    again = from_arrow(
        table.set_column(3, "s", dictionary), Place("t", "t"), Intake({"T": SCHEMA}), "T"
    )
    assert [event.data["s"] for event in again.events()] == ["x", None]


def test_csv_takes_an_empty_field_for_null_and_names_what_does_not_fit(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("time,i,n,f,b,s\n1,,1,,,\n2,5,2,2.5,true,x\n")
    chunks = EventFile.of(path, "T").read(Intake({"T": SCHEMA}))
    events = [event for chunk in chunks for one in chunk.batches for event in one.events()]
    assert [tuple(event.data.values()) for event in events] == [
        (None, 1, None, None, None),
        (5, 2, 2.5, True, "x"),
    ]
    path.write_text("time,i,n,f,b,s\n1,x,1,,,\n2,5,2,2.5,true,x\n")
    with pytest.raises(BadEvent, match="attribute i: expected int, found 'x'"):
        list(EventFile.of(path, "T").read(Intake({"T": SCHEMA})))


NULLS = [
    {"n": 1, "f": None, "b": True, "s": None, "gone": None},
    {"n": 2, "f": 2.5, "b": None, "s": "x", "gone": None},
]
GUESSED = EventType.of("T", n="int", f="float?", b="bool?", s="string?")


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    """A file of events of type T at instants 1, 2 and so on."""
    table = pa.Table.from_pylist([{"time": at, **row} for at, row in enumerate(rows, 1)])
    if path.suffix == ".jsonl":
        lines = [{"type": "T", "time": at, "data": row} for at, row in enumerate(rows, 1)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    elif path.suffix == ".csv":
        names = ["time", *rows[0]]
        texts = [["NA" if one is None else str(one) for one in row.values()] for row in rows]
        lines = [names, *([str(at), *row] for at, row in enumerate(texts, 1))]
        path.write_text("".join(",".join(line) + "\n" for line in lines))
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("form", [".jsonl", ".csv", ".parquet", ".arrow"])
def test_what_is_null_in_some_rows_is_inferred_to_be_optional(form: str, tmp_path: Path):
    file = EventFile.of(written(tmp_path / f"T{form}", NULLS), "T", layout=Layout(nulls=("NA",)))
    looked = Intake()
    assert sum(len(glance.times) for glance in file.scan(looked)) == 2
    assert looked.schemas == {"T": GUESSED}
    events = [
        one for chunk in file.read(Intake()) for batch in chunk.batches for one in batch.events()
    ]
    there = [{key: value for key, value in row.items() if key != "gone"} for row in NULLS]
    assert [event.data for event in events] == there


def test_a_null_behind_the_first_piece_is_refused_with_what_to_do(tmp_path: Path):
    rows = "".join(f"{row},1\n" for row in range(1, csvfiles.ROWS + 1))
    path = tmp_path / "T.csv"
    for text, found in (("", "''"), ("NA", "null")):
        path.write_text(f"time,v\n{rows}9,{text}\n")
        file = EventFile.of(path, "T", layout=Layout(nulls=("NA",)))
        with pytest.raises(BadEvent, match=rf"found {found} \(declared optional, by \?") as caught:
            list(file.read(Intake()))
        assert caught.value.place == f"{path}:row {csvfiles.ROWS + 1}"


def test_rows_of_another_length_make_nothing_optional(tmp_path: Path):
    path = tmp_path / "T.csv"
    path.write_text("time,v\n1,2\n3\n")
    intake = Intake(skip_bad=True)
    list(EventFile.of(path, "T").read(intake))
    assert intake.schemas == {"T": EventType.of("T", v="int")}


def test_a_constraint_on_a_null_is_false_in_columns_and_in_rows():
    rows = [{"time": 1, "n": 1, "f": None, "s": "a"}, {"time": 2, "n": 2, "f": 0.0, "s": None}]
    batch = batch_of(SCHEMA, rows, source="s")
    for matcher in (make("index"), make("naive")):
        matcher.add(1, 1, Filter.of(("f", "<", 1)))
        matcher.add(2, 2, Filter.of(("s", "!=", "b"), ("n", "<", 9)))
        assert matcher.match(batch).interface_lists() == [[2], [1]]
        mixed = MixedEvents.of([{**row} for row in rows], ["T", "T"])
        assert matcher.match(mixed).interface_lists() == [[2], [1]]
        assert mixed.data(0) == {"time": 1, "n": 1, "s": "a"}


def test_an_attribute_is_not_called_as_the_presence_of_another(tmp_path: Path):
    path = tmp_path / "T.csv"
    path.write_text("time,ok,ok?\n1,true,false\n")
    with pytest.raises(SchemaError, match="beside ok"):
        next(EventFile.of(path, "T").read(Intake()))
    path.write_text("time,n,ok?\n1,true,false\n")
    (chunk,) = EventFile.of(path, "T").read(Intake())
    assert chunk.batches[0].type.names == ("n", "ok?")
    line = tmp_path / "e.jsonl"
    line.write_text('{"type": "T", "time": 1, "data": {"n": null}}\n')
    chunks = EventFile.of(line).read(Intake({"T": EventType.of("T", n="int")}))
    with pytest.raises(BadEvent, match=r"found null \(declared optional, by \? behind its type"):
        list(chunks)
