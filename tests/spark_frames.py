"""Events of the tests as DataFrames, and composite events out of them."""

from random import Random

import pyarrow as pa
from rule_texts import SCHEMAS

from broker.spark.frames import Form
from matcher.model import MICROSECONDS, Event, Kind

ARROW = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.STRING: pa.string(),
}
NAMES = sorted({name for schema in SCHEMAS.values() for name in schema.names})


def frame_of(spark, events, random: Random):
    """The events in one frame with a column for every attribute, in any order and partitions."""
    from pyspark.sql.types import StructType

    kinds = {one.name: one.kind.value for schema in SCHEMAS.values() for one in schema.attributes}
    schema = StructType().add("type", "string").add("time", "double").add("source", "string")
    schema = schema.add("sequence", "long").add("id", "string")
    for name in NAMES:
        schema = schema.add(
            name, {"int": "long", "float": "double", "bool": "boolean"}.get(kinds[name], "string")
        )
    rows = [
        (e.type, e.time / 1e6, e.source, e.sequence, e.id, *(e.data.get(n) for n in NAMES))
        for e in events
    ]
    random.shuffle(rows)
    return spark.createDataFrame(rows, schema).repartition(random.randint(1, 4))


def events_of(found) -> list[Event]:
    events = []
    for one in found.collect():
        data = one[one["type"]].asDict()
        cause = tuple(one["cause"])
        micros = round(one["time"].timestamp() * 1e6)
        events.append(Event(one["type"], micros, one["source"], one["id"], data, 0, (), cause))
    return events


# --- the same without Spark --------------------------------------------------------------------


def form_of(*, has_sequence: bool = True) -> Form:
    """The wide form of all types that random rules use."""
    attributes = dict.fromkeys(one for type_ in SCHEMAS.values() for one in type_.attributes)
    return Form(tuple(SCHEMAS.values()), tuple(attributes), True, has_sequence, True)


def wide_rows(events, form: Form) -> pa.RecordBatch:
    """Events as rows of a wide frame."""
    columns = {
        "type": pa.array([e.type for e in events]),
        "time": pa.array([e.time for e in events], pa.int64()),
        "source": pa.array([e.source for e in events]),
        "sequence": pa.array([e.sequence for e in events], pa.int64()),
        "id": pa.array([e.id for e in events], pa.string()),
        "bad": pa.nulls(len(events), pa.string()),
    }
    for attribute in form.attributes:
        values = [
            e.data.get(attribute.name) if attribute in SCHEMAS[e.type].attributes else None
            for e in events
        ]
        columns[form.column(attribute)] = pa.array(values, ARROW[attribute.kind])
    return pa.record_batch(columns)


def composite_events(batches: list[pa.RecordBatch]) -> list[Event]:
    """What tasks give, as events."""
    events = []
    for one in (found for batch in batches for found in batch.to_pylist()):
        micros = round(one["time"].timestamp() * MICROSECONDS)
        cause = tuple(one["cause"])
        data = one[one["type"]]
        events.append(Event(one["type"], micros, one["source"], one["id"], data, 0, (), cause))
    return events
