"""The canonical text of a syntax tree: parsing it gives the same tree again.

One clause is a line, one rule a paragraph. Operators are written in one spelling, operands
in parentheses only where the grammar needs them, durations in the largest unit that measures
them without a fraction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from matcher.model import OPTIONAL
from matcher.spelling import quoted, spelled
from rules.pattern import Policy
from rules.syntax import ast
from rules.syntax.tokens import CALLS, FUNCTIONS
from rules.terms import Operator

_UNITS = (
    (86_400_000_000, "day"),
    (3_600_000_000, "h"),
    (60_000_000, "min"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
)
# How tightly an expression holds together; an operand looser than its place needs parentheses.
_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _UNARY, _PRIMARY = range(8)
_ITEM = _NOT
_LEVELS: Mapping[Operator, int] = {
    Operator.ADD: _SUM,
    Operator.SUBTRACT: _SUM,
    Operator.MULTIPLY: _PRODUCT,
    Operator.DIVIDE: _PRODUCT,
    Operator.MODULO: _PRODUCT,
}


def print_file(file: ast.File) -> str:
    """A rules file in canonical form, without comments."""
    lines: list[str] = []
    for place, statement in enumerate(file.statements):
        if place and not are_schemas(file.statements[place - 1], statement):
            lines.append("")
        lines.append(print_statement(statement))
    return "".join(f"{line}\n" for line in lines)


def are_schemas(first: ast.Statement, second: ast.Statement) -> bool:
    """Whether two statements stand line by line; others are set apart."""
    return isinstance(first, ast.Schema) and isinstance(second, ast.Schema)


def print_statement(statement: ast.Statement) -> str:
    """A schema or a rule, without a line end after it."""
    if isinstance(statement, ast.Rule):
        return print_rule(statement)
    return f"event {_name(statement.type)}({_declared(statement.attributes)})"


def print_rule(rule: ast.Rule) -> str:
    """A rule, one clause a line."""
    name = "" if rule.name is None else f"rule {_name(rule.name)}:\n"
    lines = [
        f"{name}define {_name(rule.type)}({_declared(rule.attributes)})",
        " and\n     ".join((f"from {_pattern(rule.terminator)}", *map(print_clause, rule.clauses))),
    ]
    if rule.where:
        values = (f"{_name(item.name)} = {_item(item.value)}" for item in rule.where)
        lines.append(f"where {', '.join(values)}")
    if rule.consuming:
        lines.append(f"consuming {', '.join(_name(name) for name in rule.consuming)}")
    return "\n".join(lines)


def _pattern(pattern: ast.Event | ast.Either | ast.Together) -> str:
    if isinstance(pattern, ast.Together):
        return print_together(pattern)
    return print_event(pattern)


def print_together(together: ast.Together) -> str:
    """Events that come together, one a line."""
    events = ",\n         ".join(map(print_event, together.events))
    return f"all {events} within {print_duration(together.duration)}"


def print_event(event: ast.Event | ast.Either, *, is_negated: bool = False) -> str:
    """An event with its conditions, or several with "or" between them; ``not`` stands before it if
    it ``is_negated``.
    """
    alias = "" if event.alias is None else f" as {_name(event.alias)}"
    if isinstance(event, ast.Either):
        return f"{' or '.join(map(print_event, event.events))}{alias}"
    # A function would be read else: lower(...) in an aggregate, say, or not First(run.x > 1).
    functions = CALLS | FUNCTIONS if is_negated and event.conditions else CALLS
    type_ = quoted(event.type.text) if event.type.text.lower() in functions else None
    conditions = ", ".join(map(_item, event.conditions))
    return f"{type_ or _name(event.type)}({conditions}){alias}"


def print_clause(clause: ast.Clause) -> str:
    """A clause, without the ``and`` before it."""
    match clause:
        case ast.Selected():
            return f"{_select(clause)} {print_event(clause.event)} {print_window(clause.window)}"
        case ast.Negated():
            return f"not {print_event(clause.event, is_negated=True)} {print_window(clause.window)}"
        case ast.Timed():
            return f"{_name(clause.event)} {print_window(clause.window)}"
        case ast.Constraint():
            return _item(clause.item)


def print_window(window: ast.Window) -> str:
    """Either form of window."""
    if isinstance(window, ast.Between):
        return f"between {_name(window.first)} and {_name(window.second)}"
    return f"within {print_duration(window.duration)} from {_name(window.anchor)}"


def _name(name: ast.Name) -> str:
    return name.text if name.is_made_up else spelled(name.text)


def print_duration(microseconds: int) -> str:
    """A duration in the largest unit that leaves no fraction."""
    if microseconds == 0:
        return "0 s"
    size, unit = next(item for item in _UNITS if microseconds % item[0] == 0)
    count = microseconds // size
    return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}"


def print_expression(node: ast.Expression) -> str:
    """An expression as it stands in parentheses."""
    return _expression(node, _OR)


def _declared(attributes: tuple[ast.Declared, ...]) -> str:
    return ", ".join(
        _name(item.name)
        if item.kind is None
        else f"{_name(item.name)}: {item.kind.value}{OPTIONAL if item.optional else ''}"
        for item in attributes
    )


def _select(clause: ast.Selected) -> str:
    ranked = clause.policy is not Policy.EACH and clause.rank != 1
    said = f"{clause.rank}-{clause.policy.value}" if ranked else clause.policy.value
    return said if clause.times is None else f"{said} {print_times(clause.times)}"


def print_times(times: ast.Times) -> str:
    """How often an iteration repeats."""
    return f"{times.least}..{'' if times.most is None else times.most}"


def _item(node: ast.Expression) -> str:
    return _expression(node, _ITEM)


def _expression(node: ast.Expression, place: int) -> str:
    level, text = _PRINTERS[type(node)](node)
    return text if level >= place else f"({text})"


def _literal(node: ast.Literal) -> tuple[int, str]:
    value = node.value
    if isinstance(value, bool):
        return _PRIMARY, "true" if value else "false"
    if isinstance(value, str):
        return _PRIMARY, json.dumps(value, ensure_ascii=False)
    text = repr(value)
    return (_UNARY if text.startswith("-") else _PRIMARY), text


def _duration(node: ast.Duration) -> tuple[int, str]:
    return _PRIMARY, print_duration(node.microseconds)


def _parameter(node: ast.Parameter) -> tuple[int, str]:
    return _PRIMARY, f"${node.name}"


def _attribute(node: ast.Attribute) -> tuple[int, str]:
    event = "" if node.event is None else f"{_name(node.event)}."
    return _PRIMARY, f"{event}{_name(node.name)}"


def _arithmetic(node: ast.Arithmetic) -> tuple[int, str]:
    level = _LEVELS[node.operator]
    left, right = _expression(node.left, level), _expression(node.right, level + 1)
    return level, f"{left} {node.operator.value} {right}"


def _negative(node: ast.Negative) -> tuple[int, str]:
    return _UNARY, f"-{_expression(node.operand, _UNARY)}"


def _compared(node: ast.Compared) -> tuple[int, str]:
    first, *others = (_expression(operand, _SUM) for operand in node.operands)
    links = zip(node.operators, others, strict=True)
    return _COMPARED, first + "".join(f" {operator.value} {other}" for operator, other in links)


def _is_null(node: ast.IsNull) -> tuple[int, str]:
    return _COMPARED, f"{_expression(node.operand, _SUM)} is null"


def _not(node: ast.Not) -> tuple[int, str]:
    if isinstance(node.operand, ast.IsNull):
        return _COMPARED, f"{_expression(node.operand.operand, _SUM)} is not null"
    return _NOT, f"not {_expression(node.operand, _NOT)}"


def _and(node: ast.And) -> tuple[int, str]:
    return _AND, " and ".join(_expression(operand, _AND + 1) for operand in node.operands)


def _or(node: ast.Or) -> tuple[int, str]:
    return _OR, " or ".join(_expression(operand, _OR + 1) for operand in node.operands)


def _membership(node: ast.Membership) -> tuple[int, str]:
    operand, *options = (_expression(one, _SUM) for one in (node.operand, *node.options))
    return _COMPARED, f"{operand} in ({', '.join(options)})"


def _matching(node: ast.Matching) -> tuple[int, str]:
    return _COMPARED, f"{_expression(node.operand, _SUM)} matches {_literal(node.pattern)[1]}"


def _instant(node: ast.Instant) -> tuple[int, str]:
    return _PRIMARY, node.text


def _called(node: ast.Called) -> tuple[int, str]:
    operands = ", ".join(_expression(operand, _SUM) for operand in node.operands)
    return _PRIMARY, f"{node.function}({operands})"


def _while(node: ast.While) -> tuple[int, str]:
    return _ITEM, f"while {_item(node.condition)}"


def _of_event(node: ast.OfEvent) -> tuple[int, str]:
    said, type_ = print_event(node.event), node.event.type.text
    if type_.lower() in FUNCTIONS:  # a function would be read behind an operator
        said = quoted(type_) + said.removeprefix(type_)
    return _PRIMARY, f"{said}.{_name(node.name)}"


def _aggregate(node: ast.Aggregate) -> tuple[int, str]:
    argument = node.argument
    said = print_event(argument) if isinstance(argument, ast.Event) else _expression(argument, _SUM)
    window = "" if node.window is None else f" {print_window(node.window)}"
    return _PRIMARY, f"{node.function.value}({said}{window})"


_PRINTERS: Mapping[type, Callable[[Any], tuple[int, str]]] = {
    ast.Literal: _literal,
    ast.Duration: _duration,
    ast.Parameter: _parameter,
    ast.Attribute: _attribute,
    ast.Arithmetic: _arithmetic,
    ast.Negative: _negative,
    ast.Compared: _compared,
    ast.IsNull: _is_null,
    ast.Not: _not,
    ast.And: _and,
    ast.Or: _or,
    ast.Membership: _membership,
    ast.Matching: _matching,
    ast.Instant: _instant,
    ast.Called: _called,
    ast.While: _while,
    ast.OfEvent: _of_event,
    ast.Aggregate: _aggregate,
}
