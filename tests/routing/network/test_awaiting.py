"""A silent source is left out wherever it is waited for, and only then (awaiting)."""

import pytest
from brokers import SCHEMAS, Network

from routing.conversation import State

FIRE = """
rule fire: define Fire(room: string)
from Smoke(room = $r) and last Temp(room = $r) within 5 min from Smoke where room = Smoke.room
"""
ABOVE = "rule above: define Above(room: string) from Fire() as f where room = f.room"


@pytest.fixture(autouse=True, params=["centralized", "distributed-st", "distributed-mt"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def furnished(rules: str, wanted: str) -> Network:
    """Temp at b1, Smoke at b4 of a line, and a sink at b3; sources may be silent for 15 s."""
    network = Network(4, source_silence_max_s=15)
    for name, broker in (("Temp", "b1"), ("Smoke", "b4")):
        network.connect(name, broker).advertise([SCHEMAS[name]])
    network.connect("m", "b2").deploy(rules)
    network.connect("k", "b3").subscribe(wanted)
    network.run(0.3)
    network.publish("Temp", 'Temp@1("a", 50)', 2)
    network.take_lines()
    return network


def standing(network: Network) -> str:
    (source,) = network.brokers["b1"].status(network.mesh.now)["sources"]
    return str(source["standing"])


@pytest.mark.parametrize(("rules", "wanted"), [(FIRE, "Fire"), (FIRE + ABOVE, "Above")])
def test_a_silent_source_for_which_another_broker_waits_is_left_out(
    rules: str, wanted: str
) -> None:
    network = furnished(rules, f"{wanted}()")
    network.publish("Smoke", 'Smoke@3("a")', 3.5)
    network.run(10)
    assert network.take_lines() == [], "it has not been silent for so long yet"
    network.run(30)
    assert any(line.startswith(f'k: {wanted}@3("a")') for line in network.take_lines())
    assert standing(network) == "left out"


def test_one_for_which_nobody_waits_stays() -> None:
    network = furnished(FIRE, "Fire()")
    network.run(60)
    assert standing(network) == "live"


def left_out() -> Network:
    """Temp at b1 is left out, and rules have been evaluated up to 60 s without it."""
    network = furnished(FIRE, "Fire")
    network.publish("Smoke", 'Smoke@60("a")', 61)
    network.run(40)
    assert standing(network) == "left out"
    network.take_lines()
    return network


def test_a_source_that_was_left_out_advertises_again_and_takes_the_marks_over() -> None:
    """Only the whole network knows these: what it brought from before them was taken, and rules
    lacked it without a word.
    """
    network = left_out()
    network.publish("Temp", 'Temp@19("a", 56)', 19.5)
    temp = network.clients["Temp"]
    assert temp.state is State.OFF
    assert standing(network) == "left out"
    temp.connect(network.mesh.now)
    network.run(2)
    assert standing(network) == "live"
    (late,) = network.take_lines()
    assert late.startswith("Temp: rejected (late)")
    network.publish("Temp", 'Temp@61("a", 57)', 70)
    network.publish("Smoke", 'Smoke@62("a")', 70)
    network.run(2)
    assert [line[:14] for line in network.take_lines()] == ['k: Fire@62("a"']


def test_a_source_that_was_left_out_does_not_go_on_where_it_stood() -> None:
    """It speaks again, loses its link, and is back: rules have been evaluated without it meanwhile,
    so what it brings from before that is late (it was taken, and changed what was found later).
    """
    network = left_out()
    network.publish("Temp", 'Temp@19("a", 56)', 19.5)
    network.connect("Temp", "b1").advertise([SCHEMAS["Temp"]])
    network.run(2)
    network.take_lines()
    network.publish("Temp", 'Temp@20("a", 55)', 21)
    network.run(1)
    (line,) = network.take_lines()
    assert line.startswith("Temp: rejected (late)")
