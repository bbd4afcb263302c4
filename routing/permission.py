"""Questions to the rights of a user, asked where its requests are handled.

Law 1: what is not allowed is refused (``not-allowed``) before anything is changed, with the reason.

Law 2: a filter in the rights is conjoined to what a user subscribes to; of several filters one is
to hold. Who may read ``Trade(desk = "fx")`` and asks for ``Trade(price > 9)`` gets what
``Trade(price > 9 and desk = "fx")`` matches.

Law 3: who has a rule evaluated must be allowed to read all that it uses, and to define its type.
Where the rights have a filter, each use of the type in the rule says the same: ``last Trade(desk =
"fx" and price > 9) within 5 min from Alarm``. What the rule makes of it is told to whoever may read
what it defines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from matcher.model import EventType
from routing.errors import Refusal
from routing.messages import Act, Code, Rights
from rules.errors import RuleErrors
from rules.pattern import TIMER, Rule, RuleSet, Selected, uses_of
from rules.subscription import parse_subscription
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


def narrowed(rights: Rights, text: str) -> str:
    """The filter of what a user gets who subscribes to ``text`` (Law 2); Refusal for nothing.

    Of all types, ``*``, each is to be asked for by itself.
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


def check_owner(rights: Rights, rule: Rule) -> None:
    """Raise Refusal unless a user may have a rule evaluated (Law 3)."""
    if rights.grants is None:
        return
    check_right(rights, Act.DEFINE, rule.defines.name)
    for schema in rule.used_types:
        filters = None if schema == TIMER else rights.filters(schema.name)
        if filters is not None:
            check_right(rights, Act.SUBSCRIBE, schema.name)
            _check_uses(rights, rule, schema, filters)


def _check_uses(rights: Rights, rule: Rule, schema: EventType, filters: Collection[str]) -> None:
    wanted = [found for one in filters if (found := _conditions(one, schema)) is not None]
    for said in _uses(rule, schema):
        if not any(one <= said for one in wanted):
            either = " or ".join(filters)
            raise Refusal(
                Code.NOT_ALLOWED,
                f"user {rights.user!r} may read {either} alone ({rights.lines(schema.name)}): "
                f"each {schema.name} of the rule has to say so",
            )


def _conditions(text: str, schema: EventType) -> frozenset[Expression] | None:
    """The conditions of a filter; None where the type has not what it asks for."""
    try:
        return frozenset(parse_subscription(text, {schema.name: schema}).conditions)
    except RuleErrors:
        return None


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
