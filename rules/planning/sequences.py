"""From a plan to sequence models: what incremental processing keeps of a rule (thesis 5.3, 5.6).

Every selected event of a rule but those anchored on the terminator waits, in a sequence, for the
event that it is anchored on. An event that others are anchored on is a *state*. A sequence that
has got as far as a state is known by the event that brought it there and by what it holds of the
events before: these are *links*, from that event to those anchored on it. So a rule's instances
are a graph: a path from a state's event along its links, down to events that nothing is anchored
on, is what the thesis calls a sequence instance. Paths share their ends instead of being copied,
and where several sequences meet in an event it has links of several kinds; a product of them is
never stored. An instance of one event is an entry of a shared column.

A rule is then evaluated over its states and links as over columns: the steps of its plan stay,
in their order, and selections look elsewhere:

- one anchored on the terminator, in an event that is a state, looks among the *instances* of that
  state: its column, less the events without a link where they need one;
- one anchored on another event looks among the *links* of that event, found by its identity.

Instances and links leave out only events of which the plan's own steps would find that they take
part in no match. What is tested on links is a condition that concerns the two linked events alone,
or does so by equalities that every match satisfies (``A.p = C.p`` is ``A.p = B.p`` where ``B.p =
C.p``). All else, negations and aggregates among it, is left to the steps, at the end.

``first`` and ``last`` choose among all events that fit, whatever becomes of them later (tesla.md
S3). So a state that they choose from holds events without links too; and links are left out for
better ones (the thesis's superseded instances) only when all conditions of the chosen event are
decided there. A link that is kept beyond the rank, one for each event of the same type that comes
earlier in the text, stands in where those are left out (S1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.model import Kind
from rules.pattern import Constraint, Policy
from rules.planning.plan import IDENTITY, AccessPlan, Probe, RulePlan, Step, StepKind
from rules.planning.planner import concerns_only, divided
from rules.planning.program import Instruction, Op, Program, conjunction, frame_place
from rules.terms import (
    TERMINATOR,
    Aggregate,
    AttributeOf,
    Compare,
    Comparison,
    Expression,
    Slot,
    nodes_of,
    rewritten,
)


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """Links from a state's event to those of one event that is anchored on it.

    ``step`` enumerates the candidates as a selection would. Of these ``kept`` are linked: the
    first, or the last and all that are simultaneous with the state's event (strictness, S12, is
    left to the evaluation); 0 for all. ``links`` is where they are entered.
    """

    step: Step
    kept: int
    links: AccessPlan


@dataclass(frozen=True, slots=True)
class StatePlan:
    """One state: ``event`` number, the ``arrivals`` it takes, and where its ``instances`` go.

    ``waits`` when an event of it is an instance only once every kind of link has been made;
    ``is_run`` when it is the last of a run (X4).
    """

    event: int
    arrivals: AccessPlan
    instances: AccessPlan
    waits: bool
    links: tuple[LinkPlan, ...]
    is_run: bool


@dataclass(frozen=True, slots=True)
class AutomatonPlan:
    """A rule's automaton: the plan that evaluates it, and its ``states``, the earliest first."""

    plan: RulePlan
    states: tuple[StatePlan, ...]

    @property
    def arrivals(self) -> Mapping[int, AccessPlan]:
        """For each event that reaches a state or is linked, where it enters as it comes."""
        linked = {link.step.event: link.step for state in self.states for link in state.links}
        found = {event: access_of(step) for event, step in linked.items()}
        return {**found, **{state.event: state.arrivals for state in self.states}}

    @property
    def enumerations(self) -> tuple[Step, ...]:
        """The steps that enumerate links, in the order of the states."""
        return tuple(link.step for state in self.states for link in state.links)


def automaton_of(plan: RulePlan) -> AutomatonPlan | None:
    """The automaton of a rule; None when it has no state, so that there is nothing to keep."""
    models = _Models(plan)
    return AutomatonPlan(models.evaluation(), models.states()) if models.inner else None


