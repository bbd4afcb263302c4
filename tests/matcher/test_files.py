"""Files of events in every form and compression, out and back (docs/files.md)."""

import gzip
import itertools
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from event_batches import batch_of_events

from matcher.errors import BadEvent, EventError, SchemaError
from matcher.formats import csvfiles, jsonlines, pieces
from matcher.formats.files import EventFile, form_of, opened, output_to, path_of_type
from matcher.formats.intake import Intake, Place
from matcher.identity import RULE_SOURCE
from matcher.model import Causes, Event, EventBatch, EventIds, EventType, StringColumn

MIXED = EventType.of("Mixed", i="int", f="float", b="bool", s="string")
ENDINGS = [
    form + compression
    for form, compression in itertools.product(
        (".jsonl", ".parquet", ".arrow", ".csv"), ("", ".gz", ".zst", ".bz2", ".xz")
    )
] + [".tsv", ".NDJSON.GZ"]
EVENTS = [
    Event("Mixed", 0, "a", "1", {"i": 2**63 - 1, "f": 1e22, "b": True, "s": "é,\"'\n\r\n"}, 1),
    Event("Mixed", 1, "a", "2", {"i": -(2**63), "f": -0.0, "b": False, "s": ""}, 2),
    Event("Mixed", 2**57, "b", "x", {"i": 0, "f": 5e-324, "b": True, "s": "\0😀\u2028"}, 3),
    Event("Mixed", -(2**55) - 7, "b", " ", {"i": 1, "f": 0.1, "b": True, "s": " true "}, 4),
]


def written(path: Path, batches: list[EventBatch]) -> Path:
    with output_to(path, [batches[0].type], composite=False) as output:
        for batch in batches:
            output.write([batch])
    return path


def events_in(file: EventFile, intake: Intake | None = None) -> list[Event]:
    chunks = file.read(intake or Intake())
    return [event for chunk in chunks for batch in chunk.batches for event in batch.events()]


@pytest.mark.parametrize("ending", ENDINGS)
def test_events_come_back_as_they_were_written(ending: str, tmp_path: Path) -> None:
    batch = batch_of_events(MIXED, EVENTS)
    path = written(tmp_path / f"events{ending}", [batch, batch.take(slice(1, 2)), batch])
    expected = EVENTS + EVENTS[1:2] + EVENTS
    file = EventFile.of(path)
    intake = Intake()
    glances = list(file.scan(intake))
    assert intake.schemas == {"Mixed": MIXED}
    assert sorted(time for glance in glances for time in glance.times.tolist()) == sorted(
        event.time for event in expected
    )
    found = events_in(file, intake)
    assert found == expected
    assert [str(event.data["f"]) for event in found] == [str(event.data["f"]) for event in expected]
    assert intake.events == len(expected)


def test_offsets_beyond_an_arrow_file_are_refused(tmp_path: Path) -> None:
    """Arrow believes them unless it is asked, and reads memory that is not there."""
    path = written(tmp_path / "events.arrow", [batch_of_events(MIXED, EVENTS)])
    offsets = np.array([0, 1, 2, 3, 4], "<i4").tobytes()
    data = path.read_bytes()
    assert offsets in data
    path.write_bytes(data.replace(offsets, np.array([0, 1, 2, 3, 2**30], "<i4").tobytes()))
    for read in (EventFile.of(path).read, EventFile.of(path).scan):
        with pytest.raises(EventError, match="not arrow as expected"):
            list(read(Intake()))


def test_a_length_beyond_all_memory_is_told_as_what_is_wrong_with_the_file(tmp_path: Path) -> None:
    """Arrow believes the length of a packed buffer, and asks for as much memory."""
    path = written(tmp_path / "events.arrow", [batch_of_events(MIXED, EVENTS)])
    refused = pytest.raises(EventError, match="not arrow as expected: malloc of size")
    with refused, opened(path):
        raise MemoryError("malloc of size 1125899906842624 failed")


def test_a_glance_at_a_piece_without_times_has_none() -> None:
    place = Place("damaged.parquet", "s")
    (glance,) = pieces.glances([pa.record_batch({"x": [1, 2]})], place, Intake())
    assert (glance.end, len(glance.times)) == (2, 0)


