"""Generated networks: connected, of the degree and the delays asked for, the same for a seed."""

from pathlib import Path
from random import Random

import networkx as nx
import pytest

from simulator.topology import KINDS, TopologySpec, graph_of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("brokers", [1, 2, 3, 7, 30])
def test_every_network_is_connected_and_has_the_mean_delay(kind: str, brokers: int) -> None:
    graph = graph_of(TopologySpec(kind, brokers, delay_ms=4.0), Random(1))
    assert len(graph) == brokers
    assert nx.is_connected(graph)
    assert nx.number_of_selfloops(graph) == 0
    delays = list(nx.get_edge_attributes(graph, "delay_s").values())
    assert len(delays) == graph.number_of_edges()
    if delays:
        assert min(delays) > 0
        assert sum(delays) / len(delays) == pytest.approx(0.004, rel=0.01)


@pytest.mark.parametrize("kind", ["waxman", "barabasi-albert"])
@pytest.mark.parametrize("degree", [2.0, 5.0, 6.0])
def test_random_networks_have_the_mean_degree(kind: str, degree: float) -> None:
    graph = graph_of(TopologySpec(kind, 100, degree), Random(2))
    assert 2 * graph.number_of_edges() / len(graph) == pytest.approx(degree, rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_one_network(kind: str) -> None:
    topology = TopologySpec(kind, 20)
    one, same = (graph_of(topology, Random(3)) for _ in range(2))
    assert list(one.edges(data=True)) == list(same.edges(data=True))


def test_near_brokers_are_linked_more_often() -> None:
    """Waxman's links are short beside those of a network that asks for the degree alone."""

    def spread(kind: str) -> float:
        graph = graph_of(TopologySpec(kind, 200, 4.0), Random(4))
        delays = sorted(nx.get_edge_attributes(graph, "delay_s").values())
        return delays[-1] / delays[len(delays) // 2]

    assert spread("waxman") > spread("barabasi-albert")


def test_few_brokers_have_many_links() -> None:
    preferring = graph_of(TopologySpec("barabasi-albert", 300, 4.0), Random(5))
    even = graph_of(TopologySpec("waxman", 300, 4.0), Random(5))
    assert max(dict(preferring.degree).values()) > 1.5 * max(dict(even.degree).values())


def test_a_network_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "net.graphml"
    graph = nx.Graph()
    graph.add_edge("Rome", "Milan", delay_ms=7.5)
    graph.add_edge("Milan", "Turin")
    nx.write_graphml(graph, path)
    read = graph_of(TopologySpec("graphml", delay_ms=2.0, file=path), Random(0))
    assert read.edges["Rome", "Milan"]["delay_s"] == 0.0075
    assert read.edges["Milan", "Turin"]["delay_s"] == 0.002


@pytest.mark.parametrize("text", ["", "<a>", "nonsense"])
def test_a_bad_graph_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "net.graphml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"net\.graphml"):
        graph_of(TopologySpec("graphml", file=path), Random(0))
