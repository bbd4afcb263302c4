"""From a checked rule to plain tables: the plan that the CDP engine links and runs.

Thesis 5.4 turns a rule into columns and a column dependency graph. Here the graph is a straight
list of steps, since the text of a rule already names every event before it is used:

- a *column* is a type and the conditions that concern the event alone (static conditions); equal
  columns of different rules are one column;
- an *access* is a way into a column: the whole of it, or its entries with given values of up to
  two attributes, when the rule compares them for equality with something known before
  (``area = $a``). What neither column nor key decides is the *residue*, tested on candidates;
  its inequalities of one attribute are a *range* too, by which candidates are passed over;
- a *step* selects, negates, aggregates, computes or tests. A negation waits for the last selected
  event of its type, since the match's own events do not count (S6);
- an *aggregate* inside an expression becomes a step of its own that fills a slot before the
  expression is needed: its window and conditions never depend on the candidates of the event
  that it is a condition of, unless a parameter is bound there; then it is computed per candidate;
- an *expression* becomes a program in postfix order for a stack machine.

Rules are data to the kernels: nothing is compiled per rule.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace

from matcher.model import TIME_MAX, EventType, Kind, Value
from rules.bounds import Known, interval, known_comparison
from rules.pattern import (
    CANDIDATE,
    TIME,
    TIMER,
    Aggregate,
    And,
    Arithmetic,
    AttributeOf,
    Between,
    Clause,
    Compare,
    Comparison,
    Constraint,
    Convert,
    Expression,
    Function,
    Let,
    Literal,
    Negated,
    Negative,
    Not,
    Operator,
    Or,
    Policy,
    Rule,
    Selected,
    Slot,
    Timed,
    Window,
    Within,
    kind_of,
    nodes_of,
    with_operands,
)

KEY_MAX = 2
"""How many attributes one key may have; further equalities are tested on candidates."""


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
    """One instruction; ``value`` is a constant whose string is still text."""

    op: Op
    event: int = 0
    offset: int = 0
    value: Value = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, and the depth of stack that they need. An empty conjunction is ``TRUE``."""

    code: tuple[Instruction, ...]
    depth: int


TRUE = Program((), 0)
"""No condition at all."""


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """Events of ``type`` that satisfy the static ``conditions`` (over CANDIDATE).

    ``owner`` is the name of the rule that alone uses the column, because it consumes from it
    (S11), or empty for a column that rules share.
    """

    type: EventType
    conditions: tuple[Expression, ...]
    owner: str = ""


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """A column by the values of the attributes ``keys`` (numbers or TIME, ascending; none: all).

    ``reach`` is how long, in microseconds, the rule may look back for an entry.
    """

    column: ColumnPlan
    keys: tuple[int, ...]
    reach: int


@dataclass(frozen=True, slots=True)
class Probe:
    """The value that key attribute must have: a program, and its kind."""

    program: Program
    kind: Kind


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that an attribute must not pass, nor have itself where the bound ``is_strict``."""

    program: Program
    kind: Kind
    is_strict: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of one numeric attribute; the residue tests them too."""

    attribute: int
    kind: Kind
    lower: Bound | None
    upper: Bound | None


class StepKind(enum.IntEnum):
    """What a step does."""

    SELECT = 0
    NEGATE = 1
    TIMED = 2
    TEST = 3
    LET = 4
    AGGREGATE = 5


