"""Logs of process mining are tables of events."""

import gzip
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from broker.recorded import RecordedEvents
from matcher.errors import EventError
from matcher.formats import pieces, xesfiles
from matcher.formats.files import EventFile, form_written
from matcher.formats.intake import Intake
from matcher.formats.layout import Layout

START = datetime(2024, 6, 1, tzinfo=UTC)
KINDS = {str: "string", int: "int", float: "float", bool: "boolean", datetime: "date"}


def attribute(name, value, inner=""):
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    tag = KINDS[type(value)]
    return f"<{tag} key={quoteattr(name)} value={quoteattr(text)}>{inner}</{tag}>"


def log_of(traces):
    """A log of traces, each a pair of its attributes and of those of its events."""
    parts = []
    for own, events in traces:
        shown = ["".join(attribute(*pair) for pair in event.items()) for event in events]
        body = "".join(f"<event>{event}</event>" for event in shown)
        parts.append(f"<trace>{''.join(attribute(*pair) for pair in own.items())}{body}</trace>")
    return f'<log xmlns="http://www.xes-standard.org/">{"".join(parts)}</log>'


def events_of(path, **options):
    batches = [chunk.batches for chunk in EventFile.of(path, "Step", **options).read(Intake())]
    return [event for some in batches for batch in some for event in batch.events()]


def test_a_row_is_an_event_with_the_attributes_of_its_trace(tmp_path):
    path = tmp_path / "orders.xes"
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<log xmlns="http://www.xes-standard.org/"><string key="concept:name" value="all"/>'
        '<global scope="event"><string key="concept:name" value="none"/></global>'
        '<trace><string key="concept:name" value="o1"/><int key="amount" value="7"/><event>'
        '<string key="concept:name" value="pay &amp; ship"/><boolean key="ok" value="true"/>'
        '<date key="time:timestamp" value="2024-06-01T10:00:00.500+02:00"/>'
        '<string key="org:resource" value="Sue"><string key="org:role" value="x"/></string>'
        '<list key="items"><values><int key="n" value="1"/></values></list>'
        "</event></trace></log>"
    )
    (event,) = events_of(path)
    assert event.data == {
        "case": "o1",
        "case:amount": 7,
        "activity": "pay & ship",
        "ok": True,
        "org:resource": "Sue",
    }
    assert event.time == 1_717_228_800_500_000
    (event,) = events_of(path, layout=Layout(columns=(("who", "org:resource"),)))
    assert event.data["who"] == "Sue"


@pytest.mark.parametrize("seed", range(3))
def test_random_logs_are_read_as_they_were_made(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(pieces, "ROWS", 7)
    monkeypatch.setattr(xesfiles, "_BYTES", 100)
    rng, traces, expected = random.Random(seed), [], []
    for case in range(rng.randrange(2, 9)):
        events = []
        for _ in range(rng.randrange(1, 9)):
            at, cost = START + timedelta(seconds=rng.randrange(9_000)), rng.choice([1.5, 2])
            name = rng.choice(["a<b", "c"])
            events.append({"concept:name": name, "time:timestamp": at, "cost": cost})
            expected.append((at.timestamp() * 1e6, f"c{case}", name, float(cost)))
        traces.append(({"concept:name": f"c{case}"}, events))
    path = tmp_path / "log.xes.gz"
    path.write_bytes(gzip.compress(log_of(traces).encode()))
    recorded = RecordedEvents([path], type_name="Step")
    read = [
        (event.time, event.data["case"], event.data["activity"], event.data["cost"])
        for step in recorded.steps()
        for batch in step.batches
        for event in batch.events()
    ]
    assert read == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<log><trace>", "log.xes: not XES: no element found"),
        ("<html/>", "log.xes: not XES: the document is a html, not a log"),
        ("", "log.xes: not XES: no element found"),
        ('<!DOCTYPE log [<!ENTITY a "aa">]><log>&a;</log>', "log.xes: a document type"),
        (
            '<log><trace>\n<event><int key="n" value="many"/></event></trace></log>',
            "log.xes:2: attribute n: invalid literal",
        ),
        (
            f'<log><trace><event><int key="n" value="{2**63}"/></event></trace></log>',
            "log.xes:1: attribute n: an int beyond 64 bits",
        ),
        (
            '<log><trace><event><boolean key="n" value="yes"/></event></trace></log>',
            "attribute n: expected true or false, found 'yes'",
        ),
        (
            '<log><trace><event><int key="n" value="1"/></event>'
            '<event><string key="n" value="1"/></event></trace></log>',
            "log.xes: attribute n is of several kinds: int, str",
        ),
        (
            '<log><trace><event><int key="n" value="1"/></event></trace></log>',
            "log.xes: no column 'time'; the columns are 'n'",
        ),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, text, reason):
    path = tmp_path / "log.xes"
    path.write_text(text)
    with pytest.raises(EventError, match=reason):
        events_of(path)


def test_logs_are_not_written():
    with pytest.raises(EventError, match="events are not written like this"):
        form_written(Path("out.xes"))
