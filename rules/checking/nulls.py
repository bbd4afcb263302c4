"""Conditions and values that may read nulls, as ones that read none (tesla.md S9).

An optional attribute is two columns, its values and whether it is there (matcher.model, Rule 5).
So what must be true of attributes that may be null is said of both columns: ``value > 3`` is
``value is there, and value > 3``. Engines, matchers and routers get conditions over columns that
always hold a value, and know of no nulls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from matcher.model import BLANKS, Kind
from rules.terms import (
    IS_PRESENCE,
    And,
    AttributeOf,
    Choice,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
    nodes_of,
    operands_of,
)


def presence_of(attribute: AttributeOf) -> AttributeOf | None:
    """The attribute that tells whether another is there; None for one that always is."""
    if attribute.presence < 0:
        return None
    return AttributeOf(attribute.event, attribute.presence, Kind.BOOL, IS_PRESENCE)


def presences(
    expression: Expression, there: Collection[Expression] = ()
) -> tuple[AttributeOf, ...]:
    """The presences without which an attribute that an expression reads has no value."""
    found: dict[tuple[int, int], AttributeOf] = {}
    for node in nodes_of(expression):
        if isinstance(node, AttributeOf) and node.presence >= 0:
            found.setdefault((node.event, node.presence), node)
    asked = (presence_of(node) for node in found.values())
    return tuple(one for one in asked if one is not None and one not in there)


def is_compound(expression: Expression) -> bool:
    """Whether a truth value is computed, so that one null in it need not make it one."""
    return isinstance(expression, Compare | Not | And | Or)


def truth(expression: Expression, there: Collection[Expression] = ()) -> Expression:
    """A condition that is true where ``expression`` is, in three-valued logic: a comparison with a
    null is neither true nor false. It is the condition itself where that reads no null. ``there``
    are the presences that are known to be true there, and need not be asked again.
    """
    return _decided(expression, there, wanted=True)


def conjuncts_of(
    expression: Expression, there: Collection[Expression] = ()
) -> tuple[Expression, ...]:
    """The same, split at its ``and``."""
    found = truth(expression, there)
    return found.operands if isinstance(found, And) else (found,)


def given(expression: Expression, there: Collection[Expression] = ()) -> tuple[Expression, ...]:
    """Conditions that are true where an expression is not null; none where it never is."""
    if not presences(expression, there):
        return ()
    if is_compound(expression):
        ways = (_decided(expression, there, wanted=wanted) for wanted in (True, False))
        return (Or(tuple(ways)),)
    return presences(expression, there)


def plain(expression: Expression, there: Collection[Expression] = ()) -> Expression:
    """An expression where it is not null, as :func:`given` has asked."""
    return truth(expression, there) if is_compound(expression) else expression


def worth(
    expression: Expression, there: Collection[Expression] = ()
) -> tuple[Expression, Expression]:
    """The values of an attribute that is given an expression, and of its presence. Null is what is
    computed from a null, but for ``or`` with a true side and ``and`` with a false one.
    """
    conditions = given(expression, there)
    if not conditions:
        return expression, Literal(True, Kind.BOOL)
    is_there = conditions[0] if len(conditions) == 1 else And(conditions)
    if is_compound(expression):  # neither true nor false where it is null
        return plain(expression, there), is_there
    blank = Literal(BLANKS[expression.kind], expression.kind)
    return Choice(is_there, expression, blank), is_there


def _decided(expression: Expression, there: Collection[Expression], *, wanted: bool) -> Expression:
    """A condition that is true where ``expression`` is ``wanted``, true or false."""
    missing = presences(expression, there)
    if not missing:
        return expression if wanted else Not(expression)
    if isinstance(expression, Not):
        return _decided(expression.operand, there, wanted=not wanted)
    if isinstance(expression, And | Or):
        parts = [_decided(one, there, wanted=wanted) for one in operands_of(expression)]
        return _joined(parts, And if wanted is isinstance(expression, And) else Or)
    return And((*missing, expression if wanted else Not(expression)))


def _joined(parts: Iterable[Expression], how: type[And] | type[Or]) -> Expression:
    """The parts with ``and`` or ``or`` between them, each said once."""
    distinct = tuple(dict.fromkeys(part for one in parts for part in _split(one, how)))
    return distinct[0] if len(distinct) == 1 else how(distinct)


def _split(part: Expression, how: type[And] | type[Or]) -> Iterator[Expression]:
    if isinstance(part, And | Or) and isinstance(part, how):
        yield from part.operands
    else:
        yield part
