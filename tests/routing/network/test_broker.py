"""Clients of different brokers: what one asks holds for all (network.brokers.requests, Law 1)."""

import math
import re
from random import Random

import pytest
from brokers import SCHEMAS, Network
from conversation import batches_of, printed, schema_of
from timeline import batches

import rules
import rules.engine
from matcher.model import TIME_MAX, Event
from routing import wire
from routing.config import NodeConfig, Ordering
from routing.delivery.subscriptions import PER_TYPE_MAX
from routing.effects import Log
from routing.messages import (
    Answered,
    Asked,
    Awaited,
    Catalog,
    CatalogDelta,
    Confirmed,
    Flow,
    ListRules,
    Part,
    PlanFollowed,
    Remove,
    RootRequest,
    RootTask,
    RuleFacts,
    Shared,
    SubscriptionUpdate,
)
from routing.network.brokers.broker import Broker
from routing.network.brokers.planner import INPUTS_CLOSED
from routing.network.strategy import Adaptive, Centralized, make, names, register
from routing.overlay.config import OverlayConfig

TEMP, SMOKE = SCHEMAS["Temp"], SCHEMAS["Smoke"]
FIRE = """
rule fire: define Fire(room: string, value: float)
from Smoke(room = $r) and last Temp(room = $r and value > 45) within 5 min from Smoke
where room = Smoke.room, value = Temp.value
"""
HOT = "rule hot: define Hot(room: string) from Temp(value > 45) as t where room = t.room"


@pytest.fixture(
    autouse=True,
    params=[
        "centralized",
        "distributed-st",
        "distributed-mt",
        "push-pull-st",
        "push-pull-mt",
        "adaptive",
    ],
)
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test is run with every strategy of the thesis that there is."""
    monkeypatch.setattr(Network, "strategy", request.param)
    return str(request.param)


def furnished() -> Network:
    """Temp at b1, Smoke at b3, the rule from b2's client, a sink at b3; all of it confirmed."""
    network = Network(3)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("s", "b3").advertise([SMOKE])
    network.run(0.2)
    network.connect("m", "b2").deploy(FIRE)
    network.connect("k", "b3").subscribe("Fire()")
    network.run(0.2)
    assert network.take_lines() == [
        "t: confirmed",
        "s: confirmed",
        "m: confirmed fire since none",
        "k: confirmed",
    ]
    return network


def test_who_deploys_a_rule_is_told_that_a_plan_says_where_it_is_evaluated() -> None:
    """The answer comes with what the root has decided, before anybody divides the rules by it."""
    network, told = Network(2), []
    client = network.connect("m", "b2")

    def note(name: str) -> None:
        results = client.take_results() if name == "m" else ()
        told.extend(one.detail for one in results if isinstance(one, Confirmed))

    network.mesh.after = note
    client.deploy("event Temp(room: string, value: float) " + HOT)
    network.run(0.5)
    (detail,) = told
    (rule,) = detail["rules"]
    assert rule["says"] == {
        "?": "evaluated as soon as a plan says where",
        None: "idle: nobody has subscribed to what it defines",  # with trees of sinks
    }.get(rule["place"])


def test_a_rule_joins_events_of_two_brokers_for_a_sink_of_a_third() -> None:
    network = furnished()
    network.publish("t", 'Temp@1("a", 50) Temp@2("b", 60)', 10)
    network.publish("s", 'Smoke@3("a")')
    assert network.take_lines() == []
    network.publish("s", 'Smoke@5("b")', 6)
    assert network.take_lines() == [
        'k: Fire@3("a", 50.0) <- s#1 t#1',
        'k: Fire@5("b", 60.0) <- s#2 t#2',
    ]


def test_what_two_messages_bring_at_once_has_the_order_of_the_rules() -> None:
    network = Network(3)
    network.connect("t", "b3").advertise([TEMP])
    network.connect("s", "b3").advertise([SMOKE])
    sink = network.connect("k", "b1")
    smoky = "rule smoky: define Smoky(room: string) from Smoke() as s where room = s.room"
    network.connect("m", "b2").deploy(f"{smoky}\n{HOT}")
    sink.subscribe("Smoky()")
    sink.subscribe("Hot()")
    network.run(0.2)
    network.take_lines()
    wire = network.mesh.wires["b2", b"b1"]
    wire.delay_s = 0.2
    network.publish("t", 'Temp@5("a", 50)', 6)
    wire.delay_s = 0.005  # what comes now is held back until what was sent before has come
    network.publish("s", 'Smoke@5("a")', 6)
    network.run(0.2)
    assert network.take_lines() == ['k: Smoky@5("a") <- s#1', 'k: Hot@5("a") <- t#1']


def test_a_source_that_closes_holds_nothing_up() -> None:
    network = furnished()
    network.publish("t", 'Temp@1("a", 50)')
    network.publish("s", 'Smoke@3("a")', 10)
    assert network.take_lines() == []
    network.clients["t"].close(network.mesh.now)
    network.run(0.1)
    assert network.take_lines() == ['k: Fire@3("a", 50.0) <- s#1 t#1']


@pytest.mark.parametrize("is_used", [False, True])
def test_what_has_nothing_to_do_with_a_rule_moves_none_of_its_types(is_used: bool) -> None:
    """Where all sources of a rule have closed, it goes on from their last event, however far other
    types are.
    """
    network = furnished()
    zed = schema_of("Zed(room: string)")
    if is_used:
        rule = "event Zed(room: string) rule z: define Zeds() from Zed()"
        network.clients["m"].deploy(rule)
        network.run(0.2)
    network.publish("t", 'Temp@1("a", 50)', 1)
    network.publish("s", 'Smoke@2("a")', 2)
    for name in "ts":
        network.clients.pop(name).close(network.mesh.now)
    network.run(0.2)
    other = network.connect("z", "b1")
    other.advertise([zed])
    network.run(0.2)
    network.publish("z", 'Zed@1000000("a")', schemas={"Zed": zed})
    other.close(network.mesh.now)
    network.run(0.2)
    network.take_lines()
    network.connect("t", "b1").advertise([TEMP])
    network.connect("s", "b3").advertise([SMOKE])
    network.run(0.2)
    network.publish("t", 'Temp@3("a", 51)', 5)
    network.publish("s", 'Smoke@4("a")', 5)
    network.run(0.2)
    lines = [line for line in network.take_lines() if not line.endswith("confirmed")]
    assert lines == ['k: Fire@4("a", 51.0) <- s#2 t#2']


