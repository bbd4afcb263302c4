"""The network as its link states tell it, its centre and its ways: functions of these alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from types import MappingProxyType

from routing.messages import LinkState

Edge = tuple[str, str, int]
"""Two brokers, and the delay between them in microseconds."""


@dataclass(frozen=True, slots=True)
class Component:
    """A connected part of the network. ``edges``: each with its names in order."""

    nodes: frozenset[str]
    edges: tuple[Edge, ...]
    centre: str


class Graph:
    """Brokers and the edges between them. An edge is there while both of its ends say so; its delay
    is the greater of the two that they say: b1 says that b2 is 5 ms away, b2 that b1 is 7 ms away:
    an edge of 7 ms. Whoever has the same link states has the same graph.
    """

    def __init__(self, nodes: Iterable[str], edges: Iterable[Edge]) -> None:
        self._neighbours: dict[str, list[tuple[str, int]]] = {name: [] for name in nodes}
        for one, other, delay in edges:
            self._neighbours[one].append((other, delay))
            self._neighbours[other].append((one, delay))

    def ways_from(
        self, root: str, kept: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Mapping[str, str], int]:
        """The father of every broker within reach of a root, in order of their distance, and the
        sum of these. Ways are the shortest by the delays of the links; of equal ones those of fewer
        links, and then those over the neighbour that is the first by name. b1 is 2 ms from the
        root, and 1 ms from b3, which is 1 ms from it: the father of b1 is the root. ``kept``:
        fathers that are as they are.
        """
        fathers: dict[str, str] = {}
        total = 0
        waiting = [(0, 0, root, "")]
        while waiting:
            distance, links, name, father = heappop(waiting)
            if name not in fathers:
                fathers[name] = father
                total += distance
                for other, delay in self._neighbours[name]:
                    if kept.get(other, name) == name:
                        heappush(waiting, (distance + delay, links + 1, other, name))
        del fathers[root]
        return fathers, total

    def centre_of(self, nodes: Iterable[str]) -> str:
        """The centre of a connected part: the broker from which the sum of the shortest delays to
        all others is least, and the first by name among equals (brokers.md section 3).
        """
        return min((self.ways_from(name)[1], name) for name in nodes)[1]


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
    edges = [
        (name, other, max(delay, said[other][name]))
        for name, neighbours in said.items()
        for other, delay in sorted(neighbours.items())
        if name < other and name in said.get(other, ())
    ]
    graph = Graph(said, edges)
    found: dict[str, Component] = {}
    for name in said:
        if name not in found:
            nodes = frozenset((name, *graph.ways_from(name)[0]))
            own = tuple(edge for edge in edges if edge[0] in nodes)
            found.update(dict.fromkeys(nodes, Component(nodes, own, graph.centre_of(nodes))))
    return MappingProxyType(found)


@lru_cache(maxsize=4_096)
def fathers_of(
    root: str,
    nodes: frozenset[str],
    links: tuple[Edge, ...],
    kept: tuple[tuple[str, str], ...] = (),
) -> Mapping[str, str]:
    """The father of every broker but the root. The links connect all of them.

    ``kept``: brokers that have fathers already, and keep them.
    """
    return MappingProxyType(Graph(nodes, links).ways_from(root, dict(kept))[0])
