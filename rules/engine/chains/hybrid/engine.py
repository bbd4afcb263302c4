"""Hybrid parallelism: the threads of one machine on one heavy rule, by state and by data.

(M. Yankovitch and others; :doc:`docs/reproduction/hybrid.md`.) A rule is a chain of states, each
but the first with an *agent* that pairs the events of its type with the sequences before it. An
agent has event workers, which try an event with the sequences that are stored, and match workers,
which try a sequence with the events that are stored; they share memory, and pass sequences on to
the next agent through its queue. So what runs at once are states, and pairs within a state.

Taking events in, stored events and what becomes of matches are those of :mod:`rules.engine.cdp`,
models of rules those of :mod:`rules.engine.chains.published`. An advance has three steps:

1. events enter columns, and terminators are noted;
2. the workers work them off, and complete sequences are sorted;
3. these become composite events, in the order of all engines.

Law: it detects what the other engines detect, to the last bit, whatever the threads do.

Example: for ``A() and each B() within 5 s from A and each C() within 5 s from B`` B's agent has
C#1 stored when B#1 comes; its event worker tries them, and ``C#1 B#1`` goes into the queue of the
agent of A.

Rules that are no chains are refused (:mod:`rules.engine.chains.hybrid.chains`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from matcher.model import TIME_MAX, TIME_MIN, Int64s
from rules.engine.cdp import CdpEngine
from rules.engine.chains.hybrid import kernels
from rules.engine.chains.hybrid.chains import reason_against
from rules.engine.chains.hybrid.emitting import (
    GROUP,
    GROUP_BLOCK,
    GROUP_END,
    GROUP_NEXT,
    GROUP_RULE,
    emit_groups,
)
from rules.engine.chains.hybrid.pipeline import Crew, Pipeline
from rules.engine.chains.hybrid.trials import Trials
from rules.engine.chains.published.engine import AipPublished
from rules.engine.choice.chooser import Held, Look, measured
from rules.engine.choice.costs import price_of
from rules.engine.engine import Detections
from rules.engine.kernels import layout
from rules.engine.linking.linker import LinkedRule
from rules.engine.linking.loading import pointer_to
from rules.engine.memory.footprints import WORD
from rules.engine.memory.snapshots import Snapshot
from rules.errors import Problem, RuleErrors
from rules.pattern import RuleSet
from rules.planning.planner import compile_rule


class HybridEngine(AipPublished):
    """A Detector; see :class:`rules.engine.engine.Detector`."""

    def __init__(
        self,
        crew: Crew | None = None,
        trials: Trials | None = None,
        *,
        composites_max: int | None = None,
    ) -> None:
        """``trials`` are told what rules take that may be evaluated by other engines too."""
        super().__init__(composites_max=composites_max)
        self._crew = crew or Crew()
        self.trials = trials
        self._pipelines: dict[int, Pipeline] = {}  # by the numbers of rules
        self._spent: Counter[int] = Counter()  # ticks, by these
        self._looked: dict[int, tuple[int, int]] = {}  # terminators and ticks at the last look
        self._looks, self._look_at = 0, price_of(0)  # of the trial; the events before the next

    def fresh(self) -> HybridEngine:
        """A new engine of the same kind and choices."""
        return HybridEngine(self._crew, self.trials, composites_max=self._yield_max)

    def costs(self) -> Mapping[str, int]:
        """The ticks of each rule: while workers ran, and while composite events were written."""
        return {
            linked.deployed.rule.name: self._spent[number]
            for number, linked in self._linker.by_number.items()
            if self._spent[number]
        }

    def begin_trial(self) -> None:
        """Count from now on what rules take: they have been given what they see."""
        self._spent.clear()
        records = self._arrays["rules"]["evaluated"]
        self._looked = {number: (int(records[number]), 0) for number in self._linker.by_number}
        self._looks, self._look_at = 0, self.entered + price_of(0)

    def finish(self) -> Detections:
        """The third step; and a look at what rules take, when enough events have come."""
        found = super().finish()
        if self.trials is not None and self.entered >= self._look_at:
            self._look(self.trials)
        return found

    def _look(self, trials: Trials) -> None:
        self._looks += 1
        self._look_at = self.entered + price_of(self._looks)
        held = Held(self._linker.tables, self._arrays)
        for number, linked in self._linker.by_number.items():
            rule = linked.deployed.rule
            evaluated = int(self._arrays["rules"]["evaluated"][number])
            before, spent = self._looked.get(number, (0, 0))
            self._looked[number] = evaluated, self._spent[number]
            time = min(self.greatest, self.mark(rule.name))
            elapsed = time - trials.since(rule)
            if elapsed > 0 and not linked.deployed.has_ended:
                rate = (evaluated - before) / elapsed
                plan = compile_rule(rule)
                rates, _ = measured(plan, linked, held, rate, trials.keys(rule))
                trials.look_inside(rule, Look(rates, elapsed, self._spent[number] - spent, time))

    def refuse(self, rules: RuleSet) -> None:
        """Raise RuleErrors for rules that are no chains."""
        there = [one.rule for one in self._catalogue.rules]
        defined = {rule.defines.name for rule in (*there, *rules.rules)}
        problems = [
            Problem(
                f"rule {rule.name}: {reason}; hybrid takes chains of each within of primitive "
                "events alone",
                hint="let another engine have this rule: auto takes every one",
            )
            for rule in (*rules.rules, *there)
            if (reason := reason_against(rule, defined))
        ]
        if problems:
            raise RuleErrors(problems)

    def memory(self) -> Mapping[str, int]:
        """As the other engines'; and ``sequences`` that wait, words of ``chunks``, and ``repeats``:
        sequences that were complete twice, of which there are none with tickets.
        """
        kept = [one.memory() for one in self._pipelines.values()]
        sums = {name: sum(one[name] for one in kept) for name in ("sequences", "chunks", "repeats")}
        return {**super().memory(), **sums}

    def footprints(self) -> Mapping[str, int]:
        """As the other engines'; and the chunks that sequences wait in."""
        found = dict(super().footprints())
        for number, one in self._pipelines.items():
            name = self._linker.by_number[number].deployed.rule.name
            found[name] += WORD * one.memory()["chunks"]
        return found

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        for linked in self._linker.linked.get(name, ()):
            self._pipelines.pop(linked.number, None)
        super().remove(name)

    def resume(self, kept: Snapshot) -> None:
        """As the other engines': a snapshot has no sequences, they are made again from events."""
        super().resume(kept)
        self._forget_sequences(self._linker.by_number.values())

    def _late(self) -> Mapping[int, int]:
        return _addresses()

    # --- evaluation --------------------------------------------------------------------------

    def evaluate(self) -> None:
        """The second step of an advance: see the module."""
        counters = self._arrays.counters
        is_last, counters[layout.TAKING] = counters[layout.TAKING], 0
        CdpEngine.evaluate(self)
        found, numbers = [], list(self._linker.by_number)
        for number in numbers:
            begun = kernels.now()
            found.append(self._worked_off(self._linker.by_number[number]))
            self._spent[number] += kernels.now() - begun
        self._arrays["accepted"][0] = 0
        begun = kernels.now()
        self._emit([one for one in found if len(one)])
        spent, groups = kernels.now() - begun, sum(map(len, found))
        for number, rows in zip(numbers, found, strict=True):
            self._spent[number] += spent * len(rows) // max(1, groups)
        for one in self._pipelines.values():
            one.forget(self._taken_in(one.linked))
        counters[layout.TAKING] = is_last
        CdpEngine.evaluate(self)  # takes what was written

    def _taken_in(self, linked: LinkedRule) -> int:
        assert linked.automaton is not None
        return int(self._arrays["automata"]["taken_in"][linked.automaton.number])

    def _worked_off(self, linked: LinkedRule) -> Int64s:
        """The groups of a rule that become complete (``emitting``), with the time and the place of
        each before it.
        """
        mark = int(self._arrays["groups"]["mark"][self._arrays["rules"]["group"][linked.number]])
        record = self._arrays["rules"][linked.number]
        if mark == TIME_MIN:
            return _NO_GROUPS
        if int(record["floor"]) == TIME_MAX:  # it has ended
            self._pipelines.pop(linked.number, None)
            return _NO_GROUPS
        begin = self._taken_in(linked)
        pipeline = self._pipelines.get(linked.number)
        if pipeline is None or begin == TIME_MIN:
            pipeline = self._pipelines[linked.number] = Pipeline(linked, self._arrays, self._crew)
        begin = max(begin, int(record["since"]))
        if begin >= mark:
            return _NO_GROUPS
        slices = list(pipeline.take_in(self._arrays, begin, mark))
        assert linked.automaton is not None
        kernels.note_taken_in(self._arrays.state, linked.automaton.number, mark - 1)
        place = int(self._arrays["source_ranks"][linked.source])
        found = [
            _groups(pipeline, linked.number, place, sequences)
            for count, sequences in slices
            if count
        ]
        pipeline.hold([sequences for _, sequences in slices])
        return np.concatenate(found) if found else _NO_GROUPS

    def _emit(self, found: Sequence[Int64s]) -> None:
        """Write the composite events of groups, in the order of time and then of rules."""
        if not found:
            return
        rows = found[0]
        if len(found) > 1:
            rows = np.concatenate(found)
            rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        groups, first = np.ascontiguousarray(rows[:, 2:]), 0
        while True:
            first, status = emit_groups(self._arrays.state, groups.ctypes.data, first, len(groups))
            if status == layout.DONE:
                return
            self._provide(status)


_NO_GROUPS = np.empty((0, 2 + GROUP), np.int64)


def _groups(pipeline: Pipeline, rule: int, place: int, sequences: Int64s) -> Int64s:
    """The groups of sorted sequences, one for each terminator."""
    terminators = sequences[:, -1]
    firsts = np.flatnonzero(np.r_[True, terminators[1:] != terminators[:-1]])
    width = sequences.itemsize * pipeline.size
    begins = sequences.ctypes.data + width * firsts
    groups = np.empty((len(firsts), 2 + GROUP), np.int64)
    groups[:, 0] = pipeline.terminators.times_of(terminators[firsts])
    groups[:, 1] = place
    groups[:, 2 + GROUP_RULE], groups[:, 2 + GROUP_BLOCK] = rule, pipeline.address
    groups[:, 2 + GROUP_NEXT] = begins
    groups[:, 2 + GROUP_END] = np.append(begins[1:], sequences.ctypes.data + sequences.nbytes)
    return groups


@cache
def _addresses() -> Mapping[int, int]:
    """The kernels that stand in for those of the other engines."""
    return {
        layout.LATE_DETECT: pointer_to(kernels.late_detect),
        layout.LATE_AUTOMATA: pointer_to(kernels.late_automata),
    }
