"""Trees of brokers with sinks: who is in them, what they share, and what a plan leaves alone."""

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of

from routing import wire
from routing.errors import WireError
from routing.messages import Packet, Shared

FIRE = """
rule fire: define Fire(room: string, value: float)
from Smoke(room = $r) and last Temp(room = $r and value > 45) within 5 min from Smoke
where room = Smoke.room, value = Temp.value
"""
HOT = "rule hot: define Hot(room: string) from Temp(value > 45) as t where room = t.room"
AGAIN = """rule again: define Hot(room: string)
from Smoke(room = $r) and last Hot(room = $r) within 5 min from Smoke where room = Smoke.room"""
USED = """rule used: define Used(room: string)
from Smoke(room = $r) and last Temp(room = $r) within 5 min from Smoke
where room = Smoke.room consuming Temp"""


@pytest.fixture(autouse=True, params=["distributed-mt", "push-pull-mt"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Network, "strategy", request.param)
    return str(request.param)


def furnished(count: int = 4) -> Network:
    """Temp at b1, Smoke at b2 of a line; rules that join them."""
    network = Network(count)
    for name, broker in (("Temp", "b1"), ("Smoke", "b2")):
        network.connect(name, broker).advertise([SCHEMAS[name]])
    network.connect("m", "b2").deploy(FIRE)
    network.run(0.3)
    return network


def told(network: Network, broker: str) -> dict[str, dict[str, object]]:
    """By root, what a broker tells of the trees that it is in."""
    facts = network.brokers[broker].status(network.mesh.now)["network"]
    return {one["root"]: one for one in facts["sink_trees"]}


def carried(network: Network, one: str, other: str) -> list[object]:
    """What goes from one broker to another from now on, as it comes."""
    found: list[object] = []
    link = network.mesh.wires[one, other.encode()]
    deliver = link.deliver

    def note(frames: list[bytes], now: float) -> None:
        try:
            message = wire.decode(frames)
        except WireError:
            message = None
        found.append(message.message if isinstance(message, Packet) else message)
        deliver(frames, now)

    link.deliver = note
    return found


def test_only_brokers_whose_sinks_want_what_rules_find_have_trees() -> None:
    network = furnished()
    network.connect("k", "b4").subscribe("Fire()")
    network.connect("t", "b3").subscribe("Temp()")
    network.run(0.3)
    trees = told(network, "b1")
    assert list(trees) == ["b4"]
    assert trees["b4"]["father"] == "b2"
    assert trees["b4"]["filters"] == ["Fire()"]
    assert trees["b4"]["places"] == {"fire": "b2"}
    network.clients["k"].unsubscribe(1)
    network.run(0.3)
    assert told(network, "b1") == {}
    (rule,) = network.brokers["b2"].status(network.mesh.now)["rules"]
    assert (rule["state"], rule["place"]) == ("idle", None)


def test_an_event_of_two_trees_crosses_a_link_once() -> None:
    network = furnished()
    network.connect("k", "b4").subscribe("Fire()")
    network.connect("l", "b3").subscribe("Fire(value > 10)")
    network.run(0.3)
    network.take_lines()
    up, on = carried(network, "b1", "b2"), carried(network, "b2", "b3")
    network.publish("Temp", 'Temp@1("a", 50) Temp@2("b", 60)', 10)
    network.publish("Smoke", 'Smoke@3("a") Smoke@4("b")', 10)
    for found, count in ((up, 2), (on, 2)):
        shared = [one for one in found if isinstance(one, Shared)]
        assert sum(len(batch) for one in shared for batch in one.batches) == count
        assert {part.root for one in shared for part in one.parts} == {"b3", "b4"}
    assert sorted(network.take_lines()) == [
        'k: Fire@3("a", 50.0) <- Smoke#1 Temp#1',
        'k: Fire@4("b", 60.0) <- Smoke#2 Temp#2',
        'l: Fire@3("a", 50.0) <- Smoke#1 Temp#1',
        'l: Fire@4("b", 60.0) <- Smoke#2 Temp#2',
    ]


def test_a_plan_leaves_a_tree_alone_that_it_does_not_change() -> None:
    network = furnished()
    network.connect("k", "b4").subscribe("Fire()")
    network.run(0.3)
    network.publish("Temp", 'Temp@1("a", 50)', 10)
    before = told(network, "b2")["b4"]["number"]
    found = carried(network, "b1", "b2")
    network.clients["m"].deploy(HOT)
    network.connect("l", "b3").subscribe("Hot()")
    network.run(0.3)
    trees = told(network, "b2")
    assert trees["b4"]["number"] == before
    assert trees["b3"]["number"] > before  # type: ignore[operator]
    roots = {part.root for one in found if isinstance(one, Shared) for part in one.parts}
    assert roots == {"b3"}, "nothing is sent again along the other"
    network.publish("Smoke", 'Smoke@3("a")', 10)
    assert 'k: Fire@3("a", 50.0) <- Smoke#1 Temp#1' in network.take_lines()


def test_what_consumes_stays_on_the_single_tree_and_takes_its_type_with_it() -> None:
    network = furnished()
    network.connect("k", "b4").subscribe("Used()")
    network.clients["m"].deploy(USED)
    network.run(0.3)
    assert told(network, "b1") == {}
    network.publish("Temp", 'Temp@1("a", 50)', 10)
    network.publish("Smoke", 'Smoke@3("a") Smoke@4("a")', 10)
    lines = [line for line in network.take_lines() if "Used" in line]
    assert lines == ['k: Used@3("a") <- Smoke#1 Temp#1']


def test_a_type_that_comes_to_the_single_tree_is_wanted_there_from_the_start() -> None:
    """What is published while the rule is deployed that brings it there (fuzzed seed 6099)."""
    network = furnished(3)
    network.connect("k", "b3").subscribe("Hot()")
    network.clients["m"].deploy(HOT)
    network.run(0.3)
    network.take_lines()
    network.clients["m"].deploy(AGAIN)
    network.run(0.012)
    network.clients["Temp"].publish(batches_of('Temp@1("a", 50)', SCHEMAS), network.mesh.now)
    for name in ("Temp", "Smoke"):
        network.clients[name].close(network.mesh.now)
    network.run(0.5)
    assert 'k: Hot@1("a") <- Temp#1' in network.take_lines()


def test_who_subscribes_to_an_idle_rule_gets_what_comes_from_then_on() -> None:
    network = furnished()
    network.publish("Temp", 'Temp@1("a", 50)', 5)
    network.publish("Smoke", 'Smoke@3("a")', 5)
    network.connect("k", "b4").subscribe("Fire()")
    network.run(0.3)
    network.publish("Smoke", 'Smoke@6("a")', 10)
    network.publish("Temp", 'Temp@7("a", 10)', 10)
    fires = [line for line in network.take_lines() if "Fire" in line]
    assert fires == ['k: Fire@6("a", 50.0) <- Smoke#2 Temp#1'], "with what came before it"


def test_a_lost_link_of_a_tree_is_gone_round() -> None:
    network = furnished()
    network.link("b1", "b4")
    network.run(1)
    network.connect("k", "b4").subscribe("Fire()")
    network.run(0.3)
    assert told(network, "b1")["b4"]["father"] == "b4"
    network.publish("Temp", 'Temp@1("a", 50)', 10)
    for pair in (("b1", b"b4"), ("b4", b"b1")):
        network.mesh.wires[pair].cut = True
    network.publish("Smoke", 'Smoke@3("a")', 4)
    network.run(8)
    assert told(network, "b1")["b4"]["father"] == "b2"
    network.publish("Smoke", 'Smoke@5("a")', 10)
    fires = [line for line in network.take_lines() if "Fire" in line]
    assert fires == [
        'k: Fire@3("a", 50.0) <- Smoke#1 Temp#1',
        'k: Fire@5("a", 50.0) <- Smoke#2 Temp#1',
    ]


def test_a_source_that_comes_back_is_waited_for_again() -> None:
    """Others had been told that nothing more would come, and the tree is the same as before."""
    network = furnished()
    network.connect("k", "b4").subscribe("Fire()")
    network.run(0.3)
    network.publish("Temp", 'Temp@1("a", 50)', 5)
    network.clients["Temp"].close(network.mesh.now)
    network.publish("Smoke", 'Smoke@3("a")', 10)
    network.run(0.3)
    assert 'k: Fire@3("a", 50.0) <- Smoke#1 Temp#1' in network.take_lines()
    network.connect("Temp", "b1").advertise([SCHEMAS["Temp"]])
    network.run(0.3)
    network.publish("Smoke", 'Smoke@20("a")', 30)
    network.run(0.3)
    assert not [line for line in network.take_lines() if "Fire" in line]
    network.publish("Temp", 'Temp@15("a", 60)', 30)
    network.run(0.3)
    fires = [line for line in network.take_lines() if "Fire" in line]
    assert fires == ['k: Fire@20("a", 60.0) <- Smoke#2 Temp#2']


def test_a_tree_that_begins_is_not_sent_what_is_over(strategy: str) -> None:
    network = furnished()
    network.connect("k", "b4").subscribe("Fire()")
    network.run(0.3)
    network.publish("Temp", 'Temp@1("a", 50) Temp@900("a", 60)', 1000)
    network.publish("Smoke", 'Smoke@3("a")', 1000)
    network.run(0.3)
    found = carried(network, "b1", "b2")
    network.connect("l", "b3").subscribe("Fire()")
    network.run(0.3)
    sent = sum(
        len(one.batches[pick])
        for one in found
        if isinstance(one, Shared)
        for part in one.parts
        if part.root == "b3"
        for pick in part.picks
    )
    assert sent == (1 if strategy == "distributed-mt" else 0)
    network.take_lines()
    network.publish("Smoke", 'Smoke@1100("a")', 1200)
    network.publish("Temp", 'Temp@1150("a", 10)', 1200)
    network.run(0.3)
    assert sorted(line for line in network.take_lines() if "Fire" in line) == [
        f'{name}: Fire@1100("a", 60.0) <- Smoke#2 Temp#2' for name in "kl"
    ]
