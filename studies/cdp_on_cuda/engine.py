"""CDP on CUDA as published (thesis 6.3, and the journal article's section 5.3): a reference.

One terminator at a time is evaluated, rule by rule; the host keeps order, windows and results, the
device searches columns. It is here to be measured beside engines of today, and gives what they give
but for float aggregates, which are summed in the order of the published reduction: within 1e-9 of
the exact value where nothing cancels, and not to the last bit.

What the papers have: sequences of ``each``, ``first`` and ``last``, parameters, aggregates. Beyond
them it has ranks, negations and consumption. The rest it refuses, with RuleErrors that name the
rule. Rules do not use one another's events, and all are deployed before the first event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from matcher.errors import SchemaError
from matcher.gpu.device import Device, device
from matcher.model import TIME_MIN, EventBatch
from rules.engine.conflict import Conflict
from rules.engine.engine import Detections, beginning
from rules.engine.intake.duplicates import DuplicateFilter
from rules.engine.linking.interner import Interner
from rules.engine.order.catalogue import Catalogue
from rules.errors import Problem, RuleErrors
from rules.pattern import TIMER, RuleSet
from rules.planning.columnar import satisfied
from studies.cdp_on_cuda.columns import Column, DeviceMemory
from studies.cdp_on_cuda.compiling import CompiledRule
from studies.cdp_on_cuda.detection import DeviceRule
from studies.cdp_on_cuda.events import Block, Encoder, Sources, identities
from studies.cdp_on_cuda.queue import Queue
from studies.cdp_on_cuda.results import Found, detections

CAPACITY = 1024
"""Events of a column that there is room for at first; a full column gets twice the room."""
FORGET_EVERY = 4096
"""After so many events the ids of those that no rule sees any more are forgotten."""


class PublishedCdp:
    """A Detector; see :class:`rules.engine.engine.Detector`.

    ``capacity`` is the number of events that a column is sized for, ``memory`` the bytes of the
    device that columns may take (None: all): rules beyond stay in main memory and are copied when a
    terminator comes. With a ``clock`` in seconds, each copy and launch is waited for, and
    ``profile`` tells where time goes. Raises NoDevice where there is none.
    """

    def __init__(
        self,
        *,
        capacity: int = CAPACITY,
        memory: int | None = None,
        clock: Callable[[], float] | None = None,
        on: Device | None = None,
    ) -> None:
        self._choices = (capacity, memory, clock, on)
        self._capacity = capacity
        self._queue = Queue(on or device(), clock)
        self._memory = DeviceMemory(self._queue, memory)
        self._catalogue = Catalogue()
        self._strings = Interner()
        self._sources = Sources()
        self._repeats = DuplicateFilter()
        self._rules: dict[str, DeviceRule] = {}
        self._columns: dict[str, list[tuple[DeviceRule, Column]]] = {}  # by the type of events
        self._waiting: dict[str, DeviceRule] = {}  # those for which events have come
        self._entered = 0  # events so far, which are numbered by it
        self._has_begun = False  # whether an event has come, of a type that rules use or not
        self._forgotten = 0  # how many these were when ids were last forgotten
        self._seconds = 0.0  # in push and advance, copies and kernels included

    @property
    def marks(self) -> Mapping[str, int]:
        """Each deployed rule's mark, by name: all instants before it have been evaluated."""
        return self._catalogue.marks

    def mark(self, name: str) -> int:
        """One rule's mark; KeyError when no rule has that name."""
        return self._catalogue.mark(name)

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

    @property
    def parts(self) -> Sequence[Collection[str]]:
        """The names of the rules: it is all of one part."""
        return (self._rules.keys(),)

    def memory(self) -> Mapping[str, int]:
        """How much is kept: ``events`` in columns, and ``pending`` ones; ``strings``; ``apart``,
        the rules that are in main memory alone; ``device`` bytes of the others' columns.
        """
        columns = [column for rule in self._rules.values() for column in rule.columns]
        return {
            "apart": sum(rule.arena.is_apart for rule in self._rules.values()),
            "device": self._memory.used,
            "events": sum(map(len, columns)),
            "pending": sum(column.waiting for column in columns),
            "strings": len(self._strings),
        }

    def profile(self) -> Mapping[str, float]:
        """Seconds in ``copies``, ``kernels`` and, all else in push and advance, on the ``host``;
        zeros without a clock. And how many ``launches`` and copied ``bytes`` there were.
        """
        spent = self._queue.profile
        return {
            **spent,
            "host": self._seconds - sum(spent.values()),
            "launches": self._queue.launches,
            "bytes": self._queue.bytes,
        }

    def fresh(self) -> PublishedCdp:
        """A new engine of the same kind and choices, without rules or events."""
        capacity, memory, clock, on = self._choices
        return PublishedCdp(capacity=capacity, memory=memory, clock=clock, on=on)

    # --- rules ---------------------------------------------------------------------------------

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        self._refuse(rules)
        compiled = {rule.name: CompiledRule(rule, self._strings) for rule in rules.rules}
        for deployed in self._catalogue.deploy(rules, beginning(since, TIME_MIN), version):
            name = deployed.rule.name
            rule = self._rules[name] = DeviceRule(
                deployed,
                compiled[name],
                self._queue,
                self._memory,
                self._capacity,
                self._sources,
            )
            for column in rule.columns:
                self._columns.setdefault(column.form.plan.type.name, []).append((rule, column))

    def _refuse(self, rules: RuleSet) -> None:
        """Raise RuleErrors for rules over one another's events, and for rules that come late."""
        problems = []
        every = [one.deployed.rule for one in self._rules.values()] + list(rules.rules)
        defined = {rule.defines.name for rule in every}
        for rule in every:
            for type_ in rule.used_types:
                if type_.name in defined:
                    said = f"rule {rule.name}: it uses {type_.name}, which a rule defines"
                    problems.append(
                        Problem(f"{said}: the published CDP on CUDA has no hierarchies")
                    )
        if self._has_begun:
            said = "the published CDP on CUDA takes all its rules before the first event"
            problems += [Problem(f"rule {rule.name}: {said}") for rule in rules.rules]
        if problems:
            raise RuleErrors(problems)

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        self._waiting.pop(name, None)
        self._queue.lane.wait()
        gone = self._rules.pop(name)
        gone.arena.release()
        for type_, columns in self._columns.items():
            self._columns[type_] = [one for one in columns if one[0] is not gone]

    # --- events --------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        begun = self._queue.now()
        known = self._catalogue.schemas.get(batch.type.name)
        if batch.type.name == TIMER.name or (known is not None and known != batch.type):
            raise SchemaError(f"event {batch.type} is already known as {known or TIMER}")
        self._has_begun |= len(batch) > 0
        if known is not None and len(batch):
            taken = self._repeats.accept(batch)
            if len(taken):
                self._add(taken)
        self._seconds += self._queue.now() - begun

    def _add(self, batch: EventBatch) -> None:
        """Give new events to the columns whose conditions they satisfy."""
        identity = identities(batch, self._entered, self._sources)
        self._entered += len(batch)
        encoder = Encoder(batch, identity, self._strings)
        satisfying: dict[object, Block | None] = {}
        for rule, column in self._columns.get(batch.type.name, ()):
            form = column.form
            which = (form.plan.conditions, form.attributes)
            if which not in satisfying:
                block = Block(identity, encoder.rows(form))
                if form.plan.conditions:
                    block = block.take(satisfied(form.plan.conditions, batch))
                satisfying[which] = block if len(block) else None
            if (chosen := satisfying[which]) is not None:
                column.add(chosen)
                self._expect(rule)

    def _expect(self, rule: DeviceRule) -> None:
        """Evaluate a rule when its mark rises next."""
        name = rule.deployed.rule.name
        if name not in self._waiting:
            rule.reach(self._catalogue.mark(name))
            self._waiting[name] = rule

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        begun = self._queue.now()
        found: list[Found] = []
        if self._catalogue.advance_groups(marks):
            for name, rule in list(self._waiting.items()):
                end = self._catalogue.mark(name)
                if end > rule.mark:
                    found += rule.run(end)
                if rule.is_idle:
                    del self._waiting[name]
        taken = detections(found, self._sources, self._strings)
        self._forget()
        self._seconds += self._queue.now() - begun
        return taken

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        self._catalogue.forget_named()

    def _forget(self) -> None:
        """Forget now and then the ids of events, and strings, that are of no use any more."""
        if self._entered - self._forgotten >= FORGET_EVERY and self._rules:
            self._forgotten = self._entered
            self._repeats.forget(min(self._horizons()))
            if self._strings.wants_sweep:
                self._strings.forget(code for one in self._rules.values() for code in one.codes())

    def _horizons(self) -> Iterator[int]:
        """From when on each rule still sees events."""
        for name, rule in self._rules.items():
            rule.reach(self._catalogue.mark(name))
            yield rule.horizon
