"""Which rules had better have an automaton, by what is measured while events flow.

Law: a choice concerns time alone, never a result, so it may be wrong. It is made anew every
so many events, from the terminators that came since the last time and from what columns
hold; a rule changes only if the other way is cheaper by a MARGIN, so that it does not go to and
fro.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rules.engine.columns import ColumnTables
from rules.engine.costs import Costs, Estimate, Rates, estimate
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linker import LinkedRule
from rules.pattern import Rule
from rules.plan import AccessPlan, ColumnPlan, RulePlan
from rules.planner import compile_rule
from rules.sequences import AutomatonPlan, automaton_of

REVISION_EVENTS = 4_096
"""So many events come at least between two choices,"""
REVISION_EVENTS_PER_RULE = 512
"""and so many for each rule: looking at one costs as much as some tens of events."""
MARGIN = 1.3
"""The other way must be estimated to be so many times cheaper."""


@dataclass(slots=True)
class _Seen:
    """A rule as it was at the last choice: its number, its terminators, and what it might be."""

    rule: Rule
    plan: RulePlan
    model: AutomatonPlan | None
    number: int = -1
    evaluated: int = 0

    @classmethod
    def of(cls, rule: Rule) -> _Seen:
        plan = compile_rule(rule)
        is_several = rule.together is not None or bool(rule.alternatives)
        return cls(rule, plan, None if is_several else automaton_of(plan))

    def come(self, number: int, evaluated: int) -> int:
        """How many terminators came since the last time; one linked anew counts anew."""
        before = self.evaluated if number == self.number else 0
        self.number, self.evaluated = number, evaluated
        return evaluated - before


class Chooser:
    """Owner of what was seen at the last choice."""

    def __init__(self, costs: Costs | None = None) -> None:
        self._costs = costs or Costs()
        self._seen: dict[str, _Seen] = {}
        self._time: int | None = None

    def choose(
        self,
        linked: Mapping[str, tuple[LinkedRule, ...]],
        tables: ColumnTables,
        arrays: Arrays,
        times: tuple[int, int],
    ) -> Mapping[str, bool]:
        """The rules that had better change, and whether to an automaton.

        ``times`` are the least and the greatest that have come, in microseconds.
        """
        began, time = times
        before = began if self._time is None else self._time
        self._time = time
        held = _Held(tables, arrays)
        changes: dict[str, bool] = {}
        for name, (one, *_) in linked.items():
            seen = self._seen.get(name)
            if seen is None or seen.rule is not one.deployed.rule:
                seen = self._seen[name] = _Seen.of(one.deployed.rule)
            count = seen.come(one.number, int(arrays["rules"][one.number]["evaluated"]))
            if seen.model is None or time <= before or count == 0:
                continue
            found = self._estimate(seen.plan, seen.model, one, held, count / (time - before))
            ours, other = found.columns, found.automaton
            if one.automaton is not None:
                ours, other = other, ours
            if other * MARGIN < ours:
                changes[name] = one.automaton is None
        for name in [name for name in self._seen if name not in linked]:
            del self._seen[name]
        return changes

    def _estimate(
        self,
        plan: RulePlan,
        model: AutomatonPlan,
        linked: LinkedRule,
        held: _Held,
        terminators: float,
    ) -> Estimate:
        reaches = {step.event: step.access.reach for step in plan.steps if step.access}
        events = {
            event: held.entries(access) / max(1, reaches[event])
            for event, access in linked.arrivals.items()
        }
        return estimate(plan, model, Rates(terminators, events, held.keys), self._costs)


class _Held:
    """How much the accesses hold at present."""

    def __init__(self, tables: ColumnTables, arrays: Arrays) -> None:
        lists = arrays["lists"][: arrays["counters"][layout.LISTS_TOP]]
        lists = lists[(lists["capacity"] > 0) & (lists["length"] > 0)]
        size = len(tables.accesses)
        self._entries = np.bincount(lists["access"], weights=lists["length"], minlength=size)
        counts = np.bincount(lists["access"], minlength=size)
        self._keys: dict[tuple[ColumnPlan, tuple[int, ...]], int] = {}
        for plan, number in tables.accesses_in_use():
            place = plan.column, plan.keys
            self._keys[place] = max(int(counts[number]), self._keys.get(place, 1))

    def entries(self, access: int) -> float:
        """How many events an access holds."""
        return float(self._entries[access])

    def keys(self, access: AccessPlan) -> float:
        """How many keys the events of an access have; 1 where nothing is known of them."""
        return float(self._keys.get((access.column, access.keys), 1)) if access.keys else 1.0
