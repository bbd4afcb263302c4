"""Brokers that come back after others have closed their inputs (planner, Law 4)."""

from functools import partial

import pytest
from brokers import SCHEMAS, Network

import rules.engine
from routing.config import NodeConfig
from routing.network.brokers.broker import Broker
from routing.network.strategy import make
from routing.overlay.config import OverlayConfig

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]


def start(network: Network, name: str, *others: str) -> None:
    """A broker more, linked to these."""
    made = Broker(
        NodeConfig(name=name, wall_clock=False),
        OverlayConfig(name, forget_s=12.0),
        rules.engine.make("naive"),
        make(network.strategy),
    )
    network.brokers[name] = network.mesh.parties[name] = made  # type: ignore[assignment]
    for other in others:
        network.link(name, other)


@pytest.mark.parametrize("strategy", ["centralized", "distributed-mt"])
def test_inputs_that_had_been_closed_begin_beyond_all_marks_under_a_new_root_too(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """It has closed nobody, but is told who was."""
    monkeypatch.setattr("brokers.OverlayConfig", partial(OverlayConfig, forget_s=12.0))
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(2)
    for name, broker in (("t", "b1"), ("u", "b2")):
        network.connect(name, broker).advertise([TEMP])
    network.run(0.5)
    network.connect("m", "b2").deploy("rule hot: define Hot() from Temp()")
    network.connect("k", "b2").subscribe("Hot()")
    network.run(0.5)
    network.publish("t", 'Temp@1("a", 50)', 2)
    network.publish("u", 'Temp@19("a", 50)', 20)
    wires = network.both_ways("b1", "b2")
    for wire in wires:
        wire.cut = True
    network.run(5)
    start(network, "a0", "b2")
    start(network, "a1", "a0")
    network.run(20)
    assert network.brokers["b2"].context.router.root == "a0"
    for wire in wires:
        wire.cut = False
    network.run(5)
    assert network.brokers["b1"].context.router.root == "a0"
    (source,) = [one for one in network.brokers["b1"].context.sources if not one.home]
    assert source.mark("Temp") == 20_000_000


def test_the_names_of_who_is_out_of_reach_are_free() -> None:
    """They were taken until their broker was forgotten: a source whose broker had failed could go
    on nowhere.
    """
    network = Network(3)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("k", "b3").subscribe("Temp()")
    network.run(0.5)
    for wire in network.both_ways("b1", "b2"):
        wire.cut = True
    network.run(5)
    del network.clients["t"]
    network.connect("t", "b3").advertise([TEMP])
    network.run(0.5)
    network.publish("t", 'Temp@1("a", 50)', 2)
    assert network.take_lines()[-2:] == ["t: confirmed", 'k: t#1 Temp@1("a", 50.0)']


@pytest.mark.parametrize("strategy", ["centralized", "push-pull-mt"])
def test_who_has_no_sinks_is_owed_nothing(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """A broker that was started again, and had been a network of one before it was linked, had all
    be found once more from the last checkpoint on.
    """
    monkeypatch.setattr(Network, "strategy", strategy)
    monkeypatch.setattr(Network, "overlay", {"forget_s": 12.0})
    network = Network(2)
    network.connect("t", "b2").advertise([TEMP])
    network.connect("m", "b1").deploy("rule hot: define Hot() from Temp()")
    network.connect("k", "b1").subscribe("Hot()")
    network.run(1)
    network.publish("t", 'Temp@19("a", 50)', 20)
    start(network, "b3")
    network.run(1)
    assert [name for name, _ in network.brokers["b3"].agreed.catalog.homes] == ["b3"]
    network.link("b2", "b3")
    network.run(2)
    plan = network.brokers["b3"].agreed.plan
    assert plan is not None
    assert plan.anew
    assert dict(plan.resume_from)["hot"] == 20_000_000