@pytest.mark.parametrize(
    ("home", "other", "is_lost"),
    [("b2", "b1", False), ("b2", "b1", True), ("b1", "b2", False), ("b1", "b3", False)],
)
def test_a_source_that_goes_to_another_broker_is_heard_there(
    home: str, other: str, is_lost: bool
) -> None:
    """Where it came to the root first, what it had promised there held its types up for ever."""
    network = Network(3)
    former = network.connect("t", home)
    former.advertise([TEMP])
    network.connect("s", "b3").advertise([SMOKE])
    network.run(0.2)
    network.connect("m", "b2").deploy(FIRE)
    network.connect("k", "b3").subscribe("Fire()")
    network.run(0.2)
    network.publish("t", 'Temp@1("a", 50)', 2)
    network.publish("s", 'Smoke@1.5("a")', 2)
    network.run(0.2)
    former.close(network.mesh.now, returns=is_lost)
    network.run(0.2)
    del network.clients["t"]
    source = network.connect("t", other)
    source.advertise([TEMP])
    network.run(0.2)
    network.take_lines()
    event = batches_of('Temp@10("a", 51)', SCHEMAS)
    source.publish(event, network.mesh.now, 12_000_000, numbered=False)
    network.publish("s", 'Smoke@11("a")', 12)
    network.run(0.2)
    assert network.take_lines() == ['k: Fire@11("a", 51.0) <- s#2 t#2']


def test_what_a_source_asked_before_it_closed_is_not_done_when_it_is_back() -> None:
    """The root hears of its closing while the request waits there, and then of its return."""
    network = Network(3)
    former = network.connect("t", "b1")
    former.advertise([TEMP])
    network.run(0.2)
    former.advertise([SMOKE])
    network.run(0.001)
    former.close(network.mesh.now)
    network.run(0.001)
    del network.clients["t"]
    network.connect("t", "b1", lasts_s=0.001).advertise([TEMP])
    network.run(0.5)
    source = network.brokers["b2"].context.remote_sources.find("t")
    assert source is not None
    assert set(source.floors) == {"Temp"}


def test_a_source_elsewhere_keeps_none_of_the_root_from_publishing() -> None:
    """The root does not hear how far that is; for it, its own ran ahead of it."""
    network = Network(3, lead_max_s=10.0, publish_credit=4)
    network.connect("t", "b2").advertise([TEMP])
    network.connect("s", "b3").advertise([SMOKE])
    network.run(0.2)
    network.connect("m", "b2").deploy(FIRE)
    network.connect("k", "b3").subscribe("Fire()")
    network.run(0.2)
    network.take_lines()
    for second in range(1, 100, 5):
        network.publish("t", f'Temp@{second}("a", 50)', second + 1)
        network.publish("s", f'Smoke@{second}("a")', second + 1)
    network.run(0.2)
    assert len(network.take_lines()) == 20


def test_published_events_take_the_way_to_who_wants_them_and_no_other(strategy: str) -> None:
    network = furnished()
    network.connect("r", "b1").subscribe('Temp(room = "a")')
    network.run(0.2)
    network.take_lines()
    before = network.mesh.wires["b2", b"b1"].bytes
    network.publish("t", 'Temp@1("a", 50) Temp@2("b", 60)')
    assert network.take_lines() == ['r: t#1 Temp@1("a", 50.0)']
    assert network.mesh.wires["b2", b"b1"].bytes - before < 40, "acknowledgements alone"
    network.clients["k"].subscribe("Temp(value > 55)")
    network.run(0.2)
    network.publish("t", 'Temp@3("c", 50) Temp@4("d", 60)')
    assert network.take_lines() == ["k: confirmed", 'k: t#4 Temp@4("d", 60.0)']
    network.clients["k"].unsubscribe(2)
    network.run(0.2)
    before = network.mesh.wires["b2", b"b3"].bytes
    network.publish("t", 'Temp@5("d", 60)')
    assert network.take_lines() == ["k: confirmed"]
    if not strategy.endswith("-mt"):  # whose tree for b3 needs it there
        assert network.mesh.wires["b2", b"b3"].bytes - before < 40


def test_what_very_many_filters_want_takes_the_way_to_them_and_no_more(strategy: str) -> None:
    """Toward the centre, b2, and away from it, whether or not a rule needs the type there."""
    network = furnished()
    schemas = {"Level": schema_of("Level(value: float)")}
    network.connect("u", "b3").advertise([*schemas.values()])
    network.run(0.2)
    for sink, broker in (("q", "b1"), ("r", "b2")):
        client = network.connect(sink, broker)
        for number in range(PER_TYPE_MAX + 8):
            client.subscribe(f"Level(value = {number})")
    network.run(0.5)
    network.take_lines()
    ways = [network.mesh.wires[one, other] for one, other in (("b3", b"b2"), ("b2", b"b1"))]
    before = [way.bytes for way in ways]
    unwanted = " ".join(f"Level@{n}({n + 0.5})" for n in range(1, 200))
    network.publish("u", unwanted, schemas=schemas)
    assert network.take_lines() == []
    to_centre, on = (way.bytes - was for way, was in zip(ways, before, strict=True))
    assert on < 100, "acknowledgements alone"
    if strategy != "centralized":  # where all that is published goes to the centre
        assert to_centre < 100
    last = PER_TYPE_MAX + 7
    network.publish("u", f"Level@200({last}) Level@201({last + 1})", schemas=schemas)
    assert sorted(network.take_lines()) == [f"{sink}: u#200 Level@200({last}.0)" for sink in "qr"]


