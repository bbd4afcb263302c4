"""A rule's plan as words for the kernels, once it is known where columns stand in the heap.

A condition ``candidate.attribute < operand``, the operand being known before the candidate, becomes
a *term*: its operand is computed once for a partial sequence and not for each candidate. So do the
keys of an access, and that the events of a match are distinct (S1). All else is run as a program,
of which the parts that do not read the candidate are computed once, too: of ``candidate.v * 2 =
x.v + 1`` the right side is an *operand*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from matcher.identity import Key
from matcher.model import TIME_MIN, Kind
from rules.engine.gpu import records
from rules.engine.gpu.machine import INSTRUCTION, WIDE_DEPTH
from rules.engine.gpu.stores import Column, Stores
from rules.engine.kernels import layout
from rules.engine.kernels.words import (
    COMPARE_F,
    COMPARE_FI,
    COMPARE_I,
    COMPARE_IF,
    COMPARE_S,
    GREATER,
    LESS,
    SAME,
    WANTED,
)
from rules.engine.linking.assembler import word_of
from rules.engine.linking.steps import bound_kind, probe_kind
from rules.engine.order.catalogue import Deployed
from rules.pattern import Policy
from rules.planning.plan import Range, RulePlan, Step, StepKind, key_kind
from rules.planning.planner import compile_rule
from rules.planning.program import TRUE, Instruction, Op, Program, frame_place
from rules.terms import Function

_TURNED = {COMPARE_IF: COMPARE_FI, COMPARE_FI: COMPARE_IF}
_PUSHES = (Op.LOAD, Op.CONST, Op.SLOT, Op.OPERAND)
_LAZY = (Op.AND, Op.OR, Op.CHOOSE)
"""Instructions that may have a result where an operand is undefined (S9)."""
_POLICIES = {
    Policy.EACH: records.POLICY_EACH,
    Policy.FIRST: records.POLICY_FIRST,
    Policy.LAST: records.POLICY_LAST,
}
NUMBER = "number"
"""In place of an offset in a row: the number of the row."""
Segment = Callable[[Column, "int | str"], int]
"""A function that gives the address of a column's segment, by offset in the row."""


@dataclass(frozen=True, slots=True)
class Term:
    """A condition ``word of the candidate (how, mask) operand``; see records.TERM_..."""

    offset: int | str
    how: int
    mask: int
    operand: Program | tuple[int, int | str]
    """A program; or an event and an offset in its row."""
    convert: int = layout.PROBE_SAME

    @classmethod
    def known(cls, operand: Program) -> Term:
        """An operand that the program of the rest reads; it is compared with nothing."""
        return cls(NUMBER, COMPARE_I, LESS | SAME | GREATER, operand)


@dataclass(frozen=True, slots=True)
class Search:
    """A step that looks for events in a column: its terms, and a program for the rest, which reads
    the ``operands`` behind those of the terms.

    ``key`` is the number of the term that an index of ``key_offset`` serves, or -1. Where no key is
    asked for, ``ordered`` has the bounds that an index by value serves, if there are some; they are
    terms as well.
    """

    step: Step
    column: Column
    bound: int
    terms: tuple[Term, ...]
    operands: tuple[Term, ...]
    rest: Program
    key: int
    key_offset: int
    key_is_float: bool
    ordered: Range | None

    @property
    def reach(self) -> int:
        """How far back it looks, in microseconds."""
        assert self.step.access is not None
        return self.step.access.reach


@dataclass(frozen=True, slots=True)
class Linked:
    """A deployed rule on a device: ``searches`` has None for steps that look at no column. Linking
    decides nothing of what a rule means: a plan that has no such words is refused beforehand
    (:mod:`rules.engine.gpu.eligible`).
    """

    deployed: Deployed
    plan: RulePlan
    columns: tuple[Column, ...]
    """The columns of its events, terminator first."""
    searches: tuple[Search | None, ...]
    key: Key
    """The rule's, of which ids of composite events are made."""

    @property
    def levels(self) -> int:
        """The number of levels of its partial sequences: one more than multiple selections."""
        return 1 + sum(map(is_multiple, self.plan.steps))

    @property
    def looks(self) -> list[tuple[Column, int]]:
        """Every column that it uses, once a use, and how far back it looks there."""
        searches = (one for one in self.searches if one is not None)
        return [(self.columns[0], 0), *((one.column, one.reach) for one in searches)]

    @property
    def all_columns(self) -> list[Column]:
        """Every column that it uses, once a use."""
        return [column for column, _ in self.looks]

    def texts(self, stores: Stores) -> set[int]:
        """The codes of its constants."""
        steps = self.plan.steps
        programs = [one for step in steps for one in (step.residue, step.program)]
        programs += [probe.program for step in steps for probe in step.probes]
        return {
            stores.strings.code(instruction.value)
            for program in (*programs, *self.plan.values)
            for instruction in program.code
            if isinstance(instruction.value, str)
        }


