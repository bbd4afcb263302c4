"""One law: rules find the same in a file, in frames, and live in what ``publish`` publishes."""

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connector import none_follows, received
from spark_frames import events_of

from broker import RuleManager, Subscriber
from broker.cli import main
from broker.demo import flights as demo
from broker.detection import defined_types
from broker.process import BrokerProcess
from broker.spark import detect, publish
from matcher.model import Event
from matcher.times import time_of
from rules import load

RULES = Path(__file__).parents[2] / "examples" / "flights.tesla"
STORM = date(2013, 2, 6), date(2013, 2, 11)
pytestmark = pytest.mark.filterwarnings("ignore:rule")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The events of the days of a storm by type; their ids say nothing of their order."""
    paths = {}
    for path in demo.record(demo.logs(*STORM), tmp_path_factory.mktemp("storm")):
        table = pq.read_table(path)
        numbers = table.column("sequence").to_pylist()
        ids = pa.array([f"{number * 7919 % 99991:05}/{number}" for number in numbers])
        place = table.schema.get_field_index("id")
        pq.write_table(table.set_column(place, "id", ids), path)
        paths[table.column("type")[0].as_py()] = path
    return paths


def known(event):
    """All that is to be the same."""
    return event.time, event.type, event.source, event.id, event.cause_full, [*event.data.items()]


def printed(line):
    """The same of a line of ``rexmq detect``."""
    event = json.loads(line)
    event["cause_full"] = tuple(event.pop("cause"))
    del event["specversion"]
    return known(Event(**{**event, "time": time_of(event["time"])}))


def test_a_live_broker_finds_what_the_recording_holds(spark, files, capfd):
    """Of simultaneous events too; with the same ids and causes."""
    frames = {name: spark.read.parquet(str(path)).drop("type") for name, path in files.items()}
    found = detect(frames, RULES, full_cause=True)
    recorded = sorted(map(known, events_of(found)))
    assert len(recorded) > 800
    text = RULES.read_text(encoding="utf-8")
    filters = [f"{one.name}()" for one in defined_types(load(text))]
    with BrokerProcess() as broker, RuleManager(broker.endpoint) as manager:
        manager.add(text)
        with Subscriber(broker.endpoint, *filters) as subscriber:
            publish(frames, broker.endpoint, source="flights", parts=3)
            live = received(subscriber, len(recorded))
            assert none_follows(subscriber)
    assert sorted(map(known, live)) == recorded
    capfd.readouterr()
    events = map(str, files.values())
    assert main(["detect", "--rules", str(RULES), "--cause", "full", "--events", *events]) == 0
    assert sorted(map(printed, capfd.readouterr().out.splitlines())) == recorded
