"""How the rules in force are divided over the brokers: what follows from what the root has told.

Law: every broker works it out for itself, from the plan and from what is known, so these are
functions of both and of nothing else.
"""

from __future__ import annotations

from functools import lru_cache

from routing.config import Ordering
from routing.messages import Known
from routing.network.knowledge import rules_of
from routing.network.rounds import Absent, Node
from routing.network.station import Division
from routing.network.strategy import Strategy
from routing.partition.placement import Tree


@lru_cache(maxsize=8)
def divided(
    strategy: type[Strategy],
    ordering: Ordering,
    nodes: tuple[Node, ...],
    absent: Absent,
    known: Known,
) -> Division:
    """The division that follows from what the root has told; one for all brokers.

    Brokers out of reach stand below the root, which will hear nothing of them (Law 3).
    """
    deployed, types = rules_of(known), known.types
    (root,) = (name for name, father, _ in nodes if not father)
    fathers = {name: father for name, father, _ in nodes if father}
    fathers |= {name: root for name, _ in absent}
    children: dict[str, tuple[str, ...]] = {}
    for name, father in fathers.items():
        children[father] = (*children.get(father, ()), name)
    published = {name: frozenset(names) for name, _, names in nodes}
    published |= {name: frozenset(names) for name, names in absent}
    schemas = {schema.name: schema for schema in types}
    found = strategy().divide(
        Tree(root, children),
        {
            node: tuple(schemas[name] for name in sorted(names) if name in schemas)
            for node, names in published.items()
        },
        [one.rule for one in deployed],
    )
    if ordering is Ordering.ARRIVAL:
        found = found.whole()  # how far events are apart is for the evaluating broker to say
    return Division(found, fathers, published, deployed, schemas)