def is_multiple(step: Step) -> bool:
    """Whether a step selects ``each``."""
    return step.kind is StepKind.SELECT and step.policy is Policy.EACH


def link(deployed: Deployed, stores: Stores) -> Linked:
    """A rule with the columns that it uses."""
    plan = compile_rule(deployed.rule)
    columns = [stores.use(plan.terminator)]
    searches: list[Search | None] = []
    for step in plan.steps:
        if step.access is None:
            searches.append(None)
            continue
        column = stores.use(step.access.column)
        searches.append(_search(step, column, plan, len(columns)))
        if step.kind is StepKind.SELECT:
            columns.append(column)
    return Linked(deployed, plan, tuple(columns), tuple(searches), deployed.key)


def _search(step: Step, column: Column, plan: RulePlan, bound: int) -> Search:
    assert step.access is not None
    own = frame_place(step.event) if step.kind is StepKind.SELECT else 0
    terms: list[Term] = []
    type_ = step.access.column.type
    for probe, key in zip(step.probes, step.access.keys, strict=True):
        is_float = key_kind(type_, key) is Kind.FLOAT
        convert = probe_kind(probe, step.access, key)
        how = COMPARE_F if is_float else COMPARE_I
        terms.append(Term(layout.offset_of(key), how, SAME, probe.program, convert))
    if step.kind is not StepKind.AGGREGATE:
        for event in range(bound):
            if plan.event_types[event].name == type_.name:  # S1, S6
                terms.append(Term(NUMBER, COMPARE_I, LESS | GREATER, (event, NUMBER)))
    others = []
    for condition in conditions_of(step.residue):
        term = as_term(condition, own)
        if term is None:
            others.append(condition)
        else:
            terms.append(term)
    known = Operands(len(terms), own)
    rest = [one for other in others for one in (*known.instead(other), Instruction(Op.CHECK))]
    program = Program((*rest, Instruction(Op.END)), step.residue.depth) if rest else TRUE
    key = 0 if step.access.keys else -1
    offset = layout.offset_of(step.access.keys[0]) if step.access.keys else -1
    is_float = key >= 0 and terms[0].how == COMPARE_F
    ordered = None if step.access.keys else step.ordered
    operands = tuple(Term.known(one) for one in known.programs)
    return Search(
        step, column, bound, tuple(terms), operands, program, key, offset, is_float, ordered
    )


class Operands:
    """Owner of the operands of a step's program, numbered from ``first`` on."""

    def __init__(self, first: int, own: int) -> None:
        self._first, self._own = first, own
        self.programs: list[Program] = []

    def instead(self, condition: Sequence[Instruction]) -> Sequence[Instruction]:
        """A condition that reads operands where parts of it do not read the candidate. An undefined
        operand leaves no candidate at all, so all is as it was where ``and`` might make up for it.
        """
        if any(one.op in _LAZY for one in condition):
            return condition
        stack: list[tuple[tuple[Instruction, ...], bool]] = []  # and whether it reads the candidate
        for one in condition:
            begin = len(stack) - arity(one)
            parts, stack[begin:] = stack[begin:], []
            reads = _reads((one,), self._own) or any(reads for _, reads in parts)
            codes = [self._part(*part) if reads else part[0] for part in parts]
            stack.append(((*chain.from_iterable(codes), one), reads))
        return self._part(*stack.pop())

    def _part(self, code: tuple[Instruction, ...], reads: bool) -> tuple[Instruction, ...]:
        """The part of a condition, or the operand in its place."""
        if reads or (code[0].op is Op.CONST and len(code) == 1):
            return code
        program = Program((*code, Instruction(Op.END)), len(code))
        if program not in self.programs:
            self.programs.append(program)
        return (Instruction(Op.OPERAND, offset=self._first + self.programs.index(program)),)


def conditions_of(program: Program) -> list[tuple[Instruction, ...]]:
    """The conditions of a conjunction, without the instructions that check them."""
    found, begin = [], 0
    for place, instruction in enumerate(program.code):
        if instruction.op is Op.CHECK:
            found.append(program.code[begin:place])
            begin = place + 1
    return found


def as_term(condition: Sequence[Instruction], own: int) -> Term | None:
    """A condition as a term, if it compares the candidate, frame place ``own``, with others."""
    last = condition[-1]
    if not COMPARE_I <= last.op <= COMPARE_S:
        return None
    split = _second_operand(condition[:-1])
    left, right = condition[:split], condition[split:-1]
    mask, how = WANTED[last.offset], int(last.op)
    if _is_load(right, own):
        left, right = right, left
        how = _TURNED.get(how, how)
        mask = mask & SAME | (GREATER if mask & LESS else 0) | (LESS if mask & GREATER else 0)
    if not _is_load(left, own) or _reads(right, own):
        return None
    operand = Program((*right, Instruction(Op.END)), len(right))
    return Term(layout.offset_of(left[0].offset), how, mask, operand)