def test_a_subscription_is_confirmed_once_it_is_in_force_everywhere() -> None:
    """What is published from then on arrives, however far away and however soon."""
    network = furnished()
    sink = network.connect("far", "b3")
    sink.subscribe("Temp()")
    for _ in range(100):
        if "far: confirmed" in (lines := network.take_lines()):
            break
        network.run(0.001)
    assert "far: confirmed" in lines
    network.publish("t", 'Temp@1("a", 50)')
    assert network.take_lines() == ['far: t#1 Temp@1("a", 50.0)']


def test_who_may_publish_is_heard_by_the_root_however_far_away_and_however_soon() -> None:
    network = Network(7)
    network.connect("k", "b1").subscribe("Hot()")
    network.connect("m", "b7").deploy("event Temp(room: string, value: float) " + HOT)
    network.run(0.3)
    network.take_lines()
    session = network.connect("t", "b7")
    session.advertise([TEMP])
    for _ in range(200):
        if network.take_lines():
            break
        network.run(0.001)
    network.publish("t", 'Temp@1("a", 50)', 2)
    network.run(0.2)
    assert network.take_lines() == ['k: Hot@1("a") <- t#1']


def test_a_rule_deployed_later_holds_from_beyond_what_was_published_anywhere() -> None:
    network = furnished()
    network.publish("t", 'Temp@1("a", 50)', 7)
    network.clients["k"].subscribe("Hot()")
    network.connect("n", "b1").deploy(HOT)
    network.run(0.2)
    assert network.take_lines() == ["k: confirmed", "n: confirmed hot since 7"]
    network.publish("t", 'Temp@8("a", 51)', 20)
    # Fire's rule could still give something earlier: Smoke has promised nothing.
    assert network.take_lines() == []
    network.publish("s", 'Smoke@9("b")', 20)
    assert network.take_lines() == ['k: Hot@8("a") <- t#2']


def test_what_comes_while_the_tree_pauses_comes_to_those_who_pause_already() -> None:
    """What left before its broker paused may meet brokers that have answered the pause."""
    network = furnished()
    network.clients["k"].subscribe("Temp()")
    network.connect("n", "b2").subscribe("Smoke()")
    network.publish("t", 'Temp@1("a", 50)', 1)
    network.take_lines()
    network.clients["n"].deploy(HOT)
    for number in range(2, 42):
        network.clients["t"].publish(
            batches_of(f'Temp@{number}("a", {40 + number})', SCHEMAS), network.mesh.now, number
        )
        network.clients["s"].publish(
            batches_of(f'Smoke@{number}("a")', SCHEMAS), network.mesh.now, number * 1_000_000
        )
        network.run(0.001)
    network.run(0.2)
    network.publish("t", 'Temp@50("a", 10)', 60)
    network.publish("s", 'Smoke@51("b")', 60)
    lines = network.take_lines()
    temps = [line for line in lines if line.startswith("k: t#")]
    assert temps == [f'k: t#{n} Temp@{n}("a", {40.0 + n})' for n in range(2, 42)] + [
        'k: t#42 Temp@50("a", 10.0)'
    ]
    fires = [line for line in lines if line.startswith("k: Fire")]
    assert [line.partition("(")[0] for line in fires] == [f"k: Fire@{n}" for n in range(2, 42)]


def test_what_the_root_refuses_is_refused_everywhere() -> None:
    network = furnished()
    other = schema_of("Temp(room: string)")
    network.connect("u", "b3").advertise([other])
    network.run(0.2)
    network.connect("v", "b1").deploy(FIRE)
    network.connect("w", "b3").deploy("define X( from")
    network.connect("x", "b3").ask(Remove, "nothing")
    network.run(0.2)
    u, v, w, x = network.take_lines()
    assert u.startswith("u: refused (schema): event Temp(room: string) is refused")
    assert v == "v: refused (in-use): a rule named fire is deployed; replace it, or remove it first"
    assert w.startswith("w: refused (bad-rules): ")
    assert x == "x: refused (unknown): no rule is named nothing"
    types = {name: network.brokers[name].status(0.0)["types"] for name in network.brokers}
    assert {one["schema"] for told in types.values() for one in told if one["name"] == "Temp"} == {
        "Temp(room: string, value: float)"
    }


def test_a_name_is_one_source_in_the_whole_network() -> None:
    network = furnished()
    network.connect("t", "b3").advertise([TEMP])
    network.run(0.2)
    (line,) = network.take_lines()
    assert line == "t: refused (name-taken): a live client of broker b1 is named 't'"


def test_rules_can_be_listed_replaced_and_removed_from_anywhere() -> None:
    network = furnished()
    m = network.clients["m"]
    network.connect("n", "b1").ask(ListRules)
    network.run(0.2)
    assert network.take_lines() == ["n: confirmed fire since none"]
    m.deploy(FIRE.replace("45", "70"), replace=True)
    network.run(0.2)
    network.publish("t", 'Temp@1("a", 50) Temp@1("b", 80)', 10)
    network.publish("s", 'Smoke@3("a") Smoke@3("b")', 10)
    assert [line[:30] for line in network.take_lines()] == [
        "m: confirmed fire since none",
        'k: Fire@3("b", 80.0) <- s#2 t#',
    ]
    network.clients["n"].ask(Remove, "fire")
    network.run(0.2)
    network.publish("s", 'Smoke@14("b")', 20)
    network.publish("t", 'Temp@15("b", 80)', 20)
    assert network.take_lines() == ["n: confirmed"]
    assert network.brokers["b3"].status(0.0)["rules"] == []


def test_a_rule_stays_as_it_is_when_one_that_came_before_it_goes() -> None:
    network = furnished()
    network.clients["m"].deploy(HOT)
    network.clients["k"].subscribe("Hot()")
    network.run(0.2)
    network.publish("t", 'Temp@1("a", 50)', 10)
    network.clients["m"].ask(Remove, "fire")
    network.run(0.2)
    network.publish("t", 'Temp@11("a", 50)', 20)
    network.publish("s", 'Smoke@12("a")', 20)
    hot = [line for line in network.take_lines() if "Hot" in line]
    assert hot == ['k: Hot@1("a") <- t#1', 'k: Hot@11("a") <- t#2'], "neither twice"


