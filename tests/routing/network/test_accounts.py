"""One account of a source in the whole network: where it is, and where it has closed."""

import re

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of
from kept_networks import Kept

from routing.effects import Log
from routing.network.brokers.registry import KNOWN_BEYOND
from simulator.simulation import Simulation
from simulator.stores import SimulatedStore

TEMP = SCHEMAS["Temp"]
HOT = "rule hot: define Hot(room: string) from Temp(value > 45) as t where room = t.room"


@pytest.fixture(autouse=True, params=["centralized", "distributed-st", "push-pull-mt"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "strategy", request.param)


def cut(network: Network, one: str, other: str, *, is_cut: bool = True) -> None:
    for wire in network.both_ways(one, other):
        wire.cut = is_cut


def furnished(network: Network) -> Network:
    """t at b1, u at b3, both of Temp, and a sink of what b2 finds in them."""
    network.connect("t", "b1").advertise([TEMP])
    network.connect("u", "b3").advertise([TEMP])
    network.connect("m", "b2").deploy(HOT)
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    network.publish("t", 'Temp@10("t", 50)', 11)
    network.publish("u", 'Temp@10.5("u", 50) Temp@40("u", 50)', 41)
    assert found(network) == ["Hot@10 t", "Hot@10.5 u"]
    return network


def found(network: Network) -> list[str]:
    """What sinks were given since this was last asked: type, time in seconds, and room."""
    if isinstance(network, Kept):
        given, network.got = network.got, []
        parts = [re.match(r"(\w+)@(\d+)\['(\w+)'", name) for name, _ in given]
        return [f"{one[1]}@{int(one[2]) / 1e6:g} {one[3]}" for one in parts if one]
    lines = [line for line in network.take_lines() if "@" in line]
    return [re.sub(r'^.*: (\w+@[\d.]+)\("(\w+)".*$', r"\1 \2", line) for line in lines]


@pytest.mark.parametrize("to", ["b2", "b3"])
@pytest.mark.parametrize("how", ["is sent away", "loses its link"])
def test_a_source_that_moves_is_not_late_though_another_one_of_its_type_is_ahead(
    to: str, how: str
) -> None:
    """It began where the other one had promised to be, and what it had yet to say was refused."""
    network = furnished(Network(3))
    session = network.clients["t"]
    if how == "is sent away":
        network.drain("b1")
        network.move("t", to)
    else:
        network.lose("t", "b1")
        session = network.connect("t", to)
        session.advertise([TEMP])
    network.run(1)
    network.take_lines()
    event = batches_of('Temp@12("t", 60)', SCHEMAS)
    session.publish(event, network.mesh.now, 13_000_000, numbered=False)
    network.run(0.5)
    assert found(network) == ["Hot@12 t"]
    network.publish("t", 'Temp@39("t", 60)', 50)
    network.publish("u", 'Temp@41("u", 60)', 50)
    network.run(0.5)
    assert found(network) == ["Hot@39 t", "Hot@40 u", "Hot@41 u"]


def test_a_source_that_went_on_elsewhere_and_closed_there_is_no_ghost_where_it_was() -> None:
    """Its first broker, killed and started again on its store, waited for it, and rules with it."""
    network = furnished(Kept(3, "b1 b2 b3"))
    cut(network, "b1", "b2")
    network.run(5)
    network.clients["t"].lose(network.mesh.now)
    network.move("t", "b2")
    network.run(1)
    network.publish("t", 'Temp@45("t", 60)', 46)
    network.clients.pop("t").close(network.mesh.now)
    network.run(0.5)
    network.kill("b1")
    cut(network, "b1", "b2", is_cut=False)
    network.run(10)
    network.publish("u", 'Temp@60("u", 60)', 61)
    network.run(1)
    assert found(network) == ["Hot@40 u", "Hot@45 t", "Hot@60 u"]
    account = network.brokers["b1"].context.accounts.find("t")
    assert account is not None
    assert (account.home, account.is_over, account.taken) == ("b2", True, 2)
    assert network.brokers["b1"].context.sources.find("t").closed_by == "gone on elsewhere"
    assert network.brokers["b1"].status(network.mesh.now)["awaited"] == []


def test_a_broker_that_forgot_a_source_does_not_keep_it_from_others() -> None:
    """Its name was taken by a broker that did not know it any more."""
    network = furnished(Kept(3, "b2 b3"))
    network.stores["b1"] = SimulatedStore(Simulation(0), "b1", 0.003)
    network.clients.pop("t").lose(network.mesh.now)
    network.kill("b1")
    network.run(5)
    network.connect("t", "b3").advertise([TEMP])
    network.run(1)
    network.publish("t", 'Temp@41("t", 60)', 70)
    network.publish("u", 'Temp@60("u", 60)', 61)
    network.run(1)
    assert found(network) == ["Hot@40 u", "Hot@41 t", "Hot@60 u"]


@pytest.mark.parametrize("how", ["closes", "is killed"])
def test_a_store_that_is_set_back_gives_no_number_twice(how: str) -> None:
    """Others took events of numbers that they had for repeats, and dropped them without a word."""
    network = Kept(3, "b1 b2 b3")
    network.connect("t", "b1").advertise([TEMP])
    network.connect("j", "b3").subscribe("Temp()")
    network.run(0.5)
    network.publish("t", 'Temp@1("a", 1) Temp@2("a", 1)', 3)
    backup = network.backup("b1")
    network.publish("t", 'Temp@3("a", 1) Temp@4("a", 1) Temp@5("a", 1)', 6)
    if how == "closes":
        network.clients.pop("t").close(network.mesh.now)
    else:
        network.clients.pop("t").lose(network.mesh.now)
    network.run(0.5)
    network.stores["b1"] = backup
    network.kill("b1")
    network.run(5)
    found(network)
    network.connect("t", "b1").advertise([TEMP])
    network.run(1)
    event = batches_of('Temp@50("b", 1)', SCHEMAS)
    network.clients["t"].publish(event, network.mesh.now, 60_000_000, numbered=False)
    network.run(1)
    assert network.clients["t"].outgoing.last_sequence == 6
    assert found(network) == ["Temp@50 b"]
    logged = [one.text for one in network.mesh.log if isinstance(one, Log)]
    assert KNOWN_BEYOND in logged
