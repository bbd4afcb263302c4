"""Networks of brokers to run scenarios on: which are linked, and how far apart they are.

The random ones follow BRITE, which the thesis used (7.4): brokers lie at random on a square, and
enter one after another, each linked to as many earlier ones as the mean degree asks for; they are
chosen by Waxman's probability, which falls with the distance, or by their degree (Barabasi and
Albert). A link's delay follows its length, and the mean over all links is the one that is asked
for. The regular ones have one delay for all links. Every network is connected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import networkx as nx

WAXMAN_BETA = 0.2
"""The share of the square's diagonal over which Waxman's probability falls to 1 / e."""


BROKERS_MAX = 100_000
"""More than a machine has the memory for."""


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """A network to draw: its size and shape.

    ``kind``: one of KINDS, or ``graphml`` for the one in ``file``, whose edges may have a
    ``delay_ms`` (otherwise the mean). ``degree``: the mean number of neighbours, where it is
    chosen at random. Raises ValueError naming what makes no sense.
    """

    kind: str
    brokers: int = 20
    degree: float = 5.0
    delay_ms: float = 5.0
    file: Path | None = None

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "graphml"):
            expected = ", ".join((*KINDS, "graphml"))
            raise ValueError(f"kind: expected one of {expected}, found {self.kind!r}")
        if (self.kind == "graphml") != (self.file is not None):
            raise ValueError("file: a network of kind graphml has one, and no other")
        if self.brokers < 1:
            raise ValueError(f"brokers: at least 1, not {self.brokers}")
        if self.brokers > BROKERS_MAX:
            raise ValueError(f"brokers: at most {BROKERS_MAX:,}, not {self.brokers:,}")
        if self.degree < 2:
            raise ValueError(f"degree: at least 2, so that all are linked, not {self.degree}")
        if self.delay_ms <= 0:
            raise ValueError(f"delay_ms must be positive, not {self.delay_ms}")


def graph_of(topology: TopologySpec, random: Random) -> nx.Graph:
    """The network: nodes named ``b1``, ``b2``, ..., edges with ``delay_s``, in seconds.

    Raises ValueError when a file holds no connected graph.
    """
    if topology.file is not None:
        return _from_file(topology.file, topology.delay_ms / 1e3)
    graph = KINDS[topology.kind](topology, random)
    width = len(str(topology.brokers))
    names = {node: f"b{node + 1:0{width}}" for node in sorted(graph)}
    graph = nx.relabel_nodes(graph, names)
    _scale(graph, topology.delay_ms / 1e3)
    return graph


def _scale(graph: nx.Graph, mean_s: float) -> None:
    lengths = nx.get_edge_attributes(graph, "length", default=1.0)
    total = sum(lengths.values())
    for edge, length in lengths.items():
        delay_s = mean_s * length * len(lengths) / total
        graph.edges[edge]["delay_s"] = max(round(delay_s, 6), 1e-6)


def _from_file(file: Path, mean_s: float) -> nx.Graph:
    try:
        read = nx.Graph(nx.read_graphml(file))
    except (nx.NetworkXError, SyntaxError, KeyError) as error:
        raise ValueError(f"file: {file}: not a graph in GraphML: {error}") from None
    read.remove_edges_from(list(nx.selfloop_edges(read)))
    if len(read) == 0 or not nx.is_connected(read):
        raise ValueError(f"file: {file}: expected a connected graph of one node or more")
    graph = nx.Graph()
    graph.add_nodes_from(sorted(map(str, read)))
    for one, other, delay_ms in read.edges(data="delay_ms"):
        delay_s = mean_s if delay_ms is None else _milliseconds(delay_ms) / 1e3
        if not 0 < delay_s < math.inf:
            place = f"the delay_ms of {one!r} to {other!r}"
            raise ValueError(f"file: {file}: {place} must be a positive number, not {delay_ms!r}")
        graph.add_edge(str(one), str(other), delay_s=delay_s)
    return graph


def _milliseconds(text: object) -> float:
    """A delay as a file says it; NaN where it says no number."""
    try:
        return float(str(text))
    except ValueError:
        return math.nan


def _grown(topology: TopologySpec, random: Random, weigh: Callable[..., float]) -> nx.Graph:
    """Brokers that enter one after another; ``weigh(graph, places, new, old)``."""
    graph = nx.Graph()
    places = [(random.random(), random.random()) for _ in range(topology.brokers)]
    for new in range(topology.brokers):
        graph.add_node(new)
        wanted = round(topology.degree / 2 * (new + 1)) - graph.number_of_edges()
        others = list(range(new))
        for _ in range(min(max(wanted, 1), new)):
            weights = [weigh(graph, places, new, old) for old in others]
            (old,) = random.choices(others, weights)
            others.remove(old)
            graph.add_edge(new, old, length=math.dist(places[new], places[old]) + 1e-3)
    return graph


def _waxman(topology: TopologySpec, random: Random) -> nx.Graph:
    def weigh(graph: nx.Graph, places: list[tuple[float, float]], new: int, old: int) -> float:
        return math.exp(-math.dist(places[new], places[old]) / (WAXMAN_BETA * math.sqrt(2)))

    return _grown(topology, random, weigh)


def _barabasi_albert(topology: TopologySpec, random: Random) -> nx.Graph:
    def weigh(graph: nx.Graph, places: list[tuple[float, float]], new: int, old: int) -> float:
        return float(max(graph.degree[old], 1))

    return _grown(topology, random, weigh)


def _grid(topology: TopologySpec, random: Random) -> nx.Graph:
    """As square as can be; the last row may be shorter."""
    columns = math.ceil(math.sqrt(topology.brokers))
    graph = nx.empty_graph(topology.brokers)
    for node in range(topology.brokers):
        beside, below = node + 1, node + columns
        if beside % columns and beside < topology.brokers:
            graph.add_edge(node, beside)
        if below < topology.brokers:
            graph.add_edge(node, below)
    return graph


def _ring(topology: TopologySpec, random: Random) -> nx.Graph:
    graph = nx.path_graph(topology.brokers)
    if topology.brokers > 2:
        graph.add_edge(0, topology.brokers - 1)
    return graph


def _tree(topology: TopologySpec, random: Random) -> nx.Graph:
    graph = nx.empty_graph(topology.brokers)
    graph.add_edges_from((random.randrange(node), node) for node in range(1, topology.brokers))
    return graph


KINDS: Mapping[str, Callable[[TopologySpec, Random], nx.Graph]] = {
    "waxman": _waxman,
    "barabasi-albert": _barabasi_albert,
    "ring": _ring,
    "line": lambda topology, random: nx.path_graph(topology.brokers),
    "star": lambda topology, random: nx.star_graph(topology.brokers - 1),
    "grid": _grid,
    "tree": _tree,
    "complete": lambda topology, random: nx.complete_graph(topology.brokers),
}
"""The kinds of networks that are made."""
