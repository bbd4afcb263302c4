"""How much a rule has to do, by what recent events are like: the figures that ``auto`` goes by.

A sample of each type's last events tells how many of them a column takes, how many share a key, and
how many let a condition pass; rates tell how many a window holds. The processor looks up what a key
leaves, stops at what it has found, and asks summaries for plain aggregates
(:mod:`rules.engine.choice.costs`); a device looks at all that the first key leaves, or a range of
values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matcher.model import AnyArray, EventBatch, StringColumn
from rules.engine.choice.costs import SELECTIVITY, Costs, Rates, estimate
from rules.engine.gpu.kernels import GATHER
from rules.engine.gpu.linking import as_term, conditions_of
from rules.engine.gpu.memory import TAIL_SHARE
from rules.pattern import Policy
from rules.planning.columnar import satisfied
from rules.planning.plan import AccessPlan, ColumnPlan, RulePlan, Step, StepKind
from rules.planning.program import TRUE, frame_place
from rules.planning.sequences import AutomatonPlan, selections_of
from rules.terms import (
    CANDIDATE,
    TIME,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Literal,
    Slot,
    nodes_of,
    rewritten,
)

SAMPLE = 1_024
"""Recent events of a type that are looked at."""
BINDINGS = 8
"""Events that stand for those that a condition compares candidates with."""
SELDOM = 0.05
"""So many of the events tried are said to fit where none does."""
SUMMED_UP = 64
"""Candidates that an aggregate looks at at most, where a summary has the others."""
BLOCK = 16
"""Candidates that bounds of an attribute pass over together (kernels.pyramid)."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a rule's terminators: how many in a microsecond, and what one of them makes: the
    ``cpu``'s nanoseconds, and the events that a device looks at, with ``simple`` comparisons or by
    ``programs``.
    """

    terminators: float
    cpu: float
    simple: float
    programs: float


class Sampled:
    """Types and columns by their recent events. ``rates`` in events a microsecond, by type."""

    def __init__(
        self, rates: Mapping[str, float], recent: Callable[[str], EventBatch | None]
    ) -> None:
        self._rates, self._recent = rates, recent
        self._types: dict[str, EventBatch | None] = {}
        self._columns: dict[ColumnPlan, tuple[float, EventBatch | None]] = {}

    def column(self, plan: ColumnPlan) -> tuple[float, EventBatch | None]:
        """How many events of a column come in a microsecond, and some of them."""
        if plan not in self._columns:
            self._columns[plan] = self._look(plan)
        return self._columns[plan]

    def _look(self, plan: ColumnPlan) -> tuple[float, EventBatch | None]:
        name = plan.type.name
        if name not in self._types:
            self._types[name] = self._recent(name)
        batch, rate = self._types[name], self._rates.get(name, 0.0)
        if batch is None or not plan.conditions:
            return rate, batch
        fits = satisfied(plan.conditions, batch)
        return rate * float(fits.mean()), batch.take(fits) if fits.any() else None

    def share(self, column: ColumnPlan, keys: Sequence[int]) -> float:
        """How likely two events of a column have the same values of these attributes."""
        _, batch = self.column(column)
        if not keys or batch is None or len(batch) < 2:
            return 1.0
        words = np.stack([_words(batch, key) for key in keys])
        counts = np.unique(words, axis=1, return_counts=True)[1].astype(np.float64)
        return float((counts * (counts - 1)).sum()) / (len(batch) * (len(batch) - 1))


def _words(batch: EventBatch, attribute: int) -> AnyArray:
    column = batch.time if attribute == TIME else batch.columns[attribute]
    return (column.codes if isinstance(column, StringColumn) else column).astype(np.float64)


def work_of(
    plan: RulePlan, sampled: Sampled, costs: Costs, automaton: AutomatonPlan | None = None
) -> Work:
    """The work of a rule at present; on the processor by its ``automaton``, if that is less."""
    return _Walk(plan, sampled, costs).work(automaton)


class _Walk:
    """Goes through a rule's steps as an evaluation does."""

    def __init__(self, plan: RulePlan, sampled: Sampled, costs: Costs) -> None:
        self._plan, self._sampled, self._costs = plan, sampled, costs
        self._columns = [plan.terminator]  # of the rule's events
        self._columns += [one.access.column for one in selections_of(plan) if one.access]
        self._cpu = self._simple = self._programs = 0.0
        self._branches = 1.0

    def work(self, automaton: AutomatonPlan | None) -> Work:
        terminators, _ = self._sampled.column(self._plan.terminator)
        for step in self._plan.steps:
            if step.access is not None:
                self._take(step, step.access)
        cpu = self._cpu
        if automaton is not None and terminators:
            found = estimate(self._plan, automaton, self._rates(terminators), self._costs)
            cpu -= min(cpu, max(0.0, found.columns - found.automaton) / terminators)
        return Work(terminators, cpu, self._simple, self._programs)

    def _rates(self, terminators: float) -> Rates:
        def keys_of(access: AccessPlan) -> float:
            return 1.0 / max(self._sampled.share(access.column, access.keys), 1.0 / SAMPLE**2)

        events = {
            step.event: self._sampled.column(step.access.column)[0]
            for step in selections_of(self._plan)
            if step.access is not None
        }
        return Rates(terminators, events, keys_of)

    def _take(self, step: Step, access: AccessPlan) -> None:
        rate, _ = self._sampled.column(access.column)
        duration = step.span.duration if step.span.earlier < 0 else access.reach / 2
        window = rate * duration
        found = window * self._sampled.share(access.column, access.keys)
        passing = self._passing(step, access)
        tested = _tested(step, found, passing)
        self._cpu += self._branches * (self._costs.probe + tested * self._costs.candidate)
        looked = self._branches * window * self._looked_at(step, access)
        if is_simple(step):
            self._simple += looked
        else:
            self._programs += looked
        fitting = found * passing
        if step.kind is StepKind.NEGATE:
            self._branches *= math.exp(-fitting)
        elif step.kind is StepKind.SELECT:
            is_each = step.policy is Policy.EACH
            self._branches *= fitting if is_each else 1.0 - math.exp(-fitting)

    def _looked_at(self, step: Step, access: AccessPlan) -> float:
        """Of the events of a window, how many a device looks at."""
        share = self._sampled.share(access.column, access.keys[:1])
        if step.ordered is None or access.keys:
            return share
        own, attribute = _own(step), step.ordered.attribute
        bounds = [one for one in step.conditions if _concerns(one, own, (attribute,))]
        in_range = self._share_of(bounds, own, access)
        return min(share, GATHER * in_range + 0.5 / TAIL_SHARE)

    def _passing(self, step: Step, access: AccessPlan) -> float:
        """Of the events that the key leaves, how many fit."""
        if step.residue is TRUE:
            return 1.0
        own = _own(step)
        asked = [one for one in step.conditions if not _is_served(one, own, access.keys)]
        return self._share_of(asked, own, access)

    def _share_of(self, asked: Sequence[Expression], own: int, access: AccessPlan) -> float:
        """Of the events of a column, how many some conditions hold for."""
        known = [one for one in asked if not any(isinstance(n, Slot) for n in nodes_of(one))]
        guessed = SELECTIVITY ** (len(asked) - len(known))
        _, batch = self._sampled.column(access.column)
        if batch is None or not known:
            return guessed
        hits = tried = 0
        for number in range(BINDINGS):
            bound = self._bound(known, own, number)
            if bound is None:
                return SELECTIVITY
            try:
                hits += int(np.count_nonzero(satisfied(bound, batch)))
            except ValueError:  # of a form that is not evaluated in columns
                return SELECTIVITY
            tried += len(batch)
        return guessed * max(hits, SELDOM) / tried

    def _bound(
        self, conditions: Sequence[Expression], own: int, number: int
    ) -> list[Expression] | None:
        """Conditions with the values of some events in place of all but the candidate's; None
        where there are no such events.
        """
        rows: dict[int, tuple[EventBatch, int]] = {}
        for condition in conditions:
            for node in nodes_of(condition):
                if isinstance(node, AttributeOf) and node.event not in (own, *rows):
                    _, batch = self._sampled.column(self._columns[node.event])
                    if batch is None:
                        return None
                    rows[node.event] = batch, (2 * number + 1) * len(batch) // (2 * BINDINGS)

        def instead(node: Expression) -> Expression | None:
            if not isinstance(node, AttributeOf):
                return None
            return node if node.event == own else _literal(node, *rows[node.event])

        return [rewritten(condition, instead) for condition in conditions]


