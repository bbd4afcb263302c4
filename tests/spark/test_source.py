"""The data source against a running broker: written once, refused in words, read back."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from connector import (
    PAIR,
    declared,
    looked_at,
    none_follows,
    readings,
    received,
    streamed,
    written,
)
from pyspark import TaskContext
from two_brokers import two_brokers

from broker import Publisher, RuleManager, Subscriber
from broker.errors import BrokerUnreachable
from broker.process import BrokerProcess
from broker.security.keys import create
from broker.spark import SparkFailed, detect, publish, readable_errors, register
from broker.spark.options import WriteOptions
from broker.spark.source import RexmqDataSource
from broker.spark.target import Target
from broker.spark.writers import StreamWriter
from matcher.errors import SchemaError
from matcher.formats.layout import Layout
from matcher.formats.timeform import TimeForm
from matcher.model import EventType

pytestmark = pytest.mark.filterwarnings("ignore:the events have no column")
READ = EventType.of("Read", area="string", value="float")
HOLD = "rule held: define Held() from TypedA() as Now and last TypedB() within 1 s from Now"
NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture(scope="module")
def endpoint():
    with BrokerProcess("--heartbeat-s", "0.5") as process:
        yield process.endpoint


def test_a_frame_written_twice_takes_effect_once(spark, endpoint):
    register(spark)
    frame = readings(spark)
    declared(endpoint, "Once")
    with Subscriber(endpoint, "Once()", "OncePair()") as subscriber:
        written(frame.repartition(3), endpoint, "Once")
        first = received(subscriber, 118)
        written(frame.repartition(5), endpoint, "Once")
        assert none_follows(subscriber)
    of_pairs = [event for event in first if event.type == "OncePair"]
    assert len([event for event in first if event.type == "Once"]) == 60
    assert {event.source for event in first} == {"by Once", "rexmq/rule/Oncepair"}
    assert len(of_pairs) == 58


def test_a_commit_that_fails_and_is_repeated_takes_effect_once(spark, endpoint, tmp_path):
    """Restarted from the checkpoint, with the same rows shuffled and partitioned otherwise."""
    flag = tmp_path / "commits"

    class Failing(StreamWriter):
        def commit(self, messages, batchId):  # noqa: N803
            if not flag.exists():
                raise RuntimeError("the commit fails")
            super().commit(messages, batchId)

    class Source(RexmqDataSource):
        @classmethod
        def name(cls):
            return "failing"

        def streamWriter(self, schema, overwrite):  # noqa: N802
            return Failing(Target.of(WriteOptions.of(self.options), schema), schema)

    spark.dataSource.register(Source)
    frame = readings(spark, 80)
    frame.repartition(2).write.parquet(str(tmp_path / "in"))
    declared(endpoint, "Stream")

    def run(partitions):
        stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
        writer = stream.repartition(partitions).writeStream.format("failing")
        options = {"broker": endpoint, "type": "Stream", "time": "ts", "source": "stream"}
        query = (
            writer.options(
                **options, disorder="0 s", checkpointLocation=str(tmp_path / "checkpoint")
            )
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with Subscriber(endpoint, "Stream()", "StreamPair()") as subscriber:
        with pytest.raises(Exception, match="the commit fails"):
            run(2)
        before = received(subscriber, 80)
        flag.touch()
        run(3)
        after = received(subscriber, 76)
        assert none_follows(subscriber)
    assert sum(event.type == "Stream" for event in before) == 80
    assert [event.type for event in before if event.type == "StreamPair"] == []
    assert {event.type for event in after} == {"StreamPair"}
    assert len({event.id for event in after}) == len(after) == 76  # the last instant still waits


def test_publishing_overlapping_partitions_finds_what_detect_finds(spark, endpoint):
    """Sixteen ranges on two cores, from partitions that overlap; nothing is late."""
    frame = readings(spark, 400, seed=3).withColumnRenamed("ts", "time").repartition(16)
    rules = "event Ranged(area: string, value: float)\n" + PAIR.format("Ranged")
    expected = detect({"Ranged": frame}, rules, cells=1).collect()
    with RuleManager(endpoint) as manager:
        manager.add(rules)
        with Subscriber(endpoint, "RangedPair()") as subscriber:
            report = publish({"Ranged": frame}, endpoint, source="ranged", parts=16)
            pairs = received(subscriber, len(expected))
            assert none_follows(subscriber)
        sources = [one for one in manager.status()["sources"] if one["name"].startswith("ranged#")]
    assert (report.events, report.parts, dict(report.reasons)) == (400, 16, {})
    assert sum(one["late"] for one in sources) == 0
    assert {one["standing"] for one in sources} == {"closed"}
    assert sorted((event.time, *event.data.values()) for event in pairs) == sorted(
        (round(one["time"].timestamp() * 1e6), *one["RangedPair"]) for one in expected
    )


def test_a_dry_run_sends_nothing_and_tells_what_would_be_refused(spark):
    frame = spark.createDataFrame(
        [(1.0, "a"), (None, "b"), (2.0, None)], "time double, area string"
    )
    report = publish({"Dry": frame}, NOBODY, dry_run=True)
    assert report.events == 1
    assert dict(report.reasons) == {
        ("Dry", "no time"): 1,
        ("Dry", "attribute area: expected string, found null"): 1,
    }
    assert {row["reason"] for row in report.rejected.collect()} == {
        reason for _, reason in report.reasons
    }


def test_a_schema_that_does_not_fit_is_refused_before_anything_is_sent(spark, endpoint):
    register(spark)
    declared(endpoint, "Fitting")
    frame = readings(spark, 4)
    mistakes = {
        "column value is of type string; event Fitting has value: float": frame.selectExpr(
            "ts", "area", "'hot' as value"
        ),
        "no column area .string., which event Fitting has": frame.drop("area"),
        "no column ts holds the time": frame.drop("ts"),
        "column ts holds times without a time zone": frame.selectExpr(
            "timestamp_ntz'2013-07-01 12:00:00' as ts", "area", "value"
        ),
        "column ts holds times without a time zone; say which they are in": frame.selectExpr(
            "date'2024-07-01' as ts", "area", "value"
        ),
        "column more is of type array<int>, which cannot be part of an id": frame.selectExpr(
            "*", "array(1) as more"
        ),
    }
    with Subscriber(endpoint, "Fitting()") as subscriber:
        for said, wrong in mistakes.items():
            with pytest.raises(SchemaError, match=said):
                looked_at(wrong, endpoint, "Fitting", onBad="drop")
        with pytest.raises(Exception, match=r"no column area .string., which event Fitting has"):
            written(frame.drop("area"), endpoint, "Fitting", onBad="drop")
        with pytest.raises(SchemaError, match="no column name, which option id names"):
            looked_at(frame, endpoint, "Fitting", id="area, name")
        with pytest.raises(Exception, match="are not in order of time: publish the frame with"):
            written(frame.coalesce(1), endpoint, "Fitting", order="time")
        assert none_follows(subscriber)


def test_bad_rows_are_refused_or_dropped(spark, endpoint):
    register(spark)
    rows = [(1.0, "a", 1.0), (2.0, None, 2.0), (None, "b", 3.0), (4.0, "b", 4.0)]
    frame = spark.createDataFrame(rows, "ts double, area string, value double").coalesce(1)
    declared(endpoint, "Partly")
    with Subscriber(endpoint, "Partly()") as subscriber:
        with pytest.raises(Exception, match="attribute area: expected string, found null") as told:
            written(frame, endpoint, "Partly")
        assert "Traceback" not in str(told.value)
        with (
            pytest.raises(
                SparkFailed, match=r"^BadEvent: partition 0:row 2: attribute area: .*\)$"
            ),
            readable_errors(),
        ):
            written(frame, endpoint, "Partly")
        written(frame, endpoint, "Partly", onBad="drop")
        assert [event.data["value"] for event in received(subscriber, 2)] == [1.0, 4.0]


def test_threads_write_by_the_session_that_they_share(spark, endpoint):
    register(spark)
    declared(endpoint, "Threaded")
    frame = readings(spark, 10)
    with Subscriber(endpoint, "Threaded()") as subscriber, ThreadPoolExecutor(1) as pool:
        pool.submit(written, frame, endpoint, "Threaded").result()
        assert len(received(subscriber, 10)) == 10


def test_sessions_know_the_format_each(spark):
    """Spark looks in the one that is active, which a reader or writer of another makes its own."""
    second, third = spark.newSession(), spark.newSession()
    register(spark)
    register(second)
    options = {"type": "R", "broker": NOBODY, "timeout": "100 ms"}

    def failing(session) -> str:
        frame = session.sql("select timestamp_seconds(id) as time, 1d as value from range(2)")
        with pytest.raises(Exception, match=r"\S") as failure:
            frame.write.format("rexmq").options(**options).mode("append").save()
        return str(failure.value)

    for session in (spark, second, spark):
        assert "no broker is left" in failing(session)
    assert "DATA_SOURCE_NOT_FOUND" in failing(third)


def test_a_lost_broker_is_passed_over_and_none_left_is_told(spark, endpoint):
    register(spark)
    frame = readings(spark, 10)
    declared(endpoint, "Passed")
    with Subscriber(endpoint, "Passed()") as subscriber:
        written(frame, f"{NOBODY}, {endpoint}", "Passed", timeout="1 s")
        assert len(received(subscriber, 10)) == 10
    with pytest.raises(Exception, match="no broker is left: no broker answers at"):
        written(frame, NOBODY, "Passed", timeout="500 ms")
    timed = frame.withColumnRenamed("ts", "time")
    with pytest.raises(BrokerUnreachable, match="no broker is left: no broker answers at"):
        publish({"Passed": timed}, NOBODY, timeout="500 ms")


def test_events_of_a_running_broker_are_read_for_some_time(spark, endpoint):
    register(spark)
    declared(endpoint, "Read")
    reader = spark.read.format("rexmq").option("broker", endpoint).option("for", "4 s")
    frame = reader.option("subscribe", "Read(value >= 1)").load()
    both = reader.option("subscribe", "Read(value >= 1); ReadPair()").load()
    assert frame.columns == ["type", "time", "source", "id", "area", "value", "cause"]
    stop = threading.Event()

    def publishing():
        """Again and again, for who knows when Spark subscribes."""
        number = 0
        with Publisher(endpoint, name="reader's", types=[READ]) as publisher:
            while not stop.wait(0.05):
                number += 1
                publisher.publish("Read", area="a", value=float(number % 3), at=number)
                publisher.promise(number + 1)

    thread = threading.Thread(target=publishing)
    thread.start()
    rows = frame.collect()
    of_both = both.collect()
    stop.set()
    thread.join()
    assert {row["value"] for row in rows} == {1.0, 2.0}
    origins = {(row["type"], row["source"], row["area"]) for row in rows}
    assert origins == {("Read", "reader's", "a")}
    times = [round(row["time"].timestamp() * 1e6) for row in rows]
    assert times == sorted(set(times))
    assert {row["type"] for row in of_both} == {"Read", "ReadPair"}
    assert all(row[row["type"]]["area"] == "a" for row in of_both)
    assert {len(row["cause"]) for row in of_both if row["type"] == "ReadPair"} == {2}
    with pytest.raises(Exception, match=r"known are: .*Read"):
        reader.option("subscribe", "Unheard()").load()


def test_a_broker_with_keys_is_written_to_and_read(spark, tmp_path):
    register(spark)
    for name in ("b1", "client"):
        create(name, tmp_path)
    access = tmp_path / "access.toml"
    access.write_text('[user.client]\nkey = "client.key"\npublish = ["*"]\nsubscribe = ["*"]\n')
    with access.open("a") as more:
        more.write('define = ["*"]\ndeploy = ["*"]\ncommands = ["*"]\n')
    own, server = str(tmp_path / "client.key_secret"), str(tmp_path / "b1.key")
    flags = ("--secret-key", str(tmp_path / "b1.key_secret"), "--access", str(access))
    with BrokerProcess("--engine", "naive", *flags) as process:
        endpoint, options = process.endpoint, {"key": own, "serverKey": server}
        with Subscriber(endpoint, "Keyed()", key=own, server_key=server) as subscriber:
            written(readings(spark).limit(5), endpoint, "Keyed", **options)
            assert len(received(subscriber, 5)) == 5
        reader = spark.read.format("rexmq").options(broker=endpoint, **options)
        names = {"key": own, "server_key": server}
        with Publisher(endpoint, name="p", types=[READ], **names):  # so that the type is known
            frame = reader.options(subscribe="Read()", **{"for": "1 s"}).load()
            assert frame.collect() == []


def test_a_broker_that_is_lost_while_events_are_read_is_told(spark):
    register(spark)
    with BrokerProcess("--heartbeat-s", "0.3") as broker:
        declared(broker.endpoint, "Cut")
        reader = spark.read.format("rexmq").option("broker", broker.endpoint)
        frame = reader.option("for", "300 s").option("subscribe", "Cut()").load()

        def ending():
            with RuleManager(broker.endpoint) as manager:
                while not manager.status()["sinks"]:
                    time.sleep(0.1)
            broker.kill()

        thread = threading.Thread(target=ending)
        thread.start()
        with pytest.raises(Exception, match="the broker was lost while events were collected"):
            frame.collect()
        thread.join()


def test_rows_name_their_types_and_each_is_checked(spark, endpoint):
    register(spark)
    with RuleManager(endpoint) as manager:
        manager.add("event TypedA(area: string)\nevent TypedB(value: float)\n" + HOLD)
    rows = [(1.0, "TypedA", "a", None), (2.0, "TypedB", None, 2.0), (3.0, "TypedC", "a", 1.0)]
    rows += [(4.0, None, "a", 1.0), (5.0, "TypedB", "b", None), (6.0, "TypedA", "c", 5.0)]
    schema = "ts double, kind string, area string, value double"
    frame = spark.createDataFrame(rows, schema)
    both = {"typeColumn": "kind", "source": "typed"}
    with Subscriber(endpoint, "TypedA()", "TypedB()") as subscriber:
        mistakes = {
            "no column kind, which option typeColumn names": frame.withColumnRenamed("kind", "k"),
            "column kind is of type bigint; expected names": frame.selectExpr(
                "ts", "1L as kind", "area", "value"
            ),
            "no column value .float., which event TypedB has": frame.drop("value"),
        }
        for said, wrong in mistakes.items():
            with pytest.raises(SchemaError, match=said):
                looked_at(wrong, endpoint, "TypedA, TypedB", **both)
        with pytest.raises(SchemaError, match="the broker knows no event TypedC"):
            looked_at(frame, endpoint, "TypedA, TypedC", **both)
        with pytest.raises(Exception, match="type 'TypedC' in column kind: expected TypedA, Typed"):
            written(frame.where("kind = 'TypedC'"), endpoint, "TypedA, TypedB", **both)
        written(frame, endpoint, "TypedA, TypedB", onBad="drop", **both)
        events = received(subscriber, 3)
    assert sorted((e.type, *e.data.values()) for e in events) == [
        ("TypedA", "a"),
        ("TypedA", "c"),
        ("TypedB", 2.0),
    ]


def test_rows_and_arrow_give_one_event_the_same_id(spark, endpoint, tmp_path):
    """Whatever kinds of columns there are; and the numbers of each write are told."""
    register(spark)
    declared(endpoint, "Rowwise")
    frame = readings(spark, 50).selectExpr(
        "timestamp_micros(cast(1382832000000000 + ts * 120000000 as long)) as ts",  # clocks go back
        "area",
        "cast(value as float) as value",
        "cast(ts as decimal(10, 2)) as exact",
        "cast(null as date) as day",
        "ts > 3 as later",
    )
    numbers = tmp_path / "numbers.jsonl"
    with Subscriber(endpoint, "Rowwise()") as subscriber:
        for writer in ("rows", "arrow"):
            written(frame, endpoint, "Rowwise", writer=writer, metrics=str(numbers))
        events = received(subscriber, 50)
    assert len({event.id for event in events}) == 50
    told = [json.loads(line) for line in numbers.read_text().splitlines()]
    assert [(one["batch"], one["rows"], one["resent"], one["bad"]) for one in told] == [
        (None, 50, 0, 0)
    ] * 2
    assert all(one["bytes"] > 50 * 8 for one in told)


def test_a_stream_writes_rows_too(spark, endpoint, tmp_path):
    register(spark)
    frame = readings(spark, 20)
    frame.coalesce(1).write.parquet(str(tmp_path / "in"))
    declared(endpoint, "StreamRows")
    options = {"broker": endpoint, "type": "StreamRows", "time": "ts", "writer": "rows"}
    numbers = tmp_path / "numbers.jsonl"
    with Subscriber(endpoint, "StreamRows()") as subscriber:
        streamed(spark, frame.schema, tmp_path, **options, metrics=str(numbers))
        assert len(received(subscriber, 20)) == 20
    (told,) = map(json.loads, numbers.read_text().splitlines())
    assert (told["batch"], told["rows"], told["bad"]) == (0, 20, 0)


def test_a_schema_that_drifts_in_mid_stream_is_told_by_its_column(spark, endpoint, tmp_path):
    """A file without a column is refused, or its rows are counted; a restart looks again."""
    register(spark)
    declared(endpoint, "Drifting")
    frame = readings(spark, 10).coalesce(1)
    options = {"broker": endpoint, "type": "Drifting", "time": "ts", "source": "drift"}
    numbers = tmp_path / "numbers.jsonl"
    with Subscriber(endpoint, "Drifting()") as subscriber:
        frame.write.parquet(str(tmp_path / "in"))
        streamed(spark, frame.schema, tmp_path, **options)
        assert len(received(subscriber, 10)) == 10
        frame.drop("value").write.mode("append").parquet(str(tmp_path / "in"))
        with (
            pytest.raises(SparkFailed, match=r"value: expected float, found null \(.*\)$"),
            readable_errors(),
        ):
            streamed(spark, frame.schema, tmp_path, **options)
        with pytest.raises(Exception, match=r"no column value .float., which event Drifting has"):
            streamed(spark, frame.drop("value").schema, tmp_path, **options)
        dropping = {**options, "onBad": "drop", "metrics": str(numbers)}
        streamed(spark, frame.schema, tmp_path, **dropping)
        frame.selectExpr("ts + 100 as ts", "area", "value").write.mode("append").parquet(
            str(tmp_path / "in")
        )
        streamed(spark, frame.schema, tmp_path, **dropping)
        assert len(received(subscriber, 10)) == 10
    told = [json.loads(line) for line in numbers.read_text().splitlines()]
    assert [(one["batch"], one["rows"], one["bad"]) for one in told] == [(1, 10, 10), (2, 10, 0)]


def test_a_broker_that_stops_while_tasks_write_is_followed_by_the_next(spark, tmp_path):
    """Two linked brokers; the first ends when what half of the tasks wrote is at the second, which
    gives everything out once."""
    register(spark)
    flag, half = tmp_path / "gone", 100

    def waiting(batches):
        while TaskContext.get().partitionId() > 1 and not flag.exists():
            time.sleep(0.05)
        yield from batches

    numbers = spark.range(0, 2 * half, 1, 4).selectExpr(
        "id / 1d as ts", "'a' as area", "id / 4d as value"
    )
    values = []
    with (
        two_brokers() as (first, second),
        Subscriber(second.endpoint, "Moved()") as subscriber,
    ):

        def ending():
            values.extend(event.data["value"] for event in received(subscriber, half, 300.0))
            first.kill()
            flag.touch()

        thread = threading.Thread(target=ending)
        thread.start()
        try:
            brokers = f"{first.endpoint}, {second.endpoint}"
            gated = numbers.mapInArrow(waiting, numbers.schema)
            written(gated, brokers, "Moved", order="none", timeout="2 s")
        finally:
            flag.touch()
            thread.join()
        assert len(values) == half
        values.extend(event.data["value"] for event in received(subscriber, half))
        assert none_follows(subscriber)
    assert sorted(values) == [number / 4 for number in range(2 * half)]


def test_frames_with_other_columns_are_written_and_published(spark, endpoint):
    register(spark)
    frame = spark.sql("select '2012-01-0' || id as day, id as made, 'coal' as source from range(3)")
    frame = frame.where("made > 0")
    options = {"columns": "kind=source", "timeZone": "Europe/Rome", "time": "day"}
    with Subscriber(endpoint, "Laid(made > 1)", "Published(made > 1)") as subscriber:
        writer = frame.write.format("rexmq").mode("append").options(**options)
        writer.option("broker", endpoint).option("type", "Laid").save()
        layout = Layout("day", source="", times=TimeForm(zone="Europe/Rome"))
        publish({"Published": frame}, endpoint, layout=layout)
        laid, published = sorted(received(subscriber, 2), key=lambda event: event.type)
    assert (laid.data, laid.time) == ({"made": 2, "kind": "coal"}, 1_325_458_800_000_000)
    assert (published.data, published.time) == ({"made": 2, "source": "coal"}, laid.time)
