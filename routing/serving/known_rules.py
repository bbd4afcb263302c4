"""Rules as brokers tell them to one another, and keep them: by their texts.

What a text means follows from it and the types that it speaks of, so a rule is the same wherever
it is known: ``fire@1`` of alice at b2 when b1, where she deployed it, is gone.

A text is loaded once in a process for as long as somebody there has the rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias
from weakref import WeakValueDictionary

from matcher.model import EventType
from matcher.spelling import PLAIN
from routing.deployment import Deployed
from routing.messages import RuleFacts
from routing.runs import common_start
from rules.checking.dependencies import arrange
from rules.errors import Problem, RuleErrors
from rules.language import load
from rules.pattern import TIMER, Rule
from rules.syntax.words import scan

_WORD = re.compile(PLAIN)
_rules: WeakValueDictionary[tuple[str, str], Rule] = WeakValueDictionary()
"""By id and text, as they are by the types that were known last."""
_Known: TypeAlias = tuple[frozenset[EventType], tuple[RuleFacts, ...], tuple[Deployed, ...]]
_last: list[_Known] = [(frozenset(), (), ())]
"""The types and rules that were asked for last: while others come and go, most stay the same."""


def remember(deployed: Iterable[Deployed]) -> None:
    """Take over rules that were loaded otherwise."""
    _rules.update(((one.rule.name, one.rule.text), one.rule) for one in deployed)


def known_rules(types: tuple[EventType, ...], rules: tuple[RuleFacts, ...]) -> tuple[Deployed, ...]:
    """The rules of these facts, in their order; RuleErrors when they are none."""
    schemas = {schema.name: schema for schema in types}
    known, olds, before = _last[0]
    changed = {schema.name for schema in frozenset(types) ^ known}
    wirings = {one.rule.wiring for one in before} if changed else ()
    if not all(changed.isdisjoint((one.defined, *one.used)) for one in wirings):
        before = olds = ()
    same = common_start(olds, rules)
    found, others = [*before[:same]], dict(zip(olds[same:], before[same:], strict=False))
    serial = found[-1].serial if found else 0
    for facts in rules[same:]:
        one = others.get(facts)
        if one is None or one.serial <= serial:
            rule = _rule(facts, schemas)
            one = Deployed(rule, facts.since, facts.version, serial + 1, facts.until, facts.owner)
        serial = one.serial
        found.append(one)
    arrange([one.rule for one in found])  # a cycle is refused here, and nowhere later
    _last[0] = frozenset(types), rules, tuple(found)
    return tuple(found)


def load_ahead(types: Iterable[EventType], rules: Iterable[RuleFacts]) -> Iterator[Rule]:
    """Give those rules of these facts that have yet to be loaded, one after another; who keeps them
    has ``known_rules`` find them loaded. RuleErrors for what is none.
    """
    schemas = {schema.name: schema for schema in types}
    for facts in rules:
        rule = _rules.get((facts.id, facts.text))
        if rule is None or not _speaks_of(rule, schemas):
            yield _rule(facts, schemas)


def _rule(facts: RuleFacts, schemas: Mapping[str, EventType]) -> Rule:
    """The rule of a text. Types come and go, but mostly not those that it speaks of."""
    rule = _rules.get((facts.id, facts.text))
    if rule is None or not _speaks_of(rule, schemas):
        rule = _rules[facts.id, facts.text] = _loaded(facts, schemas)
    return rule


def _speaks_of(rule: Rule, schemas: Mapping[str, EventType]) -> bool:
    """Whether the types of a rule are these."""
    types = (rule.defines, *rule.used_types)
    return all(schemas.get(one.name) == one for one in types if one != TIMER)


def _loaded(facts: RuleFacts, schemas: Mapping[str, EventType]) -> Rule:
    name, text = facts.id, facts.text
    known = {word: schemas[word] for word in _words(text) if word in schemas}
    loaded = load(text, file=name, known=known).rules
    if len(loaded) != 1:
        raise RuleErrors([Problem(f"expected one rule, {name}, found {len(loaded)}")])
    return loaded[0].named(name, facts.owner)


def _words(text: str) -> Collection[str]:
    """Words of a text, the names in it among them."""
    if "`" in text:
        return {token.value for token in scan(text)[0] if token.type == "NAME"}
    return set(_WORD.findall(text))
