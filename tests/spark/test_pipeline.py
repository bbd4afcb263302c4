"""The example pipeline: its events are the demo's; what is generated follows from the seed."""

import importlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from broker import Subscriber
from broker.demo import flights as demo
from broker.process import BrokerProcess
from broker.spark import explain_plan, register

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipeline"
pytestmark = pytest.mark.filterwarnings("ignore:the events have", "ignore:rule")


def example(name):
    """A module of the pipeline; they find one another beside themselves."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Some rows of the year's tables, of days on which clocks are of interest."""
    source, folder = demo.data_folder(), tmp_path_factory.mktemp("raw")
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        header, *lines = archive.read("flights.csv").decode().splitlines()
    days = tuple(f"2013,{day}," for day in ("1,1", "3,10", "7,1", "12,31"))
    chosen = [line for line in lines if line.startswith(days)]
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join([header, *chosen]) + "\n")
    header, *lines = (source / "weather.csv").read_text().splitlines()
    chosen = [line for line in lines if any(f",{day}" in line for day in days)]
    (folder / "weather.csv").write_text("\n".join([header, *chosen]) + "\n")
    (folder / "airports.csv").write_text((source / "airports.csv").read_text())
    return folder


def recorded(rows, names):
    """What rows of events hold, in one form, in order."""
    return sorted(
        (
            round(row["time"].timestamp() * 1e6),
            *(row[name] for name in ("source", "sequence", *names)),
        )
        for row in rows
    )


def test_the_events_of_the_flights_are_those_of_the_demo(spark, raw, tmp_path, monkeypatch):
    """Their numbers too, which follow from the tables alone."""
    pipeline = example("flights")
    quality = pipeline.make_events(spark, raw, tmp_path)
    monkeypatch.setattr(demo, "data_folder", lambda: raw)
    expected = {batch.type.name: batch for log in demo.logs() for batch in log.batches}
    events = pipeline.read_events(spark, tmp_path)
    assert set(events) == set(expected)
    for name, batch in expected.items():
        theirs = sorted(
            (event.time, event.source, event.sequence, *event.data.values())
            for event in batch.events()
        )
        assert recorded(events[name].collect(), batch.type.names) == theirs, name
        assert quality[name]["events"] == len(theirs)
    assert quality["Arrival"]["rejected"].keys() == {"no landing is known"}
    assert json.loads((tmp_path / "quality.json").read_text()) == quality
    plan = explain_plan(events, pipeline.RULES)
    assert plan.count("read by the workers themselves") == 4
    found = pipeline.make_composites(spark, tmp_path)
    assert found["BadHour"] > 0
    bad_hours = spark.read.parquet(str(tmp_path / "composites" / "BadHour"))
    assert bad_hours.count() == found["BadHour"]
    assert bad_hours.columns == ["time", "airport", "late", "cancelled", "source", "id", "cause"]
    text = pipeline.make_report(tmp_path).read_text()
    assert f"| BadHour | {found['BadHour']} |" in text
    months = (tmp_path / "report" / "months.csv").read_text().splitlines()
    assert months[0] == "type,month,count"
    assert sum(int(line.split(",")[2]) for line in months[1:]) == sum(found.values())
    for plot in ("events.png", "found.png"):
        assert (tmp_path / "report" / plot).read_bytes().startswith(b"\x89PNG")


