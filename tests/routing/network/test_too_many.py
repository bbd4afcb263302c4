"""A rule of a network that has more composite events at an instant than it may."""

import pytest
from brokers import Network
from conversation import schema_of

SCHEMAS = {"A": schema_of("A(x: int)"), "B": schema_of("B(y: int)")}
PAIR = """
    define Pair(x: int, y: int) from A() and each B() within 10 s from A where x = A.x, y = B.y
"""
OTHER = "define Tally(n: int) from A() where n = Count(B() within 10 s from A)"


@pytest.mark.parametrize(
    "strategy",
    [
        "centralized",
        "distributed-st",
        "distributed-mt",
        "push-pull-st",
        "push-pull-mt",
        "adaptive",
    ],
)
def test_it_ends_at_one_instant_for_all_sinks_and_is_out_of_force_everywhere(strategy, monkeypatch):
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(3, composites_per_instant_max=3)
    sinks = {name: network.connect(name, broker) for name, broker in (("k", "b1"), ("l", "b3"))}
    p, q = network.connect("p", "b1"), network.connect("q", "b3")
    p.advertise([SCHEMAS["A"]])
    q.advertise([SCHEMAS["B"]])
    network.run(2)
    m = network.connect("m", "b2")
    m.deploy(PAIR + OTHER)
    network.run(2)
    for sink in sinks.values():
        sink.subscribe("Pair()")
        sink.subscribe("Tally()")
    network.run(2)
    network.take_lines()
    network.publish("q", "B@1(1) B@1(2) B@1(3) B@3(4)", 5, SCHEMAS)
    network.publish("p", "A@2(10) A@4(11) A@4.5(12)", 5, SCHEMAS)
    network.run(3)
    lines = network.take_lines()
    for name in sinks:
        got = [line.partition(": ")[2] for line in lines if line.startswith(f"{name}: ")]
        pairs = [line.partition(" <-")[0] for line in got if line.startswith("Pair")]
        assert pairs == [f"Pair@{t}({x}, {y})" for t, x in ((2, 10), (4, 11)) for y in (1, 2, 3)]
        assert len([line for line in got if line.startswith("Tally")]) == 3
    for broker in network.brokers.values():
        status = broker.status(network.mesh.now)
        assert [rule["name"] for rule in status["rules"]] == ["Tally"]
    told = [one.status(network.mesh.now)["overruns"] for one in network.brokers.values()]
    assert any("rule Pair has more than 3" in text for texts in told for text in texts)
    for sink in sinks.values():  # who waits for what no rule names any more is told
        (reason,) = sink.paused.values()
        assert "rule Pair has more than 3 composite events at 1970-01-01T00:00:04Z" in reason
    m.deploy(PAIR)
    network.run(2)
    assert [sink.paused for sink in sinks.values()] == [{}, {}]
    network.publish("q", "B@6(5)", 20, SCHEMAS)
    network.publish("p", "A@7(13)", 20, SCHEMAS)
    network.run(3)
    found = [line.partition(" <-")[0] for line in network.take_lines() if "Pair@" in line]
    assert sorted(found) == [f"{name}: Pair@7(13, 5)" for name in sinks]
