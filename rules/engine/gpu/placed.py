"""Rules on a processor and on a device, side by side: what ``--device`` makes of an engine.

Example: of the rules ``Fire from Smoke and last Temp ...`` and ``Alarm from Timer ...`` the first
is on the device and the second on the processor, and a failing device leaves both on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from matcher.gpu.device import failures
from matcher.matching import Told, nobody
from matcher.model import TIME_MAX, EventBatch, UInt64s
from rules.engine.cdp import CdpEngine
from rules.engine.engine import NOTHING, Detections, Placement, beginning
from rules.engine.gpu.eligible import TIED, reason_against
from rules.engine.gpu.engine import DeviceFailed, GpuEngine, horizons_of
from rules.engine.gpu.keeping import Kept
from rules.engine.gpu.ordering import merged
from rules.engine.gpu.placing import Placer
from rules.engine.intake.pending import times_of
from rules.engine.order.catalogue import Deployed
from rules.engine.threads.composite import Composite
from rules.engine.threads.part import types_of
from rules.pattern import RuleSet
from rules.planning.plan import RulePlan
from rules.planning.planner import compile_rule

Result = TypeVar("Result")
FORGET_MIN = 4_096
"""So many events come at least before it is looked which need not be kept."""
FAILED = "the device failed: detecting on the processor from now on"


class PlacedEngine(Composite):
    """A Detector; see :class:`rules.engine.engine.Detector`.

    ``gpu`` makes the engine of the device. ``placer`` says which of the rules that a device takes
    had better be there; without one all are. ``tell`` is told of a device that fails.

    Where a rule is evaluated changes no result, whenever it moves: the engine that takes a rule
    over knows its mark, and all events that its windows may still reach. There is an engine on the
    device only while it has rules.
    """

    def __init__(
        self,
        cpu: CdpEngine,
        gpu: Callable[[], GpuEngine] = GpuEngine,
        placer: Placer | None = None,
        tell: Told = nobody,
    ) -> None:
        super().__init__()
        self._cpu, self._make_gpu, self._placer, self._tell = cpu, gpu, placer, tell
        cpu.trust_ids()
        self._gpu: GpuEngine | None = None
        self._failure = ""
        self._reasons: dict[str, str | None] = {}
        self._plans: dict[str, RulePlan] = {}  # of rules that a device takes
        self._tied: set[str] = set()
        self._on_gpu: set[str] = set()
        self._kept: dict[str, Kept] = {}
        self._places: dict[str, int] = {}
        self._types_on_cpu: set[str] = set()
        self._horizons: dict[str, int] = {}  # by type, from when on rules look at it
        self._come, self._due = 0, FORGET_MIN
        """Events since it was last looked which are too old, and how many let it be looked anew."""

    # --- what it is ------------------------------------------------------------------------------

    @property
    def parts(self) -> Sequence[Collection[str]]:
        """The names of the rules on the processor, and of those on the device."""
        return [name for name in self._reasons if name not in self._on_gpu], sorted(self._on_gpu)

    def placement(self, name: str) -> Placement:
        """Where a deployed rule is evaluated, and why."""
        if name in self._on_gpu:
            return Placement("gpu", "" if self._placer is None else self._placer.says(name))
        return Placement("cpu", self._why(name))

    def _why(self, name: str) -> str:
        if reason := self._reasons[name]:
            return reason
        if name in self._tied:
            return TIED
        if self._failure:
            return f"the device failed: {self._failure}"
        return "" if self._placer is None else self._placer.says(name)

    def memory(self) -> Mapping[str, int]:
        """How much both keep, the device's under ``gpu/``, and events that are kept for rules that
        move: those that are ``waiting`` for marks, and those that marks have ``passed``.
        """
        gpu = {} if self._gpu is None else self._gpu.memory()
        theirs = {f"gpu/{name}": count for name, count in gpu.items()}
        kept = {
            "waiting": sum(one.waiting_count for one in self._kept.values()),
            "passed": sum(one.passed_count for one in self._kept.values()),
        }
        return {**self._cpu.memory(), **theirs, **kept}

    def costs(self) -> Mapping[str, int]:
        """How long the rules on the processor were evaluated."""
        return self._cpu.costs()

    def footprints(self) -> Mapping[str, int]:
        """How many bytes each rule takes, where it is evaluated."""
        gpu = {} if self._gpu is None else self._gpu.footprints()
        return {**self._cpu.footprints(), **gpu}

    def fresh(self) -> PlacedEngine:
        """A new engine of the same kind."""
        placer = None if self._placer is None else self._placer.fresh()
        return PlacedEngine(self._cpu.fresh(), self._make_gpu, placer, self._tell)

    # --- rules -----------------------------------------------------------------------------------

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        since = beginning(since, self._cpu.greatest)
        self._catalogue.deploy(rules, since, version)
        for rule in rules.rules:
            self._reasons[rule.name] = reason_against(rule)
            if self._reasons[rule.name] is None:
                self._plans[rule.name] = compile_rule(rule)
        self._tie()
        self._to_cpu(self._on_gpu & self._tied)
        if self._placer is None:
            going = tuple(rule for rule in rules.rules if self._may_go(rule.name))
            self._on_device(replace(rules, rules=going), since, version, {})
        placed = self._on_gpu.union(*self._cpu.parts)  # if the device failed, some are here
        others = tuple(rule for rule in rules.rules if rule.name not in placed)
        if others:
            self._cpu.deploy(replace(rules, rules=others), since=since, version=version)
            self._give(types_of(others) - self._types_on_cpu)
        self._arrange()

    def go_on_from(self, name: str, mark: int) -> None:
        """Evaluate a rule, just deployed, at no instant before a mark: on the processor, for it
        consumes events or is part of a cycle.
        """
        self._catalogue.go_on_from(name, mark)
        self._cpu.go_on_from(name, mark)

    def consume(self, name: str, keys: UInt64s) -> None:
        """Let a rule see none of these events any more."""
        self._cpu.consume(name, keys)

    def _may_go(self, name: str) -> bool:
        """Whether the device may have a rule. It may if it evaluates the rule exactly
        (:mod:`rules.engine.gpu.eligible`), and the rule has nothing to do with other rules'
        composite events. A rule goes back when a later one has to do with it.
        """
        is_free = name in self._plans and name not in self._tied and not self._failure
        return is_free and not self._catalogue.has_ended(name)

    def _on_device(
        self, rules: RuleSet, since: int, version: int, marks: Mapping[str, int]
    ) -> bool:
        """Let the device evaluate rules from now on, and fill what they look at; whether it can."""
        if self._failure or not rules.rules:
            return False
        try:
            if self._gpu is None:
                self._gpu = self._make_gpu()
                self._gpu.trust_ids()
                self._gpu.follow(self._catalogue)
            self._gpu.take_over(rules, since, version, marks)
        except Exception as error:
            self._give_up(error)
            return False
        self._on_gpu.update(rule.name for rule in rules.rules)
        for name in types_of(rules.rules):
            if name in self._kept:
                self._gpu.refill(name, [*self._kept[name].passed, *self._kept[name].waiting])
        return True

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        del self._reasons[name]
        self._plans.pop(name, None)
        if name in self._on_gpu:
            self._leave({name})
        else:
            self._cpu.remove(name)
        self._tie()
        self._arrange()
        for unused in self._kept.keys() - set(self._catalogue.used):
            del self._kept[unused]

    def _leave(self, names: Collection[str]) -> None:
        """Let the device forget rules; with the last of them goes its engine."""
        self._on_gpu.difference_update(names)
        if not self._on_gpu or self._gpu is None:
            self._gpu = None
            return
        try:
            for name in names:
                self._gpu.remove(name)
        except Exception as error:
            self._give_up(error)

    def _tie(self) -> None:
        """Note which rules have to do with the composite events of other rules."""
        rules = [one.rule for one in self._catalogue.rules]
        defined, used = {rule.defines.name for rule in rules}, types_of(rules)
        on_cpu = {rule.defines.name for rule in rules if self._reasons[rule.name] is not None}
        self._tied = {
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
        self._horizons = self._horizons_of_types()

    # --- moving ----------------------------------------------------------------------------------

    def move(self, names: Collection[str], *, to_gpu: bool) -> None:
        """Evaluate rules elsewhere from now on; those that are there stay, and so do those that a
        device does not take.
        """
        if not to_gpu:
            self._to_cpu(self._on_gpu & set(names))
            return
        going = [
            one for one in self._placed(set(names) - self._on_gpu) if self._may_go(one.rule.name)
        ]
        for (since, version), some in groupby(going, lambda one: (one.since, one.version)):
            rules = RuleSet(tuple(one.rule for one in some), {})
            marks = {rule.name: self.mark(rule.name) for rule in rules.rules}
            if self._on_device(rules, since, version, marks):
                for name in marks:
                    self._cpu.remove(name)
        self._arrange()

    def _placed(self, names: Collection[str]) -> list[Deployed]:
        rules = sorted(self._catalogue.rules, key=lambda one: one.place)
        return [one for one in rules if one.rule.name in names]

    def _to_cpu(self, names: Collection[str]) -> None:
        """Let the processor evaluate rules that were on the device."""
        if names:
            names = set(names)
            self._leave(names)
            self._take_back({name: self.mark(name) for name in names})

    def _take_back(self, marks: Mapping[str, int]) -> None:
        """Let the processor evaluate rules that are nowhere at present, from their marks on."""
        names = marks.keys()
        moved = self._placed(names)
        past = self._cpu.fresh()
        past.trust_ids()
        types = sorted(types_of(one.rule for one in moved) & self._kept.keys())
        kept = [batch for name in types for batch in self._kept[name].passed]
        past.take_over(moved, marks, self._catalogue, kept)
        deployed = self._placed(set(names).union(*self._cpu.parts))
        self._cpu = self._cpu.joined([past], deployed)
        self._cpu.trust_ids()
        self._give(types_of(one.rule for one in deployed))
        self._arrange()

    def _give(self, types: Collection[str]) -> None:
        """Let the processor have what waits of some types."""
        for name in sorted(types & self._kept.keys()):
            for batch in self._kept[name].waiting:
                self._cpu.push(batch)

    def _give_up(self, error: Exception, marks: Mapping[str, int] | None = None) -> None:
        """Go on without the device: the processor evaluates what that was asked in vain, and all
        rules from then on. Raises what is no failure of it. ``marks``: up to where its rules were
        evaluated, if that is not as they are.
        """
        if not isinstance(error, (DeviceFailed, *failures())):
            raise error
        said = str(error).strip().splitlines()
        self._failure = f"{type(error).__name__}{f': {said[0]}' if said else ''}"
        self._gpu = None
        names, self._on_gpu = self._on_gpu, set()
        if names:
            known = self.mark if marks is None else marks.__getitem__
            self._take_back({name: known(name) for name in names})
        self._tell(FAILED, self._failure)

    # --- events ----------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        known, name = self._catalogue.known(batch.type), batch.type.name
        times = times_of(batch)
        if times is None:
            return
        self._cpu.note(times)
        if known is None:
            return
        batch = self._repeats.accept(batch)
        if (times := times_of(batch)) is not None:
            kept = self._kept.get(name)
            if kept is None:
                kept = self._kept[name] = Kept()
            kept.push(batch, times)
            self._come += len(batch)
            if name in self._types_on_cpu:
                self._cpu.push(batch)
            if self._gpu is not None:
                self._gpu.push(batch)
            if self._placer is not None:
                self._placer.count(name, len(batch), times[1])

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14).

        The processor has its turn while the device is at work.
        """
        before = {name: self.mark(name) for name in self._on_gpu}
        _, error = self._asked(lambda gpu: gpu.begin(marks))
        if error is not None:
            self._give_up(error, before)
        found = list(self._ours(marks))
        theirs, error = self._asked(lambda gpu: gpu.finish())
        self._catalogue.advance_groups(marks)
        while self._catalogue.has_turns and self._catalogue.turn():
            self._catalogue.advance_groups({})
        if error is not None:
            self._pass()
            self._give_up(error, before)  # all is kept that its rules see from before on
            found += self._ours({})
        self._end_overrun(*self._cpu.take_overruns())
        if self._gpu is not None:
            self._end_overrun(*self._gpu.take_overruns())
        self._forget()
        self._choose()
        every = [NOTHING if theirs is None else theirs, *found]
        return merged([one for one in every if len(one)], self._places)

    def _asked(self, work: Callable[[GpuEngine], Result]) -> tuple[Result | None, Exception | None]:
        """The device's answer, if there is an engine on it, and the error that came instead."""
        if self._gpu is None:
            return None, None
        try:
            with nullcontext() if self._placer is None else self._placer.timed():
                return work(self._gpu), None
        except Exception as error:
            return None, error

    def _ours(self, marks: int | Mapping[str, int]) -> Iterator[Detections]:
        """Detections of the processor, turn by turn; no event that marks have passed waits then."""
        told = marks
        while True:
            if self._cpu.begin(told):
                self._cpu.evaluate()
                yield self._cpu.finish()
            if not self._cpu.turn():
                return
            told = {}

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        super().forget_marks()
        self._cpu.forget_marks()
        if self._gpu is not None:
            self._gpu.forget_marks()

    def _pass(self) -> None:
        """Sort out what marks have passed."""
        for name, kept in self._kept.items():
            kept.rise(self._catalogue.mark_of_type(name), self._horizons.get(name, TIME_MAX))

    def _forget(self) -> None:
        """Sort out what marks have passed; forget, when much has come, what no rule that a device
        takes can see.
        """
        is_due = self._come >= self._due
        if is_due:
            self._horizons = self._horizons_of_types()
        self._pass()
        if is_due:
            left = sum(one.passed_count for one in self._kept.values())
            self._come, self._due = 0, max(FORGET_MIN, left // 2)
            if self._reasons:
                self._repeats.forget(min([self._cpu.horizon, *self._horizons.values()]))

    def _horizons_of_types(self) -> dict[str, int]:
        """For each type that a rule which a device takes looks at, from when on."""
        return horizons_of(self._plans, self.mark)

    def _choose(self) -> None:
        """Let rules be evaluated where that costs less, as far as is known by now."""
        if self._placer is None or self._failure:
            return
        self._placer.advanced()
        if self._placer.is_due:
            takes = {name: one for name, one in self._plans.items() if name not in self._tied}
            changes = self._placer.choose(takes, self._on_gpu, self._kept)
            for to_gpu in (False, True):
                names = [name for name, is_to in changes.items() if is_to is to_gpu]
                if names:
                    self.move(names, to_gpu=to_gpu)