@dataclass(frozen=True, slots=True)
class Span:
    """An interval before the match: ``earlier`` is an event number, or -1 when the interval is
    ``duration`` microseconds long; ``later`` is the event at which it ends.
    """

    later: int
    earlier: int = -1
    duration: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a rule. Which fields mean something depends on ``kind``.

    SELECT: ``event``, ``policy``, ``rank``, ``access``, ``probes``, ``ordered``, ``residue``,
    ``span``, ``strict``, ``inner`` (aggregates to compute per candidate, before the residue).
    NEGATE: the same without policy. TIMED: ``event``, ``span``. TEST: ``residue``.
    LET: ``slot``, ``program``. AGGREGATE: ``slot``, ``function``, ``attribute``,
    ``attribute_kind``, access and span as above.
    """

    kind: StepKind
    event: int = 0
    policy: Policy = Policy.EACH
    rank: int = 0
    access: AccessPlan | None = None
    probes: tuple[Probe, ...] = ()
    ordered: Range | None = None
    residue: Program = TRUE
    span: Span = Span(0)
    strict: bool = False
    inner: tuple[Step, ...] = ()
    slot: int = 0
    program: Program = TRUE
    function: Function = Function.COUNT
    attribute: int | None = None
    attribute_kind: Kind = Kind.INT


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule as tables. ``terminator`` is the column whose events make the rule run."""

    rule: Rule
    terminator: ColumnPlan
    steps: tuple[Step, ...]
    values: tuple[Program, ...]
    event_types: tuple[EventType, ...]
    slots: int
    reach: int


def compile_rule(rule: Rule) -> RulePlan:
    """The plan of a rule whose ``strict`` flags are decided (``dependencies.arrange``)."""
    return _Compiler(rule).compile()


