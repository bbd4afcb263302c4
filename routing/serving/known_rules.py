"""Rules as brokers tell them to one another, and keep them: by their texts.

What a text means follows from it and the types that it speaks of, so a rule is the same wherever
it is known: ``fire@1`` of alice at b2 when b1, where she deployed it, is gone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from matcher.model import EventType
from routing.messages import RuleFacts
from routing.serving.deployment import Deployed
from rules.checking.dependencies import arrange
from rules.errors import Problem, RuleErrors
from rules.language import load
from rules.pattern import Rule
from rules.syntax.words import scan


def facts_of(one: Deployed) -> RuleFacts:
    """A rule as it is told."""
    return RuleFacts(one.name, one.rule.text, one.since, one.version, one.until, one.owner)


@lru_cache(maxsize=8)
def known_rules(types: tuple[EventType, ...], rules: tuple[RuleFacts, ...]) -> tuple[Deployed, ...]:
    """The rules of these facts, in their order; RuleErrors when they are none."""
    # Remembered, since in a simulation every broker hears the same.
    schemas = {schema.name: schema for schema in types}
    found = []
    for serial, facts in enumerate(rules, start=1):
        mentioned = tuple([schemas[word] for word in _words(facts.text) if word in schemas])
        found.append(_deployed(facts, serial, mentioned))
    arrange([one.rule for one in found])  # a cycle is refused here, and nowhere later
    return tuple(found)


@lru_cache(maxsize=4_096)
def _deployed(facts: RuleFacts, serial: int, types: tuple[EventType, ...]) -> Deployed:
    """The rule of these facts. Others come and go, and it stays the same object."""
    loaded = _loaded(facts.id, facts.text, types)
    if len(loaded) != 1:
        raise RuleErrors([Problem(f"expected one rule, {facts.id}, found {len(loaded)}")])
    return Deployed(loaded[0], facts.since, facts.version, serial, facts.until, facts.owner)


@lru_cache(maxsize=4_096)
def _loaded(name: str, text: str, types: tuple[EventType, ...]) -> tuple[Rule, ...]:
    """The rules of a text. Types come and go, but mostly not those that it speaks of."""
    schemas = {schema.name: schema for schema in types}
    rules = load(text, file=name, known=schemas).rules
    return tuple(replace(rule, name=name) for rule in rules)


@lru_cache(maxsize=4_096)
def _words(text: str) -> tuple[str, ...]:
    """The names in a text, those of the types that it speaks of among them."""
    names = (token.value for token in scan(text)[0] if token.type == "NAME")
    return tuple(dict.fromkeys(names))