def test_what_is_held_stands_before_what_later_rules_find_when_its_own_has_gone() -> None:
    """Rules are counted anew when one goes; what sinks hold of it took turns with the next one's
    (found by the fuzz).
    """
    network = furnished()
    network.clients["m"].ask(Remove, "fire")
    for name, used in (("hot", "Temp"), ("smoky", "Smoke")):
        rule = f"rule {name}: define Odd(room: string) from {used}() as e where room = e.room"
        network.clients["m"].deploy(rule)
    network.clients["k"].subscribe("Odd()")
    network.run(0.2)
    network.publish("t", 'Temp@3("a", 1) Temp@3("b", 1)', 4)
    network.take_lines()
    network.clients["m"].ask(Remove, "hot")
    network.run(0.2)
    network.publish("s", 'Smoke@3("c") Smoke@3("d")', 4)
    odd = [line.partition(" <-")[0] for line in network.take_lines() if "Odd" in line]
    assert odd == ['k: Odd@3("a")', 'k: Odd@3("b")', 'k: Odd@3("c")', 'k: Odd@3("d")']


def test_late_events_are_refused_at_their_own_broker() -> None:
    network = furnished()
    network.publish("t", 'Temp@5("a", 50)', 5)
    network.publish("t", 'Temp@4("a", 50)')
    (line,) = network.take_lines()
    assert line.startswith("t: rejected (late): 1 late Temp")
    network.publish("s", 'Smoke@6("a")', 7)
    network.publish("t", 'Temp@7("a", 40)', 7)
    assert network.take_lines() == ['k: Fire@6("a", 50.0) <- s#1 t#1']


def test_requests_wait_until_there_is_a_way_to_the_root() -> None:
    network = Network(1)
    broker = Broker(
        NodeConfig(name="b1", wall_clock=False),
        OverlayConfig("b1", 9),
        rules.engine.make("naive"),
        make("centralized"),
        network.mesh.now,
    )
    network.brokers["b1"] = network.mesh.parties["b1"] = broker  # type: ignore[assignment]
    broker.add_link(b"nobody", network.mesh.now)  # whom it waits for
    session = network.connect("t", "b1")
    session.advertise([TEMP])
    network.run(0.1)
    assert network.take_lines() == []
    network.run(1.0)
    assert network.take_lines() == ["t: confirmed"]


def cut(network: Network, one: str, other: str, cut: bool = True) -> None:
    for way in network.both_ways(one, other):
        way.cut = cut
    network.run(6)


def test_a_tree_that_is_rebuilt_is_told_everything_anew() -> None:
    """b4 is cut off for a while; what is published afterwards arrives."""
    network = Network(4)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("s", "b4").advertise([SMOKE])
    network.run(0.2)
    network.connect("m", "b3").deploy(FIRE)
    network.connect("k", "b4").subscribe("Fire()")
    network.run(0.2)
    cut(network, "b3", "b4")
    alone = network.brokers["b4"].overlay.topology.single_tree
    assert alone is not None
    assert alone.root == "b4"
    cut(network, "b3", "b4", cut=False)
    tree = network.brokers["b4"].overlay.topology.single_tree
    assert tree is not None
    assert (tree.root, tree.father) == ("b2", "b3")
    network.publish("t", 'Temp@1("a", 50)', 10)
    network.publish("s", 'Smoke@3("a")', 10)
    assert network.take_lines()[-1:] == ['k: Fire@3("a", 50.0) <- s#1 t#1']


def test_what_the_root_has_yet_to_do_for_its_own_clients_is_not_lost_with_the_tree() -> None:
    """The link breaks before the pause in which a rule is deployed; of what has gone up nobody
    knows whether it has been done.
    """
    network = Network(4)
    network.connect("t", "b1").advertise([TEMP])
    network.run(0.2)
    assert network.brokers["b2"].overlay.topology.part.centre == "b2"
    network.connect("m", "b2").deploy(HOT)
    cut(network, "b2", "b3")
    assert network.take_lines() == ["t: confirmed", "m: confirmed hot since none"]
    cut(network, "b2", "b3", cut=False)
    network.connect("n", "b4").ask(Remove, "hot")
    cut(network, "b3", "b4")
    (line,) = network.take_lines()
    assert "the network changed before the answer came; see in the list of rules" in line


def test_a_new_root_takes_over_what_the_former_one_knew() -> None:
    """The centre of what is left is another broker; what needs sources out of reach waits."""
    network = furnished()
    network.publish("t", 'Temp@1("a", 50)', 10)
    cut(network, "b2", "b3")
    assert network.brokers["b2"].overlay.topology.part.centre == "b1"
    assert [one["name"] for one in network.brokers["b1"].status(0.0)["rules"]] == ["fire"]
    assert network.brokers["b1"].status(0.0)["out_of_reach"] == ["b3"]
    network.publish("s", 'Smoke@3("a")', 10)
    network.clients["m"].deploy(HOT)
    network.connect("l", "b1").subscribe("Hot()")
    network.run(0.1)
    network.publish("t", 'Temp@11("a", 50)', 20)
    assert network.take_lines() == [
        "m: confirmed hot since 10",
        "l: confirmed",
        'l: Hot@11("a") <- t#2',
    ]
    cut(network, "b2", "b3", cut=False)
    assert network.brokers["b3"].overlay.topology.part.centre == "b2"
    assert network.take_lines() == ['k: Fire@3("a", 50.0) <- s#1 t#1']
    network.connect("n", "b3").ask(ListRules)
    network.run(0.2)
    assert network.take_lines() == ["n: confirmed fire since none hot since 10"]
    assert not [one for one in network.mesh.log if isinstance(one, Log) and one.level == "error"]


