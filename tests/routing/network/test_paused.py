"""Subscriptions in a network whose type changes its schema."""

import pytest
from brokers import Network
from conversation import schema_of

FLOAT = schema_of("Temp(room: string, value: float)")
TEXT = schema_of("Temp(room: string, value: string)")


@pytest.mark.parametrize(
    "strategy", ["centralized", "distributed-st", "distributed-mt", "push-pull-mt", "adaptive"]
)
def test_a_subscription_is_paused_and_goes_on_wherever_the_type_is_published(strategy, monkeypatch):
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(3)
    k = network.connect("k", "b1")
    k.subscribe("Temp(value > 20)")
    network.run(2)
    for time, name, broker, schema, values in (
        (1, "p", "b3", FLOAT, '"a", 21'),
        (2, "q", "b2", TEXT, '"a", "nan"'),
        (3, "r", "b1", TEXT, '"a", "inf"'),
        (4, "s", "b3", FLOAT, '"a", 22'),
    ):
        session = network.connect(name, broker)
        session.advertise([schema])
        network.run(2)
        assert list(k.paused) == ([1] if schema == TEXT else [])
        network.publish(name, f"Temp@{time}({values})", time + 0.5, {"Temp": schema})
        network.run(1)
        session.close(network.mesh.now)
        network.run(2)
        for one in network.brokers.values():
            told = one.status(network.mesh.now)["former_types"]
            # By what somebody asks for: who asks is known at every broker.
            fits = [{"name": "Temp", "schema": str(FLOAT)}]
            assert told == (fits if schema == FLOAT else [])
    got = [line for line in network.take_lines() if line.startswith("k: ")]
    assert got == ["k: confirmed", 'k: p#1 Temp@1("a", 21.0)', 'k: s#1 Temp@4("a", 22.0)']
