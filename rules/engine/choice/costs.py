"""The cost of a rule in each way: the model by which ``auto`` chooses (docs/decisions/0012).

A rule without an automaton pays for each terminator. It looks each selected event up (a *probe*)
and tests the *candidates* that the key and the window leave, and does so again for every branch
that the selections before have opened. A rule with one pays less at the terminator, which only
meets instances and links, but something for every event that reaches a state: an *instance*, and
for each kind of link a probe, the candidates, and the *links* that are made.

A chain that is evaluated by hybrid parallelism pays for each *pair* of an event and a sequence of
the events before it that is tried, and for each *sequence* that is kept, whether a terminator comes
or not: conditions are no probes there, but windows of the whole match bind every state.

How many candidates a probe leaves follows from what the columns hold at present: events a second
times the window, divided by how many keys there are. Conditions that no key serves are taken to let
SELECTIVITY of the candidates pass; windows between events that are not neighbours, as many as they
would of events that come evenly (:mod:`rules.engine.choice.spread`). The rest of a rule (negations,
aggregates, output) costs the same either way, and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

from rules.engine.choice.spread import reaches_of, shares_within
from rules.pattern import Policy
from rules.planning.plan import AccessPlan, RulePlan, Step
from rules.planning.program import TRUE, Program
from rules.planning.sequences import (
    AutomatonPlan,
    LinkPlan,
    StatePlan,
    access_of,
    selections_of,
    states_of,
)
from rules.terms import TERMINATOR, AttributeOf, nodes_of

SELECTIVITY = 0.3
PRICES = (512, 1_024, 2_048, 4_096, 8_192)
"""So many events pay for the first looks at rules, each of which takes as long as some hundreds."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of each thing that is done; ValueError for what is no length of time.

    The defaults were fitted on a virtual machine of two cores (x86-64).
    """

    probe: float = 40.0
    candidate: float = 35.0
    instance: float = 300.0
    link: float = 30.0
    pair: float = 42.0
    sequence: float = 50.0

    def __post_init__(self) -> None:
        for field in fields(self):
            figure = getattr(self, field.name)
            if not (math.isfinite(figure) and figure >= 0):
                raise ValueError(f"{field.name}: expected 0 or more, found {figure}")


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a rule's events at present.

    ``terminators`` is how many came in a microsecond; ``events`` how many of each selected event
    come in one; ``keys`` how many different keys its column has for an access.
    """

    terminators: float
    events: Mapping[int, float]
    keys: Callable[[AccessPlan], float]

    def asked_for(self, event: int, reach: int) -> float:
        """How many of a selected event come in a microsecond, as far as terminators ask for them:
        those that look back so far, in microseconds.
        """
        return self.events[event] * min(1.0, self.terminators * reach)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Nanoseconds a microsecond of event time, either way."""

    columns: float
    automaton: float


def price_of(looks: int) -> int:
    """How many events pay for a look that comes after so many others."""
    return PRICES[min(looks, len(PRICES) - 1)]


def hybrid_cost(plan: RulePlan, rates: Rates, costs: Costs) -> float:
    """The cost of a chain by hybrid parallelism on one thread, in nanoseconds a microsecond.

    Sequences grow from the earliest event on: ``C B A`` has as many pairs at B as C and B come
    within a window of each other, and at A as what fitted there and A do. A condition between C and
    A is asked at A.
    """
    steps = {step.event: step for step in selections_of(plan)}
    reaches, spent = reaches_of(plan), 0.0
    passing = _passing_at(steps.values(), rates)
    sequences = rates.events[len(steps)]
    for event in reversed(range(len(steps))):  # the later one of each pair
        pairs = sequences * reaches[event] * (rates.events[event] if event else rates.terminators)
        sequences = pairs * passing.get(event, 1.0)
        spent += pairs * costs.pair + sequences * costs.sequence
    return spent


def _passing_at(steps: Iterable[Step], rates: Rates) -> Mapping[int, float]:
    """For each event the share of pairs that its conditions let pass, those with earlier events."""
    found = dict[int, float]()
    for step in steps:
        share = _passing(step.residue) / rates.keys(access_of(step))
        for condition in step.conditions:
            events = (node.event for node in nodes_of(condition) if isinstance(node, AttributeOf))
            at = min(events, default=step.span.later)
            if at < step.event:
                found[at] = found.get(at, 1.0) * share ** (1 / len(step.conditions))
    return found


def estimate(plan: RulePlan, model: AutomatonPlan, rates: Rates, costs: Costs) -> Estimate:
    """Estimate the cost of a rule by its ``plan``, and by the automaton ``model`` of it."""
    return Estimate(columns_cost(plan, rates, costs), automaton_cost(model, rates, costs))


def automaton_cost(model: AutomatonPlan, rates: Rates, costs: Costs) -> float:
    """The cost of a rule by its automaton, in nanoseconds a microsecond of event time."""
    return _AutomatonEstimator(model, rates, costs).cost()


def columns_cost(plan: RulePlan, rates: Rates, costs: Costs) -> float:
    """The cost of a rule by its ``plan``, in nanoseconds a microsecond of event time."""
    return rates.terminators * _Estimator(rates, costs).walk(plan)


def automaton_least(plan: RulePlan, rates: Rates, costs: Costs) -> float:
    """The least cost of a rule's automaton: all that reaches its states becomes instances."""
    reaches = {step.event: access_of(step).reach for step in selections_of(plan)}
    return sum(rates.asked_for(event, reaches[event]) * costs.instance for event in states_of(plan))


