"""What the root knows, as a message and back: event types, and rules with their places (E4)."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from matcher.model import EventType
from routing.advertisements import Advertisements
from routing.deployment import Deployed, Deployments
from routing.messages import Known, RuleFacts
from rules.language import load


def knowledge_of(advertisements: Advertisements, deployments: Deployments) -> Known:
    """What there is to know at the root."""
    schemas = advertisements.schemas
    rules = sorted(deployments.rules, key=lambda one: one.serial)
    return Known(
        tuple(schemas[name] for name in sorted(schemas)),
        tuple(RuleFacts(one.rule.name, one.rule.text, one.since, one.version) for one in rules),
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
        for rule in load(facts.text, file=facts.name, known=schemas).rules:
            named = replace(rule, name=facts.name)
            found.append(Deployed(named, facts.since, facts.version, serial))
    return tuple(found)
