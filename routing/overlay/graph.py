"""The network as its link states tell it, and its centre: functions of the link states alone.

Law 1: an edge is there while both of its ends say so; its delay is the greater of the two that they
say. Whoever has the same link states has the same graph, and elects the same centre. Example: b1
says that b2 is 5 ms away, b2 that b1 is 7 ms away: an edge of 7 ms. If b2 does not name b1 there is
none.

Law 2: the centre of a connected part is the broker from which the sum of the shortest delays to all
others is least, and the first by name among equals (brokers.md section 3). Example: in a chain b1 -
b2 - b3 of equal delays that is b2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import networkx as nx

from routing.messages import LinkState

Edge = tuple[str, str, int]
"""Two brokers, and the delay between them in microseconds."""


@dataclass(frozen=True, slots=True)
class Component:
    """A connected part of the network. ``edges``: each with its names in order."""

    nodes: frozenset[str]
    edges: tuple[Edge, ...]
    centre: str


def components_of(states: Iterable[LinkState]) -> Mapping[str, Component]:
    """The connected part that each broker is in, by name."""
    return _parts(tuple(sorted((one.origin, one.neighbours) for one in states)))


@lru_cache(maxsize=64)
def _parts(
    links: tuple[tuple[str, tuple[tuple[str, int], ...]], ...],
) -> Mapping[str, Component]:
    # Remembered, since the same states are looked at again and again: after news that change no
    # link, and, in a simulation, by every broker of the network.
    said = {name: dict(neighbours) for name, neighbours in links}
    graph = nx.Graph()
    graph.add_nodes_from(said)
    for name, neighbours in said.items():
        for other, delay in neighbours.items():
            if name < other and name in said.get(other, ()):
                graph.add_edge(name, other, delay=max(delay, said[other][name]))
    found: dict[str, Component] = {}
    for nodes in nx.connected_components(graph):
        part = _part(graph.subgraph(nodes).copy())  # a mere view takes several times as long
        found.update(dict.fromkeys(part.nodes, part))
    return MappingProxyType(found)


def _part(graph: nx.Graph) -> Component:
    edges = tuple(
        sorted((*sorted((one, other)), delay) for one, other, delay in graph.edges(data="delay"))
    )
    return Component(frozenset(graph), edges, centre_of(graph))


def centre_of(graph: nx.Graph) -> str:
    """The centre of a connected graph whose edges have an int ``delay`` (Law 2)."""
    totals = (
        (sum(delays.values()), name)
        for name, delays in nx.all_pairs_dijkstra_path_length(graph, weight="delay")
    )
    centre: str = min(totals)[1]
    return centre
