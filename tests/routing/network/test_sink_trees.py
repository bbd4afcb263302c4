"""Which rules belong to the trees of brokers with sinks, and which ways these have."""

from random import Random

import networkx as nx
import pytest

from routing.deployment import Deployed
from routing.messages import Catalog, RuleFacts
from routing.network.tables.filters import by_type
from routing.network.ways.sink_trees import below, kinds_of
from routing.overlay.graph import fathers_of
from rules.language import load

HEAD = "event A(p: int)\nevent B(p: int)\n"
RULES = {
    "plain": "define X(p: int) from A() as a where p = a.p",
    "above": "define Y(p: int) from X() as x and last B(p = x.p) within 2 s from x where p = x.p",
    "consumes": "define Z(p: int) from A() as a and last B() as b within 2 s from a "
    "where p = a.p consuming b",
    "over": "define W(p: int) from Z() as z where p = z.p",
    "recursive": "define V(n: int) from A() as a and last V() as v within 2 s from a where n = v.n",
}


def known(*names: str, homes: dict[str, tuple[str, ...]] | None = None) -> Catalog:
    found = load(HEAD + "\n".join(f"rule {name}: {RULES[name]}" for name in names))
    facts = tuple(RuleFacts(rule.name, rule.text, None, 0) for rule in found.rules)
    types = tuple(found.schemas[name] for name in sorted(found.schemas))
    return Catalog(types, facts, homes=tuple((homes or {}).items()))


def test_what_consumes_or_uses_itself_is_routed_and_so_is_what_uses_that() -> None:
    kinds = kinds_of(known(*RULES))
    assert kinds.own == {"X", "Y"}
    assert kinds.routed == {"Z", "W", "V"}


def test_what_sources_publish_too_is_routed() -> None:
    kinds = kinds_of(known("plain", "above", homes={"b1": ("A",), "b2": ("X",)}))
    assert kinds.routed == {"X", "Y"}


def test_own_filters_are_those_of_own_types_less_what_others_cover() -> None:
    told = known(*RULES)
    texts = ["X(p > 1)", "Z()", "X(p > 0)", "A()", "Nothing()"]
    schemas = {schema.name: schema for schema in told.types}
    assert kinds_of(told).own_filters(by_type(texts), schemas) == ("X(p > 0)",)


def test_a_type_brings_the_rules_that_it_needs() -> None:
    rules = load(HEAD + "\n".join(f"rule {name}: {RULES[name]}" for name in RULES)).rules
    deployed = [Deployed(rule, None, 0, serial) for serial, rule in enumerate(rules)]
    assert [one.rule.name for one in below({"Y"}, deployed)] == ["plain", "above"]
    assert [one.rule.name for one in below({"X"}, deployed)] == ["plain"]


@pytest.mark.parametrize("seed", range(20))
def test_ways_are_the_shortest(seed: int) -> None:
    random = Random(f"ways {seed}")
    graph = nx.gnm_random_graph(8, 12, seed=seed)
    graph.add_edges_from(nx.path_graph(8).edges)
    links = tuple((f"b{one}", f"b{other}", random.randint(1, 4)) for one, other in graph.edges)
    nodes = frozenset(f"b{number}" for number in range(8))
    weighted = nx.Graph()
    weighted.add_weighted_edges_from(links)
    fathers = fathers_of("b3", nodes, links)
    assert fathers == fathers_of("b3", nodes, tuple(random.sample(links, len(links))))
    assert fathers.keys() == nodes - {"b3"}
    for node in fathers:
        way, length = node, 0
        while way != "b3":
            length += weighted[way][fathers[way]]["weight"]
            way = fathers[way]
        expected = nx.shortest_path_length(weighted, node, "b3", weight="weight")
        assert length == expected, f"seed {seed}"


def test_of_equal_ways_the_one_over_the_first_by_name_is_taken() -> None:
    links = (("b1", "b4", 5), ("b2", "b4", 5), ("b3", "b1", 5), ("b3", "b2", 5))
    assert fathers_of("b4", frozenset({"b1", "b2", "b3", "b4"}), links)["b3"] == "b1"