class _Models:
    """Makes one automaton. ``inner`` holds the numbers of the events that are states."""

    def __init__(self, plan: RulePlan) -> None:
        self._plan = plan
        # Variants of a rule, which differ in the types of their events, keep nothing together.
        types = "/".join(type_.name for type_ in plan.event_types)
        self._name = f"{plan.rule.name}/{types}"
        self._selections = {step.event: step for step in selections_of(plan)}
        anchors = {event: step.span.later for event, step in self._selections.items()}
        self.inner = states_of(plan)
        self._anchored = {
            state: [event for event, anchor in anchors.items() if anchor == state]
            for state in self.inner
        }
        self._pairs = _pair_conditions(self._selections)
        self._links = {
            event: self._link(event) for event, anchor in anchors.items() if anchor != TERMINATOR
        }

    # --- evaluation ------------------------------------------------------------------------

    def evaluation(self) -> RulePlan:
        """The plan, its selections looking among instances and links."""
        steps = [
            self._evaluated(step) if step.kind is StepKind.SELECT else step
            for step in self._plan.steps
        ]
        return replace(self._plan, steps=tuple(steps))

    def _evaluated(self, step: Step) -> Step:
        if step.event in self._links:
            undecided = [
                condition
                for condition, pair in zip(step.conditions, self._pairs[step.event], strict=True)
                if pair is None
            ]
            return replace(
                step,
                access=self._links[step.event].links,
                probes=_identity_of(step.span.later),
                ordered=None,
                residue=conjunction(undecided),
            )
        if step.event in self.inner:
            return replace(step, access=self._instances(step))
        return step

    # --- states ----------------------------------------------------------------------------

    def states(self) -> tuple[StatePlan, ...]:
        """The states; those whose events a state links to stand before it."""
        heights = self._heights()
        return tuple(self._state(event) for event in sorted(self.inner, key=heights.__getitem__))

    def _heights(self) -> Mapping[int, int]:
        """For each state, of how many the longest sequence up to it is."""
        heights = dict[int, int]()
        for event in reversed(self.inner):  # the text names an event before those anchored on it
            below = (heights[one] for one in self._anchored[event] if one in heights)
            heights[event] = 1 + max(below, default=0)
        return heights

    def _state(self, event: int) -> StatePlan:
        step = self._selections[event]
        link = self._links.get(event)
        access = access_of(step)
        return StatePlan(
            event,
            AccessPlan(access.column, (), access.reach),
            self._instances(step if link is None else link.step),
            step.policy is Policy.EACH,
            tuple(self._links[other] for other in self._anchored[event]),
            step.run > 0,
        )

    def _instances(self, step: Step) -> AccessPlan:
        """Where a step that selects a state's events looks for them."""
        access = access_of(step)
        return replace(access, derived=f"{self._name}/instances {step.event}")

    # --- links -----------------------------------------------------------------------------

    def _link(self, event: int) -> LinkPlan:
        step, pairs = self._selections[event], self._pairs[event]
        access = access_of(step)
        conditions = [  # the column decides those that concern the event alone
            pair for pair in pairs if pair is not None and not concerns_only(pair, event)
        ]
        if step.policy is Policy.EACH:
            conditions += self._constraints(event, step.span.later)
        keys, probes, ordered, residue = divided(conditions, event)
        enumeration = replace(
            step,
            access=AccessPlan(access.column, keys, access.reach),
            probes=probes,
            ordered=ordered,
            residue=residue,
            strict=False,
            inner=(),
        )
        if event in self.inner:
            enumeration = replace(enumeration, access=self._instances(enumeration))
        kept = step.rank + self._rivals(event) if None not in pairs else 0
        return LinkPlan(
            enumeration,
            kept if step.policy is not Policy.EACH else 0,
            AccessPlan(
                access.column,
                IDENTITY,
                access.reach,
                f"{self._name}/links {event}",
            ),
        )

    def _rivals(self, event: int) -> int:
        """How many events chosen earlier might be among the candidates of this one."""
        types = self._plan.event_types
        anchor = self._selections[event].span.later
        return sum(
            types[other].name == types[event].name for other in range(event) if other != anchor
        )

    def _constraints(self, event: int, anchor: int) -> Iterator[Expression]:
        """The constraints that concern an event, or it and the one that it is anchored on."""
        for clause in self._plan.rule.clauses:
            if isinstance(clause, Constraint):
                events = events_in(clause.condition)
                if events is not None and event in events and events <= {event, anchor}:
                    yield clause.condition


