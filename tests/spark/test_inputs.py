"""Frames as they come: nothing is cast that does not fit, and no row goes without a word."""

import warnings
from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.spark import SparkFailed, detect, of_type, readable_errors, rejected
from matcher.errors import BadEvent, SchemaError
from matcher.formats.timeform import RFC_3339
from matcher.times import RFC_3339_MAX, time_of

RULE = """event R(value: float)
rule copy: define Copy(value: float) from R() as Now where value = Now.value
"""
NAMED = "double(id) as value, 's' as source, id as sequence"
pytestmark = pytest.mark.filterwarnings("ignore:the events have no column")


def rows_of(spark, select, count=5):
    return {"R": spark.sql(f"select {select} from range(1, {count + 1})")}


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("'s' as source, 1 + id / 10d as sequence", "column sequence is of type double; expected"),
        ("'s' as source, 'a' || id as sequence", "column sequence is of type string; expected"),
        ("'s' as source, decimal(id) as sequence", "column sequence is of type decimal.10,0."),
        ("double(id) as source, id as sequence", "column source is of type double; expected text"),
        ("'s' as source, double(id) as id", "column id is of type double; expected text"),
    ],
)
def test_a_column_that_names_rows_is_not_cast_to_what_it_is_not(spark, select, said):
    frames = rows_of(spark, f"timestamp_seconds(id) as time, double(id) as value, {select}")
    with pytest.raises(SchemaError, match=said):
        detect(frames, RULE)
    with pytest.raises(SchemaError, match="column type is of type bigint; expected names of types"):
        detect(frames["R"].selectExpr("*", "1L as type"), RULE)


@pytest.mark.parametrize("reads_files", [False, True])
def test_a_row_without_a_number_among_numbered_ones_is_refused_or_counted(
    spark, tmp_path, reads_files
):
    """It has no place among simultaneous events; the numbers of the others are what they were."""
    select = "timestamp_seconds(id) as time, double(id) as value, 's' as source"
    made = rows_of(spark, f"{select}, if(id between 2 and 4, null, id) as sequence")
    made["R"].write.parquet(f"{tmp_path}/t")
    frames = {"R": spark.read.parquet(f"{tmp_path}/t")}
    with pytest.raises(BadEvent, match="3 of R: no sequence number"):
        detect(frames, RULE, reads_files=reads_files)
    with pytest.warns(UserWarning, match="3 of R: no sequence number"):
        found = detect(frames, RULE, on_bad="drop", reads_files=reads_files).collect()
    assert sorted((row.Copy.value, *row.cause) for row in found) == [(1.0, "1"), (5.0, "5")]
    assert {row.reason for row in rejected(frames, RULE).collect()} == {"no sequence number"}


def test_an_id_that_repeats_is_told_by_name_unless_it_is_the_same_row(spark):
    """To leave one of them out is refused, too: which one depended on how the rows are cut."""
    select = "timestamp_seconds(1) as time, 's' as source, 7 as sequence"
    same = spark.sql(f"select {select}, 1d as value union all select {select}, 1d as value")
    assert detect({"R": same}, RULE).count() == 1
    others = same.union(same.withColumn("value", same["value"] + 1))
    found = detect({"R": others}, RULE, on_bad="drop")
    said = "id 7 of source s names R at 1970-01-01T00:00:01Z and another event.*; an id names one"
    with pytest.raises(SparkFailed, match=said), readable_errors():
        found.count()


def test_a_row_without_a_source_is_of_the_source_called_like_its_type(spark):
    select = "timestamp_seconds(id) as time, double(id) as value, id as sequence"
    frames = rows_of(spark, f"{select}, if(id = 1, null, if(id = 2, '', 's')) as source", 3)
    found = detect(frames, RULE, full_cause=True).collect()
    assert sorted(row.cause[0] for row in found) == ["R#1", "R#2", "s#3"]


# --- times -------------------------------------------------------------------------------------


def random_text(random):
    """A text that is a time, or nearly one."""
    year = random.choice((1, 999, 1969, 2024, 9999, 10000, 0))
    day = f"{year:04}-{random.randint(0, 13):02}-{random.choice((1, 28, 29, 30, 31)):02}"
    clock = f"{random.randint(0, 24):02}:{random.choice((0, 59, 60)):02}:{random.randint(0, 60):02}"
    digits = random.choice(("", "", ".5", ".123456", ".1234560", ".123456000", ".1234567", "."))
    zone = random.choice(("Z", "z", "+00:00", "-05:30", "+18:30", "+23:59", "+24:00", "", "+0100"))
    number = random.choice(("0", "12.5", "-3", "1e3", "1.5e-6", "1e-7", "1.50000000", " 1", "x"))
    return random.choice((f"{day}{random.choice('TTt ')}{clock}{digits}{zone}", number))


def read_alone(value):
    """The time that ``rexmq detect`` reads; None where it refuses."""
    try:
        time = RFC_3339.time_of(value).time
    except BadEvent:
        return None
    return time if time <= RFC_3339_MAX else None


