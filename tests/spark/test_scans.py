"""Parquet files that workers read themselves give the rows that Spark gives, or are left to it."""

import math
import os
import warnings
from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agreement import row
from spark_frames import events_of

from broker.spark import detect, explain_plan, scans
from broker.spark.frames import BAD, ID, SEQUENCE, SOURCE, TIME, TYPE, wide_parts
from broker.spark.parquet import FileChanged
from broker.spark.scans import Scan, scan_of
from matcher.formats.timeform import TimeForm
from matcher.model import EventType

CASES = int(os.environ.get("REXMQ_CASES", "8"))
TYPES = [
    EventType.of("A", whole="int", part="float", name="string", on="bool"),
    EventType.of("B", whole="float", part="float", name="string"),
]
COLUMNS = [TIME, BAD, TYPE, SOURCE, SEQUENCE, ID]
INTEGERS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
SCHEMA = (
    "type string, time timestamp, source string, sequence {}, id string, whole {}, part {}, "
    "name string, on boolean, day int, place string"
)


def a_row(random: Random, bits: int, numbers: int) -> tuple[object, ...]:
    """A row as it may come: old and new, with nulls and numbers that are none, of other types."""
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        seconds=random.randint(-3_000_000_000, 3_000_000_000),
        microseconds=random.randint(0, 999) * 1_000,
    )
    part = random.choice((0.1, -2.5, 1e30, math.inf, -math.inf, math.nan, random.random()))
    whole = random.choice((0, -(2**bits), 2**bits - 1, random.randint(-(2**bits), 2**bits - 1)))
    values = [
        random.choice("ABBC"),
        instant,
        random.choice(("s", "other", "")),
        random.randint(0, 2**numbers - 1),
        random.choice(("x", "é", "x")),
        whole,
        part,
        random.choice(("n", "name", "", "€")),
        random.random() < 0.5,
    ]
    lacks = random.random() < 0.3
    held = [None if lacks and random.random() < 0.3 else value for value in values]
    return (*held, random.choice((1, 2, None)), random.choice(("here", "a b=c", None)))


def in_rows(batches) -> list[tuple[object, ...]]:
    return [tuple(one.values()) for batch in batches for one in batch.to_pylist()]


def read_twice(frame, types, row_type):
    """The wide rows that Spark gives and those that workers read, each in some order of all."""
    frames = frame if row_type is None else {row_type: frame}
    (whole,), form = wide_parts(frames, types)
    own = [one for type_ in types if row_type in (None, type_.name) for one in type_.attributes]
    columns = [*COLUMNS, *dict.fromkeys(form.column(one) for one in own)]
    if row_type is not None:
        columns.remove(TYPE)
    scan = scan_of(frame, form, row_type, columns, TIME)
    assert isinstance(scan, Scan), scan
    ours = in_rows(b for task in scan.tasks for piece in task for b in scan.rows.read(piece))
    given = [tuple(one) for one in whole.select(columns).collect()]
    return sorted(map(repr, given)), sorted(map(repr, ours))


@pytest.mark.parametrize("case", range(CASES))
def test_rows_are_those_that_spark_gives(spark, tmp_path, monkeypatch, case):
    random = Random(case)
    monkeypatch.setattr(scans, "ROWS_JOINED", random.choice((1, 40, scans.ROWS_JOINED)))
    integer, number = random.choice([*INTEGERS.items()]), random.choice([*INTEGERS.items()])
    schema = SCHEMA.format(number[0], integer[0], random.choice(("float", "double")))
    rows = [a_row(random, integer[1], number[1]) for _ in range(random.choice((5, 300)))]
    if case % 3 == 0:
        rows = [one for one in rows if None not in one[:9] and math.isfinite(one[6])]
    frame = spark.createDataFrame(rows, schema).repartition(random.choice((1, 3)))
    instants = random.choice(("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"))
    spark.conf.set("spark.sql.parquet.outputTimestampType", instants)
    try:
        writer = frame.write.option("compression", random.choice(("snappy", "gzip", "zstd")))
        folders = random.choice(((), ("day",), ("place", "day"), ("source",)))
        writer.partitionBy(*folders).parquet(f"{tmp_path}/t")
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    made = spark.read.parquet(f"{tmp_path}/t").drop("day")
    if case % 2:
        spark_rows, ours = read_twice(made, TYPES, None)
    else:
        spark_rows, ours = read_twice(made, TYPES, random.choice("ABC"))
    assert len(ours) == len(rows)
    assert ours == spark_rows


