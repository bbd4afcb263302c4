"""What is too far ahead of the clock is refused at any broker; a replay of such is over with its
rules (Advertisements.forget_far).
"""

import pytest
from brokers import SCHEMAS, Network

from routing.messages import Remove
from routing.network import strategy as strategies

FIRE = f"""
event {SCHEMAS["Temp"]}
event {SCHEMAS["Smoke"]}
rule fire: define Fire(room: string)
from Smoke(room = $r) and last Temp(room = $r) within 5 min from Smoke where room = Smoke.room
"""


@pytest.fixture(autouse=True, params=strategies.names())
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def furnished() -> Network:
    """Of a line of brokers b4 has Temp and Smoke, b3 a sink; rules are deployed at b2."""
    network = Network(4, wall_clock=True)
    network.connect("m", "b2").deploy(FIRE)
    network.connect("k", "b3").subscribe("Fire()")
    network.run(0.3)
    network.take_lines()
    return network


def publish_once(network: Network, broker: str, text: str, **options: object) -> list[str]:
    """A source comes, publishes one event, and closes."""
    name = text.partition("@")[0]
    network.connect(name, broker, lasts_s=0.3, **options).advertise([SCHEMAS[name]])
    network.run(0.3)
    network.take_lines()
    network.publish(name, text)
    network.clients[name].close(network.mesh.now)
    network.run(1)
    return network.take_lines()


def test_what_is_too_far_ahead_binds_nothing() -> None:
    network = furnished()
    assert publish_once(network, "b4", 'Temp@2("a", 50)') == []
    (refused,) = publish_once(network, "b4", 'Temp@1000("a", 51)')
    assert refused.startswith("Temp: rejected (ahead): 1 Temp ahead of the clock")
    assert publish_once(network, "b4", 'Temp@3("a", 52)') == []
    (fire,) = publish_once(network, "b1", 'Smoke@5("a")')
    assert fire.startswith('k: Fire@5("a")')


def test_the_replay_of_a_far_time_is_over_with_its_rule() -> None:
    network = furnished()
    publish_once(network, "b4", 'Temp@2("a", 50)')
    publish_once(network, "b4", 'Temp@9000("a", 50)', replay=True)
    (fire,) = publish_once(network, "b1", 'Smoke@9001("a")', replay=True)
    assert fire.startswith('k: Fire@9001("a")')
    (late,) = publish_once(network, "b4", 'Temp@6("a", 52)')
    assert "rejected (late)" in late
    for _ in range(2):
        network.clients["m"].ask(Remove, "fire")
        network.run(3)  # it has come to its end, and is dropped
        network.clients["m"].deploy(FIRE)
        network.run(1)
        confirmed = network.take_lines()[-1]
        assert float(confirmed.rpartition(" since ")[2]) < 300.0
    now = round(network.mesh.now)
    assert publish_once(network, "b4", f'Temp@{now}("a", 53)') == []
    (fire,) = publish_once(network, "b1", f'Smoke@{now + 1}("a")')
    assert fire.startswith(f'k: Fire@{now + 1}("a")')
    assert publish_once(network, "b2", 'Smoke@9002("a")', replay=True) == []


def test_a_source_that_lives_on_is_late_no_more() -> None:
    network = furnished()
    publish_once(network, "b4", 'Temp@9000("a", 50)', replay=True)
    publish_once(network, "b1", 'Smoke@9001("a")', replay=True)
    sensor = network.connect("sensor", "b3")
    sensor.advertise([SCHEMAS["Temp"]])
    network.run(0.5)
    network.clients["m"].ask(Remove, "fire")
    network.run(3)  # it has come to its end, and is dropped
    network.clients["m"].deploy(FIRE)
    network.run(1)
    network.take_lines()
    now = round(network.mesh.now)
    network.publish("sensor", f'Temp@{now}("a", 53)', now + 1)
    assert network.take_lines() == []
    assert publish_once(network, "b1", f'Smoke@{now + 1}("a")') == []
    sensor.promise((now + 2) * 1_000_000)
    network.run(1)
    (fire,) = network.take_lines()
    assert fire.startswith(f'k: Fire@{now + 1}("a")')
