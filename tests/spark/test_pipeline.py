"""The example pipeline: its events are the demo's; what is generated follows from the seed."""

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest

from broker.demo import flights as demo

EXAMPLES = Path(__file__).parents[2] / "examples" / "pipeline"
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does", "ignore:the events have", "ignore:rule"
)


def example(name):
    spec = importlib.util.spec_from_file_location(f"pipeline_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Some rows of the year's tables, of days on which clocks are of interest."""
    source, folder = demo.data_folder(), tmp_path_factory.mktemp("raw")
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        header, *lines = archive.read("flights.csv").decode().splitlines()
    days = tuple(f"2013,{day}," for day in ("1,1", "3,10", "7,1", "12,31"))
    chosen = [line for line in lines if line.startswith(days)][::3]
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join([header, *chosen]) + "\n")
    header, *lines = (source / "weather.csv").read_text().splitlines()
    chosen = [line for line in lines if any(f",{day}" in line for day in days)]
    (folder / "weather.csv").write_text("\n".join([header, *chosen]) + "\n")
    (folder / "airports.csv").write_text((source / "airports.csv").read_text())
    return folder


def test_the_events_of_the_flights_are_those_of_the_demo(spark, raw, tmp_path, monkeypatch):
    pipeline = example("flights")
    quality = pipeline.make_events(spark, raw, tmp_path)
    monkeypatch.setattr(demo, "data_folder", lambda: raw)
    expected = {batch.type.name: batch for log in demo.logs() for batch in log.batches}
    events = pipeline.read_events(spark, tmp_path)
    assert set(events) == set(expected)
    for name, batch in expected.items():
        names = batch.type.names
        ours = sorted(
            (round(row["time"].timestamp() * 1e6), *(row[one] for one in names))
            for row in events[name].collect()
        )
        theirs = sorted((event.time, *event.data.values()) for event in batch.events())
        assert ours == theirs, name
        assert quality[name]["events"] == len(theirs)
    assert quality["Arrival"]["rejected"].keys() == {"no landing is known"}
    assert json.loads((tmp_path / "quality.json").read_text()) == quality
    pipeline.make_composites(spark, tmp_path)
    pipeline.make_report(spark, tmp_path)
    assert (tmp_path / "report.csv").read_text().startswith("type,month,count\n")


def test_rows_that_come_too_late_are_set_aside_with_the_reason(spark, raw, tmp_path):
    pipeline = example("flights")
    whole = pipeline.weather(spark, raw).where("reason is null")
    rows = whole.where("time < timestamp'2013-07-01T00:00:00Z'").count()
    assert 0 < rows < whole.count()
    pipeline.flights = lambda *_: {}  # the weather alone is enough, and sooner made
    quality = pipeline.make_events(spark, raw, tmp_path, "2013-07-01T00:00:00Z")
    assert quality["Weather"]["rejected"][pipeline.LATE] == rows
    assert quality["Weather"]["events"] == whole.count() - rows


def test_what_is_generated_depends_on_the_seed_alone(spark):
    workload = example("generator").workload
    made = [
        sorted(map(tuple, workload(spark, 500, seed=seed, partitions=parts).collect()))
        for seed, parts in ((1, 1), (1, 7), (2, 7))
    ]
    assert made[0] == made[1] != made[2]
    assert len({row[0] for row in made[0]}) == 10