def test_numbers_follow_from_the_tables_however_these_are_cut(spark, raw, tmp_path):
    """Into blocks of a few lines, which many tasks read, or into one."""
    pipeline, tables = example("flights"), example("tables")
    found = []
    for block, partitions in (("128m", 1), ("60k", 7)):
        settings = {
            "spark.sql.files.maxPartitionBytes": block,
            "spark.sql.files.openCostInBytes": "0",
            "spark.sql.files.minPartitionNum": "1",
            "spark.sql.shuffle.partitions": str(partitions),
        }
        before = {name: spark.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                spark.conf.set(name, value)
            rows = tables.sources(spark, raw, tmp_path)["departures"]
            blocks = rows.rdd.getNumPartitions()
            sound = pipeline.numbered(rows.where("reason is null").drop("reason"))
            found.append((blocks, sorted((row["sequence"], row["id"]) for row in sound.collect())))
        finally:
            for name, value in before.items():
                spark.conf.unset(name) if value is None else spark.conf.set(name, value)
    (blocks, whole), (more_blocks, in_blocks) = found
    assert blocks == 1
    assert more_blocks > 3
    assert whole == in_blocks
    assert [number for number, _ in whole] == [*range(1, len(whole) + 1)]


def test_rows_that_come_too_late_are_set_aside_with_the_reason(spark, raw, tmp_path, monkeypatch):
    pipeline, tables = example("flights"), example("tables")
    whole = pipeline.numbered(tables.weather(spark, raw).where("reason is null"))
    numbers = whole.where("time < timestamp'2013-07-01T00:00:00Z'").select("sequence").collect()
    assert 0 < len(numbers) < whole.count()
    only = {"weather": tables.weather(spark, raw)}  # is enough, and sooner made
    monkeypatch.setattr(pipeline, "sources", lambda *_: only)
    quality = pipeline.make_events(spark, raw, tmp_path, "2013-07-01T00:00:00Z")
    assert quality["Weather"]["rejected"][pipeline.LATE] == len(numbers)
    kept = spark.read.parquet(str(tmp_path / "events" / "Weather")).select("sequence").collect()
    assert len(kept) == quality["Weather"]["events"]
    assert sorted(kept + numbers) == [(number,) for number in range(1, whole.count() + 1)]


def test_what_is_generated_depends_on_the_seed_alone(spark):
    workload = example("generator").workload

    def made(**options):
        return sorted(map(tuple, workload(spark, 500, **options).collect()))

    whole = made(seed=1, partitions=1)
    assert whole == made(seed=1, partitions=7) != made(seed=2, partitions=7)
    assert len({row[0] for row in whole}) == 10
    assert [row[3] for row in sorted(whole, key=lambda row: row[1])] == [*range(1, 501)]


def test_a_part_of_what_is_generated_is_that_part_of_the_whole(spark):
    """Of a thousand million events too, of which the rest is not made."""
    workload = example("generator").workload
    whole = {row["sequence"]: tuple(row) for row in workload(spark, 900, partitions=3).collect()}
    parts = [
        row
        for first, last, partitions in ((0, 250, 1), (250, 251, 2), (251, 900, 5))
        for row in workload(spark, 900, first=first, last=last, partitions=partitions).collect()
    ]
    assert {row["sequence"]: tuple(row) for row in parts} == whole
    assert len(parts) == 900
    far = {"first": 999_999_000, "last": 10**9}
    one, many = (
        sorted(map(tuple, workload(spark, 10**9, **far, partitions=count).collect()))
        for count in (1, 8)
    )
    assert one == many
    assert max(row[3] for row in one) == 10**9
    with pytest.raises(ValueError, match="events 5 to 11 are no part of 10"):
        workload(spark, 10, first=5, last=11)


def test_a_commit_replaces_days_and_one_that_died_is_swept_away(spark, tmp_path):
    ledger = example("ledger").Ledger(tmp_path)
    rows = spark.createDataFrame([("d1", 1), ("d2", 2)], "day string, n int")

    def held(*days):
        return sorted(row["n"] for row in ledger.read(spark, days).collect())

    ledger.replace(rows, ["d1", "d2"])
    (tmp_path / "died" / "day=d1").mkdir(parents=True)
    assert held("d1", "d2") == [1, 2]
    ledger.replace(rows.where("day = 'd2'").withColumn("n", rows["n"] + 1), ["d2"])
    assert held("d1", "d2") == [1, 3]
    ledger.replace(rows.where("false"), ["d1"])
    assert ledger.read(spark, ["d1"]) is None
    assert held("d1", "d2") == [3]
    assert not (tmp_path / "died").exists()


def test_a_pipeline_of_days_may_take_a_day_in_again(spark, tmp_path):
    """A day that is mended gives what it would have given at once, and nobody hears it twice."""
    daily, messy = example("daily"), example("messy")
    register(spark)
    days, size = ["2026-07-01", "2026-07-02"], (2, 150, 1)
    with BrokerProcess("--engine", "naive") as broker:
        with Subscriber(broker.endpoint, "Heat()") as subscriber:
            text = daily.RULES.read_text()
            pipeline = daily.Pipeline(spark, tmp_path, broker.endpoint, text)
            messy.make_day(tmp_path / "raw", days[0], *size)
            messy.make_day(tmp_path / "raw", days[1], *size, spoilt="st01")
            for day in days:
                counts = pipeline.day(day)
                assert sum(counts.values()) - counts["Heat"] >= 2 * 150
            messy.make_day(tmp_path / "raw", days[1], *size)
            pipeline.day(days[1])
            pipeline.day(days[1])
            named = daily.heard(subscriber)
        assert named
        assert len(named) == len(set(named))
    at_once = daily.Pipeline(spark, tmp_path / "other", "", text)
    for day in days:
        messy.make_day(tmp_path / "other" / "raw", day, *size)
        at_once.take_in(day)
    at_once.evaluate(days)
    rows, others = (
        {tuple(row) for row in one.table("heat").read(spark, days).drop("cause").collect()}
        for one in (pipeline, at_once)
    )
    assert rows
    assert rows == others