def times_read(spark, values, kind):
    """By value, the time that is read in it; None where the row is refused."""
    frame = spark.createDataFrame(
        [(value, float(place)) for place, value in enumerate(values)], f"time {kind}, value double"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = detect({"R": frame}, RULE, on_bad="drop", cells=1)
    spread = found.selectExpr("unix_micros(time) as time", "Copy.value as value").collect()
    read = {int(row.value): row.time for row in spread}
    return {value: read.get(place) for place, value in enumerate(values)}


def test_texts_and_numbers_are_the_times_that_they_are_in_files(spark):
    random = Random(1)
    texts = sorted({random_text(random) for _ in range(400)})
    texts += ["2024-03-31T01:00:00.123456000Z", "2024-03-31t01:00:00z", "2024-03-31T01:00:00+18:30"]
    expected = {text: read_alone(text) for text in texts}
    assert times_read(spark, texts, "string") == expected
    assert sum(time is not None for time in expected.values()) > 30
    numbers = [0.5, -1.25, 12.3, 1e-7, 2.0**33 + 0.123456, 1e15, float("inf"), 1700000000.123456]
    assert times_read(spark, numbers, "double") == {one: read_alone(one) for one in numbers}
    whole = [0, -5, 253_402_300_799, 253_402_300_800, 2**62]
    assert times_read(spark, whole, "long") == {one: read_alone(one) for one in whole}


def test_clocks_without_a_zone_are_read_by_theirs_whatever_the_sessions_is(spark):
    """Over the hour that comes twice where the session's clocks go back."""
    name = "spark.sql.session.timeZone"
    frames = rows_of(
        spark, f"cast('2024-10-27 0' || id || ':30:00.25' as timestamp_ntz) as time, {NAMED}", 4
    )
    begin = time_of(datetime(2024, 10, 27, 0, 30, 0, 250_000, UTC))
    hour, summer = 3_600_000_000, [-1, 0, 2, 3]  # in Rome, 01:30 is UTC's 23:30, 03:30 is 02:30
    spark.conf.set(name, "Europe/Rome")
    try:
        for zone, hours in (
            ("UTC", [1, 2, 3, 4]),
            ("+02:00", [-1, 0, 1, 2]),
            ("Europe/Rome", summer),
        ):
            found = detect(frames, RULE, time_zone=zone)
            spread = found.selectExpr("unix_micros(time) as time", "Copy.value as value").collect()
            read = [row.time for row in sorted(spread, key=lambda row: row.value)]
            assert read == [begin + one * hour for one in hours], zone
    finally:
        spark.conf.set(name, "UTC")
    with pytest.raises(ValueError, match=r"time_zone is a name such as .*, not 'Mars/Base'"):
        detect(frames, RULE, time_zone="Mars/Base")
    with pytest.raises(SchemaError, match="column time holds times without a time zone"):
        detect(frames, RULE)


@pytest.mark.parametrize("reads_files", [False, True])
def test_times_beyond_the_year_9999_are_refused_by_all_who_read(spark, tmp_path, reads_files):
    instants = pa.array([0, RFC_3339_MAX, RFC_3339_MAX + 1, 2**62], pa.int64())
    columns = {"time": instants.view(pa.timestamp("us", "UTC")), "value": [0.0, 1.0, 2.0, 3.0]}
    table = pa.table({**columns, "source": ["s"] * 4, "sequence": [1, 2, 3, 4]})
    pq.write_table(table, f"{tmp_path}/t.parquet")
    frame = spark.read.parquet(f"{tmp_path}/t.parquet")
    with pytest.warns(UserWarning, match="2 of R: no time that can be read .*the year 9999"):
        found = detect({"R": frame}, RULE, on_bad="drop", reads_files=reads_files)
    assert {row.value for row in found.select("Copy.value").collect()} == {0.0, 1.0}


def test_files_without_rows_find_nothing(spark, tmp_path):
    """Tables without rows have row groups of none, as pyarrow and pandas write them."""
    kinds = {"value": pa.float64(), "source": pa.string(), "sequence": pa.int64()}
    names = {"time": pa.timestamp("us", "UTC"), **kinds}
    table = pa.table({name: pa.array([], kind) for name, kind in names.items()})
    for name in "ab":
        pq.write_table(table, f"{tmp_path}/{name}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    for reads_files in (False, True):
        assert detect({"R": frame}, RULE, reads_files=reads_files).count() == 0


# --- what is given -----------------------------------------------------------------------------


def test_what_is_no_frame_and_what_is_no_type_is_told(spark):
    for given in ([], {"R": []}, None):
        with pytest.raises(TypeError, match="events are a DataFrame with a column 'type', or"):
            detect(given, RULE)
    found = detect(rows_of(spark, f"timestamp_seconds(id) as time, {NAMED}"), RULE)
    with pytest.raises(ValueError, match="no type 'Coppy' is among the composite events: Copy"):
        of_type(found, "Coppy")
