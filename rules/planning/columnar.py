"""Expressions over one event, evaluated for a whole batch at once (S9, S10).

Rule 1: a value is defined or not, and what is computed from an undefined one is undefined;
``and`` and ``or`` alone can do without (S9). So every result is a pair: the values, and where
they are defined (None: everywhere).

Rule 2: results are those of exact arithmetic. An integer that leaves 64 bits and a float that is
not finite are undefined; an int and a float compare by value, not by the float nearest to the
int.

Rule 3: what is computed on a string is computed once for each distinct value, or for each
distinct pair of values, never for each event.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from matcher.model import Bools, EventBatch, Int64s, Kind, StringColumn
from rules.functions import function_of
from rules.terms import (
    TIME,
    And,
    Arithmetic,
    AttributeOf,
    Called,
    Compare,
    Comparison,
    Convert,
    Expression,
    Literal,
    Negative,
    Not,
    OfText,
    Operator,
    Or,
)
from rules.texts import results_of

Floats: TypeAlias = npt.NDArray[np.float64]
_INT_MIN = -(2**63)
_EXACT = 2**53
"""Integers up to this magnitude are floats exactly."""


@dataclass(frozen=True, slots=True)
class Values:
    """n values of one kind, and where they are defined (Rule 1)."""

    values: Any  # an array of the kind's dtype, or a StringColumn
    defined: Bools | None = None

    @property
    def true(self) -> Bools:
        """Where a truth value is defined and true."""
        values: Bools = self.values
        return values if self.defined is None else values & self.defined


def satisfied(conditions: Sequence[Expression], batch: EventBatch) -> Bools:
    """bool[n]: which events of a batch satisfy every condition.

    Conditions speak of one event alone: attributes of any event in them are read as attributes
    of the batch's. A condition that is undefined for an event is not satisfied by it (S9).
    """
    result = np.ones(len(batch), np.bool_)
    for condition in conditions:
        result &= _evaluate(condition, batch).true
    return result


def _evaluate(expression: Expression, batch: EventBatch) -> Values:
    evaluate = _EVALUATORS.get(type(expression))
    if evaluate is None:
        raise ValueError(f"{type(expression).__name__} speaks of more than one event")
    with np.errstate(all="ignore"):  # what goes wrong is found in the results
        return evaluate(expression, batch)


# --- leaves and truth values -----------------------------------------------------------------


def _literal(node: Literal, batch: EventBatch) -> Values:
    if isinstance(node.value, str):
        return Values(StringColumn.constant(node.value, len(batch)))
    dtype = {Kind.INT: np.int64, Kind.FLOAT: np.float64, Kind.BOOL: np.bool_}[node.kind]
    return Values(np.full(len(batch), node.value, dtype))


def _attribute(node: AttributeOf, batch: EventBatch) -> Values:
    return Values(batch.time if node.attribute == TIME else batch.columns[node.attribute])


def _not(node: Not, batch: EventBatch) -> Values:
    operand = _evaluate(node.operand, batch)
    return Values(~operand.values, operand.defined)


def _and(node: And, batch: EventBatch) -> Values:
    return _decided(node.operands, batch, by=False)


def _or(node: Or, batch: EventBatch) -> Values:
    return _decided(node.operands, batch, by=True)


def _decided(operands: Sequence[Expression], batch: EventBatch, *, by: bool) -> Values:
    """``and`` and ``or``: one operand that is ``by`` decides, whatever the others are."""
    decided = np.zeros(len(batch), np.bool_)
    known = np.ones(len(batch), np.bool_)
    for operand in operands:
        truth = _evaluate(operand, batch)
        deciding = truth.values if by else ~truth.values
        if truth.defined is not None:
            deciding = deciding & truth.defined
            known &= truth.defined
        decided |= deciding
    return Values(decided if by else ~decided, known | decided)


# --- arithmetic ------------------------------------------------------------------------------


def _arithmetic(node: Arithmetic, batch: EventBatch) -> Values:
    left, right = _evaluate(node.left, batch), _evaluate(node.right, batch)
    defined = _both(left.defined, right.defined)
    if node.kind is Kind.INT:
        result, fits = _INT_OPERATORS[node.operator](left.values, right.values)
    else:
        result = _FLOAT_OPERATORS[node.operator](
            left.values.astype(np.float64), right.values.astype(np.float64)
        )
        fits = np.isfinite(result)
    return Values(result, _both(defined, fits))


def _negative(node: Negative, batch: EventBatch) -> Values:
    operand = _evaluate(node.operand, batch)
    fits = operand.values != _INT_MIN if node.kind is Kind.INT else None
    return Values(-operand.values, _both(operand.defined, fits))


def _convert(node: Convert, batch: EventBatch) -> Values:
    operand = _evaluate(node.operand, batch)
    return Values(operand.values.astype(np.float64), operand.defined)


def _called(node: Called, batch: EventBatch) -> Values:
    """A function of numbers, event by event: the one that all engines have."""
    function = function_of(node)
    operands = [_evaluate(one, batch) for one in node.operands]
    defined = reduce(_both, (one.defined for one in operands))
    columns: list[list[Any]] = [one.values.tolist() for one in operands]
    found: list[Any] = [function(*values) for values in zip(*columns, strict=True)]
    fits = np.array([one is not None for one in found], np.bool_)
    dtype = np.int64 if node.kind is Kind.INT else np.float64
    values = np.array([0 if one is None else one for one in found], dtype)
    return Values(values, _both(defined, fits))


def _of_text(node: OfText, batch: EventBatch) -> Values:
    """A function of a string, once for each distinct one (Rule 3)."""
    operand = _evaluate(node.operand, batch)
    texts: StringColumn = operand.values
    if len(texts.values) > len(texts.codes):
        texts = texts.compact()
    results = results_of(node.function, texts.values)
    if node.kind is Kind.STRING:
        return Values(StringColumn(texts.codes, tuple(map(str, results))), operand.defined)
    known = np.array([result is not None for result in results], np.bool_)[texts.codes]
    dtype: Any = {Kind.BOOL: np.bool_, Kind.INT: np.int64, Kind.FLOAT: np.float64}[node.kind]
    found = np.array([result or 0 for result in results], dtype)[texts.codes]
    return Values(found, _both(operand.defined, known))


def _both(first: Bools | None, second: Bools | None) -> Bools | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _add(left: Int64s, right: Int64s) -> tuple[Int64s, Bools]:
    total = left + right
    return total, ((left ^ total) & (right ^ total)) >= 0


def _subtract(left: Int64s, right: Int64s) -> tuple[Int64s, Bools]:
    difference = left - right
    return difference, ((left ^ right) & (left ^ difference)) >= 0


def _multiply(left: Int64s, right: Int64s) -> tuple[Int64s, Bools]:
    product = left * right
    # Division undoes a product that fits. The one quotient that itself overflows is that of
    # INT_MIN by -1, which stands for two products that do not fit either.
    divisor = np.where((right == 0) | (right == -1), 1, right)
    fits = (right == 0) | (product // divisor == left)
    return product, np.where(right == -1, left != _INT_MIN, fits)


def _modulo(left: Int64s, right: Int64s) -> tuple[Int64s, Bools]:
    # By 1 and by -1 nothing remains; only the first of them cannot overflow on the way.
    divisor = np.where((right == 0) | (right == -1), 1, right)
    return left % divisor, right != 0


_INT_OPERATORS: Mapping[Operator, Callable[[Int64s, Int64s], tuple[Int64s, Bools]]] = {
    Operator.ADD: _add,
    Operator.SUBTRACT: _subtract,
    Operator.MULTIPLY: _multiply,
    Operator.MODULO: _modulo,
}
_FLOAT_OPERATORS: Mapping[Operator, Callable[[Floats, Floats], Any]] = {
    Operator.ADD: operator.add,
    Operator.SUBTRACT: operator.sub,
    Operator.MULTIPLY: operator.mul,
    Operator.DIVIDE: operator.truediv,  # by zero: not finite, hence undefined
    Operator.MODULO: operator.mod,  # the divisor's sign, as S10 asks; by zero: not a number
}

# --- comparisons -----------------------------------------------------------------------------


def _compare(node: Compare, batch: EventBatch) -> Values:
    left, right = _evaluate(node.left, batch), _evaluate(node.right, batch)
    defined = _both(left.defined, right.defined)
    compare = COMPARING[node.comparison]
    if isinstance(left.values, StringColumn):
        return Values(_by_distinct_pairs(compare, left.values, right.values), defined)
    if left.values.dtype == right.values.dtype:
        return Values(compare(left.values, right.values), defined)
    if left.values.dtype == np.int64:
        return Values(compare(_order(left.values, right.values), 0), defined)
    return Values(compare(0, _order(right.values, left.values)), defined)


def _order(ints: Int64s, floats: Floats) -> npt.NDArray[np.int8]:
    """int8[n]: -1, 0 or 1 as the int is less than, equal to or greater than the float."""
    if len(ints) and max(abs(int(ints.min())), abs(int(ints.max()))) <= _EXACT:
        return np.sign(ints.astype(np.float64) - floats).astype(np.int8)
    whole = np.floor(floats)
    inside = (whole >= -(2.0**63)) & (whole < 2.0**63)
    floors = np.where(inside, whole, 0).astype(np.int64)
    order = np.where(ints < floors, -1, np.where(ints > floors, 1, -1 * (floats > whole)))
    return np.where(inside, order, -np.sign(floats)).astype(np.int8)


def _by_distinct_pairs(
    compare: Callable[[Any, Any], Any], left: StringColumn, right: StringColumn
) -> Bools:
    """Strings compared once for each distinct pair of them (Rule 3)."""
    width = len(right.values)
    codes = left.codes if width == 1 else left.codes.astype(np.int64) * width + right.codes
    pairs: Sequence[int] = range(len(left.values) * width)
    if len(pairs) > len(codes):  # dictionaries may hold far more than what is used of them
        distinct, codes = np.unique(codes, return_inverse=True)
        pairs = distinct.tolist()
    results = (compare(left.values[pair // width], right.values[pair % width]) for pair in pairs)
    return np.fromiter(results, np.bool_, len(pairs))[codes]


COMPARING: Mapping[Comparison, Callable[[Any, Any], Any]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.UNEQUAL: operator.ne,
    Comparison.LESS: operator.lt,
    Comparison.LESS_EQUAL: operator.le,
    Comparison.GREATER: operator.gt,
    Comparison.GREATER_EQUAL: operator.ge,
    Comparison.PREFIX: str.startswith,
    Comparison.SUFFIX: str.endswith,
    Comparison.CONTAINS: operator.contains,
}
"""The function of each comparison: of two arrays of numbers, or of two values."""

_EVALUATORS: Mapping[type, Callable[[Any, EventBatch], Values]] = {
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
