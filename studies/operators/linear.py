"""Conditions and values as linear programs over the columns that an operator keeps.

They are the programs of :mod:`rules.planning.program`, the house's one set of instructions, put
into rows of ints for :mod:`studies.operators.kernels.machine`. Before that

- ``and`` and ``or`` of many become those of two, so that a stack of few words is enough;
- comparisons of texts other than of equality become questions about one text (:mod:`texts`);
- attributes become columns: of each event those that are read, behind its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt

from matcher.model import Column, EventBatch, EventIds, EventType, Int64s, Kind, StringColumn, Value
from rules.engine.kernels.words import WANTED
from rules.planning.program import Instruction, Op, Program, conjunction, program
from rules.terms import (
    TIME,
    And,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Literal,
    OfText,
    Or,
    nodes_of,
    with_operands,
)
from studies.operators.kernels.machine import STACK
from studies.operators.texts import Asked, Rank, Texts

NO_PROGRAM = -1
"""In place of where a program begins."""
_EQUALITY = (Comparison.EQUAL, Comparison.UNEQUAL)
_TEXTUAL = (Comparison.PREFIX, Comparison.SUFFIX, Comparison.CONTAINS)
MIRRORED = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_EQUAL: Comparison.GREATER_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_EQUAL: Comparison.LESS_EQUAL,
    **{one: one for one in _EQUALITY},
}
"""The comparison that says the same of its operands the other way round."""


@dataclass(slots=True)
class Columns:
    """The columns of one event: its time, and the attributes that something reads."""

    type: EventType
    attributes: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return 1 + len(self.attributes)

    def of(self, attribute: int) -> int:
        """The column of an attribute, or of TIME; from now on there is one."""
        if attribute == TIME:
            return 0
        if attribute not in self.attributes:
            self.attributes.append(attribute)
        return 1 + self.attributes.index(attribute)

    @property
    def texts(self) -> list[int]:
        """The columns that hold codes of texts."""
        kinds = self.type.attributes
        return [1 + k for k, one in enumerate(self.attributes) if kinds[one].kind is Kind.STRING]

    def write(self, batch: EventBatch, texts: Texts, out: Int64s) -> None:
        """The words of a batch of n events, into ``out`` int64[columns * n]."""
        words = out.reshape(len(self), len(batch))
        words[0] = batch.time
        for row, attribute in enumerate(self.attributes, 1):
            column = batch.columns[attribute]
            if isinstance(column, StringColumn):
                words[row] = texts.codes(column)
            elif column.dtype == np.float64:
                words[row] = column.view(np.int64)
            else:
                words[row] = column


class Linear:
    """The programs of one operator."""

    def __init__(self, texts: Texts, *columns: Columns) -> None:
        self.texts = texts
        self.columns = columns
        self._rows: list[tuple[int, int, int, int]] = []

    @property
    def code(self) -> npt.NDArray[np.int64]:
        """int64[instructions, 4]."""
        return np.array(self._rows or [(int(Op.END), 0, 0, 0)], np.int64).reshape(-1, 4)

    def conjunction(self, conditions: Sequence[Expression]) -> int:
        """The place where the program of conditions begins; NO_PROGRAM of none."""
        if not conditions:
            return NO_PROGRAM
        return self._add(conjunction(map(simple, conditions)))

    def value(self, expression: Expression) -> int:
        """The place where the program of a value begins."""
        return self._add(program(simple(expression)))

    def values(self, expressions: Iterable[Expression]) -> Int64s:
        """The places where the programs of values begin, behind their number."""
        return counted([self.value(one) for one in expressions])

    def _add(self, made: Program) -> int:
        if made.depth > STACK:
            raise ValueError(f"an expression nested more than {STACK} deep on its right side")
        first = len(self._rows)
        self._rows += [self._row(one) for one in made.code]
        return first

    def _row(self, one: Instruction) -> tuple[int, int, int, int]:
        op = int(one.op)
        is_number = one.function is not None and one.function.kind is Kind.FLOAT
        if op >= Op.ABS_I or is_number:
            raise ValueError("functions of numbers, and number(...), are for rules")
        if one.op is Op.LOAD:
            event = max(one.event - 1, 0)  # the event of an aggregate has no number
            return op, event, self.columns[event].of(one.offset), 0
        if one.op is Op.CONST:
            return op, 0, 0, self.word(one.value)
        if one.op is Op.TEXT:
            assert one.function is not None
            return op, 0, self.texts.row(one.function), 0
        if Op.COMPARE_I <= one.op <= Op.COMPARE_S:
            return op, 0, WANTED[one.offset], 0
        return op, 0, one.offset, 0

    def word(self, value: Value) -> int:
        """A constant as a word."""
        if isinstance(value, str):
            return self.texts.code(value)
        if isinstance(value, float):
            return int(np.float64(value).view(np.int64))
        return int(value)


def counted(numbers: Sequence[int]) -> Int64s:
    """Numbers as kernels take them, behind how many they are."""
    return np.array([len(numbers), *numbers], np.int64)


def comparison_of(compare: Compare) -> tuple[int, int]:
    """The op by which words of both sides compare, and the relations that are wanted."""
    one = program(compare).code[-2]
    return int(one.op), WANTED[one.offset]


def events_in(expression: Expression) -> frozenset[int]:
    """The numbers of the events whose attributes an expression reads."""
    return frozenset(one.event for one in nodes_of(expression) if isinstance(one, AttributeOf))


def is_by_words(compare: Compare) -> bool:
    """Whether the words of both sides tell, and will whatever other texts come."""
    return compare.left.kind is not Kind.STRING or compare.comparison in _EQUALITY


def simple(node: Expression) -> Expression:
    """The same as the machine has it: see the page's head."""
    node = with_operands(node, simple)
    if isinstance(node, And):
        return reduce(lambda one, other: And((one, other)), node.operands)
    if isinstance(node, Or):
        return reduce(lambda one, other: Or((one, other)), node.operands)
    if isinstance(node, Compare) and not is_by_words(node):
        return _about_texts(node)
    return node


def _about_texts(node: Compare) -> Expression:
    """A comparison of texts that is not one of equality."""
    left, right, comparison = node.left, node.right, node.comparison
    if isinstance(right, Literal):
        asked = Asked(comparison=comparison, constant=str(right.value))
        return OfText(asked, left)
    if isinstance(left, Literal):
        asked = Asked(comparison=comparison, constant=str(left.value), is_left=True)
        return OfText(asked, right)
    if comparison in _TEXTUAL:
        raise ValueError(
            f"{comparison.value} of two attributes: "
            f"an operator has it of an attribute and a constant"
        )
    return Compare(comparison, OfText(Rank(), left), OfText(Rank(), right))


def numbered(type_: EventType, words: Int64s, begin: int, texts: Texts) -> EventBatch:
    """Events that an operator has made, from int64[1 + attributes, n] words, time first: their
    source is their type's name, their numbers are from ``begin`` on.
    """
    count = words.shape[1]
    made: list[Column] = []
    for word, attribute in zip(words[1:], type_.attributes, strict=True):
        if attribute.kind is Kind.STRING:
            made.append(texts.column(word))
        elif attribute.kind is Kind.FLOAT:
            made.append(word.view(np.float64))
        else:
            made.append(word != 0 if attribute.kind is Kind.BOOL else word)
    ids = EventIds(StringColumn.constant(type_.name, count), np.arange(begin, begin + count))
    return EventBatch(type_, words[0].copy(), ids, tuple(made))
