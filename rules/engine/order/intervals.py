"""Rules that hold up to an instant (tesla.md S15), over any engine.

Law 1: a rule that ends at ``until`` is evaluated at the instants before it, and at no other. An
advance that would take it further is cut there: everything is evaluated up to ``until``, the engine
drops the rule, and then goes on. So no engine has to know of ends, and what rules of a cycle see of
each other follows from who holds where. ``fire`` ends at 26 s: an advance to 30 s is one to 26 s,
without ``fire`` from there on, and one to 30 s.

Law 2: the host still knows a rule that is over, with ``until`` for its watermark, until it removes
it.

Law 3: two versions of a rule are two rules, by their ids (matcher.identity.rule_id). Among causes
they bear their plain name, as clients know it; as sources, only when they are told (:func:`told`).

Law 4: which rules have ended by themselves (:mod:`rules.overrun`), and which event was first
in conflict (:mod:`rules.engine.conflict`), every engine of a host says, of itself and of those that
were made of it by ``fresh``, and of those that it was made of. A host may look at ``overruns`` and
``conflicting`` before it takes them: mostly there is nothing.

Law 5: a rule whose memory no window bounds goes on from a *mark* up to which another engine has
evaluated it: it is evaluated at the instants from there on, and sees what came before, but for what
it has consumed. Everything is evaluated up to the mark first; then what it has consumed is there,
and is taken out, as it is where it comes later still. ``fire`` has consumed Temp 7 before 40 s:
from 40 s on it sees the Temps of the five minutes before, but for Temp 7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.identity import RULE_SOURCE, VERSION, plain_name
from matcher.model import EventBatch, EventIds, StringColumn, UInt64s
from rules.engine.conflict import Conflict
from rules.engine.engine import NOTHING, Detections, Detector, Placement, Resumable, one_by_one
from rules.overrun import Overrun
from rules.pattern import RuleSet


@dataclass(slots=True)
class _Resumed:
    """A rule that goes on from a mark (Law 5).

    ``consumed``: the keys, uint64[n, 2], of the events that it has consumed before, which it does
    not see any more from ``over`` on. ``is_settled``: all of them that have come are taken out.
    """

    mark: int
    consumed: UInt64s
    over: int
    is_settled: bool = False


class Intervals:
    """A Detector whose rules may end. Owner of the ends of its rules."""

    def __init__(self, engine: Detector, made_of: Intervals | None = None) -> None:
        self._engine = engine
        self.overruns: list[Overrun] = [] if made_of is None else made_of.overruns
        """The rules that have ended by themselves, in any engine of the host's (Law 4)."""
        self.conflicting: list[Conflict] = [] if made_of is None else made_of.conflicting
        """The first conflict that nobody has taken, in any of them."""
        self.counts: Counter[str] = Counter() if made_of is None else made_of.counts
        """How many composite events of each type were found for the first time, in any of them, as
        the host has told (``count``)."""
        self._until: dict[str, int] = {}
        """The ends of rules that are evaluated."""
        self._over: dict[str, int] = {}
        """The ends of rules that the engine has dropped (Law 2)."""
        self._resumed: dict[str, _Resumed] = {}
        """The rules that may still come to see what they have consumed before they were here."""
        self._has_versions = False
        """Whether events of a rule may be among causes whose id is not its name (Law 3)."""

    # --- what a host decides ---

    def end(self, name: str, until: int) -> None:
        """Let a rule hold at no instant from ``until`` on; it has been evaluated at none."""
        if name not in self._over:
            self._until[name] = until

    def resume(self, name: str, mark: int, consumed: UInt64s, over: int) -> None:
        """Let a rule, just deployed, go on from a mark. ``consumed``: the keys of what it consumed
        before, uint64[n, 2], all of it earlier than what it sees from ``over`` on.
        """
        assert isinstance(self._engine, Resumable)
        self._engine.go_on_from(name, mark)
        self._resumed[name] = _Resumed(mark, consumed, over)

    def count(self, detections: Detections) -> None:
        """Count composite events that were not found before: after a restart, or another plan, an
        engine finds some again.
        """
        for batch in detections.batches:
            self.counts[batch.type.name] += len(batch)

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules."""
        self._engine.deploy(rules, since=since, version=version)
        self.overruns += self._engine.take_overruns()
        self._has_versions |= any(VERSION in rule.name for rule in rules.rules)

    def remove(self, name: str) -> None:
        """Remove a rule, be it over or not; KeyError when no rule has that name."""
        if self._over.pop(name, None) is None:
            self._engine.remove(name)
            self._until.pop(name, None)
            self._resumed.pop(name, None)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, and before its end (Law 1)."""
        if self._until or self._resumed:
            found = [self._advance_to(cut, marks) for cut in sorted(self._cuts)]
            for name, one in self._resumed.items():
                if not one.is_settled and self._engine.mark(name) > one.mark:
                    self._consume(name, one)
                    one.is_settled = True
            detections = one_by_one([*found, self._engine.advance(marks)])
            self._settle()
        else:
            detections = self._engine.advance(marks)
        self.overruns += self._engine.take_overruns()
        if detections is NOTHING:
            return detections
        if self._has_versions:
            batches = tuple(map(_with_told_causes, detections.batches))
            return Detections(batches, detections.order)
        return detections

    def _advance_to(self, cut: int, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate everything up to where some rules end, or go on from. Those that have come to
        their end are dropped; what the others have consumed before is taken out.
        """
        if isinstance(marks, int):
            found = self._engine.advance(min(marks, cut))
        else:
            found = self._engine.advance({name: min(mark, cut) for name, mark in marks.items()})
        for name in [name for name, end in self._until.items() if end == cut]:
            if self._engine.mark(name) >= cut:
                self._engine.remove(name)
                self._over[name] = self._until.pop(name)
                self._resumed.pop(name, None)
        for name, one in self._resumed.items():
            if one.mark == cut:
                self._consume(name, one)
        return found

    @property
    def _cuts(self) -> set[int]:
        """The instants at which something is to be done once all is evaluated up to there."""
        marks = {
            one.mark for name, one in self._resumed.items() if self._engine.mark(name) <= one.mark
        }
        return marks.union(self._until.values())

    def _consume(self, name: str, one: _Resumed) -> None:
        if len(one.consumed):
            assert isinstance(self._engine, Resumable)
            self._engine.consume(name, one.consumed)

    def _settle(self) -> None:
        """Look which rules have gone beyond where they go on from, and which are as all others."""
        for name, one in list(self._resumed.items()):
            mark = self._engine.mark(name)
            one.is_settled |= mark > one.mark
            if mark >= one.over:
                del self._resumed[name]

    @property
    def over(self) -> frozenset[str]:
        """The rules that have been evaluated up to their ends (Law 2)."""
        return frozenset(self._over)

    # --- the engine's ---

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark, by name."""
        return {**self._engine.marks, **self._over}

    def mark(self, name: str) -> int:
        """One rule's mark; KeyError when no rule has that name."""
        over = self._over.get(name)
        return self._engine.mark(name) if over is None else over

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._engine.duplicates

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        return self._engine.conflicts

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one (Law 4)."""
        return self.conflicting.pop() if self.conflicting else None

    def take_overruns(self) -> Sequence[Overrun]:
        """The rules that have ended by themselves since the last call (Law 4)."""
        overruns = tuple(self.overruns)
        self.overruns.clear()
        return overruns

    @property
    def parts(self) -> Sequence[Collection[str]]:
        """The names of the rules of each part; parts may be evaluated at once."""
        return self._engine.parts

    def placement(self, name: str) -> Placement | None:
        """Where a rule is evaluated; None where one place alone is known, or it is over."""
        return None if name in self._over else self._engine.placement(name)

    def memory(self) -> Mapping[str, int]:
        """How much is kept at present, by names that are the engine's own."""
        return self._engine.memory()

    def costs(self) -> Mapping[str, int]:
        """How long each rule was evaluated, where that is known."""
        return self._engine.costs()

    def footprints(self) -> Mapping[str, int]:
        """How many bytes each rule takes, where that is known."""
        return self._engine.footprints()

    def fresh(self) -> Intervals:
        """A new engine of the same kind and choices, without rules or events."""
        return Intervals(self._engine.fresh(), self)

    def push(self, batch: EventBatch) -> None:
        """Add events."""
        if self._resumed and len(batch):
            least = int(batch.time.min())
            for one in self._resumed.values():
                one.is_settled &= least >= one.mark
        self._engine.push(batch)
        conflict = self._engine.take_conflict()
        if conflict is not None and not self.conflicting:
            self.conflicting.append(conflict)

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        self._engine.forget_marks()


def is_told(source: str) -> bool:
    """Whether clients are told of a source under its own name."""
    return VERSION not in source or not source.startswith(RULE_SOURCE)


def told(batches: Sequence[EventBatch]) -> tuple[EventBatch, ...]:
    """Composite events with the plain names of their rules for sources (Law 3)."""
    return tuple(
        batch if (ids := _plain(batch.ids)) is batch.ids else batch.with_ids(ids)
        for batch in batches
    )


def _with_told_causes(batch: EventBatch) -> EventBatch:
    causes = batch.causes
    if causes is None or (ids := _plain(causes.ids)) is causes.ids:
        return batch
    causes = replace(causes, ids=ids)
    return EventBatch(batch.type, batch.time, batch.ids, batch.columns, causes)


def _plain(ids: EventIds) -> EventIds:
    source = ids.source
    if all(map(is_told, source.values)):
        return ids
    names = [plain_name(one) if one.startswith(RULE_SOURCE) else one for one in source.values]
    found = StringColumn.from_strings(names)
    return replace(ids, source=StringColumn(found.codes[source.codes], found.values))
