"""The catalog of the root, as a message and back: event types, rules with their places (E4), homes.

Brokers that were out of each other's reach may have come to know different things; the root of the
tree that joins them puts them together (``merged``).

Law 1: of a rule's versions the last is in force, if any is, and a rule that is known to end ends,
once and for all. What is only in one of them counts, unless the other knows that version, or a
later one, and has dropped it. One part has fire@1, the other fire ending at 26 s: both stay, and
fire@1 is in force.

Law 2: where two differ otherwise (a type with two schemas, a name for two rules) the root's own
counts. What of the others does not go with it is left out, and named. Here Temp has a float, there
an int: the rules over the int are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter

import msgspec

from routing.deployment import Deployed, Deployments
from routing.messages import Catalog, RuleFacts
from routing.serving.advertisements import Advertisements
from routing.serving.known_rules import known_rules
from routing.wire.schemas import flat_schema
from rules.checking.dependencies import arrange
from rules.errors import RuleErrors

PublishedTypes = Mapping[str, Iterable[str]]
"""The types that each broker's sources publish, or have published."""


def catalog_of(
    advertisements: Advertisements,
    deployments: Deployments,
    homes: PublishedTypes | None = None,
    closed: Iterable[str] = (),
) -> Catalog:
    """The catalog of the root."""
    schemas = advertisements.schemas
    rules = sorted(deployments, key=attrgetter("serial"))
    return Catalog(
        tuple(schemas[name] for name in sorted(schemas)),
        tuple([one.facts for one in rules]),
        tuple(sorted(deployments.ended.items())),
        tuple((name, tuple(sorted(types))) for name, types in sorted((homes or {}).items())),
        tuple(sorted(closed)),
    )


@lru_cache(maxsize=8)
def rules_of(catalog: Catalog) -> tuple[Deployed, ...]:
    """The rules that there are, in their order; RuleErrors when they are none."""
    # Remembered, since in a simulation every broker hears the same.
    return known_rules(catalog.types, catalog.rules)


@lru_cache(maxsize=64)
def digest_of(catalog: Catalog) -> str:
    """A digest of what is known, homes apart: those are told anew in every pause."""
    types = [flat_schema(schema) for schema in catalog.types]
    plain = msgspec.msgpack.encode([types, catalog.rules, catalog.ended, catalog.closed])
    return hashlib.sha256(plain).hexdigest()


@dataclass(frozen=True, slots=True)
class Merged:
    """Catalogs put together, and the names of the types and rules that were left out (Law 2)."""

    catalog: Catalog
    left_out: tuple[str, ...]


def merged(own: Catalog, others: Iterable[Catalog]) -> Merged:
    """Put together what the root and others know."""
    left_out: list[str] = []
    for other in others:
        own, lost = _merged(own, other)
        left_out += lost
    return Merged(own, tuple(dict.fromkeys(left_out)))


def _merged(own: Catalog, other: Catalog) -> tuple[Catalog, list[str]]:
    types = {schema.name: schema for schema in own.types}
    lost = [one.name for one in other.types if types.get(one.name, one) != one]
    types.update({one.name: one for one in other.types if one.name not in types})
    other, unfit = _fitting(other, own, lost)
    lost += unfit
    rules = {facts.id: facts for facts in own.rules if not _is_dropped(facts, other)}
    for facts in other.rules:
        present = rules.get(facts.id, facts)
        if _is_dropped(facts, own):
            continue
        until = facts.until if present.until is None else present.until
        here, there = (msgspec.structs.replace(one, until=until) for one in (present, facts))
        if here == there:
            rules[facts.id] = here
        else:
            lost.append(facts.name)
    ended = _last_ended((*own.ended, *other.ended))
    last = _last_in_force(rules.values(), ended)
    kept = (
        one for one in rules.values() if one.until is not None or last.get(one.name) == one.version
    )
    homes = dict(other.homes) | dict(own.homes)
    catalog = Catalog(
        tuple(types[name] for name in sorted(types)),
        tuple(kept),
        tuple(sorted((name, one) for name, one in ended.items() if name not in last)),
        tuple(sorted(homes.items())),
        own.closed,
    )
    try:
        arrange([one.rule for one in rules_of(catalog)])
    except RuleErrors:  # together they have a cycle of terminators
        return own, [*lost, *(facts.name for facts in other.rules)]
    return catalog, lost


def _fitting(other: Catalog, own: Catalog, lost: Iterable[str]) -> tuple[Catalog, list[str]]:
    """The catalog of others, but for rules that speak of types which are lost; and these."""
    here = {facts.id for facts in own.rules}
    wirings = {one.rule.name: one.rule.wiring for one in rules_of(other)}
    lost_by = {name for name, one in wirings.items() if {one.defined, *one.used}.intersection(lost)}
    fits = {facts.id for facts in other.rules if facts.id in here or facts.id not in lost_by}
    unfit = [facts.name for facts in other.rules if facts.id not in fits]
    return replace(other, rules=tuple(one for one in other.rules if one.id in fits)), unfit


def _is_dropped(facts: RuleFacts, by: Catalog) -> bool:
    """Whether somebody knows that version of a rule, or a later one, and has it no more."""
    versions = [one.version for one in by.rules if one.name == facts.name]
    latest = max([*versions, dict(by.ended).get(facts.name, -1)])
    return latest >= facts.version and facts.version not in versions


def _last_ended(ended: Iterable[tuple[str, int]]) -> dict[str, int]:
    """By name of a rule, the last version that is known to be out of force."""
    last: dict[str, int] = {}
    for name, version in ended:
        last[name] = max(version, last.get(name, version))
    return last


def _last_in_force(rules: Iterable[RuleFacts], ended: Mapping[str, int]) -> dict[str, int]:
    """By name, the version of a rule that is in force, where one is (Law 1)."""
    last: dict[str, int] = {}
    for one in rules:
        if one.until is None and one.version > ended.get(one.name, -1):
            last[one.name] = max(one.version, last.get(one.name, -1))
    return last
