"""The choice of rules for hybrid parallelism: estimated, tried, and kept where it takes less.

A chain that costs much may cost less by hybrid parallelism (:mod:`rules.engine.chains.hybrid`), and
with several threads less again. The model (:mod:`rules.engine.choice.costs`) does not tell that
well, for the two ways test conditions in opposite orders, and nobody knows how many events pass. So
a rule is *tried* there where the model says that it may pay, and stays if the processor's counter
says so.

Law 1: a choice concerns time alone, never a result (chooser, Law 1).

Law 2: a trial costs little beside what the rule has cost until then: TRIAL_SHARE of it, by the
model. What it took is remembered, as a *factor* of ticks over nanoseconds of the model, in each
way, so that a rule which has lost is not tried soon again.

Example: of ``Top() as t and each B() as b ... and each A(v > t.v) ...`` columns try all pairs of A
and B for each Top. Of three events that take columns 17 us each, and hybrid 4, the factors are 2.5
and 1.2: the rule stays until the model says that columns would take half of what hybrid does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rules.engine.chains.hybrid.chains import reason_against
from rules.engine.chains.hybrid.working import work
from rules.engine.choice.chooser import MARGIN, Keys, Look
from rules.engine.choice.costs import (
    PRICES,
    Costs,
    Rates,
    automaton_cost,
    columns_cost,
    hybrid_cost,
)
from rules.pattern import Rule
from rules.planning.plan import RulePlan
from rules.planning.sequences import AutomatonPlan, automaton_of, selections_of, states_of
from runtime.compiling.compiled import is_kept

UNSURE = 3.0
"""The model may be off by so much between the two ways, where a rule was never tried."""
TRIAL_SHARE, TRIAL_LOOKS = 0.25, 2
"""A trial may cost so much of what the rule has cost since it was last moved; it ends at the second
look that finds it dearer, for one long look may have been an interruption.
"""
TRIAL_EVENTS = sum(PRICES[:TRIAL_LOOKS])
"""The events of a trial that fails."""
RISING = 1.1
"""The factor outside rises by no more than this from look to look, for the same reason."""
FADING = 0.98
"""The share that each look leaves of a factor that a trial has measured: events become others."""
LOADED, COMPILED = 3e8, 2e10
"""Ticks that it takes to begin, to load the kernels or to compile them, where a tick is a cycle."""
DEAR = 40
"""Instructions of the conditions of a dear pair: threads share out those."""
GAIN = 0.8
"""The gain of each further thread where pairs are dear; elsewhere there is none."""


@dataclass(slots=True)
class Known:
    """A rule as far as it is known: the factors of its ``own`` way and of ``hybrid``, 0 before they
    were measured; how many looks in a row have found it ``dearer`` inside; the ticks that it has
    ``paid`` since it was moved; the last event that had come when it was last ``seen``; the
    ``keys`` before it was moved.
    """

    rule: Rule
    plan: RulePlan
    automaton: AutomatonPlan | None
    is_linked: bool = False  # by an automaton, at the last look
    own: float = 0.0
    dearer: int = 0
    hybrid: float = 0.0
    paid: float = 0.0
    seen: int = 0
    keys: Keys = field(default_factory=dict)


class Trials:
    """Owner of what is known of chains, shared by the engines that may have them.

    ``threads`` are those of hybrid parallelism. Rules that had better be evaluated in the other way
    from now on are *leaving*; whoever owns the engines takes and moves them.
    """

    def __init__(self, costs: Costs | None = None, threads: int = 1) -> None:
        self.threads = threads
        self._costs = costs or Costs()
        self._known: dict[str, Known] = {}
        self._leaving: set[str] = set()

    def fresh(self) -> Trials:
        """One of the same costs that knows nothing."""
        return Trials(self._costs, self.threads)

    def takes(self, rule: Rule) -> bool:
        """Whether a rule is a chain, if no other rule has to do with its events."""
        return reason_against(rule, ()) is None

    def take_leaving(self) -> set[str]:
        """The rules that had better be moved, since the last call."""
        leaving, self._leaving = self._leaving, set()
        return leaving

    def keys(self, rule: Rule) -> Keys:
        """The keys that a rule's columns had before it was moved: hybrid keeps none."""
        return self._known[rule.name].keys

    def look_outside(
        self, rule: Rule, plan: RulePlan, look: Look, keys: Keys, *, is_linked: bool
    ) -> None:
        """See a chain that is evaluated by columns, or (``is_linked``) by an automaton."""
        known = self._of(rule, plan)
        here = self._other(known, look.rates, is_linked=is_linked) * look.elapsed
        there = self._hybrid(known, look.rates) * look.elapsed
        if here <= 0 or there <= 0:
            return
        known.keys, known.is_linked, known.seen = keys, is_linked, look.time
        factor = look.ticks / here or 1.0
        known.own = min(factor, RISING * (known.own or factor))
        known.hybrid *= FADING
        known.paid += here * known.own
        best = min(here, self._least(known, look.rates) * look.elapsed)
        if known.hybrid:
            is_better = there * known.hybrid * MARGIN < best * known.own
        else:
            is_better = there < best * UNSURE
        trial = there / look.elapsed * TRIAL_EVENTS * look.pace * known.own
        spare = known.paid * TRIAL_SHARE - trial
        if is_better and spare >= 0 and spare >= beginning():
            known.paid, known.dearer = 0.0, 0
            self._leaving.add(rule.name)

    def look_inside(self, rule: Rule, look: Look) -> None:
        """See a chain that is evaluated by hybrid parallelism."""
        known = self._known[rule.name]
        there = self._hybrid(known, look.rates) * look.elapsed
        other = self._least(known, look.rates) * look.elapsed * known.own
        known.seen = look.time
        if there > 0 and look.ticks:
            factor = look.ticks / there
            known.hybrid = min(factor, RISING * (known.hybrid or factor))
        known.dearer = known.dearer + 1 if other < there * (known.hybrid or 1.0) else 0
        if known.dearer >= TRIAL_LOOKS:
            self._leaving.add(rule.name)

    def since(self, rule: Rule) -> int:
        """The time of the last event at the last look at a rule."""
        return self._known[rule.name].seen

    def is_linked(self, rule: Rule) -> bool:
        """Whether a rule had an automaton before it was moved."""
        return self._known[rule.name].is_linked

    def _of(self, rule: Rule, plan: RulePlan) -> Known:
        known = self._known.get(rule.name)
        if known is None or known.rule is not rule:
            automaton = automaton_of(plan) if states_of(plan) else None
            known = self._known[rule.name] = Known(rule, plan, automaton)
        return known

    def _other(self, known: Known, rates: Rates, *, is_linked: bool) -> float:
        if is_linked and known.automaton is not None:
            return automaton_cost(known.automaton, rates, self._costs)
        return columns_cost(known.plan, rates, self._costs)

    def _least(self, known: Known, rates: Rates) -> float:
        ways = {False, known.automaton is not None}
        return min(self._other(known, rates, is_linked=one) for one in ways)

    def _hybrid(self, known: Known, rates: Rates) -> float:
        return hybrid_cost(known.plan, rates, self._costs) / gain(known.plan, self.threads)


def gain(plan: RulePlan, threads: int) -> float:
    """How many times as fast so many threads are expected to be as one."""
    instructions = sum(len(step.residue.code) for step in selections_of(plan))
    is_dear = instructions > DEAR * len(selections_of(plan))
    return 1.0 + GAIN * (threads - 1) if is_dear else 1.0


def beginning() -> float:
    """The ticks that it takes to begin, by whether the kernels are kept."""
    return LOADED if is_kept(work) else COMPILED
