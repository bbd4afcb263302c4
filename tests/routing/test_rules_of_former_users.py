"""A rule ends with the right of its owner, be that taken while the broker is away."""

from typing import Any

import pytest
from alone import TEMP, Alone, hello
from kept_networks import Kept

from routing.messages import Act, Advertise, Deploy, Permit, Rights

HOT = "rule hot: define Hot(n: int) from Temp(n > 0) where n = Temp.n"
ALICE = Rights("alice", (Permit(Act.PUBLISH, "*", 1), Permit(Act.SUBSCRIBE, "*", 2)), "access.toml")


def bob(*permits: Permit) -> Rights:
    return Rights("bob", (Permit(Act.DEPLOY, "*", 3), Permit(Act.DEFINE, "*", 4), *permits))


FULL = {"alice": ALICE, "bob": bob(Permit(Act.SUBSCRIBE, "Temp", 5))}
LESS = {"alice": ALICE, "bob": bob()}
GONE = {"alice": ALICE}


def change(broker: Any, rights: dict[str, Rights], now: float) -> None:
    broker.node.rights_of = lambda peer: rights["bob" if peer == b"m" else "alice"]
    broker.service.change_rights(rights, now)


def with_rule() -> Alone:
    alone = Alone()
    change(alone.broker, FULL, alone.simulation.now)
    alone.turn((b"s", hello("s")), (b"s", Advertise(1, (TEMP,))))
    alone.turn((b"m", hello()), (b"m", Deploy(1, HOT)))
    return alone


def names(broker: Any) -> list[str]:
    return [one.name for one in broker.context.deployments.in_force]


@pytest.mark.parametrize(("rights", "left"), [(FULL, ["hot"]), (LESS, []), (GONE, [])])
def test_a_rule_ends_at_a_start_whose_owner_may_have_it_no_more(
    rights: dict[str, Rights], left: list[str]
) -> None:
    alone = with_rule()
    assert names(alone.broker) == ["hot"]
    alone.fail()
    change(alone.broker, rights, alone.simulation.now)
    alone.turn()
    alone.pass_time(1.0)
    assert names(alone.broker) == left


def test_a_rule_that_was_to_go_when_the_broker_was_killed_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its owner's rights are the same before and after the restart."""
    alone = with_rule()
    monkeypatch.setattr(alone.broker, "withdraw", lambda: None)  # the network cannot take it
    change(alone.broker, LESS, alone.simulation.now)
    alone.turn()
    assert names(alone.broker) == ["hot"]
    alone.fail()
    change(alone.broker, LESS, alone.simulation.now)
    alone.turn()
    alone.pass_time(1.0)
    assert names(alone.broker) == []


@pytest.mark.parametrize("away", ["b1", "b2", "b3"])
def test_a_network_takes_the_end_of_a_rule_from_a_broker_that_comes_back(away: str) -> None:
    """The file of one broker alone lets bob have it, whose rights others do not know."""
    network = Kept(3, "b1 b2 b3")
    change(network.brokers[away], FULL, network.mesh.now)
    network.connect("s", away).advertise([TEMP])
    network.run(1)
    network.brokers[away].node.rights_of = lambda peer: FULL["bob"]
    network.connect("m", away).deploy(HOT)
    network.run(1)
    assert known(network) == {"b1": ["hot"], "b2": ["hot"], "b3": ["hot"]}
    network.kill(away)
    change(network.brokers[away], LESS, network.mesh.now)
    network.run(10)
    assert known(network) == {"b1": [], "b2": [], "b3": []}


def known(network: Kept) -> dict[str, list[str]]:
    return {name: names(broker) for name, broker in network.brokers.items()}
