"""What the root knows, as a message and back: event types, rules with their places (E4), homes.

Where texts are told on demand (config.RuleTexts), who has no use for a rule knows it in outline
(rules.outlining). What is said of a rule and what is known in outline say the same here.

Brokers that were out of each other's reach may have come to know different things; the root of the
tree that joins them puts them together (``merged``).

Law 1: of a rule's versions the last is in force, if any is, and a rule that is known to end ends,
once and for all. What is only in one of them counts, unless the other knows that version, or a
later one, and has dropped it.

Law 2: where two differ otherwise (a type with two schemas, a name for two rules) the root's own
counts. What of the others does not go with it is left out, and named.

Law 3: a rule that one of them has whole is known whole. The root cannot do with less: what it has
in outline alone, since nobody in reach has more, is *bereft*. All know that of the rule, so nobody
divides it, and whoever wants what it would find waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from matcher.model import EventType
from routing.messages import Known, RuleFacts
from routing.partition.derivation import reach_of
from routing.serving.advertisements import Advertisements
from routing.serving.deployment import Deployed, Deployments
from routing.wire.schemas import flat_schema
from rules.checking.dependencies import arrange
from rules.errors import Problem, RuleErrors
from rules.language import load
from rules.outlining import (
    bereft,
    digest_of_text,
    is_bereft,
    is_outline,
    names_of,
    outline_of,
    read_outline,
)
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
        tuple(
            RuleFacts(one.name, one.rule.text, one.since, one.version, one.until) for one in rules
        ),
        tuple(sorted(deployments.ended.items())),
        tuple((name, tuple(sorted(types))) for name, types in sorted((homes or {}).items())),
        tuple(sorted(given_up)),
    )


def rules_of(known: Known) -> tuple[Deployed, ...]:
    """The rules that there are, in their order; RuleErrors when they are none."""
    return _rules(known.types, known.rules)


@lru_cache(maxsize=8)
def _rules(types: tuple[EventType, ...], rules: tuple[RuleFacts, ...]) -> tuple[Deployed, ...]:
    # Remembered, since in a simulation every broker hears the same.
    schemas = {schema.name: schema for schema in types}
    found = []
    for serial, facts in enumerate(rules, start=1):
        known = (schemas[word] for word in _words(facts.text) if word in schemas)
        loaded = _loaded(facts.id, facts.text, tuple(known))
        if len(loaded) != 1:
            raise RuleErrors([Problem(f"expected one rule, {facts.id}, found {len(loaded)}")])
        found.append(Deployed(loaded[0], facts.since, facts.version, serial, facts.until))
    arrange([one.rule for one in found])  # a cycle is refused here, and nowhere later
    return tuple(found)


@lru_cache(maxsize=4_096)
def _loaded(name: str, text: str, known: tuple[EventType, ...]) -> tuple[Rule, ...]:
    """The rules of a text. Types come and go, but mostly not those that it speaks of."""
    schemas = {schema.name: schema for schema in known}
    if is_outline(text):
        rules: Sequence[Rule] = (read_outline(text, name, schemas),)
    else:
        rules = load(text, file=name, known=schemas).rules
    return tuple(replace(rule, name=name) for rule in rules)


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    """The names in a text, those of the types that it speaks of among them."""
    if is_outline(text):
        return names_of(text)
    names = (token.value for token in scan(text)[0] if token.type == "NAME")
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=64)
def digest_of(known: Known) -> str:
    """A digest of what is known, homes apart: those are told anew in every pause. What is known of
    a rule is the same whether its text is known whole or in outline.
    """
    types = [flat_schema(schema) for schema in known.types]
    rules = [_identity(facts) for facts in known.rules]
    plain = msgspec.msgpack.encode([types, rules, known.ended, known.given_up])
    return hashlib.sha256(plain).hexdigest()


def _identity(facts: RuleFacts) -> tuple[str, str, int | None, int, int | None]:
    return facts.name, digest_of_text(facts.text), facts.since, facts.version, facts.until


# --- texts and outlines (Law 3) ---


def in_outline(known: Known, but: Collection[str] = ()) -> Known:
    """The same with outlines of all rules but those of these ids."""
    if all(facts.id in but or is_outline(facts.text) for facts in known.rules):
        return known
    whole = {one.rule.name: one.rule for one in rules_of(known)}
    rules = tuple(
        facts
        if facts.id in but
        else msgspec.structs.replace(facts, text=_outline_of(whole[facts.id]))
        for facts in known.rules
    )
    return replace(known, rules=rules)


@lru_cache(maxsize=4_096)
def _outline_of(rule: Rule) -> str:
    return outline_of(rule, reach_of(rule))


def in_full(known: Known, others: Iterable[Known], *, for_root: bool = False) -> Known:
    """The same with the texts of those rules that one of the others has whole. It is for the root
    to say that a rule is bereft no more; so what others have is put together for it.
    """
    lacking = {
        digest_of_text(facts.text)
        for facts in lacking_of(known)
        if for_root or not is_bereft(facts.text)
    }
    if not lacking:
        return known
    found = {
        digest: facts.text
        for other in others
        for facts in other.rules
        if not is_outline(facts.text) and (digest := digest_of_text(facts.text)) in lacking
    }
    return _with_texts(known, found) if found else known


def bereft_of_texts(known: Known) -> Known:
    """The same, which says of every rule that it has in outline that nobody has more (Law 3)."""
    texts = [facts.text for facts in lacking_of(known)]
    return _with_texts(known, {digest_of_text(text): bereft(text) for text in texts})


def _with_texts(known: Known, texts: Mapping[str, str]) -> Known:
    """The same with other texts, by their digests."""
    if not texts:
        return known
    rules = (
        msgspec.structs.replace(facts, text=texts.get(digest_of_text(facts.text), facts.text))
        for facts in known.rules
    )
    return replace(known, rules=tuple(rules))


def lacking_of(known: Known) -> Sequence[RuleFacts]:
    """The rules that are known in outline alone."""
    return [facts for facts in known.rules if is_outline(facts.text)]


def divisible(rules: Iterable[Deployed]) -> tuple[Deployed, ...]:
    """Those of the rules of which somebody has the text (Law 3)."""
    return tuple(one for one in rules if not is_bereft(one.rule.text))


def of_rules(known: Known, names: Collection[str]) -> Known:
    """What is known of these rules, and of no others."""
    rules = tuple(facts for facts in known.rules if facts.id in names)
    return Known(known.types, rules, homes=known.homes)


def say_the_same(one: Known, other: Known) -> bool:
    """Whether two are the same but for texts that one of them has in outline."""
    if one is other:
        return True
    rest = (one.types, one.ended, one.homes, one.given_up)
    if rest != (other.types, other.ended, other.homes, other.given_up):
        return False
    return [*map(_identity, one.rules)] == [*map(_identity, other.rules)]


def gathered(known: Iterable[Known], more: Iterable[Known]) -> list[Known]:
    """What several know and what others say, each thing once, with all the texts that one has."""
    found = list(known)
    for one in more:
        place = next((at for at, had in enumerate(found) if say_the_same(had, one)), None)
        if place is None:
            found.append(one)
        else:
            found[place] = in_full(found[place], [one], for_root=True)
    return found


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
    other, unfit = _fitting(other, own, lost)
    lost += unfit
    rules = {facts.id: facts for facts in own.rules if not _is_dropped(facts, other)}
    for facts in other.rules:
        present = rules.get(facts.id, facts)
        if _is_dropped(facts, own):
            continue
        if _identity(msgspec.structs.replace(facts, until=present.until)) != _identity(present):
            lost.append(facts.name)
            continue
        whole = facts if is_bereft(present.text) or not is_outline(facts.text) else present
        until = facts.until if present.until is None else present.until
        rules[facts.id] = msgspec.structs.replace(whole, until=until)
    ended = _last_ended((*own.ended, *other.ended))
    last = _last_in_force(rules.values(), ended)
    kept = (
        one for one in rules.values() if one.until is not None or last.get(one.name) == one.version
    )
    homes = dict(other.homes) | dict(own.homes)
    known = Known(
        tuple(types[name] for name in sorted(types)),
        tuple(kept),
        tuple(sorted((name, one) for name, one in ended.items() if name not in last)),
        tuple(sorted(homes.items())),
        tuple(sorted({*own.given_up, *other.given_up})),
    )
    try:
        arrange([one.rule for one in rules_of(known)])
    except RuleErrors:  # together they have a cycle of terminators
        return own, [*lost, *(facts.name for facts in other.rules)]
    return known, lost


def _fitting(other: Known, own: Known, lost: Iterable[str]) -> tuple[Known, list[str]]:
    """What others know, but for rules of theirs that speak of types which are lost; and those."""
    here, mentions = (
        {facts.id for facts in own.rules},
        {one.rule.name: {schema.name for schema in one.mentions} for one in rules_of(other)},
    )
    fits = {
        facts.id for facts in other.rules if facts.id in here or mentions[facts.id].isdisjoint(lost)
    }
    unfit = [facts.name for facts in other.rules if facts.id not in fits]
    return replace(other, rules=tuple(one for one in other.rules if one.id in fits)), unfit


def _is_dropped(facts: RuleFacts, by: Known) -> bool:
    """Whether somebody knows that version of a rule, or a later one, and has it no more."""
    versions = [one.version for one in by.rules if one.name == facts.name]
    known = max([*versions, dict(by.ended).get(facts.name, -1)])
    return known >= facts.version and facts.version not in versions


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
