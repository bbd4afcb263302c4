"""From a plan to sequence models (thesis 5.3.1): which events wait for which, and what is tested
on the way.

A rule is a tree: each selected event is anchored on another, the terminator at the root. Every
path from a leaf to the root is a *sequence model*, whose states are its events in the order of
time. With ``A() and each B() within 5 s from A and each C() within 5 s from B and each D() within
9 s from A`` there are two, ``C B A`` and ``D A``, which share their last state.

Law 1: what deletes a sequence, or keeps it from its next state, would fail every match that it
could become part of; so what is left is right, and the rest is decided at the terminator, where
the sequences are joined, by the steps of the rule's plan. A condition is tested as soon as the
events that it names are there, or others that equal them in every match.

Law 2: ``first`` and ``last`` choose among all events that fit, whatever becomes of them later
(tesla.md S3), so the choice is made among stored events, and sequences with another event are
discarded. Before the terminator this is done, and an older event superseded by a newer one, only
where nothing can change it: no consumption of the type, no other event of the match of that type
(S1), conditions that concern the two events alone.

Here steps look at every event of their column in a window: AIP as published has indexes of states,
and none of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rules.engine.chains.published.layout import CHECKED
from rules.pattern import Constraint, Policy
from rules.planning.plan import AccessPlan, RulePlan, Step, StepKind
from rules.planning.planner import concerns_only
from rules.planning.program import conjunction
from rules.planning.sequences import Equals, access_of, selections_of
from rules.terms import CANDIDATE, TERMINATOR, AttributeOf, Expression, nodes_of


@dataclass(frozen=True, slots=True)
class SequenceModel:
    """A path, the earliest event first and without the terminator, and the tests on the way: the
    one at place k when the path's event k arrives, the last one at the terminator.
    """

    path: tuple[int, ...]
    tests: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """The acts of an event that arrives at its state.

    ``like``: the attributes in which it must be like an older one to supersede it, None where it
    never does. ``choices``: selections, decided now, of the events that are anchored on it.
    ``bans``: negations to look at now, each with its place in the plan.
    """

    event: int
    like: tuple[int, ...] | None
    choices: tuple[Step, ...]
    bans: tuple[tuple[Step, int], ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """A negation between two events of one sequence: an event of it deletes sequences that have
    reached the earlier event, and not the ``later`` one. ``place`` is its place in the plan.
    """

    step: Step
    earlier: int
    later: int
    place: int


@dataclass(frozen=True, slots=True)
class PublishedPlan:
    """A rule's automaton model: the plan that joins sequences at the terminator, and the rest."""

    plan: RulePlan
    models: tuple[SequenceModel, ...]
    nodes: tuple[Node, ...]
    guards: tuple[Guard, ...]

    @property
    def arrivals(self) -> dict[int, AccessPlan]:
        """Nothing that differs from the plan's own accesses."""
        return {}

    @property
    def enumerations(self) -> tuple[Step, ...]:
        """The steps that are not the plan's: of models, then of nodes, then of guards."""
        return (
            *(test for model in self.models for test in model.tests),
            *(step for node in self.nodes for step in node.choices),
            *(step for node in self.nodes for step, _ in node.bans),
            *(guard.step for guard in self.guards),
        )


def published_of(plan: RulePlan) -> PublishedPlan:
    """The automaton model of an ordinary rule."""
    return _Models(plan).made()


