"""Logs of processes around many objects are tables of events."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import rexmq
from broker.recorded import RecordedEvents
from matcher.errors import EventError
from matcher.formats.files import EventFile, form_written
from matcher.formats.intake import Intake
from matcher.formats.layout import Layout

ORDERS = {
    "objectTypes": [{"name": "Order", "attributes": []}, {"name": "Item", "attributes": []}],
    "eventTypes": [
        {
            "name": "pack",
            "attributes": [
                {"name": "weight", "type": "float"},
                {"name": "boxes", "type": "integer"},
                {"name": "object", "type": "boolean"},
            ],
        },
        {"name": "ship", "attributes": []},
    ],
    "objects": [
        {"id": "o1", "type": "Order", "attributes": [], "relationships": []},
        {"id": "i1", "type": "Item", "attributes": []},
        {"id": "i2", "type": "Item", "attributes": []},
    ],
    "events": [
        {
            "id": "e1",
            "type": "pack",
            "time": "2024-06-01T10:00:00Z",
            "attributes": [
                {"name": "weight", "value": "2.5"},
                {"name": "boxes", "value": 3},
                {"name": "object", "value": "true"},
            ],
            "relationships": [
                {"objectId": "o1", "qualifier": "of"},
                {"objectId": "i1", "qualifier": "in"},
                {"objectId": "i2", "qualifier": "in"},
            ],
        },
        {"id": "e2", "type": "ship", "time": "2024-06-01T12:00:00+02:00", "attributes": []},
        {
            "id": "e3",
            "type": "ship",
            "time": "2024-06-01T12:00:00Z",
            "relationships": [{"objectId": "i2", "qualifier": ""}],
        },
    ],
}


def written(tmp_path: Path, log: object, name: str = "orders.jsonocel") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(log))
    return path


def xml_of(log) -> str:
    """The log in XML, with the attributes of objects, which are passed over."""
    lines = ["<?xml version='1.0'?>", "<log>", "<event-types>"]
    for one in log["eventTypes"]:
        lines.append(f'<event-type name="{one["name"]}"><attributes>')
        lines += [f'<attribute name="{a["name"]}" type="{a["type"]}"/>' for a in one["attributes"]]
        lines.append("</attributes></event-type>")
    lines.append("</event-types><objects>")
    lines += [
        f'<object id="{one["id"]}" type="{one["type"]}"><attributes>'
        '<attribute name="price" time="2024-06-01T00:00:00Z">1</attribute></attributes></object>'
        for one in log["objects"]
    ]
    lines.append("</objects><events>")
    for one in log["events"]:
        lines.append(f'<event id="{one["id"]}" type="{one["type"]}" time="{one["time"]}">')
        given = one.get("attributes", [])
        values = [f'<attribute name="{a["name"]}">{a["value"]}</attribute>' for a in given]
        related = [
            f'<relationship object-id="{r["objectId"]}" qualifier="{r["qualifier"]}"/>'
            for r in one.get("relationships", [])
        ]
        lines += ["<attributes>", *values, "</attributes>", "<objects>", *related, "</objects>"]
        lines.append("</event>")
    return "\n".join([*lines, "</events></log>"])


def to_sqlite(log, path: Path) -> None:
    """Write the log as pm4py does: the events of a type in a table, their type in it again."""
    kinds = {"float": "REAL", "integer": "INTEGER", "boolean": "BOOLEAN"}
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE object (ocel_id TEXT, ocel_type TEXT)")
        base.execute("CREATE TABLE event (ocel_id TEXT, ocel_type TEXT)")
        base.execute("CREATE TABLE event_map_type (ocel_type TEXT, ocel_type_map TEXT)")
        base.execute("CREATE TABLE event_object (ocel_event_id, ocel_object_id, ocel_qualifier)")
        pairs = [(one["id"], one["type"]) for one in log["objects"]]
        base.executemany("INSERT INTO object VALUES (?, ?)", pairs)
        for one in reversed(log["eventTypes"]):
            name, table = one["name"], f'"event_{one["name"].title()}"'
            own = [f'"{a["name"]}" {kinds[a["type"]]}' for a in one["attributes"]]
            columns = ", ".join(
                ["ocel_id TEXT", "ocel_time TIMESTAMP", '"ocel:activity" TEXT', *own]
            )
            base.execute(f"CREATE TABLE {table} ({columns})")
            base.execute("INSERT INTO event_map_type VALUES (?, ?)", (name, name.title()))
        for one in log["events"]:
            base.execute("INSERT INTO event VALUES (?, ?)", (one["id"], one["type"]))
            values = [one["id"], one["time"], one["type"]]
            values += [{"true": 1}.get(a["value"], a["value"]) for a in one.get("attributes", [])]
            marks = ", ".join("?" * len(values))
            table = f'"event_{one["type"].title()}"'
            base.execute(f"INSERT INTO {table} VALUES ({marks})", values)
            for r in one.get("relationships", []):
                related = (one["id"], r["objectId"], r["qualifier"])
                base.execute("INSERT INTO event_object VALUES (?, ?, ?)", related)
        base.commit()


def rows_of(path: Path) -> list[dict[str, object]]:
    chunks = EventFile.of(path, "Step").read(Intake())
    return [dict(row.data) for chunk in chunks for one in chunk.batches for row in one.events()]


def test_a_row_is_an_event_and_one_of_its_objects(tmp_path):
    packed = {"activity": "pack", "event": "e1", "weight": 2.5, "boxes": 3, "event:object": True}
    shipped = {"activity": "ship", "weight": None, "boxes": None, "event:object": None}
    assert rows_of(written(tmp_path, ORDERS)) == [
        packed | {"object": "o1", "object_type": "Order", "qualifier": "of"},
        packed | {"object": "i1", "object_type": "Item", "qualifier": "in"},
        packed | {"object": "i2", "object_type": "Item", "qualifier": "in"},
        shipped | {"event": "e2", "object": None, "object_type": None, "qualifier": None},
        shipped | {"event": "e3", "object": "i2", "object_type": "Item", "qualifier": ""},
    ]


@pytest.mark.parametrize("name", ["o.xmlocel", "o.xml", "o.sqlite", "o.sqlite.gz", "o.json"])
def test_every_form_of_a_log_has_the_same_rows(tmp_path, name):
    """A log in XML or SQLite had to be made one in JSON by another program."""
    path = tmp_path / name
    if "sqlite" in name:
        to_sqlite(ORDERS, tmp_path / "o.sqlite")
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress((tmp_path / "o.sqlite").read_bytes()))
    else:
        path.write_text(json.dumps(ORDERS, indent=1) if name == "o.json" else xml_of(ORDERS))
    assert rows_of(path) == rows_of(written(tmp_path, ORDERS))
    recorded = RecordedEvents([path], type_name="Step")
    assert recorded.rows_by_file == [5]
    assert recorded.intake.schemas["Step"].names[:2] == ("activity", "event")


def test_documents_of_json_that_are_no_logs_are_read_by_their_records(tmp_path):
    """A log is known by its first member; that may stand in a document of another kind too."""
    path = written(tmp_path, {"objectTypes": [], "rows": [{"time": 1, "data": {"x": 5}}]}, "o.json")
    file = EventFile.of(path, "T", layout=Layout(records="rows"))
    rows = [row for chunk in file.read(Intake()) for one in chunk.batches for row in one.events()]
    assert [row.data for row in rows] == [{"x": 5}]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("o.xml", b"<log><events>", "o.xml: not XML: no element found"),
        ("o.xml", b"<log/>", "o.xml: not OCEL 2.0 in XML: a log without events"),
        ("o.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><log/>', "o.xml: a document type, which no log"),
        ("o.xml", b"<log><events><event/></events></log>", "in XML: event without id"),
        ("o.sqlite", b"", "o.sqlite: not OCEL 2.0 in SQLite: no bytes"),
        ("o.sqlite", b"one", "o.sqlite: not OCEL 2.0 in SQLite: file is not a database"),
    ],
)
def test_what_is_no_log_in_another_form_is_refused(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EventError, match=reason):
        rows_of(tmp_path / name)


def test_a_database_of_something_else_is_refused(tmp_path):
    with closing(sqlite3.connect(tmp_path / "o.sqlite")) as base:
        base.execute("CREATE TABLE shops (name)")
    with pytest.raises(EventError, match="in SQLite: no such table: event_object"):
        rows_of(tmp_path / "o.sqlite")


def test_rules_join_events_by_their_objects(tmp_path):
    rules = """define Shipped(item, hours)
        from Step(activity = "ship", object = $o) as ship and
             last Step(activity = "pack", object = $o) as pack within 1 day from ship
        where item = ship.object, hours = (ship.time - pack.time) / 1 h"""
    found = rexmq.detect(rules, {"Step": written(tmp_path, ORDERS)})
    assert [event.data for event in found["Shipped"].events()] == [{"item": "i2", "hours": 2.0}]


def test_random_logs_are_read_as_they_were_made(tmp_path):
    rng, events, expected = Random(66), [], []
    objects = [{"id": f"o{one}", "type": rng.choice("AB")} for one in range(4)]
    for number in range(40):
        chosen = rng.sample(objects, rng.randrange(3))
        related = [{"objectId": one["id"]} for one in chosen]
        time = f"2024-06-01T10:00:{number:02}Z"
        events.append({"id": f"e{number}", "type": "t", "time": time, "relationships": related})
        expected += [(f"e{number}", one["id"], one["type"]) for one in chosen]
        expected += [(f"e{number}", None, None)] * (not chosen)
    path = written(tmp_path, {"events": events, "objects": objects})
    steps = RecordedEvents([path], type_name="Step").steps()
    rows = [row.data for step in steps for one in step.batches for row in one.events()]
    assert [(row["event"], row["object"], row["object_type"]) for row in rows] == expected


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ([], "orders.jsonocel: not OCEL 2.0 in JSON: Expected `object`"),
        ({"ocel:events": {}}, "not OCEL 2.0 in JSON: Object missing required field `events`"),
        ({"events": [{"id": "e"}]}, "missing required field `type`"),
        (
            ORDERS | {"objects": []},
            "orders.jsonocel: event e1: no object o1",
        ),
        (
            {
                "eventTypes": ORDERS["eventTypes"],
                "events": [
                    {
                        "id": "e",
                        "type": "pack",
                        "time": "2024-06-01",
                        "attributes": [{"name": "boxes", "value": 1.5}],
                    }
                ],
            },
            "event e: attribute boxes: invalid literal",
        ),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, log, reason):
    with pytest.raises(EventError, match=reason):
        rows_of(written(tmp_path, log))


def test_logs_are_not_written():
    with pytest.raises(EventError, match="events are not written like this"):
        form_written(Path("out.jsonocel"))
