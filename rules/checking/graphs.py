"""Directed graphs of names: what hangs together, and in which order it comes.

A graph is a dict: the names that each name leads to, all of which are its keys. ``{"a": ["b"],
"b": ["a", "c"], "c": []}`` has the components {a, b} and {c}, and a cycle through a.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import TypeAlias

Graph: TypeAlias = Mapping[str, Sequence[str]]


def components(graph: Graph) -> list[frozenset[str]]:
    """The strongly connected components: names that lead to each other (Tarjan's algorithm)."""
    found: list[frozenset[str]] = []
    number: dict[str, int] = {}
    least: dict[str, int] = {}  # of those that it leads to and that have no component yet
    open_: dict[str, None] = {}  # in order
    for root in graph:
        way = [root] if root not in number else []
        left: dict[str, Iterator[str]] = {}
        while way:
            name = way[-1]
            if name not in left:
                number[name] = least[name] = len(number)
                left[name], open_[name] = iter(graph[name]), None
            beyond = next(left[name], None)
            if beyond is None:
                way.pop()
                if least[name] == number[name]:
                    found.append(_closed(open_, name))
                elif way:
                    least[way[-1]] = min(least[way[-1]], least[name])
            elif beyond not in number:
                way.append(beyond)
            elif beyond in open_:
                least[name] = min(least[name], number[beyond])
    return found


def _closed(open_: dict[str, None], first: str) -> frozenset[str]:
    """The component whose first name this is, taken from what is open."""
    names = set[str]()
    while first not in names:
        names.add(open_.popitem()[0])
    return frozenset(names)


def generations(graph: Graph) -> Iterator[tuple[str, ...]]:
    """The names that nothing leads to, then those that only these lead to, and so on; graphlib's
    CycleError where there is a cycle.
    """
    sorter = TopologicalSorter[str]()
    for name, followers in graph.items():
        sorter.add(name)
        for follower in followers:
            sorter.add(follower, name)
    sorter.prepare()
    while sorter.is_active():
        ready = sorter.get_ready()
        yield ready
        sorter.done(*ready)


def cycle_through(graph: Graph, name: str) -> tuple[str, ...]:
    """A shortest cycle through a name, from it on; empty where there is none."""
    before: dict[str, str] = {}
    reached = [name]
    for one in reached:
        for beyond in graph[one]:
            if beyond == name:
                return _way(before, name, one)
            if beyond not in before:
                before[beyond] = one
                reached.append(beyond)
    return ()


def _way(before: Mapping[str, str], first: str, last: str) -> tuple[str, ...]:
    names = [last]
    while names[-1] != first:
        names.append(before[names[-1]])
    return tuple(reversed(names))
