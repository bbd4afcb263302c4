"""Expressions as programs in postfix order, for a stack machine (tesla.md S9, S10).

A program is data: the kernels run it, and nothing is compiled per rule. Numbered events are read
through frame places; the strings of constants are still text.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from matcher.model import Kind, Value
from rules.functions import DAY, EPOCH_WEEKDAY, HOUR
from rules.terms import (
    Aggregate,
    And,
    Arithmetic,
    AttributeOf,
    Called,
    Choice,
    Compare,
    Comparison,
    Convert,
    Expression,
    Literal,
    Negative,
    Not,
    NumberFunction,
    OfText,
    Operator,
    Or,
    Slot,
    TextFunction,
)
from rules.zones import aheads


class Op(enum.IntEnum):
    """Instructions of the stack machine. ``_I`` works on ints, ``_F`` on floats, ``_S`` strings."""

    END = 0  # the result is on top of the stack
    CHECK = 1  # pop a truth value; stop with "false" unless it is true
    LOAD = 2  # push attribute ``offset``, or TIME, of the event in frame place ``event``
    CONST = 3  # push ``value``
    SLOT = 4  # push slot ``offset``, with its definedness
    TO_FLOAT = 5
    NEGATE_I = 6
    NEGATE_F = 7
    ADD_I = 8
    SUBTRACT_I = 9
    MULTIPLY_I = 10
    MODULO_I = 11
    ADD_F = 12
    SUBTRACT_F = 13
    MULTIPLY_F = 14
    DIVIDE_F = 15
    MODULO_F = 16
    COMPARE_I = 17  # ``offset`` is the comparison's number
    COMPARE_F = 18
    COMPARE_IF = 19  # an int on the left, a float on the right, exactly (S10)
    COMPARE_FI = 20
    COMPARE_S = 21
    NOT = 22
    AND = 23  # of the top ``offset`` values
    OR = 24
    CHOOSE = 25  # of the top three: the second where the first is true, else the third
    TEXT = 26  # a function of a string
    OPERAND = 27  # push operand ``offset``, known before any candidate: devices alone have these
    ABS_I = 28  # from here on, the processor's machine alone has them
    ABS_F = 29
    SQRT = 30
    FLOOR = 31  # of a float, as an int; so the next two
    CEIL = 32
    ROUND = 33
    DIVIDE_I = 34
    LEAST_I = 35
    LEAST_F = 36
    GREATEST_I = 37
    GREATEST_F = 38
    LOCAL = 39  # the local time of a time; ``offset`` DATA behind it say how far a zone is ahead
    DATA = 40  # from time ``value`` on clocks are ``offset`` ahead


COMPARISONS: dict[Comparison, int] = {comparison: n for n, comparison in enumerate(Comparison)}
"""The comparisons' numbers, in their order of declaration."""

