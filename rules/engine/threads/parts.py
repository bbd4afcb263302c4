"""Rules spread over several engines of their own, and their composite events brought together.

Law 1: what comes out does not depend on how many parts there are. Rules that have to do with each
other's composite events stay in one part, as do rules that define one type; a repeat is told from
its original before the parts, which see different types (tesla.md E1); and what parts detect is
put into the one order of E4.

Law 2: parts share nothing, so that whoever runs them may run them at once. How is the caller's:
``at_once`` is called with a function and the parts, like ``map``. What is run so is what kernels
do, who hold no lock; the rest of an advance is done part by part, for threads that take turns at
the interpreter's lock lose more by it than they gain. Where so little is to be done that to wake
a thread takes longer, the parts take their turns altogether.

Law 3: a rule stays where it is, for its part alone knows its past, until one comes that has to do
with the composite events of two parts. What is tied together by it then moves into the part that
has most to do, with all that it remembers (:mod:`rules.engine.memory.moving`). That costs as much
as to take in anew what that part holds; rules that are deployed together never need it, not even if
those over the clock alone are deployed apart, because they hold from another instant: these begin
in the first part.

Law 4: beside these there may be a part for heavy rules, by hybrid parallelism. A rule is never
deployed there; it moves there, and back, by what it takes
(:mod:`rules.engine.chains.hybrid.trials`), and back too when a rule comes that has to do with its
composite events.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from matcher.model import EventBatch, Int64s, UInt64s
from rules.engine.cdp import CdpEngine
from rules.engine.chains.hybrid.engine import HybridEngine
from rules.engine.engine import NOTHING, Detections, beginning, kept_by_all
from rules.engine.intake.pending import times_of
from rules.engine.order.catalogue import Deployed
from rules.engine.results.merged import Merged, Ranked
from rules.engine.results.taken import Taken
from rules.engine.threads.composite import Composite
from rules.engine.threads.part import Group, Part, alike, together, types_of
from rules.pattern import TIMER, Rule, RuleSet

AtOnce: TypeAlias = Callable[[Callable[[Part], None], Sequence[Part]], Iterable[None]]
"""Runs a function on every part; the results in the parts' order."""
EVEN = 1.25
"""A part may have so many times its share to do, if that lets rules that look at the same events
stay together."""
FEW = 256
"""So much to do, beside what the part with most has, is not worth to wake others: see
:meth:`Part.expected`."""


class _Waiting(NamedTuple):
    """A batch that a type's mark has not passed, and the greatest of its times."""

    batch: EventBatch
    greatest: int


