"""A broker that drains: its sources and sinks go elsewhere, and nothing is late, lost or twice."""

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of

from routing.config import SessionConfig
from routing.conversation import State
from routing.effects import BROKER
from routing.messages import ListRules
from routing.session import Session

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
FIRE = (
    "rule fire: define Fire(room: string, t: float) from Smoke(room = $r) and "
    "last Temp(room = $r and value > 45) within 5 min from Smoke where room = $r, t = Temp.value"
)


@pytest.fixture(autouse=True, params=["centralized", "distributed-st", "push-pull-mt", "adaptive"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


@pytest.mark.parametrize(("of", "to"), [("b1", "b3"), ("b1", "b2"), ("b2", "b1"), ("b3", "b1")])
def test_a_source_that_is_sent_away_goes_on_where_it_was(of: str, to: str) -> None:
    """A source of Smoke is far ahead of it. Without a stand-in for its promise rules would go on
    to there, and what it had not yet published would be late.
    """
    network = Network(3)
    network.connect("t", of).advertise([TEMP])
    network.connect("s", to).advertise([SMOKE])
    network.connect("m", to).deploy(FIRE)
    network.connect("k", to).subscribe("Fire()")
    network.run(0.5)
    network.publish("t", 'Temp@10("a", 50)', 10)
    network.publish("s", 'Smoke@9("a") Smoke@20("a") Smoke@90("b")', 91)
    network.take_lines()
    network.drain(of)
    session = network.clients["t"]
    assert session.state is State.OFF
    session.publish(batches_of('Temp@11("a", 60)', SCHEMAS), network.mesh.now, None)
    assert network.move("t", to) <= 2
    network.run(2)
    network.brokers[of].drain(network.mesh.now)
    network.publish("t", 'Temp@15("b", 70)', 95)
    for _ in range(8):
        network.run(1)
        network.brokers[of].drain(network.mesh.now)
    assert [line for line in network.take_lines() if "confirmed" not in line] == [
        'k: Fire@20("a", 60.0) <- s#2 t#2',
        'k: Fire@90("b", 70.0) <- s#3 t#3',
    ]
    assert session.outgoing.unacknowledged == 0


def test_a_broker_that_drains_takes_nobody_in_but_who_looks() -> None:
    network = Network(2)
    looks = network.connect("", "b1", "looks")
    network.drain("b1")
    for number, name in enumerate(["t", ""]):
        comes = Session(SessionConfig(name))
        network.clients[f"c{number}"] = network.mesh.parties[f"c{number}"] = comes  # type: ignore[assignment]
        peer = f"client c{number}".encode()
        network._wire(f"c{number}", BROKER, "b1", peer, 0.0)
        network._wire("b1", peer, f"c{number}", BROKER, 0.0)
        comes.connect(network.mesh.now)
        network.run(0.1)
        if not name:
            comes.subscribe("Temp()")
            network.run(0.1)
        assert comes.state is State.OFF
    looks.ask(ListRules)
    network.run(0.1)
    assert network.take_lines()[-1] == "looks: confirmed"
    assert network.brokers["b1"].status(network.mesh.now)["draining"] == []
    assert network.brokers["b2"].status(network.mesh.now)["draining"] is None