def selections_of(plan: RulePlan) -> list[Step]:
    """The steps that select the events of a match, in order."""
    return [step for step in plan.steps if step.kind is StepKind.SELECT]


def states_of(plan: RulePlan) -> list[int]:
    """The numbers of the events that an automaton has states for: those that others are anchored
    on, the terminator apart. Without any there is no automaton.
    """
    anchors = {step.span.later for step in selections_of(plan)}
    return sorted(anchors - {TERMINATOR})


def access_of(step: Step) -> AccessPlan:
    """Where a selection looks."""
    assert step.access is not None, "selections have an access"
    return step.access


def _identity_of(event: int) -> tuple[Probe, ...]:
    """Probes for the two words by which an event is known."""
    return tuple(
        Probe(
            Program((Instruction(Op.LOAD, frame_place(event), word), Instruction(Op.END)), 1),
            Kind.INT,
        )
        for word in IDENTITY
    )


# --- conditions of two events --------------------------------------------------------------------


def _pair_conditions(selections: dict[int, Step]) -> dict[int, tuple[Expression | None, ...]]:
    """The conditions of each event as ones that concern it and its anchor alone, where possible.

    None stands for a condition that concerns more; what concerns the event alone is decided by
    its column, and left as it is.
    """
    equals = Equals()
    found = {}
    for event, step in sorted(selections.items()):
        allowed = {event, step.span.later}
        found[event] = tuple(equals.restated(condition, allowed) for condition in step.conditions)
        equals.learn(step.conditions)
    return found


class Equals:
    """Attributes that are equal in every match, as far as the clauses read so far say so."""

    def __init__(self) -> None:
        self._class_of: dict[AttributeOf, frozenset[AttributeOf]] = {}

    def copy(self) -> Equals:
        """The same, to learn more or not."""
        same = Equals()
        same._class_of = dict(self._class_of)
        return same

    def learn(self, conditions: Sequence[Expression]) -> None:
        """Take in the equalities among conditions.

        Attributes of different kinds are no substitutes for each other in arithmetic.
        """
        for condition in conditions:
            match condition:
                case Compare(Comparison.EQUAL, AttributeOf() as left, AttributeOf() as right):
                    if left.kind is right.kind:
                        joined = self._equal_to(left) | self._equal_to(right)
                        self._class_of.update((attribute, joined) for attribute in joined)
                case _:
                    pass

    def restated(self, condition: Expression, events: set[int]) -> Expression | None:
        """The condition with attributes of ``events`` alone, or None if it cannot be had."""
        if events_in(condition) is None:
            return None

        def instead(node: Expression) -> Expression | None:
            if not isinstance(node, AttributeOf) or node.event in events:
                return None
            known = [one for one in self._equal_to(node) if one.event in events]
            return min(known, key=lambda one: (one.event, one.attribute), default=node)

        restated = rewritten(condition, instead)
        found = events_in(restated)
        return restated if found is not None and found <= events else None

    def _equal_to(self, attribute: AttributeOf) -> frozenset[AttributeOf]:
        return self._class_of.get(attribute, frozenset({attribute}))


def events_in(condition: Expression) -> frozenset[int] | None:
    """The events whose attributes a condition reads; None if it reads anything else."""
    events = set()
    for node in nodes_of(condition):
        if isinstance(node, Slot | Aggregate):
            return None
        if isinstance(node, AttributeOf):
            events.add(node.event)
    return frozenset(events)