class PartedEngine(Composite):
    """A Detector made of parts; ``engines`` are new ones, without rules, and so is that of
    ``heavy`` rules, if there is one.
    """

    def __init__(
        self, engines: Sequence[CdpEngine], at_once: AtOnce, heavy: HybridEngine | None = None
    ) -> None:
        super().__init__()
        self._plain = [Part(engine) for engine in engines]
        self._heavy = None if heavy is None else Part(heavy)
        self._trials = None if heavy is None else heavy.trials
        self._parts = self._plain if self._heavy is None else [*self._plain, self._heavy]
        self._part_of: dict[str, Part] = {}  # by rule
        self._at_once = at_once
        self._pending: dict[str, list[_Waiting]] = {}  # by type
        self._places = [np.empty(0, np.int64)] * len(self._parts)  # by part: see Merged

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """The names of the rules of each part."""
        return tuple(tuple(part.rules) for part in self._parts)

    def memory(self) -> Mapping[str, int]:
        """How much the parts keep; and how many events are kept for rules to come, until their
        types' marks have passed them: ``waiting``.
        """
        waiting = sum(len(one.batch) for queue in self._pending.values() for one in queue)
        kept = kept_by_all(part.engine.memory() for part in self._parts)
        return {**kept, "waiting": waiting}

    def costs(self) -> Mapping[str, int]:
        """How long each rule was evaluated, in whichever part."""
        return {name: cost for part in self._parts for name, cost in part.engine.costs().items()}

    def footprints(self) -> Mapping[str, int]:
        """How many bytes each rule takes, in whichever part: parts share none."""
        found = (part.engine.footprints() for part in self._parts)
        return {name: held for one in found for name, held in one.items()}

    def fresh(self) -> PartedEngine:
        """A new engine of as many parts."""
        engines = [part.engine.fresh() for part in self._plain]
        if not isinstance(heavy := self._heavy and self._heavy.engine, HybridEngine):
            return PartedEngine(engines, self._at_once)
        return PartedEngine(engines, self._at_once, heavy.fresh())

    # --- rules -----------------------------------------------------------------------------

    def refuse(self, rules: RuleSet) -> None:
        """Raise RuleErrors where the engines that it is made of take no such rules."""
        self._parts[0].engine.refuse(rules)

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        self.refuse(rules)
        since = beginning(since, self._parts[0].engine.greatest)
        self._catalogue.deploy(rules, since, version)
        for group, home in self._homes(together(rules.rules)):
            part = self._part_for(group, home)
            new = types_of(group) - part.used.keys()
            part.deploy(replace(rules, rules=group), since, version)
            self._give_pending(part, new)
            self._part_of.update(dict.fromkeys((rule.name for rule in group), part))
        self._place_rules()

    def _homes(self, groups: Sequence[Group]) -> Iterator[tuple[Group, Part | None]]:
        """Groups of rules, and the part for all that look at the same events, if it would not have
        much more than its share to do.
        """
        bundles = [(some, tuple(chain(*some))) for some in alike(groups)]
        load = sum(part.load() for part in self._plain)
        load += sum(Part.alone(rules) for _, rules in bundles)
        for some, rules in bundles:
            home = min(self._plain, key=lambda part: part.load(rules))
            is_kept = home.load(rules) * len(self._plain) <= EVEN * load
            for group in some:
                yield group, home if is_kept else None

    def _part_for(self, group: Group, home: Part | None) -> Part:
        """The part that rules which have to stay together belong to (Law 3)."""
        tied = [part for part in self._parts if part.is_tied(group)]
        if not tied:
            if types_of(group) == {TIMER.name}:
                return self._plain[0]
            return home or min(self._plain, key=lambda part: part.load(group))
        some = [part for part in tied if part is not self._heavy]
        part = max(some, key=Part.load) if some else min(self._plain, key=Part.load)
        for other in tied:
            if other is not part:
                self._move(part, other, other.tied(group))
        return part

    def _move(self, part: Part, other: Part, rules: Sequence[Rule]) -> None:
        """Let a part evaluate rules of another from now on."""
        names = {rule.name for rule in rules}
        staying = names | part.rules.keys()
        part.join(other, rules, [one for one in self._in_order() if one.rule.name in staying])
        for rule in rules:
            other.remove(rule.name)
        self._part_of.update(dict.fromkeys(names, part))
        self._give_pending(part, part.used)

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        self._catalogue.remove(name)
        self._part_of.pop(name).remove(name)
        self._pending = {
            type_: batches
            for type_, batches in self._pending.items()
            if type_ in self._catalogue.used
        }
        self._place_rules()

    def go_on_from(self, name: str, mark: int) -> None:
        """Evaluate a rule, just deployed, at no instant before a mark."""
        self._catalogue.go_on_from(name, mark)
        self._part_of[name].engine.go_on_from(name, mark)

    def consume(self, name: str, keys: UInt64s) -> None:
        """Let a rule see none of these events any more."""
        self._part_of[name].engine.consume(name, keys)

    def _follow_trials(self) -> None:
        """Move the rules that had better be, or had better be tried, in the other way (Law 4)."""
        for name in () if self._trials is None else sorted(self._trials.take_leaving()):
            part = self._part_of.get(name)
            if part is not None and not self._catalogue.has_ended(name):
                self._try_elsewhere(part, part.rules[name])

    def _try_elsewhere(self, part: Part, rule: Rule) -> None:
        heavy, trials = self._heavy, self._trials
        if heavy is None or trials is None or part.tied([rule]):
            return
        if part is heavy:
            home = min(self._plain, key=Part.load)
            self._move(home, heavy, [rule])
            home.engine.switch({rule.name: trials.is_linked(rule)})
        else:
            self._move(heavy, part, [rule])
            assert isinstance(heavy.engine, HybridEngine)
            heavy.engine.begin_trial()
        self._place_rules()

    def _give_pending(self, part: Part, types: Collection[str]) -> None:
        """Events that a part had no use for until now, as far as its rules may still see them."""
        for name in sorted(types):
            part.push(waiting.batch for waiting in self._pending.get(name, ()))

    def _place_rules(self) -> None:
        """Where the rules of each part stand among those of all (E4)."""
        in_order = [one.rule.name for one in self._in_order()]
        self._places = [part.places(in_order) for part in self._parts]

    def _in_order(self) -> list[Deployed]:
        return sorted(self._catalogue.rules, key=lambda one: one.place)

    # --- events ----------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        known, name = self._catalogue.known(batch.type), batch.type.name
        times = times_of(batch)
        if times is None:
            return
        for part in self._parts:
            part.engine.note(times)
        if known is None:
            return
        batch = self._repeats.accept(batch)
        if len(batch):
            self._pending.setdefault(name, []).append(_Waiting(batch, times[1]))
            for part in self._parts:
                if name in part.used:
                    part.engine.push(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        self._follow_trials()
        some = self._evaluated(marks)
        while self._turn():
            some += self._evaluated({})
        if not some:
            return NOTHING
        # Rules with most to do were deployed first: a part's own order need not be that of all.
        is_in_order = len(some) == 1 and _is_rising(some[0][1])
        return some[0][0] if is_in_order else Merged(some)

    def advance_in_pieces(
        self, marks: int | Mapping[str, int], give: Callable[[Detections], None]
    ) -> None:
        """The same in pieces (cdp, Law 3), where all rules are in one part, in its order."""
        self._follow_trials()
        some = [one for one in zip(self._parts, self._places, strict=True) if one[0].rules]
        is_one = len(some) == 1 and _is_rising(some[0][1]) and not self._catalogue.has_turns
        with some[0][0].engine.in_pieces(give) if is_one else nullcontext():
            give(self.advance(marks))

    def _turn(self) -> bool:
        """As the catalogue's, for all parts."""
        if not self._catalogue.has_turns:
            return False
        have_turned = [part.engine.turn() for part in self._parts]
        return self._catalogue.turn() or any(have_turned)

    def _evaluated(self, marks: int | Mapping[str, int]) -> list[Ranked]:
        """Detections of the parts with these marks."""
        begun = [part.begin(marks) for part in self._parts]
        parts = [part for part, has_begun in zip(self._parts, begun, strict=True) if has_begun]
        work = sorted(part.expected() for part in parts)
        at_once = self._at_once if sum(work[:-1]) > FEW else map
        for _ in at_once(Part.evaluate, parts):
            pass
        found = [
            part.finish() if has_begun else NOTHING
            for part, has_begun in zip(self._parts, begun, strict=True)
        ]
        self._catalogue.advance_groups(marks)
        for part in self._parts:
            self._end_overrun(*part.engine.take_overruns())
        self._forget()
        return [
            (one, places)
            for one, places in zip(found, self._places, strict=True)
            if isinstance(one, Taken)
        ]

    def forget_marks(self) -> None:
        """Take the marks of types as not named."""
        super().forget_marks()
        for part in self._parts:
            part.engine.forget_marks()

    def _forget(self) -> None:
        """Forget pending events that a mark has passed, and ids that nothing can see."""
        for name, batches in self._pending.items():
            if batches:
                mark = self._catalogue.mark_of_type(name)
                self._pending[name] = [_left(one, mark) for one in batches if one.greatest >= mark]
        horizons = [part.engine.horizon for part in self._parts if part.rules]
        if horizons:
            self._repeats.forget(min(horizons))


def _is_rising(places: Int64s) -> bool:
    """Whether each place is beyond the one before."""
    return bool((places[1:] > places[:-1]).all())


def _left(waiting: _Waiting, mark: int) -> _Waiting:
    """The rest of a batch that waits for a mark."""
    is_left = waiting.batch.time >= mark
    return waiting if is_left.all() else waiting._replace(batch=waiting.batch.take(is_left))
