"""Who is bound by what, in a network: by rules that there are, and by none that have gone."""

import pytest
from brokers import Network
from conversation import schema_of

from routing.messages import Remove

TEMP = schema_of("Temp(value: int)")
SCHEMAS = {"Temp": TEMP}
HOT = "define Hot(value: int) from Temp() as t where value = t.value"


@pytest.mark.parametrize("strategy", ["centralized", "distributed-st", "distributed-mt"])
def test_a_type_that_no_rule_uses_makes_nobody_late(strategy, monkeypatch):
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(3)
    network.connect("k", "b1").subscribe("Temp()")
    p = network.connect("p", "b3")
    p.advertise([TEMP])
    network.run(1)
    network.publish("p", "Temp@5(1)", 10, SCHEMAS)
    q = network.connect("q", "b2")
    q.advertise([TEMP])
    network.run(1)
    network.publish("q", "Temp@3(2)", 4, SCHEMAS)
    m = network.connect("m", "b1")
    m.deploy(HOT)
    network.run(1)
    network.publish("p", "Temp@20(3)", 30, SCHEMAS)
    network.publish("q", "Temp@20(4)", 30, SCHEMAS)
    r = network.connect("r", "b1")
    r.advertise([TEMP])
    network.run(1)
    network.take_lines()
    network.publish("r", "Temp@25(5)", None, SCHEMAS)
    assert any("late" in line for line in network.take_lines())
    m.ask(Remove, "Hot")
    network.run(4)
    network.publish("r", "Temp@26(6)", None, SCHEMAS)
    assert network.take_lines()[-1:] == ["k: r#2 Temp@26(6)"]


@pytest.mark.parametrize("strategy", ["centralized", "distributed-st", "distributed-mt"])
def test_what_replaces_a_rule_may_define_its_type_anew_once_all_have_that(strategy, monkeypatch):
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(3)
    p = network.connect("p", "b3")
    p.advertise([TEMP])
    network.run(1)
    m = network.connect("m", "b2")
    m.deploy(HOT)
    network.connect("k", "b1").subscribe("Hot()")
    network.run(1)
    network.publish("p", "Temp@5(1)", 10, SCHEMAS)
    network.take_lines()
    m.deploy("define Hot(much: int) from Temp() as t where much = t.value + 100", replace=True)
    network.run(1)
    network.publish("p", "Temp@15(2)", 20, SCHEMAS)
    lines = [line.partition(" <-")[0] for line in network.take_lines()]
    assert lines == ["m: confirmed Hot since 10", "k: Hot@15(102)"]
