"""Optional attributes in DataFrames: the same as in one engine (docs/spark.md, tesla.md S9)."""

from random import Random

import pyarrow as pa
import pytest
from cases import Push, nullable, random_case
from engines import make
from pyspark.sql import functions as f
from rule_texts import OPTIONAL
from spark_frames import events_of, frame_of
from timeline import batches

import rules
from broker.spark import detect, rejected
from broker.spark.outgoing import PlainRows
from broker.spark.reading import rows_of, schema_of
from broker.spark.target import check_columns
from matcher.errors import BadEvent, SchemaError
from matcher.model import TIME_MAX, EventType, Kind
from matcher.rows import batch_of

RULE = """
event Temp(area: string?, value: float?, n: int)
define Lost(area: string?, n: int) from Temp(value is null) where area = Temp.area, n = Temp.n
define Twice(area, sum: float?)
from Temp(area = $a) as t and last Temp(area = $a) as b within 9 s from t
where area = $a, sum = t.value + b.value
"""
ROWS = [
    (1.0, "a", None, 1),
    (2.0, None, 5.0, 2),
    (3.0, "a", 1.5, 3),
    (4.0, None, None, 4),
    (5.0, "a", 2.5, 5),
]


@pytest.mark.filterwarnings("ignore:rule")
@pytest.mark.parametrize("cells", [1, 3])
def test_nulls_of_a_frame_are_nulls_of_its_events(spark, cells: int):
    frame = spark.createDataFrame(ROWS, "time double, area string, value double, n long")
    rows = detect({"Temp": frame}, RULE, cells=cells).collect()
    assert sorted(map(repr, ((one["type"], *one[one["type"]]) for one in rows))) == [
        "('Lost', 'a', 1)",
        "('Lost', None, 4)",
        "('Twice', 'a', 4.0)",
        "('Twice', 'a', None)",
    ]
    assert rejected({"Temp": frame}, RULE).count() == 0


@pytest.mark.filterwarnings("ignore:rule")
def test_a_column_that_lacks_or_holds_nothing_is_null_in_every_row(spark):
    frame = spark.createDataFrame(ROWS, "time double, area string, value double, n long")
    for without in (frame.drop("value"), frame.withColumn("value", f.lit(None))):
        rows = detect({"Temp": without}, RULE, types=["Lost"], cells=1).collect()
        assert sorted(one["Lost"]["n"] for one in rows) == [1, 2, 3, 4, 5]
    bad = frame.withColumn("n", f.when(f.col("n") > 2, f.col("n")))
    with pytest.raises(BadEvent, match="2 of Temp: attribute n: expected int, found null"):
        detect({"Temp": bad}, RULE, cells=1)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.timeout(600)
def test_random_rules_find_the_same_with_nulls(spark):
    compared = 0
    for seed in range(40):
        case = nullable(random_case(seed))
        deployed = [step for step in case.steps if hasattr(step, "rules")]
        if len(deployed) != 1 or deployed[0].since is not None or compared == 4:
            continue
        events = [event for step in case.steps if isinstance(step, Push) for event in step.events]
        declared = "".join(f"event {schema}\n" for schema in OPTIONAL.values())
        text = declared + "\n\n".join(map(str, deployed[0].rules))
        engine = make("naive")
        engine.deploy(rules.load(text))
        for batch in batches(events, OPTIONAL.values()):
            engine.push(batch)
        expected = list(engine.advance(TIME_MAX).events())
        if not any(None in event.data.values() for event in expected):
            continue
        if len({(event.source, event.id) for event in events}) < len(events):
            continue
        frame = frame_of(spark, events, Random(seed))
        told = events_of(detect(frame, text, cells=3))
        assert sorted(_row(one) for one in told) == sorted(_row(one) for one in expected), seed
        compared += 1
    assert compared == 4


def _row(event) -> str:
    return repr((event.time, event.type, event.id, sorted(event.data.items())))


LEAKY = EventType.of("Leaky", area="string?", value="float?", n="int")


@pytest.mark.parametrize("columns", [("area", "value", "n"), ("value", "n"), ("n",)])
def test_rows_that_are_written_may_lack_what_is_optional(columns: tuple[str, ...]):
    table = pa.record_batch(
        {
            "time": pa.array([1.0, 2.0]),
            "area": pa.array([None, "a"]),
            "value": pa.array([0.5, None]),
            "n": pa.array([1, 2]),
        }
    ).select(["time", *columns])
    kinds = {"area": Kind.STRING, "value": Kind.FLOAT, "n": Kind.INT}
    check_columns(LEAKY, {name: (kinds[name], kinds[name].value) for name in columns})
    (batch,) = PlainRows(LEAKY, "time", (), skip_bad=False).read(table)
    expected = [{"area": None, "value": 0.5, "n": 1}, {"area": "a", "value": None, "n": 2}]
    for row in expected:
        row.update({name: None for name in ("area", "value") if name not in columns})
    assert [event.data for event in batch.events()] == expected
    with pytest.raises(SchemaError, match=r"no column n .int., which event Leaky has"):
        check_columns(LEAKY, {})
    with pytest.raises(SchemaError, match=r"event Leaky has value: float"):
        check_columns(LEAKY, {"n": (Kind.INT, "bigint"), "value": (Kind.STRING, "string")})


def test_events_that_are_read_have_null_in_their_columns():
    rows = [{"time": 1, "area": None, "value": 2.0, "n": 1}, {"time": 2, "area": "a", "n": 2}]
    batch = batch_of(LEAKY, rows, source="s")
    one = rows_of(batch, (LEAKY,))
    assert one.column("area").to_pylist() == [None, "a"]
    assert one.column("value").to_pylist() == [2.0, None]
    assert one.schema.names == [field.name for field in schema_of([LEAKY]).fields]
