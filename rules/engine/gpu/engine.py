"""The engine of a device: a Detector for the rules that one evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from matcher.gpu.device import Device, device
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, Int64s
from rules.engine.conflict import Conflict
from rules.engine.engine import NOTHING, Detections, Placement, beginning
from rules.engine.gpu.batches import RuleMatches
from rules.engine.gpu.eligible import TIED, reason_against
from rules.engine.gpu.evaluation import DeviceFailed, Evaluation, Matches, Workspace
from rules.engine.gpu.linking import Linked, link
from rules.engine.gpu.memory import Memory
from rules.engine.gpu.ordering import Found
from rules.engine.gpu.stores import Stores
from rules.engine.intake.duplicates import DuplicateFilter
from rules.engine.memory.footprints import in_bytes, split
from rules.engine.order.catalogue import Catalogue
from rules.engine.order.catalogued import Catalogued
from rules.errors import Problem, RuleErrors
from rules.overrun import Overrun
from rules.pattern import Rule, RuleSet
from rules.planning.plan import RulePlan

__all__ = ["DeviceFailed", "GpuEngine"]

LOOK_EVENTS = 1_024
"""So many events come before it is looked which rules can see no more."""


class GpuEngine(Catalogued):
    """A Detector; see :class:`rules.engine.engine.Detector`. Rules here have nothing to do with
    each other's composite events (``refuse``), so each is evaluated by itself.
    """

    has_run: ClassVar[bool] = False
    """Whether one has evaluated anything in this process: its kernels are compiled then."""

    def __init__(self, on: Device | None = None, composites_max: int | None = None) -> None:
        self._device = on or device()
        self._composites_max = composites_max
        super().__init__()
        self._stores = Stores()
        self._memory = Memory(self._device)
        self._workspace = Workspace(self._device, self._memory.lane)
        self._linked: dict[str, Linked] = {}
        self._evaluations: dict[str, Evaluation] = {}
        self._asked: Sequence[str] = ()
        """The rules whose evaluation has begun."""
        self._repeats: DuplicateFilter | None = DuplicateFilter()
        self._greatest = TIME_MIN  # of the times of events
        self._come = 0
        """Events since it was last looked which rules can see no more."""

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return 0 if self._repeats is None else self._repeats.dropped

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        return 0 if self._repeats is None else self._repeats.conflicts

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        return None if self._repeats is None else self._repeats.take_conflict()

    def memory(self) -> Mapping[str, int]:
        """How much is kept: ``rows`` by type, ``strings``, and ``device bytes``."""
        rows = {f"rows/{name}": len(one.rows) for name, one in self._stores.of_type.items()}
        held = self._memory.bytes + self._workspace.bytes
        return {**rows, "strings": len(self._stores.strings), "device bytes": held}

    def footprints(self) -> Mapping[str, int]:
        """The bytes that each rule takes on the device, and in the stores beside it
        (:mod:`rules.engine.memory.footprints`).
        """
        kept: dict[int | str, int] = {
            one.number: one.words + self._memory.words_of(one) for one in self._stores.columns
        }
        kept.update((name, one.words) for name, one in self._stores.of_type.items())
        places = {key: place for place, key in enumerate(kept)}
        uses = [
            (places[key], rule, reach)
            for rule, linked in enumerate(self._linked.values())
            for column, reach in linked.looks
            for key in (column.number, column.plan.type.name)
        ]
        things, rules, reaches = np.array(uses, np.int64).reshape(-1, 3).T
        words = np.array([*kept.values()], np.int64)
        found = split(words, things, rules, reaches, len(self._linked))
        return dict(zip(self._linked, in_bytes(found), strict=True))

    def follow(self, others: Catalogue) -> None:
        """Know the marks of types that another was told. No rule is deployed here yet."""
        self._catalogue.follow(others)

    def placement(self, name: str) -> Placement:
        """On the device."""
        return Placement("gpu")

    def trust_ids(self) -> None:
        """Look for no repeats from now on: whoever pushes events has."""
        self._repeats = None

    def fresh(self) -> GpuEngine:
        """A new engine on the same device."""
        return GpuEngine(self._device, self._composites_max)

    # --- rules -----------------------------------------------------------------------------------

    @staticmethod
    def refuse(rules: Sequence[Rule], deployed: Sequence[Rule] = ()) -> list[Problem]:
        """Why rules cannot be evaluated on a device, beside others that are there."""
        used = {type_.name for rule in (*deployed, *rules) for type_ in rule.used_types}
        reasons: list[tuple[Rule, str | None]] = [(rule, None) for rule in deployed]
        reasons += [(rule, reason_against(rule)) for rule in rules]
        problems = []
        for rule, reason in reasons:
            if reason is None and rule.defines.name in used:
                reason = TIED
            if reason is not None:
                problems.append(Problem(f"rule {rule.name}: a device does not take it: {reason}"))
        return problems

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        self.take_over(rules, beginning(since, self._greatest), version, {})

    def take_over(self, rules: RuleSet, since: int, version: int, marks: Mapping[str, int]) -> None:
        """Add rules, of which some were evaluated elsewhere up to their ``marks``."""
        deployed = [one.deployed.rule for one in self._linked.values()]
        if problems := self.refuse(rules.rules, deployed):
            raise RuleErrors(problems)
        for one in self._catalogue.deploy(rules, since, version, marks):
            self._linked[one.rule.name] = link(one, self._stores)
        self._link_anew()

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        for column in self._linked.pop(name).all_columns:
            self._stores.drop(column)
        self._memory.forget(name)
        del self._evaluations[name]
        self._link_anew()

    def _link_anew(self) -> None:
        """Follow the catalogue: places and ranks may be others."""
        self._catalogue.take_changed()
        self._memory.follow_rules()
        for name, linked in self._linked.items():
            if name not in self._evaluations:
                self._workspace.fit(linked)
                self._evaluations[name] = Evaluation(linked, self._memory, self._workspace)

    # --- events ----------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type.
        Events enter columns when the engine advances, whatever their times: a window never reaches
        beyond the event that it is anchored at.
        """
        known = self._catalogue.known(batch.type)
        self._greatest = int(batch.time.max(initial=self._greatest))
        if known is not None and self._repeats is not None:
            batch = self._repeats.accept(batch)
        self._come += len(batch)
        self._stores.push(batch)

    def refill(self, name: str, batches: Iterable[EventBatch]) -> None:
        """Let a type have these events and no others, be their times before marks or not."""
        self._stores.empty(name)
        for batch in batches:
            self._come += len(batch)
            self._stores.push(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        self.begin(marks)
        return self.finish()

    def begin(self, marks: int | Mapping[str, int]) -> None:
        """The first step of an advance: let the device begin. Others may take theirs meanwhile."""
        due = self._catalogue.advance(marks)
        self._stores.take_in()
        evaluations = self._evaluations
        asked = [name for name, (first, end) in due.items() if evaluations[name].ask(first, end)]
        self._asked = asked
        if not asked:
            return
        GpuEngine.has_run = True
        self._memory.synchronise(self._stores, tuple(self._linked.values()))
        for name in asked:
            evaluations[name].start()

    def finish(self) -> Detections:
        """The second step: what was detected."""
        names = sorted(self._asked, key=lambda name: self._linked[name].deployed.place)
        found = [matches for name in names for matches in self._found_by(name)]
        self._forget()
        return Found(found) if found else NOTHING

    def _found_by(self, name: str) -> Iterator[RuleMatches]:
        """The matches of a rule, as far as it may yield composite events."""
        most, instant, count = self._composites_max, TIME_MIN, 0
        for matches in self._evaluations[name].matches():
            found = self._as_composites(name, matches)
            if most is not None and len(found):
                times = found.times
                before = count if times[0] == instant else 0
                room = room_in(times, before, most)
                if room < len(found):
                    self._end_overrun(Overrun(name, int(times[room]), most))
                    if room:
                        yield found.first(room)
                    return
                last = int(times[-1])
                count = int((times == last).sum()) + (before if times[0] == last else 0)
                instant = last
            yield found

    def _as_composites(self, name: str, found: Matches) -> RuleMatches:
        """A rule's matches, with the rows of their events as they are now."""
        linked, stores = self._linked[name], self._stores
        causes = [
            stores.of_type[column.plan.type.name].rows[found.rows[:, event]]
            for event, column in enumerate(linked.columns)
        ]
        rule = linked.deployed.rule
        return RuleMatches(rule.defines, rule.name, linked.key, causes, found.words, stores.names)

    def _forget(self) -> None:
        """Forget events to which no rule's mark and windows reach back, once enough has come for it
        to be much.
        """
        if self._come < LOOK_EVENTS:
            return
        self._come = 0
        plans = {name: linked.plan for name, linked in self._linked.items()}
        horizons = horizons_of(plans, self._catalogue.mark)
        self._stores.forget(horizons)
        self._stores.sweep(
            {word for one in self._linked.values() for word in one.texts(self._stores)}
        )
        if self._repeats is not None and horizons:
            self._repeats.forget(min(horizons.values()))


def room_in(times: Int64s, before: int, most: int) -> int:
    """How many of a rule's composite events, whose times are given in order, it may yield, if it
    has ``before`` of the first instant already, and may have ``most`` of each.
    """
    begins = np.searchsorted(times, times)  # where the instant of each begins
    numbers = np.arange(len(times)) - begins
    numbers[begins == 0] += before
    beyond = np.flatnonzero(numbers >= most)
    return int(beyond[0]) if len(beyond) else len(times)


def horizons_of(plans: Mapping[str, RulePlan], mark: Callable[[str], int]) -> dict[str, int]:
    """For each type that rules, given with their plans, look at, the instant from which on they
    do; ``mark`` is that of a rule.
    """
    horizons: dict[str, int] = {}
    for name, plan in plans.items():
        done = mark(name)
        for type_, reach in reaches_of_plan(plan).items():
            horizon = done - reach if done > TIME_MIN + reach else TIME_MIN
            horizons[type_] = min(horizon, horizons.get(type_, TIME_MAX))
    return horizons


def reaches_of_plan(plan: RulePlan) -> dict[str, int]:
    """How far back from its mark a rule looks into each type, in microseconds."""
    found = {plan.terminator.type.name: 0}
    for step in plan.steps:
        if step.access is not None:
            name = step.access.column.type.name
            found[name] = max(step.access.reach, found.get(name, 0))
    return found