def test_what_was_given_up_is_told_when_the_network_changes() -> None:
    network = Network(3, retained_events_max=3)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("m", "b3").deploy("event Smoke(room: string)" + FIRE)
    for number in range(1, 6):
        network.publish("t", f'Temp@{number}("a", 50)')
    facts = network.brokers["b1"].status(0.0)
    assert (facts["kept"], facts["given_up"]) == (3, 2)
    assert not [one for one in network.mesh.log if isinstance(one, Log) and "given up" in one.text]
    for _ in range(2):
        cut(network, "b2", "b3")
        cut(network, "b2", "b3", cut=False)
    (told,) = (one for one in network.mesh.log if isinstance(one, Log) and "given up" in one.text)
    assert (told.level, told.fields) == ("warning", {"events": 2})


def test_the_marks_of_waiting_rules_hold_back_whom_they_must_alone() -> None:
    """A rule that waits holds the events of a sink that wants both, not those of another."""
    network = furnished()
    network.connect("n", "b2").deploy(
        "event Never(n: int) rule w: define Waits(n: int) from Never() as e where n = e.n"
    )
    network.connect("both", "b3").subscribe("Fire()")
    network.clients["both"].subscribe("Waits()")
    network.run(0.2)
    network.take_lines()
    network.publish("t", 'Temp@1("a", 50)', 10)
    network.publish("s", 'Smoke@3("a")', 10)
    assert network.take_lines() == ['k: Fire@3("a", 50.0) <- s#1 t#1']
    network.clients["m"].ask(Remove, "w")
    network.run(0.2)
    assert network.take_lines() == ['both: Fire@3("a", 50.0) <- s#1 t#1', "m: confirmed"]


def rule_at(network: Network, broker: str) -> dict[str, object]:
    (rule,) = network.brokers[broker].status(network.mesh.now)["rules"]
    return dict(rule)


def test_status_tells_of_the_network_at_every_broker(strategy: str) -> None:
    network = furnished()
    for name in ("b1", "b2", "b3"):
        told = network.brokers[name].status(network.mesh.now)["network"]
        assert told["root"] == "b2"
        assert [one["name"] for one in told["brokers"]] == ["b1", "b2", "b3"]
        assert [one["name"] for one in told["brokers"][1]["neighbours"]] == ["b1", "b3"]
        (tree,) = told["trees"]
        assert tree["father"] == (None if name == "b2" else "b2")
        assert tree["children"] == (["b1", "b3"] if name == "b2" else [])
    place = "b3" if strategy.endswith("-mt") else "b2"
    assert {name: rule_at(network, name)["state"] for name in ("b1", "b2", "b3")} == {
        **dict.fromkeys(("b1", "b2", "b3"), "elsewhere"),
        place: "running",
    }
    assert rule_at(network, "b1")["says"] == f"evaluated by broker {place}"


def test_status_names_the_type_and_the_source_that_a_stalled_rule_waits_for(strategy: str) -> None:
    network = furnished()
    place, below = ("b3", "b2") if strategy.endswith("-mt") else ("b2", "b1")
    network.publish("s", 'Smoke@3("a")', 10)
    assert rule_at(network, place)["state"] == "running"
    network.run(6)
    told = rule_at(network, place)
    assert told["state"] == "stalled"
    (holder,) = told["held_by"]  # type: ignore[misc,attr-defined]
    assert holder["broker"] == below
    assert holder["types"] == ["Temp"]
    # Only the root of the single tree knows sources of other brokers by name: elsewhere their
    # broker is named, whose status names them. Before the Smoke that waits, nothing can be found:
    # so far is the rule's output watermark.
    names = ["t"] if place == "b2" else []
    assert holder["origins"] == [{"broker": "b1", "sources": names, "rules": []}]
    whom = "t at b1" if names else "a source at b1"
    assert told["says"] == f"stalled by Temp from broker {below} ({whom}) at 3000000 us"
    (source,) = network.brokers["b1"].status(network.mesh.now)["sources"]
    assert (source["name"], source["types"], source["promise"]) == ("t", ["Temp"], None)
    network.clients["t"].promise(10_000_000)
    network.run(0.2)
    assert rule_at(network, place)["state"] == "running"


def test_what_brokers_tell_one_another_of_a_stalled_rule_is_the_broker_below(
    strategy: str,
) -> None:
    """The root lists rules for clients of others: who is beyond the broker below, it leaves out."""
    network = furnished()
    network.publish("s", 'Smoke@3("a")', 10)
    network.run(6)
    link = network.mesh.wires["b2", b"b1"]
    deliver, carried = link.deliver, list[object]()

    def note(frames: list[bytes], now: float) -> None:
        carried.append(getattr(wire.decode(frames), "message", None))
        deliver(frames, now)

    link.deliver = note
    network.connect("n", "b1").ask(ListRules)
    network.run(0.2)
    (answer,) = (one.answer for one in carried if isinstance(one, Answered))
    assert isinstance(answer, Confirmed)
    (rule,) = answer.detail["rules"]
    if strategy.endswith("-mt"):
        assert rule["says"] == "evaluated by broker b3"
    else:
        assert rule["says"] == "stalled by Temp from broker b1 at 3000000 us"
        assert "origins" not in rule["held_by"][0]


def stalled(network: Network, broker: str) -> dict[str, list[object]]:
    """By stalled rule, each broker below that holds it and who is said to do so beyond that."""
    return {
        rule["name"]: [(one["broker"], one.get("origins")) for one in rule["held_by"]]
        for rule in network.brokers[broker].status(network.mesh.now)["rules"]
        if rule["state"] == "stalled"
    }