def test_columns_may_be_renamed_and_folders_be_left_out(spark, tmp_path):
    rows = [(n, n * 1.5, "x" if n % 3 else "y", n % 4) for n in range(100)]
    frame = spark.createDataFrame(rows, "number long, amount double, whose string, day int")
    frame = frame.selectExpr("*", "timestamp_micros(number) as at")
    frame.write.partitionBy("day").parquet(f"{tmp_path}/t")
    made = (
        spark.read.parquet(f"{tmp_path}/t")
        .where("day in (1, 2) and whose is not null or day = 1")
        .where("day < 2")
        .selectExpr("at", "number as n", "amount", "whose as source", "day")
    )
    assert scan_reason(made.withColumnRenamed("at", "time")).startswith("its rows are filtered by")
    made = spark.read.parquet(f"{tmp_path}/t").where("day in (1, 2)").where("day < 2")
    made = made.selectExpr("at as time", "number as sequence", "amount as part", "whose as name")
    types = [EventType.of("A", part="float", name="string")]
    (whole,), form = wide_parts({"A": made}, types)
    columns = [TIME, BAD, SEQUENCE, *form.values]
    scan = scan_of(made, form, "A", columns, TIME)
    assert isinstance(scan, Scan), scan
    ours = in_rows(b for task in scan.tasks for piece in task for b in scan.rows.read(piece))
    assert sorted(ours) == sorted((n, None, n, a, w) for n, a, w, day in rows if day == 1)
    assert sorted(map(tuple, whole.select(columns).collect())) == sorted(ours)


SIMPLE = [EventType.of("A", value="float")]


def scan_reason(frame) -> str:
    """Why a frame of time, sequence and value is no scan; nothing if it is one."""
    if "value" not in frame.columns:
        frame = frame.withColumnRenamed("amount", "value").withColumnRenamed("n", "sequence")
    _, form = wide_parts({"A": frame}, SIMPLE)
    scan = scan_of(frame, form, "A", [TIME, BAD, *form.values], TIME)
    return "" if isinstance(scan, Scan) else scan


def table(**columns) -> pa.Table:
    given = {
        "time": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "sequence": pa.array([1, 2, 3]),
        "value": pa.array([1.0, 2.0, 3.0]),
        "name": pa.array(["a", "b", "a"]),
    }
    return pa.table({**given, **columns})


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({}, {}),
        ({"name": pa.array(["a", None, "c"], pa.large_string())}, {}),
        ({"name": pa.array(["a", "b", "a"]).dictionary_encode()}, {}),
        ({"time": pa.array([1, None, 3], pa.timestamp("ms", "Europe/Rome"))}, {}),
        ({"value": pa.array([1, 2, 2**62 + 1])}, {}),
        ({"value": pa.array([1, 2, None], pa.int8())}, {"row_group_size": 1}),
        ({"value": pa.array([1, math.nan, math.inf], pa.float32())}, {"write_statistics": False}),
        (
            {"time": pa.array([1, 2, 3], pa.timestamp("us"))},
            {"use_deprecated_int96_timestamps": True},
        ),
        (
            {"time": pa.array([1, -2, 3], pa.timestamp("us", "Asia/Tokyo"))},
            {"use_deprecated_int96_timestamps": True},
        ),
        ({}, {"use_dictionary": False, "data_page_version": "2.0", "compression": "zstd"}),
    ],
)
def test_files_of_others_are_read_as_spark_reads_them(spark, tmp_path, columns, options):
    pq.write_table(table(**columns), tmp_path / "t.parquet", **options)
    types = [EventType.of("A", value="float", name="string")]
    frame = spark.read.parquet(f"{tmp_path}/t.parquet").selectExpr("*", "name as source")
    (whole,), form = wide_parts({"A": frame}, types)
    names = [TIME, BAD, SOURCE, SEQUENCE, *form.values]
    scan = scan_of(frame, form, "A", names, TIME)
    assert isinstance(scan, Scan), scan
    ours = in_rows(b for task in scan.tasks for piece in task for b in scan.rows.read(piece))
    assert [*map(repr, ours)] == [repr(tuple(one)) for one in whole.select(names).collect()]


@pytest.mark.parametrize(
    ("columns", "metadata", "said"),
    [
        (
            {"value": pa.array([1, 2, 3], pa.uint32())},
            {},
            "column value is INT32 of logical type Int",
        ),
        (
            {"time": pa.array([1, 2, 3], pa.timestamp("us"))},
            {},
            "column time is of type timestamp_ntz",
        ),
        (
            {"sequence": pa.array([1, 2, 3], pa.duration("us"))},
            {},
            "which Arrow takes for duration",
        ),
        ({}, {"org.apache.spark.version": "2.4.8"}, "may be of the calendar before 1582"),
        ({}, {"org.apache.spark.version": "4.3.0", "org.apache.spark.legacyINT96": ""}, "calendar"),
    ],
)
def test_what_spark_may_read_in_another_way_is_left_to_it(spark, tmp_path, columns, metadata, said):
    written = table(**columns)
    written = written.replace_schema_metadata({**(written.schema.metadata or {}), **metadata})
    pq.write_table(written, tmp_path / "t.parquet")
    frame = spark.read.parquet(f"{tmp_path}/t.parquet")
    if dict(frame.dtypes)["time"] == "timestamp_ntz":
        _, form = wide_parts({"A": frame}, SIMPLE, times=TimeForm(zone="UTC"))
        assert said in scan_of(frame, form, "A", [TIME, BAD], TIME)
    else:
        assert said in scan_reason(frame)


