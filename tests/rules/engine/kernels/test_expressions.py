"""The compiled stack machine against Python's own arithmetic (tesla.md S9, S10)."""

import itertools
import math
import random
import struct

import numpy as np
import pytest

from matcher.model import Kind, Value
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.expressions import run
from rules.engine.linking.assembler import word_of
from rules.engine.linking.interner import Interner
from rules.engine.oracle.values import Scope, value_of
from rules.planning.program import Instruction, Op, conjunction, program as program_of
from rules.terms import (
    And,
    Arithmetic,
    Compare,
    Comparison,
    Convert,
    Expression,
    Literal,
    Negative,
    Not,
    Operator,
    Or,
)
from runtime.memory import sheltered

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
INTS = [0, 1, -1, 2, 3, -7, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, INT_MAX, INT_MIN]
FLOATS = [
    *(0.0, -0.0, 0.5, -1.5, 3.0, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, -(2.0**63), 1e308),
    *(-1e308, 5e-324, math.nextafter(2.0**63, 0), math.nextafter(-(2.0**63), -math.inf)),
]
TEXTS = [
    "",
    "a",
    "ab",
    "b",
    "ba",
    "aba",
    "\u00e9",
    "e\u0301",
    "\ue000",
    "\U0001f600",
    "a\U0001f600",
]


class NoHistory:
    def events(self, name: str, *, strict: bool) -> list:
        raise AssertionError(name)


def literal(value: Value) -> Literal:
    kinds = {int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL, str: Kind.STRING}
    return Literal(value, kinds[type(value)])


class Machine:
    """The compiled machine, with programs made of literals alone."""

    def __init__(self) -> None:
        self.arrays, self.strings = Arrays(), Interner()

    def run(self, code: tuple[Instruction, ...]) -> tuple[bool, int]:
        instructions = [
            (int(one.op), one.event, one.offset, word_of(one.value, self.strings)) for one in code
        ]
        self.arrays["code"] = sheltered(np.array(instructions, layout.CODE))
        self.arrays["strings"] = self.strings.extents
        self.arrays["string_bytes"] = self.strings.data
        return run(self.arrays.state, 0), int(self.arrays["stack"][0])

    def value(self, expression: Expression) -> Value | None:
        defined, word = self.run(program_of(expression).code)
        if not defined:
            return None
        if expression.kind is Kind.FLOAT:
            return struct.unpack("<d", struct.pack("<q", word))[0]
        return bool(word) if expression.kind is Kind.BOOL else word


def expected(expression: Expression) -> Value | None:
    return value_of(expression, Scope(NoHistory(), ()))


def identical(ours: Value | None, theirs: Value | None) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float):
        return struct.pack("<d", ours) == struct.pack("<d", theirs)  # the sign of 0.0 too
    return ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("operator", list(Operator))
def test_arithmetic_of_ints(operator: Operator):
    machine = Machine()
    kind = Kind.FLOAT if operator is Operator.DIVIDE else Kind.INT
    for left, right in itertools.product(INTS, INTS):
        expression = Arithmetic(operator, literal(left), literal(right), kind)
        assert identical(machine.value(expression), expected(expression)), (left, right)


@pytest.mark.parametrize("operator", list(Operator))
def test_arithmetic_of_floats_and_mixtures(operator: Operator):
    machine = Machine()
    for left, right in itertools.product([*FLOATS, 7, INT_MIN], [*FLOATS, -3, INT_MAX]):
        expression = Arithmetic(operator, literal(left), literal(right), Kind.FLOAT)
        assert identical(machine.value(expression), expected(expression)), (left, right)


@pytest.mark.parametrize("comparison", list(Comparison)[:6])
def test_numbers_compare_exactly_by_value(comparison: Comparison):
    machine = Machine()
    numbers = [*INTS, *FLOATS]
    for left, right in itertools.product(numbers, numbers):
        expression = Compare(comparison, literal(left), literal(right))
        assert machine.value(expression) is expected(expression), (left, right)


@pytest.mark.parametrize("comparison", list(Comparison))
def test_strings_compare_by_code_point(comparison: Comparison):
    machine = Machine()
    for left, right in itertools.product(TEXTS, TEXTS):
        expression = Compare(comparison, literal(left), literal(right))
        assert machine.value(expression) is expected(expression), (left, right)


def test_the_least_int_has_no_opposite():
    machine = Machine()
    assert machine.value(Negative(literal(INT_MIN), Kind.INT)) is None
    assert machine.value(Negative(literal(INT_MAX), Kind.INT)) == -INT_MAX
    assert identical(machine.value(Negative(literal(0.0), Kind.FLOAT)), -0.0)


UNDEFINED = Compare(
    Comparison.EQUAL, Arithmetic(Operator.DIVIDE, literal(1), literal(0), Kind.FLOAT), literal(1.0)
)
TRUTHS = {True: literal(True), False: literal(False), None: UNDEFINED}


@pytest.mark.parametrize("truths", list(itertools.product(TRUTHS, TRUTHS, TRUTHS)))
def test_three_valued_connectives(truths: tuple[bool | None, ...]):
    machine, items = Machine(), tuple(TRUTHS[truth] for truth in truths)
    for expression in (And(items), Or(items), Not(And(items)), And((items[0], Or(items[1:])))):
        assert machine.value(expression) is expected(expression)
    assert machine.run(conjunction(items).code)[0] is all(truth is True for truth in truths)


def random_expression(random_: random.Random, kind: Kind, depth: int) -> Expression:
    def inner(kind: Kind) -> Expression:
        return random_expression(random_, kind, depth - 1)

    if depth == 0:
        values = {Kind.INT: INTS, Kind.FLOAT: FLOATS, Kind.BOOL: [True, False], Kind.STRING: TEXTS}
        return literal(random_.choice(values[kind]))
    if kind is Kind.INT:
        operator = random_.choice([one for one in Operator if one is not Operator.DIVIDE])
        return random_.choice(
            (Negative(inner(kind), kind), Arithmetic(operator, inner(kind), inner(kind), kind))
        )
    if kind is Kind.FLOAT:
        sides = inner(random_.choice((Kind.INT, Kind.FLOAT))), inner(Kind.FLOAT)
        operator = random_.choice(list(Operator))
        return random_.choice(
            (Arithmetic(operator, *sides, kind), Negative(sides[1], kind), Convert(inner(Kind.INT)))
        )
    numbers = inner(random_.choice((Kind.INT, Kind.FLOAT))), inner(Kind.FLOAT)
    choice = random_.randrange(4)
    if choice == 0:
        return Not(inner(Kind.BOOL))
    if choice == 1:
        return random_.choice((And, Or))((inner(Kind.BOOL), inner(Kind.BOOL)))
    if choice == 2:
        texts = (literal(random_.choice(TEXTS)), literal(random_.choice(TEXTS)))
        return Compare(random_.choice(list(Comparison)), *texts)
    return Compare(random_.choice(list(Comparison)[:6]), *numbers)


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed: int):
    random_, machine = random.Random(seed), Machine()
    for _ in range(500):
        kind = random_.choice((Kind.INT, Kind.FLOAT, Kind.BOOL))
        expression = random_expression(random_, kind, random_.randint(1, 4))
        assert identical(machine.value(expression), expected(expression)), (seed, expression)


def test_what_is_deeper_than_the_stack_is_said_by_the_program():
    nested: Expression = literal(1)
    for _ in range(20):
        nested = Arithmetic(Operator.ADD, literal(1), nested, Kind.INT)
    program = program_of(nested)
    assert program.depth == 21
    assert program.code[-1].op is Op.END