def test_status_names_open_sources_alone_that_can_hold_a_rule(strategy: str) -> None:
    network = furnished()
    place, below, is_root = ("b3", "b2", False) if strategy.endswith("-mt") else ("b2", "b1", True)
    network.connect("u", "b1").advertise([TEMP])
    network.connect("v", "b3").advertise([TEMP])  # not beyond the broker that is waited for
    network.connect("w", "b1").advertise([SMOKE])  # nor of the type
    network.run(0.2)
    for name in "vw":
        network.clients[name].promise(10_000_000)
    network.publish("s", 'Smoke@9("a")', 10)
    network.run(6)

    def origins(*sources: str) -> tuple[str, list[object]]:
        return below, [{"broker": "b1", "sources": list(sources) if is_root else [], "rules": []}]

    assert stalled(network, place)["fire"] == [origins("t", "u")]
    network.clients["u"].close(network.mesh.now)
    network.run(0.2)
    assert stalled(network, place)["fire"] == [origins("t")]


def test_status_names_the_rule_below_whose_type_is_waited_for() -> None:
    network = Network(5)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("s", "b5").advertise([SMOKE])
    network.run(0.2)
    over = """rule over: define Over(room: string)
    from Smoke(room = $r) and last Hot(room = $r) within 5 min from Smoke where room = Smoke.room"""
    network.connect("m", "b2").deploy(f"{HOT}\n{over}")
    network.connect("k", "b5").subscribe("Over()")
    network.run(0.5)
    network.publish("s", 'Smoke@3("a")', 10)
    network.run(8)
    (place,) = (
        name
        for name, broker in network.brokers.items()
        if "over" in broker.status(network.mesh.now)["evaluates"]
    )
    facts = network.brokers[place].status(network.mesh.now)
    below = {"b3": "b2", "b5": "b4"}[place]
    if "hot" in facts["evaluates"]:
        origin = {"broker": "b1", "sources": ["t"], "rules": []}
    else:
        origin = {"broker": "b1", "sources": [], "rules": ["hot"]}
    assert stalled(network, place)["over"] == [(below, [origin])]


def test_status_names_the_type_that_a_rule_waits_for(strategy: str) -> None:
    network = Network(3)
    network.connect("t", "b1").advertise([TEMP])
    network.run(0.2)
    network.connect("m", "b3").deploy("event Smoke(room: string)" + FIRE)
    network.run(0.2)
    for name in ("b1", "b2", "b3"):  # whichever is asked
        assert rule_at(network, name)["says"] == "waiting for types: Smoke"
        assert rule_at(network, name)["waits_for"] == ["Smoke"]
    network.connect("s", "b2").advertise([SMOKE])
    network.run(0.2)
    assert "waiting" not in [rule_at(network, name)["state"] for name in ("b1", "b2", "b3")]


def test_status_tells_when_no_more_can_come_for_a_sink() -> None:
    network = furnished()

    def ended() -> bool:
        (sink,) = network.brokers["b3"].status(network.mesh.now)["sinks"]
        return bool(sink["ended"])

    network.publish("t", 'Temp@1("a", 50)')
    network.publish("s", 'Smoke@3("a")')
    network.clients["t"].close(network.mesh.now)
    network.run(0.2)
    assert not ended()
    network.clients["s"].close(network.mesh.now)
    network.run(0.2)
    assert ended()
    assert network.take_lines() == ['k: Fire@3("a", 50.0) <- s#1 t#1']


def test_a_single_broker_does_what_a_node_does() -> None:
    network = Network(1)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("m", "b1").deploy(HOT)
    network.connect("k", "b1").subscribe("Hot()")
    network.run(0.2)
    network.publish("t", 'Temp@1("a", 50)', 2)
    assert network.take_lines()[-1] == 'k: Hot@1("a") <- t#1'


def amiss() -> list[object]:
    """What no neighbour should send."""
    other = schema_of("Temp(room: string)")
    strange = batches_of('Temp@1("a")', {"Temp": other})
    foreign = batches_of('Temp@2("a", 1)', SCHEMAS)  # by a source that nobody knows
    return [
        Flow(tuple(strange)),
        Flow(tuple(foreign)),
        Flow((), None, (("nothing", 5),)),
        Catalog((), (RuleFacts("x", "define X( from", None, 0),)),
        Catalog((), (RuleFacts("x", "event D(x: int)", None, 0),)),  # which is no rule
        Catalog((TEMP, SMOKE), (RuleFacts("x", f"~ {'0' * 16} 1 Smoke Temp <", None, 0),)),
        Asked((), 1, "c", ListRules(1)),
        Asked(("b1", "b7"), 1, "c", ListRules(1)),
        Answered((), 99, Confirmed(1)),
        Answered(("b8",), 99, Confirmed(1)),
        SubscriptionUpdate(("define", "Temp(depth > 1)", "Temp", "Smoke", "Fire")),
        SubscriptionUpdate(("Temp",), 2**62, (), 2**62 - 1),  # a change of what was never told
        CatalogDelta(((99,), ()), *[((), ())] * 4),
        Awaited((("Temp", 2**62), ("nothing", 0))),
        # of trees for sinks that there are not
        PlanFollowed("b1", 1, 1),
        Shared((), (Part("b2", ()),)),
        RootRequest(RootTask.TREES, ("b1", "b2")),
    ]


@pytest.mark.parametrize("broker", ["b1", "b2"])
@pytest.mark.parametrize("message", amiss(), ids=lambda one: type(one).__name__)
def test_what_a_neighbour_sends_amiss_is_left_out(broker: str, message: object) -> None:
    network = furnished()
    neighbour = {"b1": "b2", "b2": "b1"}[broker]
    network.brokers[neighbour].overlay.send(broker, message, network.mesh.now)  # type: ignore[arg-type]
    network.run(0.2)
    network.publish("t", 'Temp@1("a", 50)', 10)
    network.publish("s", 'Smoke@3("a")', 10)
    assert network.take_lines() == ['k: Fire@3("a", 50.0) <- s#1 t#1']


class Mine(Centralized):
    name = "mine"


class Another(Centralized):
    name = "mine"


class Treeless(Adaptive):
    name = "treeless"
    sink_trees = False


@pytest.mark.usefixtures("own_strategies")
def test_strategies_are_known_by_name() -> None:
    register(Mine)
    register(Mine)
    assert {"centralized", "mine"} <= set(names())
    assert isinstance(make("mine"), Mine)
    with pytest.raises(ValueError, match="a strategy named 'mine' is registered already"):
        register(Another)
    with pytest.raises(ValueError, match="'treeless' chooses one, and has no sink_trees"):
        register(Treeless)
    with pytest.raises(ValueError, match="no strategy is called 'best'"):
        make("best")


