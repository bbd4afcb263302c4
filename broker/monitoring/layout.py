"""Places of brokers in a drawing of their overlay, from 0 to 1 in both directions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

SPRINGS_MAX = 300
"""Overlays of more brokers are drawn as a ring: springs cost the square of their number."""
ROUNDS = 200

Edges = frozenset[tuple[str, str]]
Places = Mapping[str, tuple[float, float]]


@lru_cache(maxsize=8)
def places(brokers: Collection[str], links: Edges) -> Places:
    """The place of each broker. ``links`` are pairs in the order of their names. One overlay has
    one drawing, whatever order its links are told in; so nothing moves unless the overlay changes.
    """
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(sorted(brokers))
    graph.add_edges_from(sorted(links))
    found = networkx.circular_layout(graph)
    if 2 < len(graph) <= SPRINGS_MAX:
        found = networkx.spring_layout(graph, pos=found, seed=0, iterations=ROUNDS)
    return _spread(found)


def _spread(found: Mapping[str, tuple[float, float]]) -> Places:
    """The places, stretched to all there is; in the middle where they do not differ."""
    axes = []
    for axis in (0, 1):
        values = [place[axis] for place in found.values()]
        least, width = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
        axes.append([(value - least) / width if width > 1e-9 else 0.5 for value in values])
    pairs = zip(found, *axes, strict=True)
    return {name: (round(float(x), 4), round(float(y), 4)) for name, x, y in pairs}
