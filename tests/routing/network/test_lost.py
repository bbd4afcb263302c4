"""A source whose link is lost is closed after ``source_silence_max_s``; one that lives never is."""

import pytest
from brokers import SCHEMAS, Network

FIRE = """
rule fire: define Fire(room: string)
from Smoke(room = $r) and last Temp(room = $r) within 5 min from Smoke where room = Smoke.room
"""


@pytest.fixture(autouse=True, params=["centralized", "distributed-st", "distributed-mt"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def furnished() -> Network:
    """Temp at b1, Smoke at b4 of a line, and a sink at b3; sources may be lost for 15 s."""
    network = Network(4, source_silence_max_s=15)
    for name, broker in (("Temp", "b1"), ("Smoke", "b4")):
        network.connect(name, broker).advertise([SCHEMAS[name]])
    network.connect("m", "b2").deploy(FIRE)
    network.connect("k", "b3").subscribe("Fire()")
    network.run(0.3)
    network.publish("Temp", 'Temp@1("a", 50)', 2)
    network.publish("Smoke", 'Smoke@3("a")', 3.5)
    network.run(0.3)
    network.take_lines()
    return network


def standing(network: Network) -> tuple[str, str | None]:
    (source,) = network.brokers["b1"].status(network.mesh.now)["sources"]
    return str(source["standing"]), source["closed_by"]


def lost() -> Network:
    """Temp's link at b1 is lost, and rules have been evaluated without it by now."""
    network = furnished()
    network.lose("Temp", "b1")
    network.run(10)
    assert network.take_lines() == [], "it has not been lost for so long yet"
    network.run(10)
    assert standing(network) == ("closed", "lost")
    assert [line[:13] for line in network.take_lines()] == ['k: Fire@3("a"']
    return network


def test_one_that_lives_and_says_nothing_stays() -> None:
    network = furnished()
    network.run(60)
    assert standing(network) == ("live", None)
    assert network.take_lines() == []


def test_one_that_is_lost_is_closed_and_rules_go_on_without_it() -> None:
    network = lost()
    network.publish("Smoke", 'Smoke@20("a")', 21)
    network.run(1)
    assert [line[:14] for line in network.take_lines()] == ['k: Fire@20("a"']


def test_one_that_is_back_takes_the_marks_over() -> None:
    network = lost()
    network.publish("Smoke", 'Smoke@60("a")', 61)
    network.run(1)
    network.take_lines()
    network.connect("Temp", "b1").advertise([SCHEMAS["Temp"]])
    network.run(2)
    assert standing(network) == ("live", None)
    network.take_lines()
    network.publish("Temp", 'Temp@19("a", 56)', 19.5)
    network.run(1)
    (late,) = network.take_lines()
    assert late.startswith("Temp: rejected (late)")
    network.publish("Temp", 'Temp@61("a", 57)', 70)
    network.publish("Smoke", 'Smoke@62("a")', 70)
    network.run(2)
    assert [line[:14] for line in network.take_lines()] == ['k: Fire@62("a"']


def test_one_that_is_back_in_time_goes_on_where_it_stood() -> None:
    network = furnished()
    network.lose("Temp", "b1")
    network.run(10)
    network.connect("Temp", "b1").advertise([SCHEMAS["Temp"]])
    network.run(20)
    assert standing(network) == ("live", None)
    network.publish("Temp", 'Temp@2.5("a", 56)', 9)
    network.run(1)
    assert [line[:13] for line in network.take_lines() if line.startswith("k")] == ['k: Fire@3("a"']