@pytest.mark.parametrize("seed", range(6))
def test_rules_and_sources_that_come_in_mid_stream(seed: int) -> None:
    """Each rule gives what one engine gives from the instant that its confirmation names."""
    random = Random(f"mid-stream {seed}")
    network = Network(5)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("s", "b2").advertise([SMOKE])
    network.connect("k", "b5").subscribe("Fire()")
    network.clients["k"].subscribe("Hot()")
    manager = network.connect("m", "b4")
    network.run(0.3)
    said = network.take_lines()
    published: list[Event] = []
    numbers: dict[str, int] = {}
    for second in range(0, 60, 3):
        for name in [one for one in ("t", "s", "u") if one in network.clients]:
            texts = []
            for _ in range(random.randint(1, 3)):
                time, room = second + random.randint(0, 2), random.choice("ab")
                numbers[name] = numbers.get(name, 0) + 1
                data: dict[str, str | float] = {"room": room}
                if name != "s":
                    data["value"] = float(random.choice((40, 50, 60)))
                kind = "Smoke" if name == "s" else "Temp"
                values = ", ".join(f'"{v}"' if v == room else str(v) for v in data.values())
                texts.append(f"{kind}@{time}({values})")
                number = numbers[name]
                published.append(Event(kind, time * 1_000_000, name, str(number), data, number))
            network.publish(name, " ".join(texts), second + 3)
        if second == 12:
            manager.deploy(FIRE)
        if second == 24:
            network.connect("u", "b2").advertise([TEMP])
        if second == 36:
            manager.deploy(HOT)
        # Events go on to be published before, while and after the tree pauses.
        network.run(0.3 if second == 24 else random.choice((0.005, 0.015, 0.022, 0.03)))
        said += network.take_lines()
    for name in ("t", "s", "u"):
        network.clients[name].close(network.mesh.now)
        network.run(0.3)
    said += network.take_lines()
    sinces = dict(re.findall(r"m: confirmed (\w+) since (\w+)", "\n".join(said)))
    assert sinces.keys() == {"fire", "hot"}, said
    engine = rules.engine.make("naive")
    for name, text in (("fire", FIRE), ("hot", HOT)):
        since = int(float(sinces[name]) * 1_000_000)
        engine.deploy(rules.load(text, known=SCHEMAS), since=since)
    for batch in batches(published, SCHEMAS.values()):
        engine.push(batch)
    expected = [f"k: {printed(one)}" for one in engine.advance(TIME_MAX).events()]
    assert [line for line in said if line.startswith("k: ") and "confirmed" not in line] == expected
    assert len(expected) > 5
    assert not [line for line in said if "rejected" in line or "refused" in line]


def test_rules_wait_for_a_type_until_too_many_events_wait_with_them() -> None:
    """Two brokers evaluate rules that wait for Never, one through the other."""
    network = Network(3, waiting_events_max=3)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("s", "b3").advertise([SMOKE])
    manager = network.connect("m", "b2")
    network.run(0.2)
    manager.deploy(
        "event Never(n: int)\nrule calm: define Calm(room: string) from Temp() as t "
        "and not Never() within 5 s from t where room = t.room\n"
        "rule late: define Late(room: string) from Smoke() as s "
        "and last Calm(room = s.room) within 9 s from s where room = s.room"
    )
    network.connect("k", "b3").subscribe("Late()")
    network.run(0.2)
    network.publish("t", 'Temp@1("a", 50) Temp@2("b", 50)', 20)
    network.publish("s", 'Smoke@3("a")', 20)
    network.run(1)
    assert not [line for line in network.take_lines() if "Late" in line]
    network.publish("t", 'Temp@20("c", 50) Temp@21("c", 50)', 30)
    network.run(0.2)
    (late,) = [line for line in network.take_lines() if "Late" in line]
    assert late.startswith('k: Late@3("a")')
    warned = [one for one in network.mesh.log if getattr(one, "text", "") == INPUTS_CLOSED]
    assert [(one.fields["why"], one.fields["types"]) for one in warned] == [("never", ["Never"])]
    # Who publishes it after all begins beyond what was evaluated without it.
    never = schema_of("Never(n: int)")
    network.connect("n", "b2").advertise([never])
    network.run(0.2)
    network.clients["n"].publish(batches_of("Never@29(1)", {"Never": never}), network.mesh.now)
    network.run(0.2)
    assert any("rejected (late)" in line for line in network.take_lines())


@pytest.mark.parametrize("home", ["b1", "b2"])
def test_what_is_held_of_a_source_that_closes_meanwhile_reaches_who_wants_it(home: str) -> None:
    """A rule is deployed, so that the network pauses, while the last of its type is published."""
    for wait_ms in (16, 24, 28):
        network = Network(3)
        network.connect("t", home).advertise([TEMP])
        network.connect("k", "b3").subscribe("Temp()")
        manager = network.connect("m", "b3")
        network.run(0.2)
        network.take_lines()
        manager.deploy("event Smoke(room: string)" + "rule any: define Any() from Smoke()")
        network.run(wait_ms / 1e3)
        network.clients["t"].publish(batches_of('Temp@1("a", 50)', SCHEMAS), network.mesh.now)
        network.clients["t"].close(network.mesh.now)
        network.run(1)
        assert 'k: t#1 Temp@1("a", 50.0)' in network.take_lines(), f"after {wait_ms} ms"


