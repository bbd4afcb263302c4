"""Makes the plan of a rule: divides its conditions, hoists its aggregates, orders its steps.

What the parts of a plan are, and why, stands in :mod:`rules.planning.plan`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from matcher.model import TIME_MAX, EventType, Kind
from rules.pattern import TIMER, ZONE, Clause, Constraint, Let, Negated, Rule, Selected, Timed
from rules.planning.bounds import Known, interval, known_comparison
from rules.planning.plan import (
    AccessPlan,
    Bound,
    ColumnPlan,
    Probe,
    Range,
    RulePlan,
    Span,
    Step,
    StepKind,
    laid_out,
)
from rules.planning.program import Op, Program, conjunction, frame_place, program
from rules.planning.variants import variants
from rules.terms import (
    CANDIDATE,
    PREVIOUS,
    TIME,
    Aggregate,
    AttributeOf,
    Between,
    Compare,
    Comparison,
    Expression,
    Literal,
    Run,
    Slot,
    Window,
    Within,
    has_aggregates,
    nodes_of,
    rewritten,
)
from rules.zones import zone_of

KEY_MAX = 2
"""How many attributes one key may have; further equalities are tested on candidates."""


def compile_rule(rule: Rule) -> RulePlan:
    """The plan of an ordinary rule, its ``strict`` flags decided (``dependencies.arrange``)."""
    (plan,) = _plans((rule,))
    return plan


def plans_of(rule: Rule) -> tuple[RulePlan, ...]:
    """The plans of a rule's variants: none shares columns of what one of them consumes."""
    return _plans(variants(rule))


def _plans(rules: Sequence[Rule]) -> tuple[RulePlan, ...]:
    consumed = {
        (rule.terminator if event == 0 else rule.selected[event - 1].type).name
        for rule in rules
        for event in rule.consuming
    }
    return tuple(_Compiler(rule, consumed).compile() for rule in rules)


