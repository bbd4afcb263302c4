"""A stream from the logs of three brokers, read by real Spark."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from broker import Publisher, RuleManager
from broker.errors import BrokerError, RefusedError
from broker.process import BrokerProcess
from broker.spark import detect, log_stream, of_type, register
from broker.spark.limits import BOUNDED, ReadAllAvailable
from broker.spark.options import StreamOptions
from broker.store import Put, Store
from matcher import EventType
from matcher.model import MICROSECONDS

READ = EventType.of("Read", area="string", value="float")


@pytest.fixture
def network(tmp_path: Path):
    flags = ("--engine", "naive", "--strategy", "centralized", "--data")
    with (
        BrokerProcess("--name", "b1", *flags, str(tmp_path / "b1")) as b1,
        BrokerProcess("--name", "b2", *flags, str(tmp_path / "b2"), "--link", b1.endpoint) as b2,
    ):
        yield b1.endpoint, b2.endpoint


def publish(endpoint: str, source: str, values: range) -> None:
    with Publisher(endpoint, name=source, types=[READ], connect_timeout_s=60) as publisher:
        for value in values:
            publisher.publish("Read", area="even" if value % 2 == 0 else "odd", value=float(value))
            publisher.wait(60)


def entries_behind(progress) -> int:
    """How many entries of the logs a query has before it, by Spark's progress."""
    (source,) = progress.sources
    read, latest = json.loads(source.endOffset), json.loads(source.latestOffset)
    return sum(last - read.get(name, (0,))[0] for name, (last, _) in latest.items())


def test_each_event_comes_once_over_stops_in_bounded_batches(spark, network, tmp_path):
    register(spark)
    one, other = network
    publish(one, "s1", range(40))
    publish(other, "s2", range(100, 140))

    def run() -> list[int]:
        """Take what there is, and give the sizes of the micro-batches."""
        reader = spark.readStream.format("rexmq").option("broker", one)
        bound = {"maxEventsPerTrigger": "30"} if BOUNDED else {}
        frame = reader.options(subscribe='Read(area = "even")', **bound).load()
        writer = frame.writeStream.format("parquet").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination()
        begun = [progress for progress in query.recentProgress if progress.numInputRows]
        assert entries_behind(begun[-1]) == 0
        assert not BOUNDED or len(begun) == 1 or entries_behind(begun[0]) > 0
        return [progress.numInputRows for progress in begun]

    first = run()
    publish(other, "s3", range(200, 210))
    second = run()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    expected = [*range(0, 40, 2), *range(100, 140, 2), *range(200, 210, 2)]
    assert sorted(int(row["value"]) for row in rows) == expected
    assert {row["source"] for row in rows} == {"s1", "s2", "s3"}
    if BOUNDED:
        assert max(first + second) <= 30
        assert len(first) >= 2


def test_a_new_query_begins_with_the_first_entry_that_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(log_stream, "ENTRIES_AT_ONCE", 2)
    data = tmp_path / "b1"
    flags = ("--name", "b1", "--engine", "naive", "--strategy", "centralized", "--data", str(data))
    with BrokerProcess(*flags) as b1:
        publish(b1.endpoint, "s1", range(12))
    with Store.open(data, retain_bytes=0) as store:
        store.trim(6)
        store.wait(store.write([Put("test", "key", b"")]), 30)
    with BrokerProcess(*flags) as b1:
        options = StreamOptions.of({"broker": b1.endpoint, "subscribe": "Read()"})
        stream = log_stream.LogStream(options)
        start = stream.initialOffset()
        end = stream.latestOffset(start, ReadAllAvailable())
        assert (start["b1"][0], end["b1"][0]) == (5, 12)
        spans = stream.partitions(start, end)
        read = [batch.num_rows for span in spans for batch in stream.read(span)]
        assert (len(spans), sum(read)) == (4, 7)
        begun_before = {"b1": [2, None]}
        with pytest.raises(RefusedError, match="keeps entries from position 6 on; 3 is"):
            [*stream.read(stream.partitions(begun_before, end)[0])]
        bears = replace(options, fails_on_loss=False, parts_min=12)
        stream = log_stream.LogStream(bears)
        spans = stream.partitions(begun_before, end)
        values = [
            value
            for span in spans
            for batch in stream.read(span)
            for value in batch.column("value").to_pylist()
        ]
        assert (len(spans), values) == (10, [float(value) for value in range(5, 12)])
        with pytest.raises(BrokerError, match="the log of broker 'gone', which was read, is not"):
            stream.partitions({**start, "gone": [3, None]}, end)


def test_what_it_cannot_read_is_said(spark, network):
    register(spark)
    one, _ = network
    publish(one, "s1", range(3))
    with RuleManager(one) as manager:
        text = 'rule odd: define Odd(v: float) from Read(area = "odd") as r where v = r.value'
        manager.add(f"event {READ} {text}")

    def failing(**options: str) -> str:
        reader = spark.readStream.format("rexmq").options(broker=one, **options)
        with pytest.raises(Exception, match=r"\S") as failure:
            reader.load()
        return str(failure.value)

    assert "Odd is in no log, for rules define it" in failing(subscribe="Odd()")
    assert "start is 'new', 'earliest' or a time" in failing(subscribe="Read()", start="soon")
    assert "a number of events, not 'few'" in failing(subscribe="Read()", maxEventsPerTrigger="few")


