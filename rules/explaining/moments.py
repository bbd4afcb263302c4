"""Values that are known to be instants, so that people are shown instants for them (tesla.md X3).

Example: with ``where since = First(run.time)`` the attribute ``since`` is an int, 1714557600000000
say, and an instant, 2024-05-01T10:00:00Z.
"""

from __future__ import annotations

from collections.abc import Mapping

from rules.pattern import RuleSet
from rules.terms import (
    TIME,
    Aggregate,
    Arithmetic,
    AttributeOf,
    Called,
    Choice,
    Expression,
    Function,
    Literal,
    NumberFunction,
    Operator,
)

_CHOOSING = frozenset({Function.MIN, Function.MAX, Function.FIRST})
_CHOSEN = frozenset({NumberFunction.LEAST, NumberFunction.GREATEST})


def is_instant(expression: Expression) -> bool:
    """Whether a value is known to be an instant."""
    match expression:
        case AttributeOf():
            return expression.attribute == TIME
        case Literal():
            return bool(expression.written)
        case Aggregate(function, _, _, value) if value is not None:
            return function in _CHOOSING and is_instant(value)
        case Called(NumberFunction.DATE):
            return True
        case Called():
            return expression.function in _CHOSEN and all(map(is_instant, expression.operands))
        case Arithmetic(Operator.ADD, left, right):
            return is_instant(left) != is_instant(right)
        case Arithmetic(Operator.SUBTRACT, left, right):
            return is_instant(left) and not is_instant(right)
        case Choice():
            return is_instant(expression.value)
        case _:
            return False


def instants_of(rules: RuleSet) -> Mapping[str, frozenset[str]]:
    """By the name of each defined type, its attributes that are instants by all of its rules."""
    found: dict[str, frozenset[str]] = {}
    for rule in rules.rules:
        for way in rule.alternatives or (rule,):
            pairs = zip(way.defines.declared, way.values, strict=False)
            own = frozenset(attribute.name for attribute, value in pairs if is_instant(value))
            name = way.defines.name
            found[name] = found.get(name, own) & own
    return found