class _Compiler:
    """Compiles one rule: owner of the slots and of the reach of each event."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.slots = len(rule.slots)
        self.reach = [0]
        self.consumed = {
            (rule.terminator if event == 0 else rule.selected[event - 1].type).name
            for event in rule.consuming
        }

    def compile(self) -> RulePlan:
        rule = self.rule
        conditions = (*rule.conditions, *_timer_conditions(rule))
        terminator = self._column(rule.terminator, _as_candidate(conditions, 0))
        steps: list[Step] = []
        for clause in _negations_last(rule.clauses):
            steps.extend(self._steps(clause))
        values = []
        for value in rule.values:
            plain, inner = self._hoist(value)
            steps.extend(inner)
            values.append(_program(plain))
        return RulePlan(
            rule,
            terminator,
            tuple(steps),
            tuple(values),
            (rule.terminator, *(clause.type for clause in rule.selected)),
            self.slots,
            max((step.access.reach for step in _all_steps(steps) if step.access), default=0),
        )

    def _column(self, type_: EventType, conditions: tuple[Expression, ...]) -> ColumnPlan:
        owner = self.rule.name if type_.name in self.consumed else ""
        return ColumnPlan(type_, tuple(sorted(set(conditions), key=repr)), owner)

    def _steps(self, clause: Clause) -> list[Step]:
        match clause:
            case Selected():
                return self._select(clause)
            case Negated():
                conditions, steps = self._hoist_all(clause.conditions)
                access, probes, ordered, residue = self._access(
                    clause.type, conditions, CANDIDATE, clause.window
                )
                negation = Step(
                    StepKind.NEGATE,
                    access=access,
                    probes=probes,
                    ordered=ordered,
                    residue=residue,
                    span=_span(clause.window),
                    strict=clause.strict,
                )
                return [*steps, negation]
            case Timed():
                return [Step(StepKind.TIMED, event=clause.event, span=_span(clause.window))]
            case Constraint():
                condition, steps = self._hoist(clause.condition)
                return [*steps, Step(StepKind.TEST, residue=conjunction([condition]))]
            case Let():
                value, steps = self._hoist(clause.value)
                return [*steps, Step(StepKind.LET, slot=clause.slot, program=_program(value))]

    def _select(self, clause: Selected) -> list[Step]:
        conditions, aggregates = self._hoist_all(clause.conditions)
        # An aggregate whose conditions name the selected event itself waits for the candidate,
        # and so does every aggregate that reads one that waits.
        before: list[Step] = []
        inner: list[Step] = []
        waiting: set[int] = set()
        for step in aggregates:
            if _reads(step, clause.event, waiting):
                waiting.add(step.slot)
                inner.append(step)
            else:
                before.append(step)
        while len(self.reach) <= clause.event:
            self.reach.append(0)
        self.reach[clause.event] = self._reach(clause.window)
        access, probes, ordered, residue = self._access(
            clause.type, conditions, clause.event, clause.window, waiting
        )
        selection = Step(
            StepKind.SELECT,
            event=clause.event,
            policy=clause.policy,
            rank=clause.rank,
            access=access,
            probes=probes,
            ordered=ordered,
            residue=residue,
            span=_span(clause.window),
            strict=clause.strict,
            inner=tuple(inner),
        )
        return [*before, selection]

    def _access(
        self,
        type_: EventType,
        conditions: Iterable[Expression],
        event: int,
        window: Window,
        waiting: Iterable[int] = (),
    ) -> tuple[AccessPlan, tuple[Probe, ...], Range | None, Program]:
        """Divide conditions into column, key, range and residue."""
        static: list[Expression] = []
        keys: dict[int, Expression] = {}
        residue: list[Expression] = []
        ranges: list[Known] = []
        for condition in conditions:
            if _concerns_only(condition, event):
                static.append(condition)
                continue
            known = known_comparison(condition, event, set(waiting))
            is_equality = known is not None and known.comparison is Comparison.EQUAL
            if known and is_equality and len(keys) < KEY_MAX:
                if keys.setdefault(known.attribute.attribute, known.value) is known.value:
                    continue
            elif known:
                ranges.append(known)
            residue.append(condition)
        column = self._column(type_, _as_candidate(static, event))
        order = sorted(keys)
        probes = tuple(
            Probe(_program(keys[attribute]), keys[attribute].kind) for attribute in order
        )
        return (
            AccessPlan(column, tuple(order), self._reach(window)),
            probes,
            _range(ranges),
            conjunction(residue),
        )

    def _reach(self, window: Window) -> int:
        if isinstance(window, Within):
            return min(TIME_MAX, self.reach[window.anchor] + window.duration)
        return self.reach[window.earlier]

    def _hoist_all(self, expressions: Iterable[Expression]) -> tuple[list[Expression], list[Step]]:
        plain, steps = [], []
        for expression in expressions:
            simple, inner = self._hoist(expression)
            plain.append(simple)
            steps.extend(inner)
        return plain, steps

    def _hoist(self, expression: Expression) -> tuple[Expression, list[Step]]:
        """Replace the aggregates of an expression by slots, and give the steps that fill them."""
        steps: list[Step] = []

        def visit(node: Expression) -> Expression:
            if not isinstance(node, Aggregate):
                return with_operands(node, visit)
            conditions = [visit(item) for item in node.conditions]
            slot = self.slots
            self.slots += 1
            access, probes, ordered, residue = self._access(
                node.type, conditions, CANDIDATE, node.window
            )
            steps.append(
                Step(
                    StepKind.AGGREGATE,
                    access=access,
                    probes=probes,
                    ordered=ordered,
                    residue=residue,
                    span=_span(node.window),
                    strict=node.strict,
                    slot=slot,
                    function=node.function,
                    attribute=node.attribute,
                    attribute_kind=Kind.INT
                    if node.attribute is None
                    else kind_of(node.type, node.attribute),
                )
            )
            return Slot(slot, node.kind)

        return visit(expression), steps


# --- the order of steps ----------------------------------------------------------------------


def _negations_last(clauses: tuple[Clause, ...]) -> list[Clause]:
    """The clauses, each negation moved behind the last selection of its type (S6).

    A negation only filters complete matches, so where it stands changes no result; but the
    match's own events, those of later clauses too, do not count for it.
    """
    ordered: list[Clause] = []
    delayed: list[tuple[int, Negated]] = []
    for place, clause in enumerate(clauses):
        if isinstance(clause, Negated):
            later = [
                other
                for other in range(place + 1, len(clauses))
                if isinstance(found := clauses[other], Selected)
                and found.type.name == clause.type.name
            ]
            if later:
                delayed.append((later[-1], clause))
                continue
        ordered.append(clause)
        ordered.extend(negation for last, negation in delayed if last == place)
    return ordered


def _all_steps(steps: Iterable[Step]) -> Iterable[Step]:
    for step in steps:
        yield step
        yield from step.inner


def _span(window: Window) -> Span:
    match window:
        case Within():
            return Span(window.anchor, -1, window.duration)
        case Between():
            return Span(window.later, window.earlier)


def _timer_conditions(rule: Rule) -> list[Expression]:
    """Fields finer than the finest that a Timer's conditions mention must be 0 (S13)."""
    if rule.terminator.name != TIMER.name:
        return []
    mentioned = {
        node.attribute
        for condition in rule.conditions
        for node in nodes_of(condition)
        if isinstance(node, AttributeOf) and node.attribute != TIME
    }
    # S, M and H are numbers 0 to 2; day, month and D are all as coarse as a day.
    finest = min([*mentioned & {0, 1, 2}, 3]) if mentioned else 0
    return [
        Compare(Comparison.EQUAL, AttributeOf(0, field, Kind.INT), Literal(0, Kind.INT))
        for field in range(finest)
    ]


