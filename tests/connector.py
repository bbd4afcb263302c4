"""What tests of the connector to a broker have in common: readings, written and received."""

import random

from broker import RuleManager
from broker.spark.options import WriteOptions
from broker.spark.target import Target

PAIR = """
rule {0}pair: define {0}Pair(area: string, first: float, second: float)
from {0}(area = $a) as Now and last {0}(area = $a) as Before within 1 min from Now
where area = $a, first = Before.value, second = Now.value
"""


def readings(spark, count=60, seed=1):
    """Readings of two areas in no order, some of them simultaneous; each row is another."""
    chance = random.Random(seed)
    rows = [(n // 2 + 0.5, "ab"[n % 2], n / 4) for n in range(count)]
    chance.shuffle(rows)
    return spark.createDataFrame(rows, "ts double, area string, value double")


def options_of(endpoint, name, **options):
    return {"broker": endpoint, "type": name, "time": "ts", "source": f"by {name}", **options}


def written(frame, endpoint, name, **options):
    writer = frame.write.format("rexmq").options(**options_of(endpoint, name, **options))
    writer.mode("append").save()


def looked_at(frame, endpoint, name, **options):
    """All that Spark has the data source do before it writes."""
    return Target.of(WriteOptions.of(options_of(endpoint, name, **options)), frame.schema)


def received(subscriber, count, seconds=60.0):
    """So many events; fewer where none comes for so many seconds."""
    events = []
    while len(events) < count:
        try:
            events.append(subscriber.receive(timeout_s=seconds))
        except TimeoutError:
            break
    return events


def streamed(spark, schema, folder, **options):
    """Write what is in ``folder``/in as a stream, until all of it is written."""
    stream = spark.readStream.schema(schema).parquet(str(folder / "in"))
    writer = stream.writeStream.format("rexmq").options(**options)
    place = str(folder / "checkpoint")
    query = writer.option("checkpointLocation", place).trigger(availableNow=True).start()
    query.awaitTermination()


def none_follows(subscriber):
    """Whether nothing comes of what was published before; what comes within a moment is seen."""
    return received(subscriber, 1, seconds=0.5) == []


def declared(endpoint, name):
    """Let a broker know a type, and a rule for pairs of its events in an area."""
    text = f"event {name}(area: string, value: float)\n"
    with RuleManager(endpoint) as manager:
        manager.add(text + PAIR.format(name))
