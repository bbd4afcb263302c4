"""``rexmq top``: two looks at a broker, as a page."""

import pytest

from broker import Publisher, Subscriber
from broker.cli import main
from broker.cli.top import frame
from broker.monitoring.figures import ordered
from matcher.model import EventType

STATUS = {
    "broker": "b1",
    "uptime_s": 61.2,
    "clients": [{}, {}],
    "totals": {"received": 100},
    "sources": [],
    "types": [],
    "rules": [],
    "sinks": [],
    "network": {
        "brokers": [{"reachable": True}, {"reachable": False}],
        "strategy": "centralized",
        "root": "b1",
        "settled": False,
        "links": [{"neighbour": "b2", "buffered": 7, "sent": 9, "received": 0}],
    },
}


def sink(name, queued, delivered, dropped=0):
    figures = {"queued": queued, "limit": 10, "delivered": delivered, "dropped": dropped}
    return {"name": name, "when_full": "block", **figures}


def test_rates_are_between_two_looks():
    before = {**STATUS, "sinks": [sink("s1", 0, 10), sink("s2", 0, 10)]}
    after = {
        **STATUS,
        "totals": {"received": 300},
        "sinks": [sink("s1", 1, 20), sink("s2", 9, 10, 4), sink("s3", 0, 50)],
    }
    lines = frame(before, after, 2.0, 0).splitlines()
    assert lines[:3] == [
        "broker b1  up 61 s  clients 2",
        "network centralized  root b1  brokers 2  out of reach 1  not settled",
        "per second  received 100",
    ]
    assert [line.split() for line in lines[4:9]] == [
        ["sinks:"],
        ["name", "full_%", "queued", "events/s", "dropped/s", "when_full"],
        ["s2", "90", "9", "0", "2", "block"],
        ["s1", "10", "1", "5", "0", "block"],
        ["s3", "0", "0", "0", "0", "block"],  # it came in between: its rate is not known yet
    ]
    assert lines[-1].split() == ["b2", "7", "0", "0"]


def test_rules_behind_the_clock_come_first():
    rules = [
        {"name": name, "type": "T", "state": "running", "place": None, "mark": mark}
        for name, mark in (("a", 9_000_000), ("b", None), ("c", 4_000_000))
    ]
    after = {**STATUS, "rules": rules}
    lines = frame(STATUS, after, 1.0, 10_000_000, "behind_s").splitlines()
    at = lines.index("rules:")
    assert [line.split()[:3] for line in lines[at + 2 : at + 5]] == [
        ["c", "-", "6"],
        ["a", "-", "1"],
        ["b", "-", "-"],
    ]


def test_rules_have_shares_of_the_time_that_was_spent_on_rules():
    def rules(*costs):
        said = {"type": "T", "state": "running", "place": None, "mark": None}
        pairs = zip("abc", costs, strict=True)
        return [{**said, "name": name, "cost": cost} for name, cost in pairs]

    before = {**STATUS, "rules": rules(None, 50, None)}
    lines = frame(before, {**STATUS, "rules": rules(10, 80, None)}, 1.0, 0).splitlines()
    at = lines.index("rules:")
    assert [line.split()[:2] for line in lines[at + 2 : at + 5]] == [
        ["b", "75"],
        ["a", "25"],
        ["c", "-"],
    ]


def test_of_many_rows_the_others_are_counted():
    after = {**STATUS, "sinks": [sink(f"s{number}", 0, 0) for number in range(25)]}
    assert "15 more" in frame(STATUS, after, 1.0, 0)


def test_a_column_orders_rows():
    rows = [{"a": 1}, {"a": None}, {"a": 3}]
    assert ordered(rows, "a") == [{"a": 3}, {"a": 1}, {"a": None}]
    assert ordered([{"a": "y"}, {"a": "x"}], "a") == [{"a": "x"}, {"a": "y"}]


def test_a_live_broker(endpoint, capsys):
    temp = EventType.of("TopTemp", value="float")
    with (
        Subscriber(endpoint, "TopTemp()", name="top sink") as subscriber,
        Publisher(endpoint, name="top source", types=[temp]) as publisher,
    ):
        publisher.publish("TopTemp", value=1.0)
        subscriber.receive(timeout_s=20)
        words = ["top", "--broker", endpoint, "--interval", "0.1", "--count", "2"]
        assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.count("broker broker") == 2
    assert "top sink" in shown
    assert "top source" in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--sort", "colour"], "top --sort: expected one of behind_s, cost_%, dropped/s"),
        (["--interval", "0"], "top --interval: expected at least 0.1 s"),
        (["--interval", "nan"], "top --interval: expected at least 0.1 s"),
    ],
)
def test_bad_options(endpoint, capsys, words, problem):
    assert main(["top", "--broker", endpoint, *words]) == 2
    assert problem in capsys.readouterr().err
