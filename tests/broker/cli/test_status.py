"""The page of a broker's status, for people."""

import pytest
from brokers import SCHEMAS, Network

from broker.cli.status import page
from routing.network.strategy import names

STATUS = {
    "broker": "b1",
    "uptime_s": 61.2,
    "store": True,
    "clients": [{}],
    "totals": {"received": 1200},
    "rates": {"received": 0.5},
    "parts": [3],
    "memory": {"heap": 4096, "rows/Temp": 7},
    "sources": [],
    "types": [],
    "rules": [],
    "network": {"brokers": []},
}


def sink(count: int) -> dict[str, object]:
    filters = [
        {"number": n, "filter": f"Temp(value > {n})", "waits": False, "paused": None}
        for n in range(count)
    ]
    figures = {"queued": 0, "limit": 10, "delivered": 5, "dropped": 0}
    return {"name": "k", "subscriptions": filters, "when_full": "block", **figures}


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "k     Temp(value > 0)  block"),
        (3, "k     Temp(value > 0), Temp(value > 1), Temp(value > 2)  block"),
        (1003, "k     Temp(value > 0), Temp(value > 1), Temp(value > 2), 1,000 more  block"),
    ],
)
def test_of_many_subscriptions_the_first_are_shown_and_the_others_counted(count, shown) -> None:
    assert shown in page({**STATUS, "sinks": [sink(count)]})


def test_what_the_engine_keeps_for_each_type_is_left_to_the_whole_answer() -> None:
    lines = page({**STATUS, "sinks": []}).splitlines()
    assert lines == [
        "broker b1: up 61 s",
        "clients: 1",
        "totals: received 1,200",
        "per second: received 0.5",
        "kept: heap 4,096",
    ]


def test_a_broker_without_a_store_says_so() -> None:
    first = page({**STATUS, "store": False, "sinks": []}).splitlines()[0]
    assert first == ("broker b1: up 61 s; no store (--data): what it knows is kept in memory alone")


# --- of networks: what brokers that run tell ---

FIRE = """
rule fire: define Fire(room: string, value: float)
from Smoke(room = $r) and last Temp(room = $r and value > 45) within 5 min from Smoke
where room = Smoke.room, value = Temp.value
"""
MANY = "".join(
    f"""rule many{number}: define Many{number}(room: string)
    from Smoke(room = $r) and last Temp(room = $r and value > {number}) within 5 min from Smoke
    where room = Smoke.room
    """
    for number in range(10, 60)
)


def furnished(monkeypatch: pytest.MonkeyPatch, strategy: str, text: str = FIRE) -> Network:
    """Temp at b1, Smoke at b2 of a line of five, whose root is b3."""
    monkeypatch.setattr(Network, "strategy", strategy)
    network = Network(5)
    for name, broker in (("Temp", "b1"), ("Smoke", "b2")):
        network.connect(name, broker).advertise([SCHEMAS[name]])
    network.run(0.2)
    network.connect("m", "b2").deploy(text)
    network.run(0.3)
    return network


def shown(network: Network, broker: str) -> list[str]:
    return page(network.brokers[broker].status(network.mesh.now)).splitlines()


def section(lines: list[str], title: str) -> list[str]:
    """The lines under a title, in which spaces do not count."""
    if title not in lines:
        return []
    rest = lines[lines.index(title) + 1 :]
    end = rest.index("") if "" in rest else len(rest)
    return [" ".join(line.split()) for line in rest[:end]]


@pytest.mark.parametrize("strategy", ["distributed-mt", "push-pull-mt"])
def test_trees_of_sinks_are_shown_and_what_is_forwarded_for_which(monkeypatch, strategy) -> None:
    network = furnished(monkeypatch, strategy)
    network.connect("k", "b4").subscribe("Fire()")
    network.connect("l", "b5").subscribe("Fire(value > 50)")
    network.connect("n", "b1").subscribe("Fire(value > 60)")
    network.run(0.5)
    for broker in network.brokers:
        lines = shown(network, broker)
        trees = section(lines, "trees of sinks:")
        assert trees.pop(0) == "root number father children wants rules"
        # The own tree comes first, then those that this broker does something for.
        roots = sorted(["b1", "b4", "b5"], key=lambda root: (root != broker, root))
        assert [line.split()[0] for line in trees] == roots
        (fourth,) = (line for line in trees if line.startswith("b4"))
        children = {"b1": "-", "b2": "b1", "b3": "b2", "b4": "b3, b5", "b5": "-"}
        father = {"b1": "b2", "b2": "b3", "b3": "b4", "b4": "-", "b5": "b4"}
        words = fourth.split(" ", 2)
        assert words[2] == f"{father[broker]} {children[broker]} Fire() b2: fire"
        facts = network.brokers[broker].status(network.mesh.now)
        told = section(lines, f"fragments at {broker}:")
        # Whatever it forwards is there, and for which trees.
        for root, fragments in facts["forwards_for"].items():
            for rule, sent in fragments.items():
                for line in sent:
                    (found,) = (one for one in told if one.startswith(f"{rule}: {line} (tree"))
                    assert root in found
        assert bool(told) == bool(facts["forwards_for"])
    line = "fire: send all Temp(value > 45)"
    if strategy == "push-pull-mt":
        line += " that are asked for, room = Smoke.room, from 5 min before to 0 s after Smoke()"
    assert section(shown(network, "b5"), "fragments at b1:") == [f"{line} (trees of b4, b5)"]