class _Compiler:
    """Compiles one rule: owner of the slots and of the reach of each event."""

    def __init__(self, rule: Rule, consumed: Collection[str]) -> None:
        self.rule = rule
        self.consumed = consumed
        self.slots = len(rule.slots)
        self.reach = [0]

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
            values.append(program(plain))
        counts = self._consumed_runs(steps)
        steps.extend(counts)
        return RulePlan(
            rule,
            terminator,
            tuple(steps),
            tuple(values),
            (rule.terminator, *(clause.type for clause in rule.selected)),
            self.slots,
            max((step.access.reach for step in laid_out(steps) if step.access), default=0),
            len(counts),
        )

    def _consumed_runs(self, steps: list[Step]) -> list[Step]:
        """The steps that count the events of consumed runs (S11), and, in ``steps``, those that
        these need.
        """
        counts = []
        for clause in self.rule.selected:
            if clause.event in self.rule.consuming and clause.iteration is not None:
                _, (*before, count) = self._hoist(clause.iteration[1])
                steps.extend(before)
                counts.append(count)
        return counts

    def _column(self, type_: EventType, conditions: tuple[Expression, ...]) -> ColumnPlan:
        owner = self.rule.name if type_.name in self.consumed else ""
        if len(conditions) > 1:  # columns are equal whatever the order of what they ask for
            conditions = tuple(sorted(set(conditions), key=repr))
        return ColumnPlan(type_, conditions, owner)

    def _steps(self, clause: Clause) -> list[Step]:
        match clause:
            case Selected():
                return self._select(clause)
            case Negated():
                conditions, steps = self._hoist_all(clause.conditions)
                return [*steps, self._search(StepKind.NEGATE, clause, conditions, CANDIDATE)]
            case Timed():
                return [Step(StepKind.TIMED, event=clause.event, span=_span(clause.window))]
            case Constraint():
                condition, steps = self._hoist(clause.condition)
                return [*steps, Step(StepKind.TEST, residue=conjunction([condition]))]
            case Let():
                value, steps = self._hoist(clause.value)
                return [*steps, Step(StepKind.LET, slot=clause.slot, program=program(value))]

    def _select(self, clause: Selected) -> list[Step]:
        before, selection = self._selection(clause)
        rivals = []
        for rival in clause.rivals:
            steps, step = self._selection(rival)
            before.extend(steps)
            rivals.append(step)
        return [*before, replace(selection, rivals=tuple(rivals)) if rivals else selection]

    def _selection(self, clause: Selected) -> tuple[list[Step], Step]:
        """A selection without its rivals, and the steps before it."""
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
        selection = self._search(
            StepKind.SELECT,
            clause,
            conditions,
            clause.event,
            waiting,
            event=clause.event,
            policy=clause.policy,
            rank=clause.rank,
            inner=tuple(inner),
            run=clause.event if clause.iteration else 0,
        )
        return before, selection

    def _search(
        self,
        kind: StepKind,
        sought: Selected | Negated | Aggregate,
        asked: Sequence[Expression],
        candidate: int,
        waiting: Iterable[int] = (),
        **more: Any,
    ) -> Step:
        """The step that looks for an event in a window: what is asked of it becomes column, key,
        range and residue. ``candidate`` is its number in there, ``more`` are other fields of the
        step.
        """
        static: list[Expression] = []
        rest: list[Expression] = []
        for condition in asked:
            (static if concerns_only(condition, candidate) else rest).append(condition)
        column = self._column(sought.type, _as_candidate(static, candidate))
        keys, probes, ordered, residue = divided(rest, candidate, waiting)
        return Step(
            kind,
            access=AccessPlan(column, keys, self._reach(sought.window)),
            probes=probes,
            ordered=ordered,
            residue=residue,
            span=_span(sought.window),
            strict=sought.strict,
            conditions=tuple(asked),
            **more,
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
        if not has_aggregates(expression):
            return expression, steps
        return rewritten(expression, partial(self._slot_instead, steps)), steps

    def _slot_instead(self, steps: list[Step], node: Expression) -> Slot | None:
        """The slot of an aggregate, and of those in its conditions before; steps fill them."""
        if not isinstance(node, Aggregate):
            return None
        instead = partial(self._slot_instead, steps)
        conditions = [rewritten(item, instead) for item in node.conditions]
        slot = self.slots
        self.slots += 1
        steps.append(
            self._search(
                StepKind.AGGREGATE,
                node,
                conditions,
                CANDIDATE,
                slot=slot,
                function=node.function,
                **_aggregated(node.value),
                **self._run(node.run),
            )
        )
        return Slot(slot, node.kind)

    def _run(self, run: Run | None) -> dict[str, Any]:
        """The fields of a step that say which run it is of."""
        if run is None:
            return {}
        links = conjunction(rewritten(one, self._neighbour) for one in run.links)
        return {
            "run": run.event,
            "neighbour": self._behind,
            "links": links,
            "most": run.most,
        }

    @property
    def _behind(self) -> int:
        """The number behind those of the events of a match."""
        return 1 + len(self.rule.selected)

    def _neighbour(self, node: Expression) -> Expression | None:
        """The attribute of the event before another in its run, by the number that it has here."""
        if not isinstance(node, AttributeOf) or node.event != PREVIOUS:
            return None
        return AttributeOf(self._behind, node.attribute, node.kind)


def _aggregated(value: Expression | None) -> dict[str, Any]:
    """The fields of a step that say what is aggregated: an attribute, or a program's value."""
    if value is None:
        return {}
    if isinstance(value, AttributeOf) and value.event == CANDIDATE:
        return {"attribute": value.attribute, "value_kind": value.kind}
    return {"program": program(value), "value_kind": value.kind}


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


def _span(window: Window) -> Span:
    match window:
        case Within():
            return Span(window.anchor, -1, window.duration)
        case Between():
            return Span(window.later, window.earlier)


def _timer_conditions(rule: Rule) -> list[Expression]:
    """Fields finer than the finest that a Timer's conditions mention must be 0, and ticks be those
    of its zone (S13).
    """
    if rule.terminator.name != TIMER.name:
        return []
    mentioned = {
        node.attribute
        for condition in rule.conditions
        for node in nodes_of(condition)
        if isinstance(node, AttributeOf) and node.attribute not in (TIME, ZONE)
    }
    # S, M and H are numbers 0 to 2; day, month and D are all as coarse as a day.
    finest = min([*mentioned & {0, 1, 2}, 3]) if mentioned else 0
    zeros = [
        Compare(Comparison.EQUAL, AttributeOf(0, field, Kind.INT), Literal(0, Kind.INT))
        for field in range(finest)
    ]
    zone = AttributeOf(0, ZONE, Kind.STRING)
    return [*zeros, Compare(Comparison.EQUAL, zone, Literal(zone_of(rule), Kind.STRING))]


# --- expressions -----------------------------------------------------------------------------


def divided(
    conditions: Iterable[Expression], event: int, waiting: Iterable[int] = ()
) -> tuple[tuple[int, ...], tuple[Probe, ...], Range | None, Program]:
    """Divide conditions of candidates for an event into keys with their values, range and residue.

    ``waiting`` are slots that are filled for each candidate.
    """
    keys: dict[int, Expression] = {}
    residue: list[Expression] = []
    ranges: list[Known] = []
    for condition in conditions:
        known = known_comparison(condition, event, set(waiting))
        is_equality = known is not None and known.comparison is Comparison.EQUAL
        if known and is_equality and len(keys) < KEY_MAX:
            if keys.setdefault(known.attribute.attribute, known.value) is known.value:
                continue
        elif known:
            ranges.append(known)
        residue.append(condition)
    order = tuple(sorted(keys))
    probes = tuple(Probe(program(keys[attribute]), keys[attribute].kind) for attribute in order)
    return order, probes, _range(ranges), conjunction(residue)


def concerns_only(node: Expression, event: int) -> bool:
    """Whether an expression reads nothing but attributes of ``event`` and literals."""
    for part in nodes_of(node):
        if isinstance(part, AttributeOf):
            if part.event != event:
                return False
        elif isinstance(part, (Slot, Aggregate)):
            return False
    return True


def _as_candidate(conditions: Iterable[Expression], event: int) -> tuple[Expression, ...]:
    """The conditions of ``event`` as those of a column, which every rule may share."""

    def instead(node: Expression) -> Expression | None:
        if not isinstance(node, AttributeOf):
            return None
        return node if node.event != event else AttributeOf(CANDIDATE, node.attribute, node.kind)

    return tuple(rewritten(condition, instead) for condition in conditions)


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
    return Bound(program(known.value), known.value.kind, known.is_strict)


def _reads(step: Step, event: int, slots: set[int]) -> bool:
    """Whether an aggregate step reads an attribute of ``event``, or one of ``slots``."""
    programs = [step.residue, step.program, *(probe.program for probe in step.probes)]
    return step.run == event or any(
        (instruction.op is Op.LOAD and instruction.event == frame_place(event))
        or (instruction.op is Op.SLOT and instruction.offset in slots)
        for program in programs
        for instruction in program.code
    )
