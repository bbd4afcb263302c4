"""The data source against a running broker: written once, refused in words, read back."""

import random
import threading

import pytest

from broker import Publisher, RuleManager, Subscriber
from broker.process import BrokerProcess
from broker.spark import detect, publish, register
from broker.spark.options import WriteOptions
from broker.spark.source import RexmqDataSource
from broker.spark.writing import StreamWriter, Target
from matcher.model import EventType

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does", "ignore:the events have no column")
READ = EventType.of("Read", area="string", value="float")
NOBODY = "tcp://127.0.0.1:9"
PAIR = """
rule {0}pair: define {0}Pair(area: string, first: float, second: float)
from {0}(area = $a) as Now and last {0}(area = $a) as Before within 1 min from Now
where area = $a, first = Before.value, second = Now.value
"""


@pytest.fixture(scope="module")
def endpoint():
    with BrokerProcess("--heartbeat-s", "0.5") as process:
        yield process.endpoint


def readings(spark, count=60, seed=1):
    """Readings of two areas in no order, some of them simultaneous; each row is another."""
    chance = random.Random(seed)
    rows = [(n // 2 + 0.5, "ab"[n % 2], n / 4) for n in range(count)]
    chance.shuffle(rows)
    return spark.createDataFrame(rows, "ts double, area string, value double")


def written(frame, endpoint, name, **options):
    given = {"broker": endpoint, "type": name, "time": "ts", "source": f"by {name}"}
    frame.write.format("rexmq").options(**{**given, **options}).mode("append").save()


def received(subscriber, seconds=1.0):
    events = []
    while True:
        try:
            events.append(subscriber.receive(timeout_s=seconds))
        except TimeoutError:
            return events


def declared(manager, name):
    text = f"event {name}(area: string, value: float)\n"
    manager.add(text + PAIR.format(name))


def test_a_frame_written_twice_takes_effect_once(spark, endpoint):
    register(spark)
    frame = readings(spark)
    with RuleManager(endpoint) as manager:
        declared(manager, "Once")
    with Subscriber(endpoint, "Once()", "OncePair()") as subscriber:
        written(frame.repartition(3), endpoint, "Once")
        first = received(subscriber)
        written(frame.repartition(5), endpoint, "Once")
        again = received(subscriber, 0.5)
    of_pairs = [event for event in first if event.type == "OncePair"]
    assert len([event for event in first if event.type == "Once"]) == 60
    assert {event.source for event in first} == {"by Once", "rexmq/rule/Oncepair"}
    assert len(of_pairs) == 58
    assert again == []


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
            return Failing(Target.of(WriteOptions.of(self.options), schema))

    spark.dataSource.register(Source)
    frame = readings(spark, 80)
    frame.repartition(2).write.parquet(str(tmp_path / "in"))
    with RuleManager(endpoint) as manager:
        declared(manager, "Stream")

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
        before = received(subscriber)
        flag.touch()
        run(3)
        after = received(subscriber)
    assert sum(event.type == "Stream" for event in before) == 80
    assert [event.type for event in before if event.type == "StreamPair"] == []
    assert {event.type for event in after} == {"StreamPair"}
    assert len({event.id for event in after}) == len(after) == 76  # the last instant still waits


def test_publishing_overlapping_partitions_finds_what_detect_finds(spark, endpoint):
    """Sixteen ranges on two cores, from partitions that overlap; nothing is late."""
    frame = readings(spark, 400, seed=3).withColumnRenamed("ts", "time").repartition(16)
    rules = "event Ranged(area: string, value: float)\n" + PAIR.format("Ranged")
    expected = detect({"Ranged": frame}, rules, cells=1)
    with RuleManager(endpoint) as manager:
        manager.add(rules)
        with Subscriber(endpoint, "RangedPair()") as subscriber:
            report = publish({"Ranged": frame}, endpoint, source="ranged", parts=16)
            pairs = received(subscriber)
        sources = [one for one in manager.status()["sources"] if one["name"].startswith("ranged#")]
    assert (report.events, report.parts, dict(report.reasons)) == (400, 16, {})
    assert sum(one["late"] for one in sources) == 0
    assert {one["standing"] for one in sources} == {"closed"}
    assert sorted((event.time, *event.data.values()) for event in pairs) == sorted(
        (round(one["time"].timestamp() * 1e6), *one["RangedPair"]) for one in expected.collect()
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
    with RuleManager(endpoint) as manager:
        declared(manager, "Fitting")
    frame = readings(spark, 4)
    mistakes = {
        "column value is of type string; event Fitting has value: float": frame.selectExpr(
            "ts", "area", "'hot' as value"
        ),
        "no column area .string., which event Fitting has": frame.drop("area"),
        "no column ts holds the time": frame.drop("ts"),
    }
    with Subscriber(endpoint, "Fitting()") as subscriber:
        for said, wrong in mistakes.items():
            with pytest.raises(Exception, match=said):
                written(wrong, endpoint, "Fitting")
        with pytest.raises(Exception, match="no option is called 'brokr'"):
            written(frame, endpoint, "Fitting", brokr="x")
        with pytest.raises(Exception, match="are not in order of time: publish the frame with"):
            written(frame.coalesce(1), endpoint, "Fitting", order="time")
        assert received(subscriber, 0.3) == []


def test_bad_rows_are_refused_or_dropped(spark, endpoint):
    register(spark)
    rows = [(1.0, "a", 1.0), (2.0, None, 2.0), (None, "b", 3.0), (4.0, "b", 4.0)]
    frame = spark.createDataFrame(rows, "ts double, area string, value double").coalesce(1)
    with RuleManager(endpoint) as manager:
        declared(manager, "Partly")
    with Subscriber(endpoint, "Partly()") as subscriber:
        with pytest.raises(Exception, match="attribute area: expected string, found null"):
            written(frame, endpoint, "Partly")
        written(frame, endpoint, "Partly", onBad="drop")
        assert [event.data["value"] for event in received(subscriber)] == [1.0, 4.0]


def test_a_lost_broker_is_passed_over_and_none_left_is_told(spark, endpoint):
    register(spark)
    frame = readings(spark, 10)
    with RuleManager(endpoint) as manager:
        declared(manager, "Passed")
    with Subscriber(endpoint, "Passed()") as subscriber:
        written(frame, f"{NOBODY}, {endpoint}", "Passed", timeout="1 s")
        assert len(received(subscriber)) == 10
    with pytest.raises(Exception, match="no broker is left: no broker answers at"):
        written(frame, NOBODY, "Passed", timeout="500 ms")


def test_events_of_a_running_broker_are_read_for_some_time(spark, endpoint):
    register(spark)
    with RuleManager(endpoint) as manager:
        declared(manager, "Read")
    reader = spark.read.format("rexmq").option("broker", endpoint).option("for", "4 s")
    frame = reader.option("subscribe", "Read(value >= 1)").load()
    assert frame.columns == ["type", "time", "source", "id", "area", "value", "cause"]
    stop = threading.Event()

    def publishing():
        """Again and again, for who knows when Spark subscribes."""
        number = 0
        with Publisher(endpoint, name="reader's", types=[READ]) as publisher:
            while not stop.wait(0.05):
                number += 1
                publisher.publish("Read", area="a", value=float(number % 3), at=number)

    thread = threading.Thread(target=publishing)
    thread.start()
    rows = frame.collect()
    stop.set()
    thread.join()
    assert {row["value"] for row in rows} == {1.0, 2.0}
    origins = {(row["type"], row["source"], row["area"]) for row in rows}
    assert origins == {("Read", "reader's", "a")}
    times = [round(row["time"].timestamp() * 1e6) for row in rows]
    assert times == sorted(set(times))
    with pytest.raises(Exception, match=r"known are: .*Read"):
        reader.option("subscribe", "Unheard()").load()
