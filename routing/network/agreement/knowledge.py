"""What the root knows, as a message and back: event types, rules with their places (E4), homes.

Brokers that were out of each other's reach may have come to know different things; the root of the
tree that joins them puts them together (``merged``).

Law 1: of two versions of a rule the later counts, and of equal ones the one that has ended, since
a rule ends once and for all. What is only in one of them counts; but a rule that has ended and
lingers does so only as long as nobody who knows of its end has let it go.

Law 2: where two differ otherwise (a type with two schemas, a name for two rules) the root's own
counts. What of the others does not go with it is left out, and named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from matcher.identity import plain_name
from matcher.model import EventType
from routing.messages import Known, RuleFacts
from routing.serving.advertisements import Advertisements
from routing.serving.deployment import Deployed, Deployments
from routing.serving.ended import ended, has_ended, version_of
from routing.wire.schemas import flat_schema
from rules.checking.dependencies import arrange
from rules.errors import Problem, RuleErrors
from rules.language import load
from rules.pattern import Rule
from rules.syntax.words import scan

Homes = Mapping[str, Iterable[str]]
"""The types that each broker's sources publish, or have published."""


def knowledge_of(
    advertisements: Advertisements,
    deployments: Deployments,
    homes: Homes | None = None,
    given_up: Iterable[str] = (),
) -> Known:
    """What there is to know at the root."""
    schemas = advertisements.schemas
    rules = sorted(deployments.rules, key=lambda one: one.serial)
    return Known(
        tuple(schemas[name] for name in sorted(schemas)),
        tuple(RuleFacts(one.rule.name, one.rule.text, one.since, one.version) for one in rules),
        tuple(sorted(deployments.ended.items())),
        tuple((name, tuple(sorted(types))) for name, types in sorted((homes or {}).items())),
        tuple(sorted(given_up)),
    )


def rules_of(known: Known) -> tuple[Deployed, ...]:
    """The rules that the root evaluates, in their order; RuleErrors when they are none."""
    return _rules(known.types, known.rules)


@lru_cache(maxsize=8)
def _rules(types: tuple[EventType, ...], rules: tuple[RuleFacts, ...]) -> tuple[Deployed, ...]:
    # Remembered, since in a simulation every broker hears the same.
    schemas = {schema.name: schema for schema in types}
    found = []
    for serial, facts in enumerate(rules, start=1):
        known = (schemas[word] for word in _words(facts.text) if word in schemas)
        loaded = _loaded(facts.name, facts.text, tuple(known))
        if len(loaded) != 1:
            raise RuleErrors([Problem(f"expected one rule, {facts.name}, found {len(loaded)}")])
        found.append(Deployed(loaded[0], facts.since, facts.version, serial))
    arrange([one.rule for one in found])  # a cycle is refused here, and nowhere later
    return tuple(found)


@lru_cache(maxsize=4_096)
def _loaded(name: str, text: str, known: tuple[EventType, ...]) -> tuple[Rule, ...]:
    """The rules of a text. Types come and go, but mostly not those that it speaks of."""
    schemas = {schema.name: schema for schema in known}
    rules = load(text, file=name, known=schemas).rules
    if has_ended(name):
        return tuple(ended(rule, name) for rule in rules)
    return tuple(replace(rule, name=name) for rule in rules)


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    """The names in a text, those of the types that it speaks of among them."""
    names = (token.value for token in scan(text)[0] if token.type == "NAME")
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=64)
def digest_of(known: Known) -> str:
    """A digest of what is known, homes apart: those are told anew in every pause."""
    types = [flat_schema(schema) for schema in known.types]
    plain = msgspec.msgpack.encode([types, known.rules, known.ended, known.given_up])
    return hashlib.sha256(plain).hexdigest()


def distinct(known: Iterable[Known]) -> list[Known]:
    """Values of what is known, each once."""
    return list(dict.fromkeys(known))


@dataclass(frozen=True, slots=True)
class Merged:
    """What is known together, and the names of the types and rules that were left out (Law 2)."""

    known: Known
    left_out: tuple[str, ...]


def merged(own: Known, others: Iterable[Known]) -> Merged:
    """What the root and others know together."""
    left_out: list[str] = []
    for other in others:
        own, lost = _merged(own, other)
        left_out += lost
    return Merged(own, tuple(dict.fromkeys(left_out)))


def _merged(own: Known, other: Known) -> tuple[Known, list[str]]:
    types = {schema.name: schema for schema in own.types}
    lost = [one.name for one in other.types if types.get(one.name, one) != one]
    types.update({one.name: one for one in other.types if one.name not in types})
    ended = dict(own.ended)
    for name, version in other.ended:
        ended[name] = max(version, ended.get(name, version))
    rules = {facts.name: facts for facts in own.rules if not _is_let_go(facts, other)}
    mentions = {one.rule.name: {schema.name for schema in one.mentions} for one in rules_of(other)}
    for facts in other.rules:
        present = rules.get(facts.name)
        if present is not None and present.version >= facts.version:
            if present != facts:
                lost.append(facts.name)
        elif _is_let_go(facts, own):
            continue
        elif mentions[facts.name].isdisjoint(lost):
            rules[facts.name] = facts
        else:
            lost.append(facts.name)
    kept = {name: facts for name, facts in rules.items() if ended.get(name, -1) < facts.version}
    homes = dict(other.homes) | dict(own.homes)
    known = Known(
        tuple(types[name] for name in sorted(types)),
        tuple(kept.values()),
        tuple(sorted((name, one) for name, one in ended.items() if name not in kept)),
        tuple(sorted(homes.items())),
        tuple(sorted({*own.given_up, *other.given_up})),
    )
    try:
        arrange([one.rule for one in rules_of(known)])
    except RuleErrors:  # together they have a cycle of terminators
        return own, [*lost, *(facts.name for facts in other.rules)]
    return known, lost


def _is_let_go(facts: RuleFacts, by: Known) -> bool:
    """Whether a rule has ended that somebody knows to have ended and has not among the rules."""
    if not has_ended(facts.name):
        return False
    name, version = plain_name(facts.name), version_of(facts.name)
    later = any(one.name == name and one.version > version for one in by.rules)
    is_known = later or dict(by.ended).get(name, -1) >= version
    return is_known and all(one.name != facts.name for one in by.rules)
