"""Questions to the rights of a user, asked where its requests are handled.

What is not allowed is refused (``not-allowed``) before anything is changed, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np

from matcher.model import Bools, EventBatch, EventType
from routing.errors import Refusal
from routing.messages import Act, Code, ReadLog, Rights
from rules.errors import RuleErrors
from rules.pattern import TIMER, Rule, RuleSet, Selected, uses_of
from rules.subscription import Subscription, parse_subscription
from rules.syntax import ast
from rules.syntax.parser import parse_filter
from rules.syntax.printer import print_event
from rules.terms import CANDIDATE, TERMINATOR, AttributeOf, Expression, rewritten

EVERY_TYPE = "*"
"""The filter of a subscription to all types."""


def check_right(rights: Rights, act: Act, *names: str) -> None:
    """Raise Refusal unless an act is allowed on all that is named."""
    for name in names:
        if not rights.may(act, name):
            raise Refusal(Code.NOT_ALLOWED, rights.why_not(act, name))


def check_any(rights: Rights, *acts: Act) -> None:
    """Raise Refusal unless any of these acts is allowed on something: so much is known of a text
    that nobody has read.
    """
    if not rights.may_any(*acts):
        raise Refusal(Code.NOT_ALLOWED, rights.why_not(acts[0], ""))


def check_publishing(rights: Rights, types: Iterable[EventType]) -> None:
    """Raise Refusal unless a user may publish events of these types, or some of them."""
    for schema in types:
        check_right(rights, Act.PUBLISH, schema.name)
        filters = rights.filters(schema.name, Act.PUBLISH)
        if filters and not checked_filters(filters, schema):
            either, lines = " or ".join(filters), rights.lines(schema.name, Act.PUBLISH)
            reason = f"user {rights.user!r} may publish {either} alone ({lines}), not {schema}"
            raise Refusal(Code.NOT_ALLOWED, reason)


@lru_cache(maxsize=1_024)
def checked_filters(filters: tuple[str, ...], schema: EventType) -> tuple[Subscription, ...]:
    """Filters of a type, checked: those for which it has what they ask for."""
    return tuple(filter(None, (_fitted(text, schema) for text in filters)))


def allowed(rights: Rights, act: Act, batch: EventBatch) -> Bools:
    """bool[n]: the events of a batch that a user may publish, or read, by conditions of its
    rights.
    """
    filters = rights.filters(batch.type.name, act)
    if filters is None:
        return np.ones(len(batch), np.bool_)
    mask = np.zeros(len(batch), np.bool_)
    for one in checked_filters(filters, batch.type):
        mask |= one.mask(batch)
    return mask


def _fitted(text: str, schema: EventType) -> Subscription | None:
    try:
        return parse_subscription(text, {schema.name: schema})
    except RuleErrors:
        return None


def check_log(rights: Rights, request: ReadLog) -> None:
    """Raise Refusal unless a user may read all events of the types that it asks a log for."""
    if rights.grants is None:
        return
    if not request.types:
        reason = f"user {rights.user!r} has to name the types that it wants to read of a log"
        raise Refusal(Code.NOT_ALLOWED, reason)
    check_right(rights, Act.SUBSCRIBE, *request.types)
    for name in request.types:
        if rights.filters(name) is not None:
            reason = f"user {rights.user!r} may read some {name} alone ({rights.lines(name)})"
            raise Refusal(Code.NOT_ALLOWED, f"{reason}, and so nothing of a log")


def narrowed(rights: Rights, text: str) -> str:
    """The filter of what a user gets who subscribes to ``text``; Refusal for nothing.

    Of all types, ``*``, each is to be asked for by itself. A filter in the rights is conjoined to
    it; of several filters one is to hold. Who may read ``Trade(desk = "fx")`` and asks for
    ``Trade(price > 9)`` gets what ``Trade(price > 9 and desk = "fx")`` matches.
    """
    if rights.grants is None:
        return text
    if text.strip() == EVERY_TYPE:
        if not any(one.act is Act.SUBSCRIBE for one in rights.grants):
            raise Refusal(Code.NOT_ALLOWED, rights.why_not(Act.SUBSCRIBE, EVERY_TYPE))
        return text
    try:
        event = parse_filter(text)
        filters = rights.filters(event.type.text)
        if filters is None:
            return text
        check_right(rights, Act.SUBSCRIBE, event.type.text)
        wanted = [parse_filter(one).conditions for one in filters]
    except RuleErrors as errors:
        raise Refusal(Code.BAD_FILTER, str(errors)) from None
    added = wanted[0] if len(wanted) == 1 else (_any_of(wanted),)
    more = tuple(one for one in added if one not in event.conditions)
    return print_event(replace(event, conditions=(*event.conditions, *more)))


def check_rules(rights: Rights, rules: RuleSet, replaced: Collection[str]) -> None:
    """Raise Refusal unless a user may deploy rules, of which some replace others of that name."""
    if rights.grants is None:
        return
    for rule in rules.rules:
        check_right(rights, Act.REPLACE if rule.name in replaced else Act.DEPLOY, rule.name)
        check_owner(rights, rule)


def check_text(
    rights: Rights, file: ast.File, replaced: Collection[str], known: Collection[str]
) -> None:
    """Raise Refusal unless a user may deploy a text that cannot be checked, by the names in it: so
    what is wrong with it tells nothing of types that are not for the user to see.
    """
    if rights.grants is None:
        return
    check_declared(rights, file, known)
    for rule in file.statements:
        if isinstance(rule, ast.Schema):
            continue
        if rule.name is not None:
            act = Act.REPLACE if rule.name.text in replaced else Act.DEPLOY
            check_right(rights, act, rule.name.text)
        check_right(rights, Act.DEFINE, rule.type.text)
        for name in _read_by(rule):
            check_right(rights, Act.SUBSCRIBE, name)


def check_declared(rights: Rights, file: ast.File, known: Collection[str]) -> None:
    """Raise Refusal unless a user may know what each type has that a text declares: else it would
    tell whether a type is known otherwise. Of a type that is not ``known`` yet the user has to be
    one who may say what it has: else its publisher would be refused.
    """
    for name in (one.type.text for one in file.statements if isinstance(one, ast.Schema)):
        if any(rights.may(act, name) for act in (Act.PUBLISH, Act.DEFINE)):
            continue
        check_right(rights, Act.SUBSCRIBE, name)
        if name not in known:
            reason = f"user {rights.user!r} may not say what {name} has, which is not known yet"
            raise Refusal(Code.NOT_ALLOWED, f"{reason}: that needs `publish` or `define` for it")


def _read_by(rule: ast.Rule) -> Iterator[str]:
    """The names of the types that a rule reads."""
    nodes: list[ast.Node] = [rule]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Event) and node.type.text != TIMER.name:
            yield node.type.text
        nodes.extend(ast.children(node))


def check_owner(rights: Rights, rule: Rule) -> None:
    """Raise Refusal unless a user may have a rule evaluated: read all that it uses, and define its
    type. Where the rights have a filter, each use of the type in the rule says the same: ``last
    Trade(desk = "fx" and price > 9) within 5 min from Alarm``. What the rule makes of it is told to
    whoever may read what it defines.
    """
    if rights.grants is None:
        return
    check_right(rights, Act.DEFINE, rule.defines.name)
    for schema in rule.used_types:
        filters = None if schema == TIMER else rights.filters(schema.name)
        if filters is not None:
            check_right(rights, Act.SUBSCRIBE, schema.name)
            _check_uses(rights, rule, schema, filters)


def _check_uses(rights: Rights, rule: Rule, schema: EventType, filters: Collection[str]) -> None:
    wanted = [frozenset(one.conditions) for one in checked_filters(tuple(filters), schema)]
    for said in _uses(rule, schema):
        if not any(one <= said for one in wanted):
            either = " or ".join(filters)
            raise Refusal(
                Code.NOT_ALLOWED,
                f"user {rights.user!r} may read {either} alone ({rights.lines(schema.name)}): "
                f"each {schema.name} of the rule has to say so",
            )


def _uses(rule: Rule, schema: EventType) -> Iterator[frozenset[Expression]]:
    """The conditions of each event of a type that a rule reads, as those of CANDIDATE."""
    for one in rule.alternatives or (rule,):
        if one.terminator == schema:
            yield _of_candidate(one.conditions, TERMINATOR)
        for use in uses_of(one):
            if use.type == schema:
                number = use.event if isinstance(use, Selected) else CANDIDATE
                yield _of_candidate(use.conditions, number)


def _of_candidate(conditions: Collection[Expression], number: int) -> frozenset[Expression]:
    def renumbered(node: Expression) -> Expression | None:
        if isinstance(node, AttributeOf) and node.event == number:
            return replace(node, event=CANDIDATE)
        return None

    return frozenset(rewritten(one, renumbered) for one in conditions)


def _any_of(wanted: Collection[tuple[ast.Expression, ...]]) -> ast.Expression:
    operands: list[ast.Expression] = []
    for conditions in wanted:
        match conditions:
            case (ast.Or() as either,):
                operands += either.operands
            case (single,):
                operands.append(single)
            case _:
                operands.append(ast.And(conditions))
    return ast.Or(tuple(operands))