def test_a_frame_that_is_more_than_files_is_left_to_spark(spark, tmp_path):
    place = f"{tmp_path}/t"
    spark.range(10).selectExpr(
        "timestamp_micros(id) as time", "id as sequence", "id / 2 as value"
    ).write.parquet(place)
    frame = spark.read.parquet(place)
    assert scan_reason(frame) == ""
    computed = frame.selectExpr("time", "sequence", "value * 2 as value")
    assert scan_reason(computed) == "its column value is computed"
    assert scan_reason(frame.where("value > 1")) == "its rows are filtered by value"
    assert "its plan has Union" in scan_reason(frame.unionAll(frame))
    assert "its plan has LogicalRDD" in scan_reason(spark.createDataFrame(frame.rdd, frame.schema))
    assert "its plan has InMemoryRelation" in scan_reason(frame.select("*").cache())
    frame.unpersist()
    assert scan_reason(frame) == ""
    reader = spark.read.option("ignoreCorruptFiles", "true")
    assert scan_reason(reader.parquet(place)) == "its reader has the option ignorecorruptfiles"
    frame.write.json(f"{tmp_path}/json")
    schema = frame.schema
    assert "JsonFileFormat" in scan_reason(spark.read.schema(schema).json(f"{tmp_path}/json"))
    spark.conf.set("spark.sql.parquet.int96TimestampConversion", "true")
    try:
        assert "int96TimestampConversion is true" in scan_reason(frame)
    finally:
        spark.conf.unset("spark.sql.parquet.int96TimestampConversion")


def test_files_of_several_schemas_are_left_to_spark(spark, tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(table().drop_columns(["value"]), tmp_path / "b.parquet")
    frame = spark.read.option("mergeSchema", "true").parquet(str(tmp_path))
    assert scan_reason(frame).endswith("b.parquet, column value is not there once, and flat")
    wider = spark.read.schema("time timestamp, sequence long, VALUE double").parquet(str(tmp_path))
    reason = scan_reason(wider.withColumnRenamed("VALUE", "value"))
    assert "column VALUE is not there once, and flat" in reason


def test_a_file_that_changes_is_not_read_as_something_else(spark, tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    frame = spark.read.parquet(f"{tmp_path}/a.parquet")
    _, form = wide_parts({"A": frame}, SIMPLE)
    scan = scan_of(frame, form, "A", [TIME, BAD, *form.values], TIME)
    pq.write_table(pa.concat_tables([table()] * 2), tmp_path / "a.parquet")
    assert "has changed since the frame was made" in scan_reason(frame)
    with pytest.raises(FileChanged, match=r"a\.parquet is not what it was"):
        [*scan.rows.read(scan.tasks[0][0])]


RULES = """
event Temp(area: string, value: float)
rule pair: define Pair(area: string, first: float, second: float)
from Temp(area = $a) as Now and last Temp(area = $a) as Before within 1 min from Now
where area = $a, first = Before.value, second = Now.value
"""


@pytest.mark.parametrize(
    ("way", "rules", "is_direct"),
    [
        ("time", RULES, True),
        ("key", f"{RULES}consuming Before\n", False),  # three keys are no even buckets
    ],
)
def test_detect_finds_the_same_whoever_reads_the_files(spark, tmp_path, way, rules, is_direct):
    random = Random(3)
    rows = [
        (float(n // 2), random.choice("abc"), random.choice((1.5, 2.5, None)), "s", n)
        for n in range(3_000)
    ]
    schema = "seconds double, area string, value double, source string, sequence long"
    made = spark.createDataFrame(rows, schema).selectExpr("timestamp_seconds(seconds) as time", "*")
    made.drop("seconds").repartition(5).write.parquet(f"{tmp_path}/t")
    frame = {"Temp": spark.read.parquet(f"{tmp_path}/t")}
    plan = explain_plan(frame, rules).splitlines()
    assert plan[-1] == "the frame of Temp: 5 Parquet files, read by the workers themselves"
    found, told = [], []
    for reads_files in (True, False):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            composites = detect(
                frame, rules, ways=(way,), cells=3, on_bad="drop", reads_files=reads_files
            )
            found.append(sorted(map(row, events_of(composites))))
        shuffles = "Exchange" in composites._jdf.queryExecution().toString()
        assert shuffles != (reads_files and is_direct)
        told.append([str(one.message) for one in caught if "no event" in str(one.message)])
    assert len(found[0]) > (1_500 if is_direct else 500)
    assert found[0] == found[1]
    assert told[0] == told[1]
    assert len(told[0]) == 1
