"""The choice of rules for automata, by what is measured while events flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN
from rules.engine.choice.costs import (
    Costs,
    Rates,
    automaton_least,
    columns_cost,
    estimate,
    price_of,
)
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.tally import tally
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.linker import LinkedRule
from rules.pattern import Rule
from rules.planning.plan import AccessPlan, ColumnPlan, RulePlan
from rules.planning.planner import compile_rule
from rules.planning.sequences import AutomatonPlan, automaton_of, selections_of, states_of

DRAFT_EVENTS = 16_384
"""So many pay for drawing up an automaton, once a rule."""
EVENTS_PER_TURN = 4
"""Events that are worth as much as finding out whether it is a rule's turn."""
MARGIN = 1.3
"""The other way must be estimated to be so many times cheaper."""
ALIKE = 1.2
"""Figures that differ by no more than this factor say the same."""

Keys = Mapping[tuple[ColumnPlan, tuple[int, ...]], float]
"""How many keys there are, by columns and the attributes of keys."""


@dataclass(frozen=True, slots=True)
class Look:
    """A rule since the last look: its rates, the microseconds of event time since then, the ticks
    that it took (0 if none are counted), the time of the last event, and the microseconds of event
    time for each event of any rule (0 if nobody asks).
    """

    rates: Rates
    elapsed: int
    ticks: float
    time: int
    pace: float = 0.0


class Elsewhere(Protocol):
    """An engine beside this one, which may have some of its rules."""

    def takes(self, rule: Rule) -> bool:
        """Whether it is one of those, by its text alone."""
        ...

    def look_outside(
        self, rule: Rule, plan: RulePlan, look: Look, keys: Keys, *, is_linked: bool
    ) -> None:
        """See such a rule, which is evaluated here, by an automaton if it ``is_linked``."""
        ...


@dataclass(slots=True)
class _Seen:
    """A rule as it was at the last look: its number, its terminators, and what was measured.

    ``time`` is that of the look, in microseconds; None if there was none. ``draft`` is what its
    automaton is, or would be, once somebody has asked. ``may_leave``: there is
    another engine that may have it.
    """

    rule: Rule
    plan: RulePlan
    has_choice: bool
    may_leave: bool = False
    number: int = -1
    evaluated: int = 0
    ticks: float = 0.0
    time: int | None = None
    figures: tuple[float, ...] = ()
    draft: AutomatonPlan | None = None

    @classmethod
    def of(cls, linked: LinkedRule, elsewhere: Elsewhere | None) -> _Seen:
        rule = linked.deployed.rule
        if rule.together is not None or rule.alternatives:
            return cls(rule, linked.plan, has_choice=False)
        plan = linked.plan if linked.automaton is None else compile_rule(rule)
        may_leave = elsewhere is not None and elsewhere.takes(rule)
        return cls(rule, plan, bool(states_of(plan)), may_leave)

    @property
    def is_of_interest(self) -> bool:
        """Whether there is anything to choose."""
        return self.has_choice or self.may_leave

    def come(self, number: int, evaluated: int, ticks: float) -> tuple[int, float]:
        """How many terminators came since the last look, and the ticks that they took; one linked
        anew counts anew.
        """
        is_same = number == self.number
        before, spent = (self.evaluated, self.ticks) if is_same else (0, 0.0)
        self.number, self.evaluated, self.ticks = number, evaluated, ticks
        return evaluated - before, ticks - spent

    def is_as_before(self, number: int, figures: tuple[float, ...]) -> bool:
        """Whether nothing has changed since the rule, evaluated as it now is, was estimated."""
        before, self.figures = self.figures, figures
        is_alike = (
            number == self.number
            and len(before) == len(figures)
            and all(
                max(old, new) <= ALIKE * min(old, new)
                for old, new in zip(before, figures, strict=True)
            )
        )
        if is_alike:
            self.figures = before  # else it might go far away, a little each time
        return is_alike