def _literal(node: AttributeOf, batch: EventBatch, row: int) -> Literal:
    column = batch.time if node.attribute == TIME else batch.columns[node.attribute]
    if isinstance(column, StringColumn):
        return Literal(column[row], node.kind)
    return Literal(column[row].item(), node.kind)


def _own(step: Step) -> int:
    """The number by which a step's conditions call the candidate."""
    return step.event if step.kind is StepKind.SELECT else CANDIDATE


def _is_served(condition: Expression, own: int, keys: Sequence[int]) -> bool:
    """Whether an access by these keys leaves only events that a condition holds for."""
    return (
        isinstance(condition, Compare)
        and condition.comparison is Comparison.EQUAL
        and _concerns(condition, own, keys)
    )


def _concerns(condition: Expression, own: int, attributes: Sequence[int]) -> bool:
    """Whether a condition compares one of these attributes of an event as it is."""
    return isinstance(condition, Compare) and any(
        isinstance(side, AttributeOf) and side.event == own and side.attribute in attributes
        for side in (condition.left, condition.right)
    )


def _tested(step: Step, found: float, passing: float) -> float:
    """How many candidates the processor tests, of those that it finds."""
    if step.kind is StepKind.AGGREGATE:
        is_plain = step.residue is TRUE and step.program is TRUE
        return min(found, SUMMED_UP) if is_plain else found
    is_each = step.kind is StepKind.SELECT and step.policy is Policy.EACH
    tested = found if is_each else min(found, max(1, step.rank) / passing)
    if step.ordered is not None:
        tested = min(tested, found * (min(1.0, BLOCK * passing) + BLOCK**-2))
    return tested


def is_simple(step: Step) -> bool:
    """Whether a device asks nothing of candidates but comparisons with what it knows before."""
    own = frame_place(step.event) if step.kind is StepKind.SELECT else 0
    return step.program is TRUE and all(
        as_term(condition, own) is not None for condition in conditions_of(step.residue)
    )
