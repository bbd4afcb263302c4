"""Batches and Arrow tables: docs/files.md, tesla.md E5."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from event_batches import batch_of_events

from matcher.errors import BadEvent, SchemaError
from matcher.formats.intake import Intake, Place
from matcher.formats.tabular import from_arrow, to_arrow
from matcher.model import Event, EventBatch, EventIds, EventType, StringColumn

TEMP = EventType.of("Temp", area="string", value="float", count="int", alarm="bool")
HERE = Place("temps.parquet", "temps")


def read(table: pa.Table | pa.RecordBatch, **options: object) -> EventBatch:
    intake = options.pop("intake", None) or Intake()
    return from_arrow(table, HERE, intake, **options)  # type: ignore[arg-type]


def table(**columns: object) -> pa.Table:
    return pa.table({"type": ["T"] * 3, "time": [1, 2, 3], **columns})


def test_a_batch_and_its_table_are_the_same_events() -> None:
    events = [
        Event(
            "Temp",
            5,
            "s",
            "7",
            {"area": "é\0", "value": -0.0, "count": 2**63 - 1, "alarm": True},
            7,
        ),
        Event(
            "Temp",
            -1,
            "t",
            "x",
            {"area": "", "value": 5e-324, "count": -(2**63), "alarm": False},
            2,
        ),
    ]
    batch = batch_of_events(TEMP, events)
    for dictionaries in (True, False):
        again = read(to_arrow(batch, dictionaries=dictionaries))
        assert again.type == TEMP
        assert list(again.events()) == events
        assert str(again.column("value")[0]) == "-0.0"


def test_numbers_and_times_are_not_copied() -> None:
    batch = batch_of_events(
        TEMP,
        [Event("Temp", 5, "s", "1", {"area": "a", "value": 1.5, "count": 1, "alarm": True}, 1)],
    )
    record_batch = to_arrow(batch)
    assert np.shares_memory(record_batch.column("value").to_numpy(), batch.column("value"))
    assert np.shares_memory(record_batch.column("time").view(pa.int64()).to_numpy(), batch.time)
    again = read(record_batch)
    for name in ("value", "count"):
        assert np.shares_memory(again.column(name), batch.column(name))
    assert np.shares_memory(again.ids.sequence, batch.ids.sequence)


def test_an_attribute_may_not_have_the_name_of_a_reserved_column() -> None:
    event_type = EventType.of("T", time="int")
    with pytest.raises(SchemaError, match="attribute time"):
        to_arrow(
            EventBatch(
                event_type,
                np.empty(0, np.int64),
                EventIds(StringColumn.constant("", 0), np.empty(0, np.int64)),
                (np.empty(0, np.int64),),
            )
        )


TIMES = [
    ([1, 2, 3], [1_000_000, 2_000_000, 3_000_000]),
    ([0.5, 1.25, 3.0], [500_000, 1_250_000, 3_000_000]),
    (["1970-01-01T00:00:01Z", "2.5", "1970-01-01T01:00:00+01:00"], [1_000_000, 2_500_000, 0]),
    ([Decimal("0.000001"), Decimal("2.500000"), Decimal("3.000000")], [1, 2_500_000, 3_000_000]),
    (pa.array([1, 2, 3], pa.timestamp("s")), [1_000_000, 2_000_000, 3_000_000]),
    (pa.array([1, 2, 3], pa.timestamp("ms", "Europe/Rome")), [1000, 2000, 3000]),
    (pa.array([1, 2, -3], pa.timestamp("us", "UTC")), [1, 2, -3]),
    (pa.array([1000, 2000, -3000], pa.timestamp("ns")), [1, 2, -3]),
    (pa.array([2**57, -(2**55), 0], pa.timestamp("us")), [2**57, -(2**55), 0]),
    (pa.array([1, 2, 3], pa.uint8()), [1_000_000, 2_000_000, 3_000_000]),
]


@pytest.mark.parametrize(("column", "times"), TIMES)
def test_times_come_in_every_form(column: object, times: list[int]) -> None:
    assert read(table(time=column)).time.tolist() == times


BAD = [
    ("time", [1, None, 3], "no time"),
    ("time", pa.array([1000, 2001, 3000], pa.timestamp("ns")), "finer"),
    ("time", pa.array([1, 2**62, 3], pa.timestamp("s")), "the year 146138514283, beyond 1 to 9999"),
    ("time", pa.array([1, 2**62, 3], pa.timestamp("us")), "the year 148108, beyond 1 to 9999"),
    ("time", ["1", "now", "2"], "neither RFC 3339"),
    ("time", [1.0, float("nan"), 3.0], "none of the years 1 to 9999"),
    ("time", ["1.0", "1e-7", "3.0"], "finer"),
    ("time", [1, 1541000542290, 3], "the year 50802: milliseconds"),
    ("x", [1.0, None, 3.0], "attribute x: expected float, found null"),
    ("x", [1.0, float("inf"), 3.0], "attribute x: expected a finite float"),
    ("n", pa.array([1, 2**63, 3], pa.uint64()), "attribute n: an int beyond 64 bits"),
    ("n", [1, None, 3], "attribute n: expected int, found null"),
    ("b", [True, None, True], "attribute b: expected bool, found null"),
    ("s", ["a", None, "c"], "attribute s: expected string, found null"),
    ("s", pa.array(["a", None, "c"]).dictionary_encode(), "expected string, found null"),
    ("s", pa.DictionaryArray.from_arrays([0, 1, 0], ["a", None]), "expected string, found null"),
    ("s", pa.array([b"a", b"\xff", b"c"]).view(pa.string()), "attribute s: text that is not UTF-8"),
]  # fmt: skip
KINDS = {
    "time": {},
    "x": {"x": "float"},
    "n": {"n": "int"},
    "b": {"b": "bool"},
    "s": {"s": "string"},
}


@pytest.mark.parametrize(("name", "column", "reason"), BAD)
def test_a_bad_row_is_raised_with_its_place_or_skipped(
    name: str, column: object, reason: str
) -> None:
    given = table(**{name: column})
    declared = {"T": EventType.of("T", **KINDS[name])}
    with pytest.raises(BadEvent, match=reason) as caught:
        read(given, intake=Intake(declared), first_row=10)
    assert caught.value.place == "temps.parquet:row 11"
    intake = Intake(declared, skip_bad=True)
    batch = read(given, intake=intake, first_row=10)
    assert batch.ids.printed() == ["10", "12"]
    assert (intake.events, intake.bad.total()) == (2, 1)


def test_a_declared_schema_decides() -> None:
    declared = {"T": EventType.of("T", x="float", s="string")}
    given = table(x=[1, 2, 3], s=["a", "b", "a"], more=[None, None, None])
    intake = Intake(declared)
    batch = read(given, intake=intake)
    assert batch.column("x").tolist() == [1.0, 2.0, 3.0]
    assert intake.surplus == 3
    with pytest.raises(BadEvent, match="attribute s is missing"):
        read(table(x=[1, 2, 3]), intake=Intake(declared))
    with pytest.raises(BadEvent, match="attribute x: expected float, found string"):
        read(table(x=["1"] * 3, s=["a"] * 3), intake=Intake(declared))


def test_each_bad_row_is_counted_once() -> None:
    declared = {"T": EventType.of("T", x="float", s="string")}
    intake = Intake(declared, skip_bad=True)
    assert len(read(table(s=[None, "a", "b"]), intake=intake)) == 0
    assert intake.bad == {"attribute x is missing": 3}


def test_a_column_of_no_kind_cannot_be_inferred() -> None:
    with pytest.raises(SchemaError, match=r"temps.parquet: column l of event T is of type list"):
        read(table(l=[[1], [2], [3]]))


def test_the_type_is_named_by_column_or_option() -> None:
    without = pa.table({"time": [1], "type": ["rain"], "x": [1]})
    assert read(without).type.name == "rain"
    named = read(without, type_name="Weather")
    assert named.type == EventType.of("Weather", type="string", x="int")
    with pytest.raises(SchemaError, match="no column 'type'"):
        read(pa.table({"time": [1]}))
    with pytest.raises(SchemaError, match=r"holds \['A', 'B'\]"):
        read(pa.table({"time": [1, 2], "type": ["A", "B"]}))


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(
        SchemaError, match=r"temps.parquet: two columns have the same name: x, \d and \d"
    ):
        read(pa.table([["T"], [1], [1], [2]], names=["type", "time", "x", "x"]))


def test_a_column_that_names_another_type_than_the_option_is_refused() -> None:
    known = Intake({"A": EventType.of("A", x="int")})
    same = pa.table({"time": [1, 2], "type": ["A", None], "x": [1, 2]})
    assert len(read(same, intake=known, type_name="A")) == 2
    other = pa.table({"time": [1, 2], "type": ["A", "B"], "x": [1, 2]})
    with pytest.raises(SchemaError, match="'type' says 'B', but the rows were to be of type A"):
        read(other, intake=known, type_name="A")


def test_identities_are_read_and_left_out() -> None:
    given = table(
        source=["a", None, "a"], sequence=pa.array([5, 6, None], pa.int32()), id=["x", None, "3"]
    )
    batch = read(given)
    assert batch.ids.source.tolist() == ["a", "temps", "a"]
    assert batch.ids.sequence.tolist() == [5, 6, 3]
    assert batch.ids.printed() == ["x", "6", "3"]
    assert read(table(id=[1, 2, 3])).ids.text is None
    with pytest.raises(SchemaError, match="column sequence"):
        read(table(sequence=["1", "2", "3"]))
    with pytest.raises(SchemaError, match="column id"):
        read(table(id=[1.5, 2.5, 3.5]))


def test_dictionaries_that_arrow_allows_are_made_proper() -> None:
    doubled = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), ["a", "a", "b"])
    batch = read(table(s=doubled))
    column = batch.column("s")
    assert isinstance(column, StringColumn)
    assert (column.tolist(), column.values) == (["a", "a", "b"], ("a", "b"))


def test_nulls_in_dictionaries_are_nulls_of_the_rows_that_name_them() -> None:
    def texts(*codes: int) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), ["a", None, "b"])

    batch = read(table(source=texts(0, 1, 2), id=texts(2, 0, 1), s=texts(0, 2, 0)))
    assert batch.ids.source.tolist() == ["a", "temps", "b"]
    assert batch.ids.printed() == ["b", "a", "temps:3"]
    assert batch.column("s").tolist() == ["a", "b", "a"]
    several = pa.chunked_array([texts(0), pa.array(["c", "d"]).dictionary_encode()])
    assert read(table(s=several)).column("s").tolist() == ["a", "c", "d"]


def test_other_arrow_types_are_taken_for_their_kind() -> None:
    given = table(
        a=pa.array(["a", "b", "c"], pa.large_string()),
        b=pa.array(["a", "b", "c"], pa.string_view()),
        c=pa.array([1, 2, 3], pa.uint16()),
        d=pa.array([1, 2, 3], pa.float32()),
    )
    batch = read(given)
    assert batch.type == EventType.of("T", a="string", b="string", c="int", d="float")
    assert batch.event(2).data == {"a": "c", "b": "c", "c": 3, "d": 3.0}


def test_an_attribute_that_has_the_name_of_a_column_of_all_tables_is_said_to_be_missing() -> None:
    declared = EventType.of("Temp", id="int", value="float")
    with pytest.raises(BadEvent, match="attribute id is missing: column id is the events' own"):
        read(
            table(id=["7"] * 3, value=[1.0] * 3, type=["Temp"] * 3),
            intake=Intake({"Temp": declared}),
        )
