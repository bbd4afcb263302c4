"""Rules on a processor and on a device, side by side: what ``--device`` makes of an engine.

Law 1: where a rule is evaluated changes no result, whenever it moves: the engine that takes a rule
over knows its mark, and all events that its windows may still reach.

Law 2: a device takes rules that it evaluates exactly (:mod:`rules.engine.gpu.eligible`) and that
have nothing to do with other rules' composite events. One that does not stays on the processor;
so does one that a later rule has to do with, from then on.

Law 3: a device that fails costs time and no result: what it was asked in vain, the processor
evaluates, with all rules from then on; ``take_notes`` says so.

Example: of the rules ``Fire from Smoke and last Temp ...`` and ``Alarm from Timer ...`` the first
is on the device and the second on the processor, and a failing device leaves both on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.errors import SchemaError
from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from rules.engine.catalogue import Catalogue, Deployed
from rules.engine.cdp import CdpEngine
from rules.engine.conflict import Conflict
from rules.engine.duplicates import DuplicateFilter
from rules.engine.engine import NOTHING, Detections
from rules.engine.gpu.eligible import reason_against
from rules.engine.gpu.engine import GpuEngine, reaches_of_plan
from rules.engine.gpu.ordering import merged
from rules.engine.part import types_of
from rules.engine.pending import times_of
from rules.pattern import TIMER, Rule, RuleSet
from rules.planning.planner import compile_rule

Failures = tuple[type[Exception], ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a rule is evaluated, ``cpu`` or ``gpu``, and why if it is not on the device."""

    device: str
    reason: str = ""


