"""Where each rule costs less, on the processor or on the device: the choice of ``auto``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields

from matcher.model import TIME_MIN
from rules.engine.choice.chooser import MARGIN
from rules.engine.choice.costs import PRICES, Costs
from rules.engine.gpu.engine import GpuEngine
from rules.engine.gpu.keeping import Kept
from rules.engine.gpu.work import SAMPLE, Sampled, work_of
from rules.planning.plan import RulePlan
from rules.planning.sequences import AutomatonPlan, automaton_of, states_of

LOOK_EVENTS = PRICES[-1]
FACTOR_MAX = 64.0
"""A device is not thought to be so many times slower or faster than expected."""
UNKNOWN = "nothing is known yet of what it costs"


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """Nanoseconds of what is done with a device; ValueError for what is no length of time.

    ``advance`` is the host's part, for all rules together, and ``evaluation`` a rule's, whenever
    the engine advances and terminators have come; ``terminator`` what each of these adds, that it
    and its matches come and go; ``candidate`` each event that is looked at with simple
    comparisons, and ``program`` with other expressions; ``move`` a rule's move, and ``begin`` the
    first of a process, whose kernels are compiled. The defaults are of an H200
    (docs/reproduction/gpu.md, gpu-targets).
    """

    advance: float = 215_000.0
    evaluation: float = 65_000.0
    terminator: float = 5_000.0
    candidate: float = 0.006
    program: float = 0.065
    move: float = 2e8
    begin: float = 6e10

    def __post_init__(self) -> None:
        for field in fields(self):
            figure = getattr(self, field.name)
            if not (math.isfinite(figure) and figure >= 0):
                raise ValueError(f"{field.name}: expected 0 or more, found {figure}")


@dataclass(slots=True)
class _Seen:
    """A rule at its last look: when that was (microseconds), how many terminators came in one, what
    one costs in either place, and what is lost since its last move by where it is, in nanoseconds.

    ``gpu`` is by the costs that were given, not corrected.
    """

    plan: RulePlan
    automaton: AutomatonPlan | None
    time: int
    terminators: float = 0.0
    cpu: float = 0.0
    gpu: float = 0.0
    lost: float = 0.0


class _Correction:
    """How many times as long as expected a device takes: ``factor``, by what was measured.

    What is measured from a move to the next reckoning does not count: there is more to do then.
    """

    def __init__(self) -> None:
        self.factor = 1.0
        self._spent, self._counts = 0.0, False

    def took(self, nanoseconds: float) -> None:
        """Note what an advance took."""
        self._spent += nanoseconds

    def compare(self, expected: float) -> None:
        """Learn from what advances took since the last time, and were expected to."""
        spent, self._spent = self._spent, 0.0
        if self._counts and spent > 0 and expected > 0:
            ratio = min(max(spent / expected, 1 / FACTOR_MAX), FACTOR_MAX)
            self.factor = math.sqrt(self.factor * ratio)
        self._counts = True

    def begin_anew(self) -> None:
        """Count nothing until the next comparison."""
        self._counts = False


class Placer:
    """Owner of what has been seen of rules and types, and of whose turn it is.

    ``clock`` gives seconds, by which ``device``'s costs are corrected; without it they are taken as
    they are. ``automata``: whether rules on the processor may have some.

    A choice concerns time alone, never a result, so it may be wrong. A rule moves only if the other
    place is cheaper by a MARGIN, and once it has lost, where it is, what moving costs; so it does
    not go to and fro. Rules are looked at in turn, one for LOOK_EVENTS events that have come.
    Without a clock the choice is a function of the events.
    """

    def __init__(
        self,
        costs: Costs | None = None,
        device: DeviceCosts | None = None,
        clock: Callable[[], float] | None = None,
        *,
        automata: bool = True,
    ) -> None:
        self._costs, self._device = costs or Costs(), device or DeviceCosts()
        self._clock, self._automata = clock, automata
        self._seen: dict[str, _Seen] = {}
        self._turns: Iterator[str] = iter(())
        self._events: Counter[str] = Counter()  # since the last reckoning, by type
        self._pending = 0
        self._advances = 0  # since then, too
        self._began = self._time = TIME_MIN
        self._rates: dict[str, float] = {}
        self._per_us = 0.0  # advances
        self._correction = _Correction()

    def fresh(self) -> Placer:
        """One of the same costs that has seen nothing."""
        return Placer(self._costs, self._device, self._clock, automata=self._automata)

    # --- what happens ----------------------------------------------------------------------------

    def count(self, name: str, events: int, time: int) -> None:
        """Note events of a type, of which the last is at ``time``."""
        self._events[name] += events
        self._pending += events
        self._time = max(self._time, time)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Note how long an advance of the device takes, if there is a clock."""
        if self._clock is None:
            yield
            return
        begun = self._clock()
        yield
        self._correction.took(1e9 * (self._clock() - begun))

    def advanced(self) -> None:
        """Note an advance."""
        self._advances += 1

    @property
    def is_due(self) -> bool:
        """Whether enough events have come for a look at a rule."""
        return self._pending >= LOOK_EVENTS

    def says(self, name: str) -> str:
        """Why a rule is where it is."""
        seen = self._seen.get(name)
        if seen is None or not seen.terminators:
            return UNKNOWN
        gpu = self._correction.factor * seen.gpu
        return (
            f"a terminator takes about {seen.cpu / 1e3:,.1f} us on the processor, "
            f"{gpu / 1e3:,.1f} us on the device"
        )

    # --- choosing --------------------------------------------------------------------------------

    def choose(
        self, plans: Mapping[str, RulePlan], on_gpu: Collection[str], kept: Mapping[str, Kept]
    ) -> Mapping[str, bool]:
        """The rules that had better move, and whether to the device.

        ``plans`` are those of the rules that it takes, by name; ``kept`` has recent events by type.
        """
        looks, self._pending = self._pending // LOOK_EVENTS, self._pending % LOOK_EVENTS
        elapsed = self._reckon()
        if elapsed <= 0:
            return {}
        self._correction.compare(elapsed * self._expected(on_gpu))
        sampled = Sampled(
            self._rates, lambda name: kept[name].recent(SAMPLE) if name in kept else None
        )
        changes: dict[str, bool] = {}
        for name in self._in_turn(plans, looks):
            is_on_gpu = name in on_gpu
            seen = self._known(name, plans[name])
            if self._look(seen, sampled, is_on_gpu, len(on_gpu)):
                changes[name] = not is_on_gpu
                seen.lost = 0.0
        if changes:
            self._correction.begin_anew()
        return changes

    def _reckon(self) -> float:
        """Work out what comes in a microsecond; how many there were, 0 when it is too early."""
        elapsed = 0 if self._began == TIME_MIN else self._time - self._began
        if elapsed > 0:
            self._rates = {name: count / elapsed for name, count in self._events.items()}
            self._per_us = self._advances / elapsed
        if elapsed > 0 or self._began == TIME_MIN:
            self._began, self._advances = self._time, 0
            self._events.clear()
        return float(elapsed)

    def _expected(self, on_gpu: Collection[str]) -> float:
        """The time that rules on the device were expected to take, in nanoseconds a microsecond."""
        seen = [self._seen[name] for name in on_gpu if name in self._seen]
        return sum(one.gpu * one.terminators for one in seen)

    def _in_turn(self, plans: Mapping[str, RulePlan], looks: int) -> Iterable[str]:
        """The next rules, each once."""
        found: dict[str, None] = {}
        for _ in range(min(looks, len(plans))):
            name = next(self._turns, None)
            if name is None:
                self._seen = {one: seen for one, seen in self._seen.items() if one in plans}
                self._turns = iter(list(plans))
                name = next(self._turns)
            if name in plans:
                found[name] = None
        return found

    def _known(self, name: str, plan: RulePlan) -> _Seen:
        seen = self._seen.get(name)
        if seen is None or seen.plan is not plan:
            automaton = automaton_of(plan) if self._automata and states_of(plan) else None
            seen = self._seen[name] = _Seen(plan, automaton, self._time)
        return seen

    def _look(self, seen: _Seen, sampled: Sampled, is_on_gpu: bool, others: int) -> bool:
        """Estimate a rule; whether it had better be elsewhere, and has lost enough where it is."""
        elapsed, seen.time = self._time - seen.time, self._time
        work, device = work_of(seen.plan, sampled, self._costs, seen.automaton), self._device
        seen.terminators, seen.cpu = work.terminators, work.cpu
        if not work.terminators:
            return False
        together = max(1.0, work.terminators / self._per_us)  # terminators of an advance
        host = device.advance / max(1, others + (not is_on_gpu))
        looking = work.simple * device.candidate + work.programs * device.program
        seen.gpu = (host + device.evaluation) / together + device.terminator + looking
        here, there = seen.cpu, self._correction.factor * seen.gpu
        if is_on_gpu:
            here, there = there, here
        lost = (here - there) * work.terminators * elapsed
        seen.lost = max(0.0, seen.lost + lost)
        return there * MARGIN < here and self._pays(seen, is_on_gpu)

    def _pays(self, seen: _Seen, is_on_gpu: bool) -> bool:
        """Whether a rule has lost what a move costs; the first one, all rules together."""
        if is_on_gpu or GpuEngine.has_run:
            return seen.lost >= self._device.move
        lost = sum(one.lost for one in self._seen.values())
        return lost >= self._device.move + self._device.begin
