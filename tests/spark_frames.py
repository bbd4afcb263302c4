"""Events of the tests as DataFrames, and composite events out of them."""

from random import Random

from rule_texts import SCHEMAS

from matcher.model import Event

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