def _is_load(code: Sequence[Instruction], own: int) -> bool:
    return len(code) == 1 and code[0].op is Op.LOAD and code[0].event == own


def _reads(code: Iterable[Instruction], own: int) -> bool:
    return any(one.op is Op.LOAD and one.event == own for one in code)


def _second_operand(code: Sequence[Instruction]) -> int:
    """The place where the second of the two operands that code leaves on the stack begins."""
    needed, place = 1, len(code)
    while needed:
        place -= 1
        needed += arity(code[place]) - 1
    return place


def arity(instruction: Instruction) -> int:
    """The number of words that an instruction takes from the stack; it leaves one."""
    op = instruction.op
    if op in _PUSHES:
        return 0
    if op in (Op.TO_FLOAT, Op.NEGATE_I, Op.NEGATE_F, Op.NOT, Op.TEXT):
        return 1
    if op in (Op.AND, Op.OR):
        return instruction.offset
    return 3 if op is Op.CHOOSE else 2


# --- words ---------------------------------------------------------------------------------------


class Words:
    """A rule's words, from address ``start`` of the heap on."""

    def __init__(self, start: int, segment: Segment, stores: Stores) -> None:
        self._start = start
        self._segment = segment
        self._strings = stores.strings
        self.words: list[int] = []

    def append(self, words: Iterable[int]) -> int:
        """Add words: their address."""
        place = self._start + len(self.words)
        self.words += words
        return place

    def program(self, program: Program, linked: Linked, candidate: Column | None, own: int) -> int:
        """Add a program: its address; -1 for none."""
        if program is TRUE:
            return -1
        words: list[int] = []
        for one in program.code:
            event, offset = one.event, one.offset
            if one.op is Op.LOAD:
                column = candidate if one.event == own else linked.columns[one.event - 1]
                assert column is not None
                offset = self._segment(column, layout.offset_of(one.offset))
            elif COMPARE_I <= one.op <= COMPARE_S:
                offset = WANTED[one.offset]
            words += int(one.op) | event << 8 | offset << 16, word_of(one.value, self._strings)
        assert len(words) % INSTRUCTION == 0
        return self.append(words)

    def place(self, linked: Linked, program: Program) -> tuple[int, int]:
        """A value that is known: an event and the segment of its word, or -1 and a program."""
        match program.code:
            case (Instruction(op=Op.LOAD, event=event, offset=offset), Instruction(op=Op.END)):
                column = linked.columns[event - 1]
                return event - 1, self._segment(column, layout.offset_of(offset))
        return -1, self.program(program, linked, None, -2)

    def term(self, linked: Linked, search: Search, term: Term) -> list[int]:
        """A term's words."""
        if isinstance(term.operand, Program):
            event, place = self.place(linked, term.operand)
        else:
            event, offset = term.operand
            place = self._segment(linked.columns[event], offset)
        words = [self._segment(search.column, term.offset), term.how, term.mask]
        words += [event, place, term.convert]
        return words + [0] * (records.TERM_WORDS - len(words))

    def bounds(self, linked: Linked, search: Search) -> list[int]:
        """The words of both bounds, the lower first."""
        assert search.ordered is not None
        words: list[int] = []
        for bound in (search.ordered.lower, search.ordered.upper):
            if bound is None:
                words += [-1, 0, 0]
                continue
            program = self.program(bound.program, linked, None, -2)
            words += [program, bound_kind(bound, search.ordered), int(bound.is_strict)]
        return words


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a rule's words: of its steps, its events' row numbers, its values.

    ``sorted`` says which steps have an index by value.
    """

    steps: tuple[int, ...]
    sorted: tuple[bool, ...]
    numbers: int
    first_value: int


def addressed(
    linked: Linked,
    words: Words,
    segment: Segment,
    size: Callable[[Column], int],
    index: Callable[[Search], tuple[int, int]],
    by_value: Callable[[Search], tuple[int, int, int] | None],
) -> Addresses:
    """Write a rule: ``segment``, ``size``, ``index`` and ``by_value`` say where columns and indexes
    stand.
    """
    since = max(linked.deployed.since, TIME_MIN)
    steps, longest = [], records.LONGESTS
    for step, search in zip(linked.plan.steps, linked.searches, strict=True):
        steps.append(_step(linked, step, search, words, segment, size, index))
        place = None if search is None else by_value(search)
        if search is not None and place is not None:
            steps[-1][records.INDEXED : records.RANGE_ORDER + 1] = place
            steps[-1][records.LOWER : records.UPPER_STRICT + 1] = words.bounds(linked, search)
        steps[-1][records.LONGEST] = longest
        steps[-1][records.SINCE] = since
        longest += search is not None
    values = [place for program in linked.plan.values for place in words.place(linked, program)]
    return Addresses(
        tuple(words.append(step) for step in steps),
        tuple(step[records.INDEXED] >= 0 for step in steps),
        words.append(segment(column, NUMBER) for column in linked.columns),
        words.append(values),
    )


def _step(
    linked: Linked,
    step: Step,
    search: Search | None,
    words: Words,
    segment: Segment,
    size: Callable[[Column], int],
    index: Callable[[Search], tuple[int, int]],
) -> list[int]:
    """A step's words."""
    record = [0] * records.STEP_WORDS
    own = frame_place(step.event) if step.kind is StepKind.SELECT else 0

    def times(event: int) -> int:
        return segment(linked.columns[event], layout.ROW_TIME)

    record[records.KIND] = _KINDS[step.kind]
    record[records.EVENT], record[records.OWN] = step.event, own
    record[records.SLOT], record[records.RANK] = step.slot, step.rank
    record[records.EARLIER] = record[records.ORDER] = -1
    record[records.VALUES] = record[records.PROGRAM] = record[records.REST] = -1
    record[records.INDEXED] = -1
    if search is not None or step.kind is StepKind.TIMED:
        span = step.span
        record[records.ANCHOR], record[records.ANCHOR_TIMES] = span.later, times(span.later)
        record[records.DURATION], record[records.STRICT] = span.duration, int(step.strict)
        record[records.TERMINATOR_TIMES] = times(0)
        if span.earlier >= 0:
            record[records.EARLIER], record[records.EARLIER_TIMES] = (
                span.earlier,
                times(span.earlier),
            )
            record[records.EARLY] = int(step.kind is StepKind.NEGATE)
    if step.kind is StepKind.TIMED:
        record[records.TIMES] = times(step.event)
    if step.kind is StepKind.TEST:
        record[records.REST] = words.program(step.residue, linked, None, -2)
    if step.kind is StepKind.LET:
        record[records.PROGRAM] = words.program(step.program, linked, None, -2)
    if search is None:
        return record
    column = search.column
    record[records.REDUCTION] = reduction_of(step)
    record[records.EMPTY] = records.EMPTIES[record[records.REDUCTION]]
    record[records.POLICY] = _POLICIES[step.policy]
    record[records.SIZE], record[records.BOUND] = size(column), search.bound
    record[records.TIMES] = segment(column, layout.ROW_TIME)
    record[records.NUMBERS] = segment(column, NUMBER)
    terms = [words.term(linked, search, term) for term in (*search.terms, *search.operands)]
    record[records.TERMS] = len(search.terms)
    record[records.OPERANDS] = len(terms)
    record[records.FIRST_TERM] = words.append(word for term in terms for word in term)
    record[records.REST] = words.program(search.rest, linked, column, own)
    is_straight = all(one.op not in _LAZY for one in search.rest.code)
    record[records.STRAIGHT] = int(is_straight and search.rest.depth <= WIDE_DEPTH)
    record[records.SORTED], record[records.ORDER] = index(search)
    record[records.INDEX_TERM] = search.key
    if step.kind is StepKind.AGGREGATE:
        record[records.VALUE_KIND] = int(step.value_kind is Kind.FLOAT)
        if step.attribute is not None:
            record[records.VALUES] = segment(column, layout.offset_of(step.attribute))
        record[records.PROGRAM] = words.program(step.program, linked, column, own)
    return record


def reduction_of(step: Step) -> int:
    """The reduction over all candidates that a step asks for (records.REDUCE_...)."""
    if step.kind is StepKind.AGGREGATE:
        return _REDUCTIONS[step.function]
    if step.kind is StepKind.SELECT and step.policy is Policy.LAST:
        return records.REDUCE_LAST
    is_count = step.kind is StepKind.NEGATE
    return records.REDUCE_COUNT if is_count else records.REDUCE_FIRST


_REDUCTIONS = {
    Function.COUNT: records.REDUCE_COUNT,
    Function.SUM: records.REDUCE_SUM,
    Function.MIN: records.REDUCE_MIN,
    Function.MAX: records.REDUCE_MAX,
}
_KINDS = {
    StepKind.SELECT: records.SELECT,
    StepKind.NEGATE: records.NEGATE,
    StepKind.AGGREGATE: records.AGGREGATE,
    StepKind.TIMED: records.TIMED,
    StepKind.TEST: records.TEST,
    StepKind.LET: records.LET,
}
