"""How the rules in force are divided over the brokers: functions of the plan and of what is known
alone, since every broker works it out for itself (planner, Law 1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from matcher.model import EventType
from routing.config import Ordering
from routing.deployment import Deployed
from routing.messages import Catalog, Plan
from routing.network.agreement.catalog import rules_of
from routing.network.agreement.rounds import Absent, ReportedNode
from routing.network.strategy import (
    Choice,
    Divide,
    Strategy,
    chosen_by,
    divide_of,
    has_sink_trees,
    has_sink_trees_by,
)
from routing.network.ways.sink_trees import below, kinds_of, rules_for
from routing.overlay.graph import Edge, fathers_of
from routing.partition.masters import work_out_pulls
from routing.partition.placement import tree_of
from routing.partition.places import Division

NOTHING = Choice()
"""Nothing has been chosen."""


@lru_cache(maxsize=8)
def divided(
    strategy: type[Strategy],
    ordering: Ordering,
    nodes: tuple[ReportedNode, ...],
    absent: Absent,
    known: Catalog,
    choice: Choice = NOTHING,
) -> Division:
    """The division of the rules on the single tree; one value for all brokers.

    Brokers out of reach stand below the root, which will hear nothing of them (planner, Law 3).
    """
    deployed = rules_of(known)
    if has_sink_trees(strategy):
        kinds = kinds_of(known, has_sink_trees_by(strategy, choice))
        deployed = below(kinds.routed, deployed)
    fathers = {name: father for name, father, _ in nodes if father}
    (root,) = (name for name, father, _ in nodes if not father)
    published = _published(nodes, absent)
    schemas = {schema.name: schema for schema in known.types}
    fathers = _with_absent(fathers, root, absent)
    divide = divide_of(strategy(), choice)
    return _division(divide, ordering, root, fathers, published, deployed, schemas)


@lru_cache(maxsize=1_024)
def divided_for_sinks(
    strategy: type[Strategy],
    ordering: Ordering,
    root: str,
    filters: tuple[str, ...],
    nodes: tuple[ReportedNode, ...],
    links: tuple[Edge, ...],
    absent: Absent,
    known: Catalog,
    choice: Choice = NOTHING,
) -> Division:
    """The division of what the sinks of a broker want over the tree of which it is the root.

    It names only what these rules have to do with, so that it changes with nothing else.
    """
    deployed = rules_for(filters, known)
    used = {one.name for rule in deployed for one in rule.rule.used_types}
    nearer = fathers_of(root, frozenset(name for name, _, _ in nodes), links)
    fathers = _with_absent(nearer, root, absent)
    published = {
        node: names & used
        for node, names in _published(nodes, absent).items()
        if not names.isdisjoint(used)
    }
    mentioned = used | {one.rule.defines.name for one in deployed}
    schemas = {schema.name: schema for schema in known.types if schema.name in mentioned}
    divide = divide_of(strategy(), choice)
    return _division(divide, ordering, root, fathers, published, deployed, schemas)


def divide_ahead(strategy: type[Strategy], known: Catalog) -> Iterator[None]:
    """Work out what a strategy has to know of each rule before it divides; yields behind some."""
    if chosen_by(strategy):
        yield from work_out_pulls(one.rule for one in rules_of(known))


def choice_of(plan: Plan) -> Choice:
    """The choice that a plan says."""
    return Choice(plan.rates, plan.candidate)


def _published(nodes: Collection[ReportedNode], absent: Absent) -> dict[str, frozenset[str]]:
    published = {name: frozenset(names) for name, names in absent}
    for name, _, names in nodes:
        published[name] = published.get(name, frozenset()).union(names)
    return published


def _with_absent(fathers: Mapping[str, str], root: str, absent: Absent) -> dict[str, str]:
    """With those who are not in the tree below its root."""
    away = {name: root for name, _ in absent if name != root}
    return {**away, **fathers}


def _division(
    divide: Divide,
    ordering: Ordering,
    root: str,
    fathers: Mapping[str, str],
    published: Mapping[str, frozenset[str]],
    deployed: Sequence[Deployed],
    schemas: Mapping[str, EventType],
) -> Division:
    types = {
        node: tuple(schemas[name] for name in sorted(names) if name in schemas)
        for node, names in published.items()
    }
    rules = [one.rule for one in deployed]
    found = divide(tree_of(root, fathers), types, rules)
    if ordering is Ordering.ARRIVAL:
        # How far events are apart is for the evaluating broker to say.
        found = found.whole({rule.defines.name for rule in rules})
    return Division(found, fathers, published, tuple(deployed), schemas)
