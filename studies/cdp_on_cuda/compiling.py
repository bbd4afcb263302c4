"""Tables for the kernels from the plan of a rule, and the reasons to refuse one.

Each step of a plan that looks for events has a column of its own, as in the thesis (5.4, 6.3), and
its equalities are conditions like others: there is no index. A column's rows hold the attributes
that the rule reads on the device, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from matcher.model import Int64s, Kind
from rules.engine.kernels.words import WANTED
from rules.engine.linking.assembler import word_of
from rules.engine.linking.interner import Interner
from rules.errors import Problem, RuleErrors
from rules.pattern import TIMER, Rule
from rules.planning.plan import ColumnPlan, RulePlan, Step, StepKind
from rules.planning.planner import compile_rule, concerns_only
from rules.planning.program import COMPARISONS, TRUE, Instruction, Op, Program, conjunction
from rules.terms import CANDIDATE, TIME, Comparison, Function
from studies.cdp_on_cuda import layout

LOOKING = (StepKind.SELECT, StepKind.NEGATE, StepKind.AGGREGATE)
"""Steps that look for events, in a column."""
_EQUAL = (COMPARISONS[Comparison.EQUAL], COMPARISONS[Comparison.UNEQUAL])
_HOW = {
    (Function.SUM, Kind.INT): layout.SUM_INT,
    (Function.SUM, Kind.FLOAT): layout.SUM_FLOAT,
    (Function.AVG, Kind.INT): layout.AVG_INT,
    (Function.AVG, Kind.FLOAT): layout.AVG_FLOAT,
    (Function.MIN, Kind.INT): layout.MIN_INT,
    (Function.MIN, Kind.FLOAT): layout.MIN_FLOAT,
    (Function.MAX, Kind.INT): layout.MAX_INT,
    (Function.MAX, Kind.FLOAT): layout.MAX_FLOAT,
}


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """A column's events, how far back in microseconds they are of use, and which of their
    attributes stand in a row (numbers, ascending).
    """

    plan: ColumnPlan
    reach: int
    attributes: tuple[int, ...]

    @property
    def row(self) -> int:
        """Words of a row."""
        return layout.ATTRIBUTES + len(self.attributes)

    def offset(self, attribute: int) -> int:
        """The place in a row of an attribute, or of the time (X3)."""
        if attribute == TIME:
            return layout.TIME
        return layout.ATTRIBUTES + self.attributes.index(attribute)


@dataclass(frozen=True, slots=True)
class Task:
    """A step of the plan, and its column if it looks for events; ``selected`` counts the events
    that partial sequences have before it.
    """

    step: Step
    column: int
    selected: int


class CompiledRule:
    """The tables of one rule. Column 0 is the terminator's."""

    def __init__(self, rule: Rule, strings: Interner) -> None:
        _refuse_shape(rule)
        plan = compile_rule(rule)
        _refuse_steps(rule, plan)
        self.plan = plan
        self._strings = strings
        self.tasks: list[Task] = []
        looking: list[Step] = []
        selected = 1
        for step in plan.steps:
            column = 0
            if step.kind in LOOKING:
                looking.append(step)
                column = len(looking)
            self.tasks.append(Task(step, column, selected))
            selected += step.kind is StepKind.SELECT
        self.events = selected
        self._programs = [_program_of(task.step) for task in self.tasks]
        self.columns = self._columns(looking)
        self.codes: set[int] = set()
        """The codes of the constants that are strings."""
        self._code: list[tuple[int, int, int, int]] = []
        self.steps = np.zeros((len(self.tasks), layout.STEP), np.int64)
        for number, task in enumerate(self.tasks):
            self._lay_out(number, task)
        self.values: Int64s = np.array(
            [self._assembled(value, None) for value in plan.values], np.int64
        )
        self.code = np.array(self._code, np.int64).reshape(-1, layout.INSTRUCTION)

    @property
    def first_value(self) -> int:
        """The place in a partial sequence where the values of the composite event begin."""
        return self.events + 1 + self.plan.slots

    @property
    def words(self) -> int:
        """Words of a partial sequence."""
        return self.first_value + len(self.values)

    @cached_property
    def column_of_event(self) -> Mapping[int, int]:
        """The column that each numbered event is chosen from."""
        chosen = {
            task.step.event: task.column for task in self.tasks if task.step.kind is StepKind.SELECT
        }
        return {0: 0, **chosen}

    def _columns(self, looking: Sequence[Step]) -> tuple[ColumnForm, ...]:
        """The columns, with the attributes that some program reads of their events."""
        read: list[set[int]] = [set() for _ in range(1 + len(looking))]
        reads: list[tuple[Program, Task | None]] = [(value, None) for value in self.plan.values]
        reads += [
            (program, task)
            for task, programs in zip(self.tasks, self._programs, strict=True)
            for program in programs
        ]
        for program, task in reads:
            for one in program.code:
                if one.op is Op.LOAD and one.offset != TIME:
                    read[self._column_read(one.event, task)].add(one.offset)
        plans = [self.plan.terminator, *(step.access.column for step in looking if step.access)]
        reaches = [0, *(step.access.reach for step in looking if step.access)]
        return tuple(
            ColumnForm(plan, reach, tuple(sorted(attributes)))
            for plan, reach, attributes in zip(plans, reaches, read, strict=True)
        )

    def _column_read(self, place: int, task: Task | None) -> int:
        """The column of the event that a program of a step reads in a frame place."""
        if task is not None and place == _candidate(task.step):
            return task.column
        return self.column_of_event[place - 1]

    def _lay_out(self, number: int, task: Task) -> None:
        """Write the row of a step, but for where its column stands."""
        step, row = task.step, self.steps[number]
        program, aggregated = self._programs[number]
        row[layout.ROW] = self.columns[task.column].row
        row[layout.SELECTED] = step.event
        row[layout.DISTINCT] = 0 if step.kind is StepKind.AGGREGATE else task.selected
        row[layout.CANDIDATE] = _candidate(step)
        row[layout.ANCHOR] = step.span.later
        row[layout.EARLIER] = step.span.earlier
        row[layout.DURATION] = step.span.duration
        row[layout.OPENING] = step.kind is StepKind.NEGATE
        row[layout.PROGRAM] = self._assembled(program, task)
        row[layout.AGGREGATED] = self._assembled(aggregated, task)
        row[layout.SLOT] = step.slot
        row[layout.HOW] = _HOW.get((step.function, step.value_kind), layout.COUNTED)
        row[layout.DEFINED] = self.events

    def _assembled(self, program: Program, task: Task | None) -> int:
        """Append a program's instructions: where they begin, -1 for the empty one."""
        if program is TRUE:
            return -1
        first = len(self._code)
        for one in program.code:
            event, offset, value = one.event, one.offset, word_of(one.value, self._strings)
            if isinstance(one.value, str):
                self.codes.add(value)
            if one.op is Op.LOAD:
                offset = self.columns[self._column_read(event, task)].offset(offset)
            elif one.op is Op.SLOT:
                event, offset, value = offset, self.events + 1 + offset, self.events
            elif Op.COMPARE_I <= one.op <= Op.COMPARE_S:
                offset = WANTED[offset]
            self._code.append((int(one.op), event, offset, value))
        return first


