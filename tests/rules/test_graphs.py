"""Graphs of names, beside networkx."""

import networkx as nx
import pytest
from hypothesis import given, strategies as st

from rules.checking.graphs import components, cycle_through, generations

NAMES = "abcdefg"
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), unique=True))


@given(GRAPHS)
def test_they_are_as_networkx_says(drawn) -> None:
    graph = {name: drawn.get(name, []) for name in NAMES}
    other = nx.DiGraph()
    other.add_nodes_from(graph)
    other.add_edges_from((name, beyond) for name in graph for beyond in graph[name])

    assert {*components(graph)} == {*map(frozenset, nx.strongly_connected_components(other))}
    if nx.is_directed_acyclic_graph(other):
        found = [sorted(names) for names in generations(graph)]
        assert found == [sorted(names) for names in nx.topological_generations(other)]
    for name in graph:
        lengths = [
            nx.shortest_path_length(other, beyond, name) + 1
            for beyond in graph[name]
            if nx.has_path(other, beyond, name)
        ]
        cycle = cycle_through(graph, name)
        assert len(cycle) == min(lengths, default=0)
        assert all(other.has_edge(*pair) for pair in zip(cycle, cycle[1:] + cycle[:1], strict=True))


def test_a_cycle_has_no_generations() -> None:
    with pytest.raises(ValueError, match="cycle"):
        [*generations({"a": ["b"], "b": ["a"]})]