_ARITHMETIC_INT = {
    Operator.ADD: Op.ADD_I,
    Operator.SUBTRACT: Op.SUBTRACT_I,
    Operator.MULTIPLY: Op.MULTIPLY_I,
    Operator.MODULO: Op.MODULO_I,
}
_ARITHMETIC_FLOAT = {
    Operator.ADD: Op.ADD_F,
    Operator.SUBTRACT: Op.SUBTRACT_F,
    Operator.MULTIPLY: Op.MULTIPLY_F,
    Operator.DIVIDE: Op.DIVIDE_F,
    Operator.MODULO: Op.MODULO_F,
}
_OF_ONE = {
    (NumberFunction.ABS, Kind.INT): Op.ABS_I,
    (NumberFunction.ABS, Kind.FLOAT): Op.ABS_F,
    (NumberFunction.SQRT, Kind.FLOAT): Op.SQRT,
    (NumberFunction.FLOOR, Kind.FLOAT): Op.FLOOR,
    (NumberFunction.CEIL, Kind.FLOAT): Op.CEIL,
    (NumberFunction.ROUND, Kind.FLOAT): Op.ROUND,
}
"""By function and kind of operand."""
_OF_MORE = {
    (NumberFunction.DIV, Kind.INT): Op.DIVIDE_I,
    (NumberFunction.LEAST, Kind.INT): Op.LEAST_I,
    (NumberFunction.LEAST, Kind.FLOAT): Op.LEAST_F,
    (NumberFunction.GREATEST, Kind.INT): Op.GREATEST_I,
    (NumberFunction.GREATEST, Kind.FLOAT): Op.GREATEST_F,
}
"""The same, of two operands; of more than two the one after the other."""
_OF_LOCAL = {
    NumberFunction.HOUR: ((Op.DIVIDE_I, HOUR), (Op.MODULO_I, 24)),
    NumberFunction.WEEKDAY: (
        (Op.DIVIDE_I, DAY),
        (Op.ADD_I, EPOCH_WEEKDAY),
        (Op.MODULO_I, 7),
        (Op.ADD_I, 1),
    ),
    NumberFunction.DATE: ((Op.DIVIDE_I, DAY), (Op.MULTIPLY_I, DAY)),
}
"""The steps from a local time to the result, each an operator and a constant."""
_COMPARE = {
    (Kind.INT, Kind.INT): Op.COMPARE_I,
    (Kind.FLOAT, Kind.FLOAT): Op.COMPARE_F,
    (Kind.INT, Kind.FLOAT): Op.COMPARE_IF,
    (Kind.FLOAT, Kind.INT): Op.COMPARE_FI,
    (Kind.STRING, Kind.STRING): Op.COMPARE_S,
    (Kind.BOOL, Kind.BOOL): Op.COMPARE_I,
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``value`` is a constant whose string is still text, ``function`` that of
    TEXT.
    """

    op: Op
    event: int = 0
    offset: int = 0
    value: Value = 0
    function: TextFunction | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, and the depth of stack that they need. An empty conjunction is ``TRUE``."""

    code: tuple[Instruction, ...]
    depth: int


_END = Instruction(Op.END)
_CHECK = Instruction(Op.CHECK)
TRUE = Program((), 0)
"""No condition at all."""


def frame_place(event: int) -> int:
    """Where the kernels keep event number ``event``: place 0 is the candidate's."""
    return event + 1


def conjunction(conditions: Iterable[Expression]) -> Program:
    """A program that checks one condition after another and stops at the first that fails."""
    code: list[Instruction] = []
    depth = 0
    for condition in conditions:
        depth = max(depth, _emit(condition, code))
        code.append(_CHECK)
    return Program((*code, _END), depth) if code else TRUE


def program(expression: Expression) -> Program:
    """A program that leaves the expression's value on the stack."""
    code: list[Instruction] = []
    depth = _emit(expression, code)
    return Program((*code, _END), depth)


@functools.lru_cache(1024)
def _loading(event: int, attribute: int) -> Instruction:
    return Instruction(Op.LOAD, frame_place(event), attribute)


@functools.cache
def _comparing(comparison: Comparison, left: Kind, right: Kind) -> Instruction:
    return Instruction(_COMPARE[left, right], offset=COMPARISONS[comparison])


def _emit(node: Expression, code: list[Instruction]) -> int:
    """Append the instructions of a node; gives the depth of stack they need."""
    match node:
        case Literal():
            value = float(node.value) if node.kind is Kind.FLOAT else node.value
            code.append(Instruction(Op.CONST, value=value))
            return 1
        case AttributeOf():
            code.append(_loading(node.event, node.attribute))
            return 1
        case Slot():
            code.append(Instruction(Op.SLOT, offset=node.index))
            return 1
        case Negative():
            depth = _emit(node.operand, code)
            code.append(Instruction(Op.NEGATE_F if node.kind is Kind.FLOAT else Op.NEGATE_I))
            return depth
        case Convert():
            return _emit_as_float(node.operand, code)
        case Not():
            depth = _emit(node.operand, code)
            code.append(Instruction(Op.NOT))
            return depth
        case OfText():
            depth = _emit(node.operand, code)
            code.append(Instruction(Op.TEXT, function=node.function))
            return depth
        case Called():
            return _emit_called(node, code)
        case Arithmetic():
            return _emit_arithmetic(node, code)
        case Compare():
            depth = max(_emit(node.left, code), 1 + _emit(node.right, code))
            code.append(_comparing(node.comparison, node.left.kind, node.right.kind))
            return depth
        case And() | Or():
            depths = [place + _emit(item, code) for place, item in enumerate(node.operands)]
            op = Op.AND if isinstance(node, And) else Op.OR
            code.append(Instruction(op, offset=len(node.operands)))
            return max(depths)
        case Choice():
            parts = (node.condition, node.value, node.otherwise)
            depths = [place + _emit(part, code) for place, part in enumerate(parts)]
            code.append(Instruction(Op.CHOOSE))
            return max(depths)
        case Aggregate():
            raise AssertionError("aggregates are hoisted before programs are made")


def _emit_arithmetic(node: Arithmetic, code: list[Instruction]) -> int:
    if node.kind is Kind.INT:
        depth = max(_emit(node.left, code), 1 + _emit(node.right, code))
        code.append(Instruction(_ARITHMETIC_INT[node.operator]))
        return depth
    depth = max(_emit_as_float(node.left, code), 1 + _emit_as_float(node.right, code))
    code.append(Instruction(_ARITHMETIC_FLOAT[node.operator]))
    return depth


def _emit_called(node: Called, code: list[Instruction]) -> int:
    kind = node.operands[0].kind
    if node.function.is_of_time:
        depth = _emit(node.operands[0], code)
        code.extend(_telling(node.zone))
        for op, constant in _OF_LOCAL[node.function]:
            code += (Instruction(Op.CONST, value=constant), Instruction(op))
        return depth + 1
    depth = _emit(node.operands[0], code)
    one = _OF_ONE.get((node.function, kind))
    if one is not None:
        code.append(Instruction(one))
    for operand in node.operands[1:]:
        depth = max(depth, 1 + _emit(operand, code))
        code.append(Instruction(_OF_MORE[node.function, kind]))
    return depth


@functools.lru_cache(64)
def _telling(zone: str) -> tuple[Instruction, ...]:
    """The instructions that make local time of a time."""
    data = [
        Instruction(Op.DATA, 0, ahead, begin) for begin, ahead in zip(*aheads(zone), strict=True)
    ]
    return Instruction(Op.LOCAL, offset=len(data)), *data


def _emit_as_float(node: Expression, code: list[Instruction]) -> int:
    depth = _emit(node, code)
    if node.kind is Kind.INT:
        code.append(Instruction(Op.TO_FLOAT))
    return depth