@pytest.mark.parametrize("ending", [".arrow", ".parquet"])
def test_names_that_are_no_text_are_refused(ending: str, tmp_path: Path) -> None:
    """Arrow tells names of columns when they are asked for, and only then finds that out."""
    odd = EventType.of("Odd", strange="int")
    event = Event("Odd", 0, "a", "1", {"strange": 1}, 1)
    path = written(tmp_path / f"events{ending}", [batch_of_events(odd, [event])])
    path.write_bytes(path.read_bytes().replace(b"strange", b"\x84trange"))
    with pytest.raises(EventError, match=r"as expected: .*utf-8"):
        list(EventFile.of(path).read(Intake()))


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".arrow", ".csv"])
def test_no_events_make_a_valid_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"none{ending}"
    with output_to(path, [MIXED], composite=False):
        pass
    assert events_in(EventFile.of(path)) == []
    assert list(EventFile.of(path).scan(Intake())) == []


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".arrow", ".csv"])
def test_pieces_change_nothing(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonlines, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(pieces, "ROWS", 7)
    monkeypatch.setattr(csvfiles, "ROWS", 7)
    events = [
        Event("Mixed", n, "s", str(n), {"i": n, "f": n / 4, "b": n % 2 == 0, "s": f"v{n}"}, n)
        for n in range(1, 100)
    ]
    path = written(tmp_path / f"many{ending}", [batch_of_events(MIXED, events)])
    file = EventFile.of(path)
    chunks = list(file.read(Intake()))
    assert len(chunks) > 5
    assert [event for chunk in chunks for batch in chunk.batches for event in batch.events()] == (
        events
    )
    glances = list(file.scan(Intake()))
    assert glances[-1].end == chunks[-1].end == 99
    assert np.concatenate([glance.times for glance in glances]).tolist() == list(range(1, 100))


def composites() -> EventBatch:
    """Two composite events: of a numbered and a named event, and of a composite one."""
    fire = EventType.of("Fire", area="string")
    causes = Causes(
        np.array([0, 2, 3]),
        EventIds(
            StringColumn.from_strings(["s", "s", "rexmq/rule/r"]),
            np.array([17, 0, 0]),
            StringColumn.from_strings(["", "x", ""]),
            np.array([[0, 0], [0, 0], [1, 2]], np.uint64),
        ),
        np.array([False, False, True]),
        np.array([False, True, False]),
    )
    ids = EventIds(
        StringColumn.constant(RULE_SOURCE + "fire", 2),
        np.zeros(2, np.int64),
        digest=np.array([[2**64 - 1, 0], [10, 11]], np.uint64),
    )
    return EventBatch(
        fire, np.array([5, 6]), ids, (StringColumn.from_strings(["a1", "a2"]),), causes
    )


def test_composite_events_are_printed_as_the_contract_says(tmp_path: Path) -> None:
    path = tmp_path / "fires.jsonl"
    batch = composites()
    with output_to(path, [batch.type], composite=True) as output:
        output.write([batch], np.array([1, 0]))
    second, first = path.read_text().splitlines()
    assert first == (
        '{"specversion":"1.0","type":"Fire","time":"1970-01-01T00:00:00.000005Z",'
        '"source":"rexmq/rule/fire","id":"ffffffffffffffff0000000000000000",'
        '"data":{"area":"a1"},"cause":["17","x"]}'
    )
    assert '"cause":["00000000000000010000000000000002"]' in second
    with output_to(path, [batch.type], composite=True, full_cause=True, seconds=True) as output:
        output.write([batch])
    assert '"time":0.000005,' in path.read_text()
    assert '"cause":["s#17","s#x"]' in path.read_text()


def test_composite_events_go_to_tables_too(tmp_path: Path) -> None:
    batch = composites()
    for ending in (".parquet", ".arrow", ".csv"):
        path = tmp_path / f"fires{ending}"
        with output_to(path, [batch.type], composite=True) as output:
            output.write([batch], np.array([1, 0]))
        assert [(event.id, event.data) for event in events_in(EventFile.of(path))] == [
            ("000000000000000a000000000000000b", {"area": "a2"}),
            ("ffffffffffffffff0000000000000000", {"area": "a1"}),
        ]
    assert path.read_text().splitlines()[1].endswith(",a2,00000000000000010000000000000002")


def test_several_types_go_to_several_tables(tmp_path: Path) -> None:
    one, two = EventType.of("One", x="int"), EventType.of("Two")
    batches = [
        batch_of_events(one, [Event("One", n, "s", str(n), {"x": n}, n) for n in (1, 2, 3)]),
        batch_of_events(two, [Event("Two", n, "s", str(n), {}, n) for n in (4, 5)]),
    ]
    path = tmp_path / "out.v1.csv.gz"
    with output_to(path, [one, two], composite=False) as output:
        output.write(batches, np.array([4, 2, 0, 3, 1]))
    paths = [path_of_type(path, event_type, [one, two]) for event_type in (one, two)]
    assert [path.name for path in paths] == ["out.v1.One.csv.gz", "out.v1.Two.csv.gz"]
    assert [[event.id for event in events_in(EventFile.of(path))] for path in paths] == [
        ["3", "1", "2"],
        ["5", "4"],
    ]


def test_endings_say_the_form() -> None:
    assert form_of(Path("a.jsonl")) == (".jsonl", None)
    assert form_of(Path("b/a.x.csv.gz")) == (".csv", "gzip")
    assert form_of(Path("a.parquet.zst")) == (".parquet", "zstd")
    assert form_of(Path("a.NDJSON.Gz")) == (".jsonl", "gzip")
    assert form_of(Path("a.json")) == (".json", None)
    assert form_of(Path("pages.TSV")) == (".tsv", None)
    assert form_of(Path("a.csv.zip")) == (".csv", "zip")
    assert form_of(Path("a.zip")) == ("", "zip")
    for name in ("a", "a.gz", ".jsonl", "a.jsonl.lz4", "a.gz.jsonl.gz.gz", "a.xlsx"):
        with pytest.raises(EventError, match="ends in one of"):
            form_of(Path(name))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_is_not_what_its_name_says_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"wrong{ending}"
    path.write_bytes(b"PAR1 this is not it \xff\xfe" * 10)
    with pytest.raises(EventError, match="wrong"):
        events_in(EventFile.of(path, "T"))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.xz"
    path.write_bytes(lzma.compress(b"{}\n" * 1000)[:-20])
    with pytest.raises(EventError, match=r"cut\.jsonl\.xz: not jsonl as expected"):
        list(EventFile.of(path).scan(Intake()))
    path.write_bytes(b"{}")
    with pytest.raises(EventError, match=r"cut\.jsonl\.xz: not jsonl as expected"):
        list(EventFile.of(path).scan(Intake()))
    path = tmp_path / "cut.jsonl.gz"
    line = b'{"type": "T", "time": 1}\n'
    path.write_bytes(gzip.compress(line * 1000)[:-20])
    with pytest.raises(EventError, match=r"cut\.jsonl\.gz: not jsonl as expected"):
        events_in(EventFile.of(path))
    path.write_bytes(gzip.compress(line) + gzip.compress(line))
    assert len(events_in(EventFile.of(path))) == 2


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        events_in(EventFile.of(tmp_path / "none.csv"))


CSV_BAD = [
    ("1,a,1,1.5,true,9", "6 fields, where the heading has 5"),
    ("1,a", "2 fields, where the heading has 5"),
    ("1,a,1.5,1.5,true", "attribute n: expected int, found '1.5'"),
    ("1,a,0x10,1.5,true", "attribute n: expected int"),
    ("1,a,9223372036854775808,1.5,true", "attribute n: expected int"),
    ("1,a,1,,true", "attribute x: expected float, found ''"),
    ("1,a,1,nan,true", "attribute x: expected float"),
    ("1,a,1,1e999,true", "attribute x: expected a finite float"),
    ("1,a,1,1.5,1", "attribute b: expected bool"),
    ("soon,a,1,1.5,true", "time 'soon'"),
    (",a,1,1.5,true", "time ''"),
    ("1e99999999999999999999,a,1,1.5,true", "time 1e99999999999999999999 is none"),
    ("1,\udcff,1,1.5,true", "not UTF-8"),
]


@pytest.mark.parametrize(("row", "reason"), CSV_BAD)
def test_a_bad_row_of_csv_is_raised_with_its_place_or_skipped(
    row: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    text = f"time,s,n,x,b\n1,a,1,1.5,true\n\n{row}\n2.5,,-3,4e1,False\n"
    path.write_bytes(text.encode(errors="surrogateescape"))
    file = EventFile(path, "t", "T")
    declared = {"T": EventType.of("T", s="string", n="int", x="float", b="bool")}
    with pytest.raises(BadEvent, match=reason) as caught:
        events_in(file, Intake(declared))
    assert caught.value.place == f"{path}:row 2"
    intake = Intake(declared, skip_bad=True)
    events = events_in(file, intake)
    assert intake.bad.total() == 1
    assert [event.id for event in events] == ["1", "3"]
    assert events[1].data == {"s": "", "n": -3, "x": 40.0, "b": False}
    [glance] = file.scan(Intake())
    assert set(glance.times.tolist()) >= {1_000_000, 2_500_000}


def test_csv_itself_may_be_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('time,a\n1,"x"y\n')
    with pytest.raises(BadEvent, match=r"t.csv:2: not CSV"):
        events_in(EventFile(path, "t", "T"))
    path.write_text("time,a,a\n1,2,3\n")
    with pytest.raises(SchemaError, match="same name"):
        events_in(EventFile(path, "t", "T"))


def table_written(path: Path, table: pa.Table) -> EventFile:
    """A file of a table that no batch of events is written as."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return EventFile(path, "t", "T")


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_two_columns_of_one_name_are_refused(ending: str, tmp_path: Path) -> None:
    names, one = ["time", "p", "p"], pa.array([1])
    for rows in (0, 1):
        table = pa.table([one, one, pa.array(["a"])], names=names).slice(0, rows)
        file = table_written(tmp_path / f"t{ending}", table)
        for look in (file.read, file.scan):
            with pytest.raises(SchemaError, match=rf"t{ending}: two .* same name: p, 2 and 3"):
                list(look(Intake()))


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("name", ["source", "sequence", "id"])
def test_what_is_wrong_with_a_column_is_said_with_the_file(
    name: str, ending: str, tmp_path: Path
) -> None:
    file = table_written(tmp_path / f"t{ending}", pa.table({"time": [1], name: [1.5]}))
    for look in (file.read, file.scan):
        with pytest.raises(SchemaError, match=rf"t{ending}: column {name} is of type double"):
            list(look(Intake()))
