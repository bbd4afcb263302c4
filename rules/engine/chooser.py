"""Which rules had better have an automaton, by what is measured while events flow.

Law: a choice concerns time alone, never a result, so it may be wrong. A rule changes only if the
other way is cheaper by a MARGIN, so that it does not go to and fro.

Rules are looked at in turn, a few at a time: as many as the events that have come since the last
time pay for. So no event waits for a look at all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rules.engine.columns import ColumnTables
from rules.engine.costs import Costs, Estimate, Rates, estimate
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linker import LinkedRule
from rules.pattern import Rule
from rules.plan import ColumnPlan, RulePlan
from rules.planner import compile_rule
from rules.sequences import AutomatonPlan, automaton_of

REVISION_EVENTS = 4_096
"""So many events come at least between two choices."""
FIRST_LOOK_EVENTS, LOOK_EVENTS = 4_096, 1_024
"""So many events pay for a look at a rule, the first and each later: it takes as long as about a
hundred of them, or some tens."""
EVENTS_PER_TURN = 4
"""Events that are worth as much as finding out whether it is a rule's turn."""
MARGIN = 1.3
"""The other way must be estimated to be so many times cheaper."""


@dataclass(slots=True)
class _Seen:
    """A rule as it was at the last look: its number, its terminators, and what it might be.

    ``time`` is that of the look, in microseconds; None if there was none.
    """

    rule: Rule
    plan: RulePlan
    model: AutomatonPlan | None
    number: int = -1
    evaluated: int = 0
    time: int | None = None

    @classmethod
    def of(cls, linked: LinkedRule) -> _Seen:
        rule = linked.deployed.rule
        is_several = rule.together is not None or bool(rule.alternatives)
        if is_several:
            return cls(rule, linked.plan, None)
        plan = linked.plan if linked.automaton is None else compile_rule(rule)
        return cls(rule, plan, automaton_of(plan))

    def come(self, number: int, evaluated: int) -> int:
        """How many terminators came since the last look; one linked anew counts anew."""
        before = self.evaluated if number == self.number else 0
        self.number, self.evaluated = number, evaluated
        return evaluated - before


class Chooser:
    """Owner of what was seen at the last look at each rule, and of whose turn it is."""

    def __init__(self, costs: Costs | None = None) -> None:
        self._costs = costs or Costs()
        self._seen: dict[str, _Seen] = {}
        self._turns: Iterator[str] = iter(())

    @staticmethod
    def is_due(events: int, rules: int, arrays: Arrays) -> bool:
        """Whether enough events have come to look again.

        Measuring reads all lists that there are, and taking turns all names of rules.
        """
        lists = int(arrays["counters"][layout.LISTS_TOP])
        return events >= max(REVISION_EVENTS, lists, EVENTS_PER_TURN * rules)

    def fresh(self) -> Chooser:
        """One of the same costs that has seen nothing."""
        return Chooser(self._costs)

    def choose(
        self,
        linked: Mapping[str, tuple[LinkedRule, ...]],
        tables: ColumnTables,
        arrays: Arrays,
        times: tuple[int, int],
        events: int,
    ) -> Mapping[str, bool]:
        """The rules that had better change, and whether to an automaton.

        ``times`` are the least and the greatest that have come, in microseconds; ``events`` how
        many have come since the last choice.
        """
        began, time = times
        held: _Held | None = None
        changes: dict[str, bool] = {}
        for name in self._next(linked, events):
            one = linked[name][0]
            seen = self._seen.get(name)
            if seen is None or seen.rule is not one.deployed.rule:
                seen = self._seen[name] = _Seen.of(one)
            if seen.model is None:
                continue
            before, seen.time = seen.time, time
            count = seen.come(one.number, int(arrays["rules"][one.number]["evaluated"]))
            elapsed = time - (max(began, one.deployed.since) if before is None else before)
            if elapsed <= 0 or count == 0:
                continue
            held = held or _Held(tables, arrays)
            found = self._estimate(seen.plan, seen.model, one, held, count / elapsed)
            ours, other = found.columns, found.automaton
            if one.automaton is not None:
                ours, other = other, ours
            if other * MARGIN < ours:
                changes[name] = one.automaton is None
        return changes

    def _next(self, linked: Mapping[str, tuple[LinkedRule, ...]], events: int) -> Iterator[str]:
        """The rules whose turn it is, as many as the events pay for; one at least, if there is."""
        begun = 0
        while events > 0:
            name = next(self._turns, None)
            if name is None:
                if begun == 2:  # all that have a choice have had their turn
                    return
                self._begin_round(linked)
                begun += 1
            elif name in linked and self._may_choose(name, linked[name][0]):
                events -= LOOK_EVENTS if name in self._seen else FIRST_LOOK_EVENTS
                yield name

    def _begin_round(self, linked: Mapping[str, tuple[LinkedRule, ...]]) -> None:
        """A turn for each rule; whether it has a choice is asked when it comes."""
        if len(self._seen) > 2 * len(linked):
            self._seen = {name: seen for name, seen in self._seen.items() if name in linked}
        self._turns = iter(list(linked))

    def _may_choose(self, name: str, linked: LinkedRule) -> bool:
        """Whether a rule has a choice, or it is not known yet."""
        seen = self._seen.get(name)
        return seen is None or seen.rule is not linked.deployed.rule or seen.model is not None

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
        keys = held.keys(linked.uses)
        rates = Rates(
            terminators,
            events,
            lambda access: keys.get((access.column, access.keys), 1.0) if access.keys else 1.0,
        )
        return estimate(plan, model, rates, self._costs)


class _Held:
    """How much the accesses hold at present."""

    def __init__(self, tables: ColumnTables, arrays: Arrays) -> None:
        lists = arrays["lists"][: arrays["counters"][layout.LISTS_TOP]]
        lists = lists[(lists["capacity"] > 0) & (lists["length"] > 0)]
        size = len(tables.accesses)
        self._tables = tables
        self._entries = np.bincount(lists["access"], weights=lists["length"], minlength=size)
        self._counts = np.bincount(lists["access"], minlength=size)

    def entries(self, access: int) -> float:
        """How many events an access holds."""
        return float(self._entries[access])

    def keys(self, accesses: Iterable[int]) -> Mapping[tuple[ColumnPlan, tuple[int, ...]], float]:
        """How many keys these accesses have, by their columns and the attributes of their keys.

        A rule's events may stand in one of the same column and keys that is its automaton's.
        """
        found: dict[tuple[ColumnPlan, tuple[int, ...]], float] = {}
        for access in accesses:
            plan = self._tables.access_plan(access)
            place = plan.column, plan.keys
            found[place] = max(float(self._counts[access]), found.get(place, 1.0))
        return found