def test_an_event_is_not_overtaken_by_the_closing_of_its_source() -> None:
    """Both come to b2 in one input, as when a packet was lost below the link; they leave b2 as two
    messages, and what the second of them brings may come some time later (fuzzed seed 6042)."""
    network = Network(5)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("k", "b5").subscribe("Temp()")
    network.run(0.2)
    network.take_lines()
    mesh, near, far = network.mesh, network.mesh.wires["b1", b"b2"], network.mesh.wires["b2", b"b3"]
    to_b2, to_b3 = near.deliver, far.deliver
    came: list[list[bytes]] = []

    def together(frames: list[bytes], now: float) -> None:
        came.append(frames)
        for one in reversed(came) if len(came) == 2 else came[2:][-1:]:
            to_b2(one, now)

    def apart(frames: list[bytes], now: float) -> None:
        far.delay_s += 0.003
        mesh.at(now + far.delay_s, lambda: to_b3(frames, mesh.now))

    near.deliver, far.deliver = together, apart
    network.clients["t"].publish(batches_of('Temp@1("a", 50)', SCHEMAS), mesh.now)
    network.clients["t"].close(mesh.now)
    network.run(0.5)
    assert network.take_lines() == ['k: t#1 Temp@1("a", 50.0)']


@pytest.mark.parametrize(
    "rule",
    [
        "define Tick(s: int) from Timer() where s = Timer.S",
        "define Tick(s: int) from Timer() as t and not Temp() within 1 s from t where s = t.S",
    ],
)
def test_timers_tick_by_the_clock_wherever_their_rule_is_evaluated(rule: str) -> None:
    """Not only at the root, and not ahead of the clock where sources promise (seed 6166)."""
    network = Network(3, wall_clock=True)
    network.connect("t", "b1", replay=True).advertise([TEMP])
    network.connect("k", "b3").subscribe("Tick()")
    network.run(0.5)
    network.connect("m", "b2").deploy(f"rule tick: {rule}")
    network.run(0.5)
    network.publish("t", 'Temp@1("a", 50)', 1_000)
    first = math.ceil(network.mesh.now)
    network.take_lines()
    network.run(first + 3.5 - network.mesh.now)
    ticks = [
        f"k: Tick@{second}({second}) <- timer#timer/{second}" for second in range(first, first + 4)
    ]
    assert network.take_lines() == ticks


@pytest.mark.parametrize(
    "rules",
    [
        "rule tick: define Tick(s: int) from Timer() as t and not Temp() within 1 s from t "
        "where s = t.S",
        "rule beat: define Beat(s: int) from Timer() as t where s = t.S\n"
        "rule tick: define Tick(s: int) from Beat() as b and not Temp() within 1 s from b "
        "where s = b.s",
    ],
)
def test_timers_tick_on_when_all_sources_have_closed(rules: str) -> None:
    """The clock goes on where nothing else does (seed 30266)."""
    network = Network(3, wall_clock=True)
    network.connect("t", "b1").advertise([TEMP])
    network.connect("k", "b3").subscribe("Tick()")
    network.connect("m", "b2").deploy(rules)
    network.run(0.5)
    network.publish("t", 'Temp@1("a", 50)')
    network.clients["t"].close(network.mesh.now)
    network.run(0.5)
    first = math.ceil(network.mesh.now)
    network.take_lines()
    network.run(first + 3.5 - network.mesh.now)
    seconds = [line.partition("(")[0] for line in network.take_lines()]
    assert seconds == [f"k: Tick@{second}" for second in range(first, first + 4)]


@pytest.mark.parametrize("ordering", list(Ordering))
@pytest.mark.parametrize("times", [(), (1.0, 2.0)])
def test_a_rule_that_ticks_holds_from_now(times: tuple[float, ...], ordering: Ordering) -> None:
    """Whatever was published of its types, or of others, and however long ago."""
    network = Network(3, wall_clock=True, ordering=ordering)
    for name, schema, broker in (("s", SMOKE, "b3"), ("t", TEMP, "b1")):
        network.connect(name, broker).advertise([schema])
    network.connect("k", "b3").subscribe("Tick()")
    network.run(0.5)
    for time in times:
        network.publish("t", f'Temp@{time}("a", 50)')
    network.connect("m", "b2")
    network.run(5.3 - network.mesh.now)
    network.take_lines()
    first = math.ceil(network.mesh.now)
    ticks = "rule tick: define Tick(s: int) from Timer() as t and not Smoke() within 1 s from t"
    network.clients["m"].deploy(f"{ticks} where s = t.S")
    network.run(0.3)
    network.clients["s"].close(network.mesh.now)
    network.run(first + 1.5 - network.mesh.now)
    network.publish("t", f'Temp@{first}("a", 50)')
    network.run(first + 4.5 - network.mesh.now)  # a broker looks at its clock once a second
    seconds = [line.partition("(")[0] for line in network.take_lines() if "Tick" in line]
    assert seconds[:4] == [f"k: Tick@{second}" for second in range(first, first + 4)]


def test_the_clock_makes_nothing_late_that_no_rule_uses_with_it() -> None:
    """A recording may be published in several goes, long past by the clock."""
    network = Network(3, wall_clock=True)
    for name, schema, broker in (("s", SMOKE, "b3"), ("t1", TEMP, "b1")):
        network.connect(name, broker).advertise([schema])
    network.run(0.2)
    ticks = "rule tick: define Tick(s: int) from Timer() as t and not Smoke() within 1 s from t"
    network.connect("m", "b2").deploy(f"{ticks} where s = t.S\n{HOT}")
    network.connect("k", "b3").subscribe("Tick()")
    network.connect("h", "b3").subscribe("Hot()")
    network.run(0.2)
    network.clients["s"].close(network.mesh.now)
    network.publish("t1", 'Temp@1("a", 50)', 1)
    network.clients["t1"].close(network.mesh.now)
    network.run(2)
    network.connect("t2", "b1").advertise([TEMP])
    network.run(0.2)
    network.publish("t2", 'Temp@2("a", 50)', 2)
    network.clients["t2"].close(network.mesh.now)
    network.run(2)
    lines = network.take_lines()
    assert not [line for line in lines if "late" in line]
    assert [line for line in lines if "Tick" in line]
    hot = [line for line in lines if "Hot" in line]
    assert hot == ['h: Hot@1("a") <- t1#1', 'h: Hot@2("a") <- t2#1']