class _Models:
    """Makes one automaton model."""

    def __init__(self, plan: RulePlan) -> None:
        self._plan = plan
        self._steps = {step.event: step for step in selections_of(plan)}
        self._anchors = {event: step.span.later for event, step in self._steps.items()}
        self._types = [type_.name for type_ in plan.event_types]
        self._consumed = {self._types[event] for event in plan.rule.consuming}

    def made(self) -> PublishedPlan:
        guards = tuple(self._guards())
        # The highest numbers first: an event is named after the one that it is anchored on.
        nodes = tuple(self._node(event) for event in sorted(self._steps, reverse=True))
        models = tuple(SequenceModel(path, self._tests(path)) for path in self._paths)
        checked = {guard.place for guard in guards}
        checked |= {place for node in nodes for _, place in node.bans}
        steps = tuple(
            self._joining(step, place in checked) for place, step in enumerate(self._plan.steps)
        )
        return PublishedPlan(replace(self._plan, steps=steps), models, nodes, guards)

    @cached_property
    def _paths(self) -> tuple[tuple[int, ...], ...]:
        leaves = sorted(self._steps.keys() - set(self._anchors.values()))
        return tuple(tuple(self._up_from(leaf)) for leaf in leaves)

    def _up_from(self, event: int) -> Iterator[int]:
        """An event, the one that it is anchored on, and so on up to before the terminator."""
        while event != TERMINATOR:
            yield event
            event = self._anchors[event]

    # --- conditions ------------------------------------------------------------------------

    @cached_property
    def _equals(self) -> dict[int, Equals]:
        """For each event, the attributes that the clauses before its own make equal."""
        found, equals = {}, Equals()
        for event, step in sorted(self._steps.items()):
            found[event] = equals.copy()
            equals.learn(step.conditions)
        found[CANDIDATE] = equals
        return found

    def _restated(self, step: Step, number: int, known: set[int]) -> list[Expression] | None:
        """The conditions of a step that no column decides, by events that are known; None where
        one of them names others.
        """
        found = []
        for condition in _dynamic(step, number):
            restated = self._equals[number].restated(condition, known)
            if restated is None:
                return None
            found.append(restated)
        return found

    def _tests(self, path: tuple[int, ...]) -> tuple[Step, ...]:
        """The tests as each event of a path arrives, and at the terminator."""
        tests: list[list[Expression]] = [[] for _ in range(len(path) + 1)]
        wanted = [
            (condition, self._equals[event], place)
            for place, event in enumerate(path)
            for condition in _dynamic(self._steps[event], event)
        ]
        wanted += [
            (clause.condition, Equals(), 0)
            for clause in self._plan.rule.clauses
            if isinstance(clause, Constraint)
        ]
        for condition, equals, first in wanted:
            for place in range(first, len(path) + 1):
                known = {*path[: place + 1], *([TERMINATOR] if place == len(path) else [])}
                restated = equals.restated(condition, known)
                if restated is not None:
                    tests[place].append(restated)
                    break
        return tuple(_test(conditions) for conditions in tests)

    def _joining(self, step: Step, is_checked: bool) -> Step:
        """A step of the plan without an index; of ``each`` without what its model has tested."""
        plain = _plain(step)
        if step.kind is StepKind.NEGATE and is_checked:
            return replace(plain, rank=CHECKED)
        if step.kind is not StepKind.SELECT or step.policy is not Policy.EACH:
            return plain
        known = {TERMINATOR, *self._up_from(step.event)}
        equals = self._equals[step.event]
        left = [
            condition
            for condition in _dynamic(step, step.event)
            if equals.restated(condition, known) is None
        ]
        return replace(plain, residue=conjunction(left))

    # --- what is decided before the terminator ---------------------------------------------

    def _is_settled(self, step: Step) -> bool:
        """Whether the choice of a single selection is the same whatever else is in the match."""
        type_ = self._types[step.event]
        return (
            step.policy is not Policy.EACH
            and not step.inner
            and type_ not in self._consumed
            and type_ not in self._types[: step.event]
        )

    def _node(self, event: int) -> Node:
        step = self._steps[event]
        like = None
        if step.policy is Policy.LAST and step.rank == 1 and self._is_settled(step):
            like = _read_of(event, _dynamic(step, event))
        return Node(event, like, tuple(self._choices(event)), tuple(self._bans(event)))

    def _choices(self, anchor: int) -> Iterator[Step]:
        for event, step in self._steps.items():
            if self._anchors[event] == anchor and self._is_settled(step):
                conditions = self._restated(step, event, {event, anchor})
                if conditions is not None:
                    yield replace(_plain(step), residue=conjunction(conditions))

    def _negations(self) -> Iterator[tuple[int, Step]]:
        """The negations of types that no event of a match is of, and their places."""
        for place, step in enumerate(self._plan.steps):
            if step.kind is StepKind.NEGATE and access_of(step).column.type.name not in self._types:
                yield place, step

    def _bans(self, event: int) -> Iterator[tuple[Step, int]]:
        for place, step in self._negations():
            if step.span.later == event and step.span.earlier < 0:
                conditions = self._restated(step, CANDIDATE, {CANDIDATE, event})
                if conditions is not None:
                    yield replace(_plain(step), residue=conjunction(conditions)), place

    def _guards(self) -> Iterator[Guard]:
        for place, step in self._negations():
            earlier, later = step.span.earlier, step.span.later
            if earlier < 1 or later not in (*self._up_from(earlier), TERMINATOR):
                continue
            conditions = self._restated(step, CANDIDATE, {CANDIDATE, earlier})
            if conditions is not None and later != earlier:
                plain = replace(_plain(step), residue=conjunction(conditions))
                yield Guard(plain, earlier, later, place)


def _plain(step: Step) -> Step:
    """A step, and what belongs to it, that looks at every event of its column."""
    if step.access is None:
        return step
    number = step.event if step.kind is StepKind.SELECT else CANDIDATE
    return replace(
        step,
        access=AccessPlan(step.access.column, (), step.access.reach),
        probes=(),
        ordered=None,
        residue=conjunction(_dynamic(step, number)),
        inner=tuple(map(_plain, step.inner)),
    )


def _dynamic(step: Step, number: int) -> list[Expression]:
    """The conditions of a step that its column does not decide (thesis 5.6)."""
    return [one for one in step.conditions if not concerns_only(one, number)]


def _test(conditions: Sequence[Expression]) -> Step:
    return Step(StepKind.TEST, residue=conjunction(conditions))


def _read_of(event: int, conditions: Sequence[Expression]) -> tuple[int, ...]:
    """The attributes of an event that conditions read, by number."""
    return tuple(
        sorted(
            {
                node.attribute
                for condition in conditions
                for node in nodes_of(condition)
                if isinstance(node, AttributeOf) and node.event == event
            }
        )
    )
