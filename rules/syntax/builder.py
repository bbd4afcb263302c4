"""From what the parser recognises to the syntax tree: one method for each rule of the grammar.

The methods are called bottom-up with what their right-hand sides gave: tokens, as
``rules/syntax/tokens.py`` made them, and nodes. Nothing is looked up or judged here.
"""

# ruff: noqa: D102 - the rule of the grammar that bears its name is what documents a method

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matcher.model import Kind
from rules.pattern import Policy
from rules.syntax import ast
from rules.syntax.words import Token
from rules.terms import Comparison, Function, Operator

FUNCTIONS: Mapping[str, Function] = {function.value.lower(): function for function in Function}
COMPARISONS: Mapping[str, Comparison] = {operator.value: operator for operator in Comparison}
OPERATORS: Mapping[str, Operator] = {operator.value: operator for operator in Operator}


class Builder:
    """Makes the nodes; keeps nothing."""

    # --- statements --------------------------------------------------------------------------

    def schema(self, parts: Sequence[Any]) -> ast.Schema:
        event, name, attributes, end = parts
        return ast.Schema(_name(name), attributes, event.span.to(end.span))

    def rule(self, parts: Sequence[Any]) -> ast.Rule:
        rule, given, define, name, attributes, _, terminator, clauses, where, consuming = parts
        last = (terminator, *clauses, *where, *consuming)[-1]
        return ast.Rule(
            None if given is None else _name(given),
            _name(name),
            attributes,
            terminator,
            clauses,
            where,
            consuming,
            (rule or define).span.to(last.span),
        )

    def declared(self, parts: Sequence[Any]) -> ast.Declared:
        name, kind = parts
        if kind is None:
            return ast.Declared(_name(name), None, span=name.span)
        which, is_optional = kind.value
        return ast.Declared(_name(name), which, is_optional, name.span.to(kind.span))

    def assignment(self, parts: Sequence[Any]) -> ast.Assignment:
        name, _, value = parts
        return ast.Assignment(_name(name), value, name.span.to(value.span))

    def attributes(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    schema_attributes = clauses = where = consuming = conditions = attributes

    # --- events, clauses, windows ------------------------------------------------------------

    def event(self, parts: Sequence[Any]) -> ast.Event:
        name, conditions, end, alias = parts
        return ast.Event(_name(name), conditions, alias, name.span.to((alias or end).span))

    def plain(self, parts: Sequence[Any]) -> ast.Event:
        name, conditions, end = parts
        return ast.Event(_name(name), conditions, None, name.span.to(end.span))

    def either(self, parts: Sequence[Any]) -> ast.Either:
        *events, alias = parts
        return ast.Either(tuple(events), alias, events[0].span.to((alias or events[-1]).span))

    def together(self, parts: Sequence[Any]) -> ast.Together:
        word, *events, _, duration = parts
        return ast.Together(tuple(events), duration.value, word.span.to(duration.span))

    def subscription(self, parts: Sequence[Any]) -> ast.Event:
        name, conditions, end = parts
        return ast.Event(_name(name), conditions or (), None, name.span.to((end or name).span))

    def each(self, parts: Sequence[Any]) -> ast.Selected:
        policy, times, event, window = parts
        span = policy.span.to(window.span)
        return ast.Selected(Policy.EACH, 0, event, window, _times(times), span)

    def single(self, parts: Sequence[Any]) -> ast.Selected:
        rank, _, policy, times, event, window = parts
        return ast.Selected(
            Policy(policy.type.lower()),
            1 if rank is None else rank.value,
            event,
            window,
            _times(times),
            (rank or policy).span.to(window.span),
        )

    def negated(self, parts: Sequence[Any]) -> ast.Negated:
        word, event, window = parts
        return ast.Negated(event, window, word.span.to(window.span))

    def timed(self, parts: Sequence[Any]) -> ast.Timed:
        name, window = parts
        return ast.Timed(name, window, name.span.to(window.span))

    def constraint(self, parts: Sequence[Any]) -> ast.Constraint:
        return ast.Constraint(parts[0], parts[0].span)

    def within(self, parts: Sequence[Any]) -> ast.Within:
        word, duration, anchor = parts
        return ast.Within(duration.value, anchor, word.span.to(anchor.span))

    def between(self, parts: Sequence[Any]) -> ast.Between:
        word, first, second = parts
        return ast.Between(first, second, word.span.to(second.span))

    def name(self, parts: Sequence[Any]) -> ast.Name:
        return _name(parts[0])

    # --- expressions -------------------------------------------------------------------------

    def lasting(self, parts: Sequence[Any]) -> ast.While:
        word, condition = parts
        return ast.While(condition, word.span.to(condition.span))

    def disjunction(self, parts: Sequence[Any]) -> ast.Or:
        operands: list[ast.Expression] = []
        for part in parts:
            operands.extend(part.operands if isinstance(part, ast.Or) else (part,))
        return ast.Or(tuple(operands), parts[0].span.to(parts[-1].span))

    def conjunction(self, parts: Sequence[Any]) -> ast.And:
        operands: list[ast.Expression] = []
        for part in parts:
            operands.extend(part.operands if isinstance(part, ast.And) else (part,))
        return ast.And(tuple(operands), parts[0].span.to(parts[-1].span))

    def negation(self, parts: Sequence[Any]) -> ast.Not:
        word, operand = parts
        return ast.Not(operand, word.span.to(operand.span))

    def comparison(self, parts: Sequence[Any]) -> ast.Compared:
        operators = tuple(COMPARISONS[token.value.lower()] for token in parts[1::2])
        return ast.Compared(tuple(parts[::2]), operators, parts[0].span.to(parts[-1].span))

    def is_null(self, parts: Sequence[Any]) -> ast.IsNull:
        operand, *_, word = parts
        return ast.IsNull(operand, operand.span.to(word.span))

    def is_not_null(self, parts: Sequence[Any]) -> ast.Not:
        found = self.is_null(parts)
        return ast.Not(found, found.span)

    def membership(self, parts: Sequence[Any]) -> ast.Expression:
        operand, negation, _, *options, end = parts
        span = operand.span.to(end.span)
        found = ast.Membership(operand, tuple(options), span)
        return found if negation is None else ast.Not(found, span)

    def matching(self, parts: Sequence[Any]) -> ast.Expression:
        operand, negation, _, pattern = parts
        span = operand.span.to(pattern.span)
        found = ast.Matching(operand, self.string([pattern]), span)
        return found if negation is None else ast.Not(found, span)

    def called(self, parts: Sequence[Any]) -> ast.Called:
        word, *operands, end = parts
        return ast.Called(word.text.lower(), tuple(operands), word.span.to(end.span))

    def arithmetic(self, parts: Sequence[Any]) -> ast.Arithmetic:
        left, operator, right = parts
        return ast.Arithmetic(OPERATORS[operator.text], left, right, left.span.to(right.span))

    def negative(self, parts: Sequence[Any]) -> ast.Literal | ast.Negative:
        minus, operand = parts
        span = minus.span.to(operand.span)
        if (
            isinstance(operand, ast.Literal)
            and not isinstance(operand.value, bool | str)
            and math.copysign(1, operand.value) > 0
        ):
            return ast.Literal(-operand.value, operand.kind, span)
        return ast.Negative(operand, span)

    def number(self, parts: Sequence[Any]) -> ast.Literal:
        token = parts[0]
        kind = Kind.INT if isinstance(token.value, int) else Kind.FLOAT
        return ast.Literal(token.value, kind, token.span)

    def duration(self, parts: Sequence[Any]) -> ast.Duration:
        return ast.Duration(parts[0].value, parts[0].span)

    def instant(self, parts: Sequence[Any]) -> ast.Instant:
        return ast.Instant(parts[0].value, parts[0].text, parts[0].span)

    def string(self, parts: Sequence[Any]) -> ast.Literal:
        return ast.Literal(parts[0].value, Kind.STRING, parts[0].span)

    def truth(self, parts: Sequence[Any]) -> ast.Literal:
        return ast.Literal(parts[0].type == "TRUE", Kind.BOOL, parts[0].span)

    def parameter(self, parts: Sequence[Any]) -> ast.Parameter:
        return ast.Parameter(parts[0].value, parts[0].span)

    def bare(self, parts: Sequence[Any]) -> ast.Attribute:
        return ast.Attribute(None, parts[0], parts[0].span)

    def qualified(self, parts: Sequence[Any]) -> ast.Attribute:
        event, name = parts
        return ast.Attribute(event, name, event.span.to(name.span))

    def aggregate_closed(self, parts: Sequence[Any]) -> ast.Aggregate:
        function, argument, window, end = parts
        return _aggregate(function, argument, window, end)

    def aggregate_open(self, parts: Sequence[Any]) -> ast.Aggregate:
        function, argument, _, window = parts
        return _aggregate(function, argument, window, window)

    def aggregate_of_run(self, parts: Sequence[Any]) -> ast.Aggregate:
        function, argument, end = parts
        return _aggregate(function, argument, None, end)

    def of_event(self, parts: Sequence[Any]) -> ast.OfEvent:
        event, name = parts
        return ast.OfEvent(event, name, event.span.to(name.span))

    def parenthesised(self, parts: Sequence[Any]) -> ast.Expression:
        expression: ast.Expression = parts[0]
        return expression


def _name(token: Token) -> ast.Name:
    return ast.Name(token.value, token.span)


def _times(token: Token | None) -> ast.Times | None:
    if token is None:
        return None
    least, most = token.value
    return ast.Times(least, most, token.span)


def _aggregate(
    function: Token, argument: ast.Event | ast.Expression, window: ast.Window | None, end: Any
) -> ast.Aggregate:
    which = FUNCTIONS[function.text.lower()]
    return ast.Aggregate(which, argument, window, function.span.to(end.span))
