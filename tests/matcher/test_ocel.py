"""Logs of processes around many objects are tables of events."""

import json
from pathlib import Path
from random import Random

import pytest

import rexmq
from broker.recorded import RecordedEvents
from matcher.errors import EventError
from matcher.formats.files import EventFile, form_written
from matcher.formats.intake import Intake

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


def written(tmp_path: Path, log: object) -> Path:
    path = tmp_path / "orders.jsonocel"
    path.write_text(json.dumps(log))
    return path


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
