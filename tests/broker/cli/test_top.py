"""``rexmq top``: two looks at a broker, as a page."""

import pytest

from broker import Publisher, Subscriber
from broker.cli import main
from broker.cli.top import frame
from broker.monitoring.figures import ordered
from broker.monitoring.gathered import Look
from broker.process import BrokerProcess
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


def framed(before, after, seconds, clock, sort=None):
    return frame({"b1": Look(before, after, seconds)}, clock, sort)


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
    lines = framed(before, after, 2.0, 0).splitlines()
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
    lines = framed(STATUS, after, 1.0, 10_000_000, "behind_s").splitlines()
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
    lines = framed(before, {**STATUS, "rules": rules(10, 80, None)}, 1.0, 0).splitlines()
    at = lines.index("rules:")
    assert [line.split()[:2] for line in lines[at + 2 : at + 5]] == [
        ["b", "75"],
        ["a", "25"],
        ["c", "-"],
    ]


def test_rules_say_what_they_take_how_much_they_find_and_who_holds_them_up():
    held = [{"source": "t", "broker": None, "standing": "live"}]
    held += [{"source": None, "broker": "b9", "standing": "linked"}]
    held += [{"source": None, "broker": None, "standing": "gone"}]
    said = {"type": "T", "state": "running", "place": None, "mark": None, "cost": 1}
    types = [{"name": "T", "events": count, "sources": [], "mark": None} for count in (10, 40)]
    rules = [{**said, "name": "a", "memory": 41_600, "held_by": held}]
    before = {**STATUS, "rules": rules, "types": types[:1]}
    lines = framed(before, {**STATUS, "rules": rules, "types": types[1:]}, 2.0, 0).splitlines()
    at = lines.index("rules:")
    expected = "a - - 42 15 running t, b9, gone T b1"
    assert lines[at + 2].split() == expected.split()


def test_brokers_are_shown_together():
    network = {**STATUS["network"], "settled": True}
    network["brokers"] = [
        {"name": name, "reachable": name != "b3", "neighbours": []} for name in ("b1", "b2", "b3")
    ]
    said = {"type": "T", "mark": None, "cost": 1, "memory": 2_000}
    here = {**said, "name": "near", "state": "running", "place": None}
    there = {**said, "name": "far", "state": "elsewhere", "place": "b2", "memory": None}
    unknown = {**said, "name": "gone", "state": "elsewhere", "place": "b3", "memory": None}
    first = {**STATUS, "network": network, "rules": [here, there, unknown]}
    first["sinks"] = [sink("s1", 1, 0)]
    second = {**STATUS, "broker": "b2", "network": network, "totals": {"received": 300}}
    second["rules"] = [{**there, "state": "running", "place": None, "memory": 9_000}]
    second["sinks"] = [sink("s2", 5, 0)]
    looks = {
        "b1": Look({**first, "totals": {"received": 50}}, first, 2.0),
        "b2": Look({**second, "totals": {"received": 100}}, second, 2.0),
    }
    lines = frame(looks, 0, None, ["no broker answers at tcp://b3:7461"]).splitlines()
    assert "not known: no broker answers at tcp://b3:7461" in lines
    at = lines.index("brokers:")
    assert [line.split()[:4] for line in lines[at + 2 : at + 5]] == [
        ["b1", "yes", "2", "25"],
        ["b2", "yes", "2", "100"],
        ["b3", "no", "-", "-"],
    ]
    at = lines.index("sinks:")
    assert [line.split()[::6] for line in lines[at + 2 : at + 4]] == [["s2", "b2"], ["s1", "b1"]]
    at = lines.index("rules:")
    shown = {line.split()[0]: line.split() for line in lines[at + 2 : at + 5]}
    assert (shown["far"][3], shown["far"][-1]) == ("9", "b2")
    assert (shown["near"][3], shown["near"][-1]) == ("2", "b1")
    assert (shown["gone"][3], shown["gone"][-1]) == ("-", "b3")


def test_of_many_rows_the_others_are_counted():
    after = {**STATUS, "sinks": [sink(f"s{number}", 0, 0) for number in range(25)]}
    assert "15 more" in framed(STATUS, after, 1.0, 0)


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
        (["--sort", "colour"], "top --sort: expected one of behind_s, connections, cost_%"),
        (["--interval", "0"], "top --interval: expected at least 0.1 s"),
        (["--interval", "nan"], "top --interval: expected at least 0.1 s"),
    ],
)
def test_bad_options(endpoint, capsys, words, problem):
    assert main(["top", "--broker", endpoint, *words]) == 2
    assert problem in capsys.readouterr().err


def test_live_brokers_together(endpoint, capsys):
    words = ["top", "--broker", endpoint, "--interval", "0.1", "--count", "1"]
    with BrokerProcess("--engine", "naive", "--name", "another") as another:
        assert main([*words[:2], f"{endpoint},{another.endpoint}", *words[3:]]) == 0
    shown = capsys.readouterr().out
    assert "brokers:" in shown
    assert main([*words[:2], f"{endpoint},tcp://127.0.0.1:9", *words[3:]]) == 0
    shown = capsys.readouterr().out
    assert "brokers:" not in shown
    assert "not known: " in shown
