"""What rows are in networks: in no order (option order none), and numbered."""

from collections import Counter

import pytest
from connector import declared, readings, received, written

from broker import RuleManager, Subscriber
from broker.process import BrokerProcess
from broker.spark import SparkFailed, publish, readable_errors, register


def test_where_events_count_as_they_come_rows_need_no_order(spark):
    """More tasks than cores, the latest rows first: each reading follows one of its area."""
    register(spark)
    frame = readings(spark).orderBy("ts", ascending=False).repartition(5)
    with BrokerProcess("--ordering", "arrival") as broker:
        declared(broker.endpoint, "Loose")
        with Subscriber(broker.endpoint, "Loose()", "LoosePair()") as subscriber:
            written(frame, broker.endpoint, "Loose", order="none")
            events = received(subscriber, 118)
        with RuleManager(broker.endpoint) as manager:
            sources = manager.status()["sources"]
    assert {one["standing"] for one in sources} == {"closed"}
    assert sum(one["late"] + one["rejected"] for one in sources) == 0
    values = sorted(event.data["value"] for event in events if event.type == "Loose")
    assert values == [number / 4 for number in range(60)]
    pairs = [event.data for event in events if event.type == "LoosePair"]
    assert len(pairs) == 58
    for area, parity in (("a", 0), ("b", 1)):
        own = [one for one in pairs if one["area"] == area]
        assert all(one[end] * 4 % 2 == parity for one in own for end in ("first", "second"))
        # A chain in the order in which they came: each follows once, and is followed once.
        assert len({one["first"] for one in own}) == len({one["second"] for one in own}) == 29


def test_where_events_count_by_their_times_it_is_said_how_to_write_them(spark):
    register(spark)
    frame = readings(spark)
    with BrokerProcess() as broker:
        declared(broker.endpoint, "Strict")
        with Subscriber(broker.endpoint, "StrictPair()") as subscriber:
            written(frame.where("ts > 15"), broker.endpoint, "Strict", order="none")
            assert len(received(subscriber, 28)) == 28
            with pytest.raises(Exception, match=r"late Strict.*option order 'held'"):
                written(frame.where("ts < 15"), broker.endpoint, "Strict", order="none")
            with (
                pytest.raises(SparkFailed, match=r"source 'by Strict'.*option source of its own"),
                readable_errors(),
            ):
                written(frame.where("ts < 15"), broker.endpoint, "Strict")


def test_two_tables_of_different_types_may_give_their_rows_the_same_ids(spark):
    """Under the source that they have where none is named, and rows that hold the same, too."""
    register(spark)
    with BrokerProcess() as broker, Subscriber(broker.endpoint) as subscriber:
        for name in ("Order", "Payment"):
            declared(broker.endpoint, name)
            subscriber.subscribe(f"{name}()")
            numbered = spark.range(1, 6).selectExpr(
                "id as ts", "'a' as area", "id / 4d as value", "if(id < 4, id, null) as number"
            )
            written(numbered, broker.endpoint, name, source="", id="number")
            later = numbered.selectExpr("ts + 100 as ts", "area", "value")
            written(later, broker.endpoint, name, source="both")
        events = received(subscriber, 20, seconds=20.0)
    found = Counter((event.source, event.type) for event in events)
    assert found == {
        (source, name): 5 for name in ("Order", "Payment") for source in (f"spark/{name}", "both")
    }


@pytest.mark.parametrize("column", ["sequence", "id"])
def test_types_that_are_named_apart_are_not_taken_for_repeats_of_each_other(spark, column):
    """Events of both types bear the numbers 1 to 20, and no source."""
    frames = {
        name: spark.range(1, 21).selectExpr(
            f"id as {column}", "id / 1d as time", "'a' as area", "id / 4d as value"
        )
        for name in ("Left", "Right")
    }
    with BrokerProcess() as broker:
        for name in frames:
            declared(broker.endpoint, name)
        with Subscriber(broker.endpoint, "Left()", "Right()") as subscriber:
            assert publish(frames, broker.endpoint, source="both").events == 40
            events = received(subscriber, 40, seconds=20.0)
    # Numbers are those of a recording, of a source that is called like the type.
    is_recorded = column == "sequence"
    assert sorted((event.type, event.source, event.id) for event in events) == sorted(
        (name, name, f"{number}") if is_recorded else (name, "both", f"{name}#{number}")
        for name in frames
        for number in range(1, 21)
    )
