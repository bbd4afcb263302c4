"""Expressions over one event, as functions of its values: for batches too small for columns.

They give exactly what ``rules.planning.columnar`` gives for whole batches (S9, S10), whose least
cost is that of a hundred of these: a value that is not defined is None, and so is what is computed
from it; integers are Python's, checked to 64 bits; floats must be finite; an int and a float
compare by value, as Python compares them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from matcher.model import Kind
from rules.functions import function_of
from rules.planning.columnar import COMPARING
from rules.terms import (
    And,
    Arithmetic,
    AttributeOf,
    Called,
    Compare,
    Convert,
    Expression,
    Literal,
    Negative,
    Not,
    OfText,
    Operator,
    Or,
)
from rules.texts import result_of

Row: TypeAlias = Sequence[Any]
"""The values of an event's attributes, in the schema's order."""
Evaluate: TypeAlias = Callable[[Row], Any]
"""The value of an expression for a row; None where it is undefined."""


def is_satisfied(conditions: Iterable[Evaluate], row: Row) -> bool:
    """Whether each of the conditions is true for a row."""
    for evaluate in conditions:  # noqa: SIM110 (a generator costs more than a condition)
        if evaluate(row) is not True:
            return False
    return True


def evaluator(expression: Expression) -> Evaluate:
    """The expression as a function.

    Attributes of any event in it are read as attributes of the row. Raises ValueError for what
    speaks of more than one event.
    """
    compile_ = _COMPILERS.get(type(expression))
    if compile_ is None:
        raise ValueError(f"{type(expression).__name__} speaks of more than one event")
    return compile_(expression)


def _literal(node: Literal) -> Evaluate:
    value = node.value
    return lambda row: value


def _attribute(node: AttributeOf) -> Evaluate:
    return operator.itemgetter(node.attribute)


def _not(node: Not) -> Evaluate:
    return _of_one(operator.not_, node.operand)


def _convert(node: Convert) -> Evaluate:
    return _of_one(float, node.operand)


def _of_text(node: OfText) -> Evaluate:
    return _of_one(result_of(node.function), node.operand)


def _called(node: Called) -> Evaluate:
    function, evaluators = function_of(node), tuple(map(evaluator, node.operands))

    def evaluate(row: Row) -> Any:
        values = [one(row) for one in evaluators]
        return None if None in values else function(*values)

    return evaluate


def _negative(node: Negative) -> Evaluate:
    checked = _CHECKED[node.kind]
    return _of_one(lambda number: checked(-number), node.operand)


def _and(node: And) -> Evaluate:
    return _decided(node.operands, by=False)


def _or(node: Or) -> Evaluate:
    return _decided(node.operands, by=True)


def _compare(node: Compare) -> Evaluate:
    return _of_two(COMPARING[node.comparison], node.left, node.right)


def _arithmetic(node: Arithmetic) -> Evaluate:
    compute, checked = _OPERATORS[node.operator], _CHECKED[node.kind]
    number = float if node.kind is Kind.FLOAT else int

    def result(left: Any, right: Any) -> Any:
        try:
            return checked(compute(number(left), number(right)))
        except ZeroDivisionError:
            return None

    return _of_two(result, node.left, node.right)


def _of_one(function: Callable[[Any], Any], operand: Expression) -> Evaluate:
    only = evaluator(operand)

    def evaluate(row: Row) -> Any:
        value = only(row)
        return None if value is None else function(value)

    return evaluate


def _of_two(function: Callable[[Any, Any], Any], left: Expression, right: Expression) -> Evaluate:
    first = evaluator(left)
    if isinstance(right, Literal):  # as most filters have it
        constant = right.value

        def evaluate_with(row: Row) -> Any:
            one = first(row)
            return None if one is None else function(one, constant)

        return evaluate_with
    second = evaluator(right)

    def evaluate(row: Row) -> Any:
        one, other = first(row), second(row)
        return None if one is None or other is None else function(one, other)

    return evaluate


def _decided(operands: Sequence[Expression], *, by: bool) -> Evaluate:
    """``and`` and ``or``: one operand that is ``by`` decides, whatever the others are."""
    evaluators = tuple(map(evaluator, operands))

    def evaluate(row: Row) -> Any:
        known = True
        for one in evaluators:
            truth = one(row)
            if truth is by:
                return by
            known = known and truth is not None
        return not by if known else None

    return evaluate


def _fitting(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


_CHECKED: Mapping[Kind, Callable[[Any], Any]] = {Kind.INT: _fitting, Kind.FLOAT: _finite}

_OPERATORS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    Operator.ADD: operator.add,
    Operator.SUBTRACT: operator.sub,
    Operator.MULTIPLY: operator.mul,
    Operator.DIVIDE: operator.truediv,
    Operator.MODULO: operator.mod,  # the divisor's sign, as S10 asks
}

_COMPILERS: Mapping[type, Callable[[Any], Evaluate]] = {
    Literal: _literal,
    AttributeOf: _attribute,
    Not: _not,
    And: _and,
    Or: _or,
    Arithmetic: _arithmetic,
    Negative: _negative,
    Convert: _convert,
    OfText: _of_text,
    Called: _called,
    Compare: _compare,
}