class Chooser:
    """Owner of what was seen at the last look at each rule, and of whose turn it is.

    Each choice is paid for by the events that have come since the last. ``elsewhere`` is told of
    the rules that it takes.

    A choice concerns time alone, never a result, so it may be wrong. A rule changes only if the
    other way is cheaper by a MARGIN, so that it does not go to and fro. Choosing costs little
    beside what there is to choose from: rules are looked at in turn, as many as the events that
    have come since the last time pay for; what is as it was at the last look is not estimated
    again, and no automaton is drawn up where keeping its instances would cost more than it could
    gain.
    """

    def __init__(self, costs: Costs | None = None, elsewhere: Elsewhere | None = None) -> None:
        self._costs = costs or Costs()
        self._elsewhere = elsewhere
        self._seen: dict[str, _Seen] = {}
        self._turns: Iterator[str] = iter(())
        self._entered = 0  # events that had come at the last choice
        self._looks = 0  # choices so far

    def is_due(self, linked: Mapping[str, tuple[LinkedRule, ...]], arrays: Arrays) -> bool:
        """Whether enough events have come to look again.

        Measuring reads all lists that there are, and taking turns all names of rules. The first
        looks come soon, and each after twice as many events as the one before, so that a file of
        ten thousand events has most of them evaluated in the better way.
        """
        events = arrays.counters[layout.ENTERED] - self._entered
        lists = arrays.counters[layout.LISTS_TOP]
        return events >= max(price_of(self._looks), lists, EVENTS_PER_TURN * len(linked))

    def fresh(self) -> Chooser:
        """One of the same costs, beside the same engine, that has seen nothing."""
        return Chooser(self._costs, self._elsewhere)

    def choose(
        self,
        linked: Mapping[str, tuple[LinkedRule, ...]],
        tables: ColumnTables,
        arrays: Arrays,
        times: tuple[int, int],
    ) -> Mapping[str, bool]:
        """The rules that had better change, and whether to an automaton.

        ``times``: the least and the greatest that have come, evaluated or not, in microseconds.
        """
        entered = arrays.counters[layout.ENTERED]
        events, self._entered = entered - self._entered, entered
        price = price_of(self._looks)
        self._looks += 1
        began, time = times[0], min(times[1], arrays.counters[layout.INSTANT])
        held: Held | None = None
        changes: dict[str, bool] = {}
        turns = islice(self._in_turn(linked), len(linked))
        while events > 0 and (seen := next(turns, None)) is not None:
            events -= price
            if not seen.is_of_interest:
                continue
            one = linked[seen.rule.name][0]
            before, seen.time = seen.time, time
            was, record = seen.number, arrays["rules"][one.number]
            count, ticks = seen.come(one.number, int(record["evaluated"]), ticks_of(record))
            elapsed = time - (max(began, one.deployed.since) if before is None else before)
            if elapsed <= 0 or count == 0:
                continue
            held = held or Held(tables, arrays, time - began)
            keys = held.keys(one.uses)
            rates, figures = measured(seen.plan, one, held, count / elapsed, keys)
            if self._elsewhere is not None and seen.may_leave:
                look = Look(rates, elapsed, ticks, time, (time - began) / max(1, entered))
                is_linked = one.automaton is not None
                self._elsewhere.look_outside(seen.rule, seen.plan, look, keys, is_linked=is_linked)
            if not seen.has_choice:
                continue
            if seen.is_as_before(was, figures):
                continue
            if one.automaton is None and seen.draft is None:
                if not self._may_pay(seen.plan, rates):
                    continue
                events -= DRAFT_EVENTS
            if self._is_better(seen, rates, is_automaton=one.automaton is not None):
                changes[seen.rule.name] = one.automaton is None
        return changes

    def _in_turn(self, linked: Mapping[str, tuple[LinkedRule, ...]]) -> Iterator[_Seen]:
        """The rules whose turn it is, those left out that are known to have no choice."""
        for begun in (False, True):
            if begun:
                self._begin_round(linked)
            for name in self._turns:
                if name not in linked:
                    continue
                seen, one = self._seen.get(name), linked[name][0]
                if seen is None or seen.rule is not one.deployed.rule:
                    seen = self._seen[name] = _Seen.of(one, self._elsewhere)
                elif not seen.is_of_interest:
                    continue
                yield seen

    def _begin_round(self, linked: Mapping[str, tuple[LinkedRule, ...]]) -> None:
        """A turn for each rule; whether it has a choice is asked when it comes."""
        if len(self._seen) > 2 * len(linked):
            self._seen = {name: seen for name, seen in self._seen.items() if name in linked}
        self._turns = iter(list(linked))

    def _may_pay(self, plan: RulePlan, rates: Rates) -> bool:
        """Whether an automaton might be so much cheaper, whatever is linked in it."""
        least = automaton_least(plan, rates, self._costs)
        return least * MARGIN < columns_cost(plan, rates, self._costs)

    def _is_better(self, seen: _Seen, rates: Rates, *, is_automaton: bool) -> bool:
        """Whether the other way is so much cheaper."""
        seen.draft = seen.draft or automaton_of(seen.plan)
        assert seen.draft is not None, "what has states has an automaton"
        both = estimate(seen.plan, seen.draft, rates, self._costs)
        if is_automaton:
            return both.columns * MARGIN < both.automaton
        return both.automaton * MARGIN < both.columns


def ticks_of(record: Any) -> float:
    """The ticks of a rule's evaluations, found from those that were timed."""
    timed = int(record["timed"])
    return float(record["ticks"]) / timed * int(record["evaluated"]) if timed else 0.0


def measured(
    plan: RulePlan, linked: LinkedRule, held: Held, terminators: float, keys: Keys
) -> tuple[Rates, tuple[float, ...]]:
    """The rates of a rule's events, and the same as mere figures."""
    reaches = {step.event: step.access.reach for step in selections_of(plan) if step.access}
    events = {event: held.rate(access, reaches[event]) for event, access in linked.arrivals.items()}

    def keys_of(access: AccessPlan) -> float:
        return keys.get((access.column, access.keys), 1.0) if access.keys else 1.0

    rates = Rates(terminators, events, keys_of)
    return rates, (terminators, *events.values(), *keys.values())


class Held:
    """How much the accesses hold, ``extent`` microseconds of event time after the first event."""

    def __init__(self, tables: ColumnTables, arrays: Arrays, extent: int = TIME_MAX) -> None:
        self._tables, self._extent = tables, extent
        self._entries, self._keys = np.zeros((2, len(tables.accesses)), np.int64)
        self._first = np.full(len(tables.accesses), TIME_MAX)
        self._last = np.full(len(tables.accesses), TIME_MIN)
        tally(arrays.state, self._entries, self._keys, self._first, self._last)

    def rate(self, access: int, reach: int) -> float:
        """How many events come into an access in a microsecond: it holds those within a reach, or
        since the first event, and as many before as came in one advance.
        """
        span = int(self._last[access]) - int(self._first[access]) if self._entries[access] else 0
        return float(self._entries[access]) / max(1, min(reach, self._extent), span)

    def keys(self, accesses: Iterable[int]) -> Keys:
        """How many keys these accesses have, by their columns and the attributes of their keys.

        A rule's events may stand in one of the same column and keys that is its automaton's.
        """
        found: dict[tuple[ColumnPlan, tuple[int, ...]], float] = {}
        for access in accesses:
            plan = self._tables.access_plan(access)
            place = plan.column, plan.keys
            found[place] = max(float(self._keys[access]), found.get(place, 1.0))
        return found