class _Estimator:
    """Estimates the evaluation of one rule."""

    def __init__(self, rates: Rates, costs: Costs) -> None:
        self._rates, self._costs = rates, costs

    def walk(self, plan: RulePlan) -> float:
        """The evaluation of one terminator."""
        spent, branches, within = 0.0, 1.0, shares_within(plan)
        for step in selections_of(plan):
            found, passing = self._found(step), _passing(step.residue)
            tested = found if step.policy is Policy.EACH else min(found, step.rank / passing)
            spent += branches * (self._costs.probe + tested * self._costs.candidate)
            fitting = found * passing
            branches *= fitting if step.policy is Policy.EACH else _chance(fitting)
            branches *= within.get(step.event, 1.0)
        return spent

    def _found(self, step: Step) -> float:
        """The candidates of a selection, of one branch."""
        return self._candidates(step, access_of(step))

    def _candidates(self, step: Step, access: AccessPlan) -> float:
        """How many candidates a probe leaves."""
        return self._rates.events[step.event] * step.span.duration / self._rates.keys(access)


class _AutomatonEstimator(_Estimator):
    """Estimates one automaton."""

    def __init__(self, model: AutomatonPlan, rates: Rates, costs: Costs) -> None:
        super().__init__(rates, costs)
        self._model = model
        self._states = {state.event: state for state in model.states}
        self._links = {link.step.event: link for state in model.states for link in state.links}

    def cost(self) -> float:
        """Nanoseconds a microsecond of event time."""
        upkeep = sum(map(self._upkeep, self._model.states))
        return self._rates.terminators * self.walk(self._model.plan) + upkeep

    def _found(self, step: Step) -> float:
        if step.span.later != TERMINATOR:
            links = self._made(self._links[step.event])
            return links / max(_chance(links), 1e-9)  # of an event that has some
        found = super()._found(step)
        state = self._states.get(step.event)
        if state is None or not state.waits:
            return found
        return found * math.prod(_chance(self._made(link)) for link in state.links)

    def _upkeep(self, state: StatePlan) -> float:
        """The cost of the events that reach a state, as far as terminators ask for them."""
        arrivals = self._rates.asked_for(state.event, state.arrivals.reach)
        return arrivals * (self._costs.instance + sum(map(self._linking, state.links)))

    def _linking(self, link: LinkPlan) -> float:
        costs, passing = self._costs, _passing(link.step.residue)
        tested = self._candidates(link.step, access_of(link.step))
        if link.kept:
            tested = min(tested, link.kept / passing)
        return costs.probe + tested * costs.candidate + self._made(link) * costs.link

    def _made(self, link: LinkPlan) -> float:
        """How many links of a kind an event has."""
        fitting = self._candidates(link.step, access_of(link.step)) * _passing(link.step.residue)
        return min(fitting, link.kept) if link.kept else fitting


def _passing(residue: Program) -> float:
    return 1.0 if residue is TRUE else SELECTIVITY


def _chance(expected: float) -> float:
    """How likely there is one at least, of so many expected."""
    return 1.0 - math.exp(-expected)