def _candidate(step: Step) -> int:
    """The frame place of the event that a step tries."""
    return step.event + 1 if step.kind is StepKind.SELECT else 0


def _program_of(step: Step) -> tuple[Program, Program]:
    """The program that a step tests, or computes for LET, and that which it aggregates; or TRUE."""
    match step.kind:
        case StepKind.TEST:
            return step.residue, TRUE
        case StepKind.LET:
            return step.program, TRUE
        case StepKind.TIMED:
            return TRUE, TRUE
    number = step.event if step.kind is StepKind.SELECT else CANDIDATE
    tested = conjunction(one for one in step.conditions if not concerns_only(one, number))
    if step.attribute is None:
        return tested, step.program
    loading = Instruction(Op.LOAD, 0, step.attribute)
    return tested, Program((loading, Instruction(Op.END)), 1)


# --- what is refused ---------------------------------------------------------------------------


def _refuse(rule: Rule, reasons: Iterable[str]) -> None:
    """Raise RuleErrors that name a rule and each reason, if there are some."""
    problems = [
        Problem(
            f"rule {rule.name}: {reason}",
            hint="the published CDP on CUDA is a reference: let another engine have this rule",
        )
        for reason in dict.fromkeys(reasons)
    ]
    if problems:
        raise RuleErrors(problems)


def _refuse_shape(rule: Rule) -> None:
    reasons = []
    if rule.together is not None:
        reasons.append("events in any order (all ... within) are not published for CUDA")
    if rule.alternatives:
        reasons.append("events of either type (or) are not published for CUDA")
    if rule.terminator.name == TIMER.name:
        reasons.append("a Timer as terminator is not published for CUDA")
    if rule.is_strict or rule.defines in rule.used_types:
        reasons.append("composite events of rules that depend on each other are not published")
    _refuse(rule, reasons)


def _refuse_steps(rule: Rule, plan: RulePlan) -> None:
    reasons = []
    if plan.slots > layout.SLOTS_MAX:
        reasons.append(f"more than {layout.SLOTS_MAX} parameters and aggregates")
    for step in plan.steps:
        if step.inner:
            reasons.append("an aggregate for each candidate of a selection")
        if step.kind is StepKind.AGGREGATE:
            reasons += _reasons_of_aggregate(step)
        programs = _program_of(step)
        reasons += [reason for program in programs for reason in _reasons_of(program)]
    reasons += [reason for value in plan.values for reason in _reasons_of(value)]
    _refuse(rule, reasons)


def _reasons_of_aggregate(step: Step) -> list[str]:
    if step.function is Function.COUNT:
        # What is counted is events: of a value it is those that have it.
        return []
    if (step.function, step.value_kind) not in _HOW:
        return [f"{step.function.value} of a {step.value_kind.value} is not published for CUDA"]
    return []


def _reasons_of(program: Program) -> list[str]:
    reasons = []
    if program.depth > layout.DEPTH:
        reasons.append(f"an expression of more than {layout.DEPTH} values at once")
    for one in program.code:
        if one.op >= Op.ABS_I:
            reasons.append("functions of numbers")
        if one.op is Op.TEXT:
            reasons.append("functions of strings on parameters")
        if one.op is Op.COMPARE_S and one.offset not in _EQUAL:
            reasons.append("strings on the device are compared for equality alone")
    return reasons
