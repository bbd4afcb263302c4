"""Who needs which rules whole, where the texts of rules are told on demand (thesis 7.3.5).

Law 1: a broker needs the rules of the trees that it takes part in. In the single one all do. In the
tree of a broker with sinks those do that stand between its root and who publishes something that
its rules use; and those between its root and the centre, which decides whether the tree goes on.

Law 2: this follows from what everybody knows of all rules, their outlines (rules.outlining). So
whoever tells others what is known can tell what they, and who is beyond them, need by the plan that
follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from routing.messages import Known, Plan
from routing.network.agreement.knowledge import divisible, rules_of
from routing.network.agreement.rounds import Node
from routing.network.ways.sink_trees import Link, below, fathers_of, kinds_of, rules_for


@dataclass(frozen=True, slots=True)
class Holders:
    """Of one tree: who takes part in it, and the names of its rules."""

    brokers: frozenset[str]
    rules: frozenset[str]


def participants(
    root: str, centre: str, fathers: Mapping[str, str], publishing: Iterable[str]
) -> frozenset[str]:
    """The brokers between the root of a tree for sinks and the centre, and those who publish."""
    found = {root}
    for name in (centre, *publishing):
        while name not in found:
            found.add(name)
            name = fathers[name]
    return frozenset(found)


@lru_cache(maxsize=1_024)
def holders_for_sinks(
    root: str,
    centre: str,
    filters: tuple[str, ...],
    nodes: tuple[Node, ...],
    links: tuple[Link, ...],
    known: Known,
) -> Holders:
    """Of the tree of a broker with sinks that want this."""
    rules = rules_for(filters, known)
    used = {one.name for rule in rules for one in rule.rule.used_types}
    fathers = fathers_of(root, tuple(name for name, _, _ in nodes), links)
    publishing = [name for name, _, types in nodes if not used.isdisjoint(types)]
    names = frozenset(one.rule.name for one in rules)
    return Holders(participants(root, centre, fathers, publishing), names)


@lru_cache(maxsize=64)
def rules_of_single(known: Known, sink_trees: bool) -> frozenset[str]:
    """The names of the rules of the single tree; ``sink_trees`` as for kinds_of."""
    routed = divisible(below(kinds_of(known, sink_trees).routed, rules_of(known)))
    return frozenset(one.rule.name for one in routed)


def needed_beyond(plan: Plan, known: Known, sink_trees: bool) -> Mapping[str, frozenset[str]]:
    """By broker, the names of the rules that it or somebody below it on the single tree needs.

    ``sink_trees`` as for kinds_of.
    """
    trees = tuple((tree.root, tree.filters) for tree in plan.trees)
    return _needed_beyond(plan.root, plan.nodes, plan.links, trees, known, sink_trees)


@lru_cache(maxsize=64)
def _needed_beyond(
    centre: str,
    nodes: tuple[Node, ...],
    links: tuple[Link, ...],
    trees: tuple[tuple[str, tuple[str, ...]], ...],
    known: Known,
    sink_trees: bool,
) -> Mapping[str, frozenset[str]]:
    found = {name: set(rules_of_single(known, sink_trees)) for name, _, _ in nodes}
    fathers = {name: father for name, father, _ in nodes}
    for root, filters in trees:
        holders = holders_for_sinks(root, centre, filters, nodes, links, known)
        above: set[str] = set()
        for name in holders.brokers:
            while name and name not in above:
                above.add(name)
                name = fathers[name]
        for name in above:
            found[name] |= holders.rules
    return {name: frozenset(rules) for name, rules in found.items()}