class PlacedEngine:
    """A Detector; see :class:`rules.engine.engine.Detector`.

    It keeps events by type: those that no mark has passed yet, which ``wait``, and those that one
    has ``passed`` and rules may still see that a device takes. ``gpu`` makes the engine of the
    device; ``failures`` are what it raises when that fails.
    ``prefers`` says of a rule that a device takes whether it had better be there; it is asked
    when the rule comes, and again at times.
    """

    def __init__(
        self,
        cpu: CdpEngine,
        gpu: Callable[[], GpuEngine],
        failures: Failures,
        prefers: Callable[[Rule], bool] = lambda rule: True,
    ) -> None:
        self._cpu, self._make_gpu = cpu, gpu
        self._gpu: GpuEngine | None = gpu()
        self._failures, self._prefers = failures, prefers
        for one in (cpu, self._gpu):
            one.trust_ids()
        self._catalogue = Catalogue()
        self._repeats = DuplicateFilter()
        self._reasons: dict[str, str | None] = {}
        self._reaches: dict[str, dict[str, int]] = {}
        self._on_gpu: set[str] = set()
        self._waiting: dict[str, list[EventBatch]] = {}
        self._passed: dict[str, list[EventBatch]] = {}
        self._notes: list[str] = []
        self._places: dict[str, int] = {}
        self._types_on_cpu: set[str] = set()

    # --- what it is ------------------------------------------------------------------------------

    @property
    def marks(self) -> Mapping[str, int]:
        """Each deployed rule's mark, by name: all instants before it have been evaluated."""
        return self._catalogue.marks

    def mark(self, name: str) -> int:
        """One rule's mark; KeyError when no rule has that name."""
        return self._catalogue.mark(name)

    @property
    def parts(self) -> Sequence[Collection[str]]:
        """The names of the rules on the processor, and of those on the device."""
        return [name for name in self._reasons if name not in self._on_gpu], sorted(self._on_gpu)

    @property
    def placements(self) -> Mapping[str, Placement]:
        """Where each rule is evaluated, by name."""
        return {
            name: Placement("gpu") if name in self._on_gpu else Placement("cpu", self._why(name))
            for name in self._reasons
        }

    def _why(self, name: str) -> str:
        if self._gpu is None:
            return "the device failed"
        return self._reasons[name] or "it costs less there"

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._repeats.dropped

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        return self._repeats.conflicts

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        return self._repeats.take_conflict()

    def take_notes(self) -> list[str]:
        """What whoever runs it should know, once: that the device failed."""
        notes, self._notes = self._notes, []
        return notes

    def memory(self) -> Mapping[str, int]:
        """How much both keep, the device's under ``gpu/``, and ``waiting`` events."""
        gpu = {} if self._gpu is None else self._gpu.memory()
        theirs = {f"gpu/{name}": count for name, count in gpu.items()}
        kept = {"waiting": _count(self._waiting), "passed": _count(self._passed)}
        return {**self._cpu.memory(), **theirs, **kept}

    def fresh(self) -> PlacedEngine:
        """A new engine of the same kind."""
        return PlacedEngine(self._cpu.fresh(), self._make_gpu, self._failures, self._prefers)

    # --- rules -----------------------------------------------------------------------------------

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        self._catalogue.deploy(rules, since, version)
        for rule in rules.rules:
            self._reasons[rule.name] = reason_against(rule)
            if self._reasons[rule.name] is None:
                self._reaches[rule.name] = reaches_of_plan(compile_rule(rule))
        tied = self._tied()
        self._to_cpu(self._on_gpu & tied)
        for rule in rules.rules:
            one = replace(rules, rules=(rule,))
            is_taken = self._gpu is not None and self._reasons[rule.name] is None
            if is_taken and rule.name not in tied and self._prefers(rule):
                self._on_device(one, since, version, {})
        others = tuple(rule for rule in rules.rules if rule.name not in self._on_gpu)
        if others:
            self._cpu.deploy(replace(rules, rules=others), since=since, version=version)
            self._give(types_of(others) - self._types_on_cpu)
        self._arrange()

    def _on_device(
        self, rules: RuleSet, since: int | None, version: int, marks: Mapping[str, int]
    ) -> None:
        """Let the device evaluate rules from now on, and fill what they look at."""
        assert self._gpu is not None
        self._gpu.take_over(rules, since, version, marks)
        self._on_gpu.update(rule.name for rule in rules.rules)
        for name in types_of(rules.rules):
            kept = [*self._passed.get(name, ()), *self._waiting.get(name, ())]
            self._gpu.refill(name, kept)

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        del self._reasons[name]
        self._reaches.pop(name, None)
        if name in self._on_gpu:
            self._on_gpu.remove(name)
            assert self._gpu is not None
            self._gpu.remove(name)
        else:
            self._cpu.remove(name)
        self._arrange()
        for kept in (self._waiting, self._passed):
            for unused in kept.keys() - set(self._catalogue.used):
                del kept[unused]

    def _tied(self) -> set[str]:
        """The names of rules that have to do with the composite events of other rules."""
        rules = [one.rule for one in self._catalogue.rules]
        defined, used = {rule.defines.name for rule in rules}, types_of(rules)
        on_cpu = {rule.defines.name for rule in rules if self._reasons[rule.name] is not None}
        return {
            rule.name
            for rule in rules
            if rule.defines.name in used | on_cpu or not types_of([rule]).isdisjoint(defined)
        }

    def _arrange(self) -> None:
        """Note where rules stand, and what the processor's look at."""
        rules = self._placed(self._reasons)
        self._places = {one.rule.name: place for place, one in enumerate(rules)}
        ours = (one.rule for one in rules if one.rule.name not in self._on_gpu)
        self._types_on_cpu = set(types_of(ours))

    # --- moving ----------------------------------------------------------------------------------

    def move(self, names: Collection[str], *, to_gpu: bool) -> None:
        """Evaluate rules elsewhere from now on; those that are there stay, and so do those that a
        device does not take.
        """
        if not to_gpu:
            self._to_cpu(self._on_gpu & set(names))
            return
        tied = self._tied()
        for one in self._placed(set(names) - self._on_gpu - tied):
            if self._gpu is not None and self._reasons[one.rule.name] is None:
                self._cpu.remove(one.rule.name)
                since = None if one.since == TIME_MIN else one.since
                marks = {one.rule.name: self.mark(one.rule.name)}
                self._on_device(RuleSet((one.rule,), {}), since, one.version, marks)
        self._arrange()

    def _placed(self, names: Collection[str]) -> list[Deployed]:
        rules = sorted(self._catalogue.rules, key=lambda one: one.place)
        return [one for one in rules if one.rule.name in names]

    def _to_cpu(self, names: Collection[str]) -> None:
        """Let the processor evaluate rules that were on the device (Law 1)."""
        if not names:
            return
        moved = self._placed(names)
        if self._gpu is not None:
            for name in names:
                self._gpu.remove(name)
        self._on_gpu.difference_update(names)
        marks = {one.rule.name: self.mark(one.rule.name) for one in moved}
        past = self._cpu.fresh()
        past.trust_ids()
        types = sorted(types_of(one.rule for one in moved))
        kept = [batch for name in types for batch in self._passed.get(name, ())]
        past.take_over(moved, marks, self._catalogue, kept)
        there = {name for part in self._cpu.parts for name in part}
        deployed = self._placed(there | names)
        self._cpu = self._cpu.joined([past], deployed)
        self._cpu.trust_ids()
        self._give(types_of(one.rule for one in deployed))
        self._arrange()

    def _give(self, types: Collection[str]) -> None:
        """Let the processor have what waits of some types."""
        for name in sorted(types):
            for batch in self._waiting.get(name, ()):
                self._cpu.push(batch)

    # --- events ----------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        name = batch.type.name
        known = self._catalogue.schemas.get(name)
        if name == TIMER.name or (known is not None and known != batch.type):
            raise SchemaError(f"event {batch.type} is already known as {known or TIMER}")
        times = times_of(batch)
        if times is None:
            return
        self._cpu.note(times)
        if known is None:
            return
        batch = self._repeats.accept(batch)
        if len(batch):
            self._waiting.setdefault(name, []).append(batch)
            if name in self._types_on_cpu:
                self._cpu.push(batch)
            if self._gpu is not None:
                self._gpu.push(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        try:
            theirs = NOTHING if self._gpu is None else self._gpu.advance(marks)
        except self._failures as error:
            theirs = NOTHING
            self._give_up(error)
        found = [theirs, *self._ours(marks)]
        self._catalogue.advance_groups(marks)
        while self._catalogue.has_turns and self._catalogue.turn():
            self._catalogue.advance_groups({})
        self._forget()
        return merged([one for one in found if len(one)], self._places)

    def _ours(self, marks: int | Mapping[str, int]) -> list[Detections]:
        """What the processor detects, turn by turn; no event that marks have passed waits then."""
        found, told = [], marks
        while True:
            if self._cpu.begin(told):
                self._cpu.evaluate()
                found.append(self._cpu.finish())
            if not self._cpu.turn():
                return found
            told = {}

    def _give_up(self, error: Exception) -> None:
        """Go on without the device (Law 3)."""
        said = str(error).strip().splitlines() or [type(error).__name__]
        self._notes.append(f"the device failed ({said[0]}); all rules go on on the processor")
        self._gpu = None
        self._to_cpu(set(self._on_gpu))

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        self._catalogue.forget_named()
        self._cpu.forget_marks()
        if self._gpu is not None:
            self._gpu.forget_marks()

    def _forget(self) -> None:
        """Sort out what marks have passed; forget what no rule that a device takes can see."""
        horizons: dict[str, int] = {}
        for name, reaches in self._reaches.items():
            mark = self.mark(name)
            for type_, reach in reaches.items():
                horizon = mark - reach if mark > TIME_MIN + reach else TIME_MIN
                horizons[type_] = min(horizon, horizons.get(type_, TIME_MAX))
        for name, batches in self._waiting.items():
            mark = self._catalogue.mark_of_type(name)
            passed = [part for one in batches if len(part := one.take(one.time < mark))]
            self._waiting[name] = [
                part for one in batches if len(part := one.take(one.time >= mark))
            ]
            self._passed.setdefault(name, []).extend(passed)
        for name, batches in self._passed.items():
            horizon = horizons.get(name, TIME_MAX)
            self._passed[name] = [one for one in batches if int(one.time.max()) >= horizon]
        if self._reasons:
            self._repeats.forget(min([self._cpu.horizon, *horizons.values()]))


def _split(batches: Iterable[EventBatch], mark: int) -> tuple[list[EventBatch], list[EventBatch]]:
    """The events before a mark, and the others."""
    before, others = [], []
    for batch in batches:
        is_before = batch.time < mark
        if is_before.all():
            before.append(batch)
        elif is_before.any():
            before.append(batch.take(is_before))
            others.append(batch.take(~is_before))
        else:
            others.append(batch)
    return before, others


def _count(kept: Mapping[str, Sequence[EventBatch]]) -> int:
    return sum(len(batch) for batches in kept.values() for batch in batches)