# --- expressions -----------------------------------------------------------------------------


def _concerns_only(node: Expression, event: int) -> bool:
    """Whether an expression reads nothing but attributes of ``event`` and literals."""
    return all(
        not isinstance(part, Slot | Aggregate)
        and not (isinstance(part, AttributeOf) and part.event != event)
        for part in nodes_of(node)
    )


def _as_candidate(conditions: Iterable[Expression], event: int) -> tuple[Expression, ...]:
    """The conditions of ``event`` as those of a column, which every rule may share."""

    def visit(node: Expression) -> Expression:
        if isinstance(node, AttributeOf):
            return replace(node, event=CANDIDATE) if node.event == event else node
        return with_operands(node, visit)

    return tuple(visit(condition) for condition in conditions)


def _range(comparisons: Iterable[Known]) -> Range | None:
    """The programs of the interval that comparisons give, if they give one."""
    found = interval(comparisons)
    if found is None:
        return None
    attribute = found.attribute
    return Range(attribute.attribute, attribute.kind, _bound(found.lower), _bound(found.upper))


def _bound(known: Known | None) -> Bound | None:
    if known is None:
        return None
    return Bound(_program(known.value), known.value.kind, known.is_strict)


def _reads(step: Step, event: int, slots: set[int]) -> bool:
    """Whether an aggregate step reads an attribute of ``event``, or one of ``slots``."""
    programs = [step.residue, *(probe.program for probe in step.probes)]
    return any(
        (instruction.op is Op.LOAD and instruction.event == frame_place(event))
        or (instruction.op is Op.SLOT and instruction.offset in slots)
        for program in programs
        for instruction in program.code
    )


def frame_place(event: int) -> int:
    """Where the kernels keep event number ``event``: place 0 is the candidate's."""
    return event + 1


def conjunction(conditions: Iterable[Expression]) -> Program:
    """A program that checks one condition after another and stops at the first that fails."""
    code: list[Instruction] = []
    depth = 0
    for condition in conditions:
        depth = max(depth, _emit(condition, code))
        code.append(Instruction(Op.CHECK))
    return Program((*code, Instruction(Op.END)), depth) if code else TRUE


def _program(expression: Expression) -> Program:
    """A program that leaves the expression's value on the stack."""
    code: list[Instruction] = []
    depth = _emit(expression, code)
    return Program((*code, Instruction(Op.END)), depth)


def _emit(node: Expression, code: list[Instruction]) -> int:
    """Append the instructions of a node; gives the depth of stack they need."""
    match node:
        case Literal():
            value = float(node.value) if node.kind is Kind.FLOAT else node.value
            code.append(Instruction(Op.CONST, value=value))
            return 1
        case AttributeOf():
            code.append(Instruction(Op.LOAD, frame_place(node.event), node.attribute))
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
        case Arithmetic():
            return _emit_arithmetic(node, code)
        case Compare():
            depth = max(_emit(node.left, code), 1 + _emit(node.right, code))
            op = _COMPARE[node.left.kind, node.right.kind]
            code.append(Instruction(op, offset=COMPARISONS[node.comparison]))
            return depth
        case And() | Or():
            depths = [place + _emit(item, code) for place, item in enumerate(node.operands)]
            op = Op.AND if isinstance(node, And) else Op.OR
            code.append(Instruction(op, offset=len(node.operands)))
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


def _emit_as_float(node: Expression, code: list[Instruction]) -> int:
    depth = _emit(node, code)
    if node.kind is Kind.INT:
        code.append(Instruction(Op.TO_FLOAT))
    return depth
