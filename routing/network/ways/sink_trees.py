"""Rules that are evaluated on the trees of brokers with sinks, and these trees (7.3.2).

Law: a type is *routed* when one of its rules has unbounded memory, uses a routed type, or when
sources publish events of the type, too. Its composite events come from one place, along the single
tree (brokers.md section 6). All other defined types are *own*: who wants them finds them itself.
Where no trees of sinks stand (``adaptive`` may choose so) all are routed. fire is own; once
somebody publishes Fire, too, Fire is routed, and so is what uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from matcher.model import EventType
from routing.deployment import Deployed
from routing.messages import Catalog, SinkTree
from routing.network.agreement.catalog import rules_of
from routing.network.tables.filter_cover import maximal
from routing.network.tables.filters import by_type, type_named
from routing.partition.placement import is_unbounded
from rules.checking.dependencies import arrange


@dataclass(frozen=True, slots=True)
class Kinds:
    """The types that rules define, by the trees that their composite events come along."""

    routed: frozenset[str]
    own: frozenset[str]

    def own_filters(
        self, filters: Mapping[str, tuple[str, ...]], schemas: Mapping[str, EventType]
    ) -> tuple[str, ...]:
        """The filters of a broker's sinks, by type, that it wants of its own tree."""
        return maximal({name: filters[name] for name in filters.keys() & self.own}, schemas)


@lru_cache(maxsize=64)
def kinds_of(known: Catalog, sink_trees: bool = True) -> Kinds:
    """Divide the types into routed and own ones. ``sink_trees``: whether such trees stand."""
    deployed = rules_of(known)
    if not sink_trees:
        return Kinds(frozenset([one.rule.wiring.defined for one in deployed]), frozenset())
    rules = arrange([one.rule for one in deployed]).rules
    published = {name for _, types in known.homes for name in types}
    uses: dict[str, set[str]] = {}
    for rule in rules:
        used = uses.setdefault(rule.defines.name, set())
        used.update(one.name for one in rule.used_types)
    routed = {rule.defines.name for rule in rules if is_unbounded(rule)} | (published & uses.keys())
    while more := {name for name, used in uses.items() if used & routed} - routed:
        routed |= more
    return Kinds(frozenset(routed), frozenset(uses.keys() - routed))


def below(types: Collection[str], rules: Sequence[Deployed]) -> tuple[Deployed, ...]:
    """The rules that define these types, and those that they need, in their order."""
    found: set[str] = set()
    waiting = set(types)
    while waiting:
        found |= waiting
        waiting = {
            used.name
            for one in rules
            if one.rule.defines.name in waiting
            for used in one.rule.used_types
        } - found
    return tuple(one for one in rules if one.rule.defines.name in found)


def trees_wanted(
    wants: Iterable[tuple[str, Iterable[str]]],
    kinds: Kinds,
    schemas: Mapping[str, EventType],
    number: int,
) -> Iterator[SinkTree]:
    """The trees of the brokers whose sinks want this, as a plan of that number would have them."""
    for root, texts in sorted(wants):
        wanted = by_type(texts)
        filters = kinds.own_filters(wanted, schemas)
        if filters:
            mixed = not kinds.routed.isdisjoint(wanted)
            yield SinkTree(root, number, filters, mixed)


def rules_for(filters: Iterable[str], known: Catalog) -> tuple[Deployed, ...]:
    """The rules of the tree for sinks that want this, in their order.

    Texts that are no filters want nothing.
    """
    wanted = {name for text in filters if (name := type_named(text)) is not None}
    return below(wanted, rules_of(known))