def test_a_log_that_is_an_older_copy_of_the_one_that_was_read_ends_the_query(spark, tmp_path):
    register(spark)
    data, backup = tmp_path / "b1", tmp_path / "backup"
    flags = ("--name", "b1", "--engine", "naive", "--strategy", "centralized", "--data", str(data))

    def with_broker(values: range) -> None:
        """Publish in a broker with the store, and take what there is."""
        with BrokerProcess(*flags) as b1:
            publish(b1.endpoint, f"s{values.start}", values)
            reader = spark.readStream.format("rexmq").options(broker=b1.endpoint)
            frame = reader.option("subscribe", "Read()").load()
            writer = frame.writeStream.format("parquet").option(
                "checkpointLocation", str(tmp_path / "checkpoint")
            )
            writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    with_broker(range(5))
    shutil.copytree(data, backup)
    with_broker(range(5, 10))
    shutil.rmtree(data)
    backup.rename(data)
    with pytest.raises(Exception, match="was read up to position 10: it ends at 7"):
        with_broker(range(100, 102))
    with pytest.raises(Exception, match="up to position 10: it has another entry there"):
        with_broker(range(200, 208))
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(int(row["value"]) for row in rows) == [*range(10)]


def test_attributes_that_are_called_like_columns_of_every_table_are_read(spark, tmp_path):
    """Under a name of their own, and ``detect`` knows them by it."""
    order = EventType.of("Order", id="int", Source="string", cause="float", value="int")
    flags = ("--name", "b1", "--engine", "naive", "--strategy", "centralized")
    with BrokerProcess(*flags, "--data", str(tmp_path / "b1")) as broker:
        with Publisher(broker.endpoint, name="shop", types=[order]) as publisher:
            publisher.publish("Order", {"id": 7, "Source": "web", "cause": 1.5, "value": 3})
            publisher.wait(60)
        options = {"broker": broker.endpoint, "subscribe": "Order()"}
        reader = log_stream.LogReader(StreamOptions.of(options))
        (row,) = [
            row
            for part in reader.partitions()
            for batch in reader.read(part)
            for row in batch.to_pylist()
        ]
        schema = log_stream.LogStream(StreamOptions.of(options)).schema
    own = ["attribute id", "attribute Source", "attribute cause", "value"]
    assert [*row] == schema.names == ["type", "time", "source", "id", *own, "cause"]
    assert (row["source"], *(row[name] for name in own)) == ("shop", 7, "web", 1.5, 3)
    rule = "event Order(id: int, Source: string, cause: float, value: int)\n" + (
        "rule big: define Big(id: int, type: string) from Order(value > 2) "
        "where id = Order.id, type = Order.Source"
    )
    orders = spark.createDataFrame([row], schema)
    with pytest.warns(UserWarning, match="the events have no column"):
        found = of_type(detect({"Order": orders}, rule), "Big")
    assert found.columns == ["time", "attribute id", "attribute type", "source", "id", "cause"]
    (big,) = found.collect()
    assert (big["attribute id"], big["attribute type"]) == (7, "web")


def test_a_stretch_of_the_logs_is_read_as_a_frame(spark, network):
    """Both logs, from a time on and before another, by as many tasks as are asked for."""
    register(spark)
    for endpoint, source in zip(network, ("s1", "s2"), strict=True):
        with Publisher(endpoint, name=source, types=[READ], connect_timeout_s=60) as publisher:
            for second in range(10):
                at = (1_700_000_000 + second) * MICROSECONDS
                publisher.publish("Read", at=at, area=source, value=1.0)
                publisher.wait(60)
    reader = spark.read.format("rexmq").options(broker=network[0], subscribe="Read()")
    frame = reader.options(
        startingTimestamp="1700000002000", end="1700000006", minPartitions="5"
    ).load()
    rows = sorted((row["area"], row["time"].timestamp() - 1_700_000_000) for row in frame.collect())
    assert rows == [(source, float(second)) for source in ("s1", "s2") for second in range(2, 6)]
    assert frame.rdd.getNumPartitions() >= 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffsets": "soon"}, "start is 'new', 'earliest' or a time"),
        ({"startingOffsets": "latest", "start": "new"}, "start and startingoffsets say the same"),
        ({"endingOffsets": "earliest"}, "option end is 'new' or a time, not 'earliest'"),
        ({"minPartitions": "0"}, "option minPartitions is a number of tasks, not '0'"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss is true or false, not 'no'"),
        ({"maxOffsetPerTrigger": "5"}, "did you mean maxoffsetspertrigger"),
    ],
)
def test_options_of_logs_that_make_no_sense_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        StreamOptions.of({"subscribe": "Read()", **options})


def test_options_have_the_names_that_users_of_kafka_know():
    given = {"startingOffsets": "latest", "endingTimestamp": "1700000000500"}
    known = StreamOptions.of({"subscribe": "A()", "maxOffsetsPerTrigger": "7", **given})
    own = {"start": "new", "end": "1700000000.5", "maxEventsPerTrigger": "7"}
    assert known == StreamOptions.of({"subscribe": "A()", **own})