def test_rules_of_the_single_tree_and_of_others_are_shown_together(monkeypatch) -> None:
    """What consumes is on the single tree whatever the strategy."""
    near = """rule near: define Near(room: string)
    from Smoke(room = $r) and last Temp(room = $r) within 5 min from Smoke where room = Smoke.room
    consuming Temp
    """
    network = furnished(monkeypatch, "distributed-mt", FIRE + near)
    network.connect("k", "b4").subscribe("Fire()")
    network.connect("l", "b2").subscribe("Near()")
    network.run(0.8)
    lines = shown(network, "b1")
    assert [line.split()[0] for line in section(lines, "trees of sinks:")] == ["root", "b4"]
    own = ["fire: send all Temp(value > 45) (tree of b4)", "near: send all Temp()"]
    assert section(lines, "fragments at b1:") == own


@pytest.mark.parametrize("strategy", names())
def test_the_page_of_many_rules_is_short(monkeypatch, strategy) -> None:
    """Of other brokers' fragments few are shown, of this one's more, and the rest is counted."""
    network = furnished(monkeypatch, strategy, MANY)
    for broker in ("b3", "b4"):
        sink = network.connect(f"k-{broker}", broker)
        for number in range(10, 60):
            sink.subscribe(f"Many{number}()")
    network.run(0.5)
    lines = shown(network, "b1")
    own = section(lines, "fragments at b1:")
    if strategy == "centralized":  # for no rule in particular
        assert own == ["send all Temp()"]
        return
    assert own[-1] == "10 more rules"
    assert {line.split(":")[0] for line in own[:-1]} == {f"many{n}" for n in range(10, 50)}
    for other in ("b2", "b3", "b4", "b5"):
        told = section(lines, f"fragments at {other}:")
        assert len({line.split(":")[0] for line in told[:-1]}) in (0, 5)
        assert not told or told[-1] == "45 more rules"
    if strategy.endswith("-mt"):
        trees = section(lines, "trees of sinks:")
        assert [len(line) < 120 for line in trees] == [True] * 3
        assert "Many10(), Many11(), Many12(), 47 more b2: many10 many11 many12 47 more" in trees[1]


def test_of_many_trees_those_are_shown_that_a_broker_has_to_do_with() -> None:
    def tree(number: int) -> dict[str, object]:
        place = {"r": "b1"} if number == 70 else {"r": f"b{number}"}
        facts = {"number": 1, "father": "b2", "children": [], "filters": ["C()"]}
        return {"root": f"b{number}", "places": place, "fragments": {}, **facts}

    network = {
        "strategy": "distributed-mt",
        "root": "b1",
        "brokers": [{"name": name, "reachable": True, "neighbours": []} for name in ("b1", "b2")],
        "trees": [],
        "links": [],
        "fragments": {},
        "sink_trees": [tree(number) for number in (*range(10, 80), 1)],
    }
    lines = page({**STATUS, "sinks": [], "network": network}).splitlines()
    trees = section(lines, "trees of sinks:")[1:]
    assert [line.split()[0] for line in trees[:3]] == ["b1", "b70", "b10"]
    assert len(trees) == 21
    assert trees[-1] == "51 more"


@pytest.mark.parametrize("strategy", names())
def test_the_page_names_the_source_that_holds_a_rule(monkeypatch, strategy) -> None:
    network = furnished(monkeypatch, strategy)
    network.connect("k", "b5").subscribe("Fire()")
    network.run(0.3)
    network.publish("Smoke", 'Smoke@3("a")', 10)
    network.run(6)
    told = {
        name: line
        for name in network.brokers
        for line in section(shown(network, name), "rules:")
        if " stalled " in line
    }
    ((place, line),) = told.items()
    whom = "Temp at b1" if place == "b3" else "a source at b1"  # b3 is the root
    assert f" {whom} (Temp) " in line
