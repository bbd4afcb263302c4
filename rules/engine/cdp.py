"""The CDP engine: column-based delayed processing on shared, indexed columns (thesis 5.4, 5.7).

Nothing is computed until a terminator's instant is complete; then its rules are evaluated over
the columns. The host side, here, owns the memory that the kernels work in: it takes batches in,
waits for marks, orders what has become complete, lets the kernels run, grows what they ask for,
and reads their matches. The kernels' side is in ``kernels``.

Law 1: an event enters columns once its type's mark has passed it, in the order of (time, E4);
older ones, and those of a rule that lags behind, are put in their places. While marks are named by
type and those of rules stay, it may wait, for nothing can come of it.

Law 2: what no rule can use any more goes away (:mod:`rules.engine.memory.retention`).

Law 3: what an advance finds may be given in pieces, in the common order, so that it never stands in
memory whole. An evaluation halts when its outlet is full, and goes on with what was written taken.
Not in pieces come composite events that other rules use, which stand in columns whole, and those of
an advance in which some rule runs before one whose place is earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MAX, TIME_MIN, EventBatch, EventType, Int64s, UInt64s
from matcher.single import Row, Single
from rules.engine.choice.chooser import Chooser
from rules.engine.engine import NOTHING, Detections, beginning
from rules.engine.intake.clock import portions
from rules.engine.intake.deferred import Deferred
from rules.engine.intake.pending import Pending, times_of
from rules.engine.intake.rows import RowWriter, row_of
from rules.engine.intake.ticking import Ticking
from rules.engine.kernels import layout
from rules.engine.kernels.entering import forget_access, forget_rows
from rules.engine.kernels.instants import process
from rules.engine.linking import loading
from rules.engine.linking.interner import Interner
from rules.engine.linking.linker import Linker
from rules.engine.linking.switching import fill, linked_anew
from rules.engine.memory import growth, snapshots
from rules.engine.memory.footprints import footprints
from rules.engine.memory.moving import Holding, Move
from rules.engine.memory.resuming import have_consumed
from rules.engine.memory.retention import Retention
from rules.engine.memory.snapshots import Snapshot
from rules.engine.memory.storage import held_in
from rules.engine.order.catalogue import Catalogue, Deployed
from rules.engine.order.catalogued import Catalogued
from rules.engine.order.last_words import LAST_WORDS
from rules.engine.order.timers import uses_timer
from rules.engine.results.merged import Merged
from rules.engine.results.outlets import Outlets
from rules.engine.results.taken import Taken
from rules.overrun import Overrun
from rules.pattern import TIMER, RuleSet
from runtime.collector import collector_paused

WAITING_MAX = 1024
"""So many events at most wait although the marks of their types have passed them."""


class CdpEngine(Catalogued):
    """A Detector; see :class:`rules.engine.engine.Detector`."""

    def __init__(
        self,
        *,
        incremental: bool = False,
        chooser: Chooser | None = None,
        composites_max: int | None = None,
    ) -> None:
        self._incremental = incremental
        self._chooser = chooser
        self._yield_max = growth.UNBOUNDED if composites_max is None else composites_max
        super().__init__()
        self._strings = Interner()
        self._writer = RowWriter(self._strings)
        self._linker = self._new_linker()
        self._arrays = growth.new_arrays(self._yield_max)
        self._outlets = Outlets(self._arrays, self._linker.tables, self._writer)
        self._pending = Pending(self._arrays, self._linker.tables, self._writer)
        self.take_conflict = self._pending.repeats.take_conflict
        """Gives the first conflict since the last call, if there was one."""
        self._retention = Retention(self._linker, self._pending, self._strings, self._writer.texts)
        self._linker.show(self._arrays)
        self._deferred = Deferred()
        self._clock: list[str] = []  # rules whose terminator is the Timer
        self._ticking = Ticking()
        self._give: Callable[[Detections], None] | None = None

    def _new_linker(self) -> Linker:
        return Linker(self._strings)

    @property
    def horizon(self) -> int:
        """No rule sees events earlier than this any more."""
        return self._retention.horizon

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._pending.dropped

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        return self._pending.conflicts

    @property
    def greatest(self) -> int:
        """The greatest time of all events that came; TIME_MIN before the first."""
        times = self._pending.times
        return TIME_MIN if times is None else times[1]

    @property
    def entered(self) -> int:
        """How many events have entered columns."""
        return self._arrays.counters[layout.ENTERED]

    @property
    def evaluated(self) -> int:
        """How many terminators rules were evaluated at."""
        return self._arrays.counters[layout.EVALUATED]

    @property
    def due(self) -> int:
        """How many events may enter in the advance that has begun, at most."""
        return self._pending.count

    def place_of(self, name: str) -> int:
        """Where a rule's composite events stand among those of this engine's rules (E4)."""
        number = self._writer.sources.rule_number(RULE_SOURCE + name)
        return self._writer.sources.ranks.item(number)

    def trust_ids(self) -> None:
        """Look for no repeats from now on: whoever pushes events has."""
        self._pending.trust()

    def memory(self) -> Mapping[str, int]:
        """How much is kept: ``heap`` words, ``lists`` and their ``entries``, ``rows`` by type as
        ``rows/<type>``, ``strings`` and ``texts`` of ids, ``pending`` and ``deferred`` events.
        """
        return {
            **held_in(self._arrays, self._linker.tables),
            "strings": len(self._strings),
            "texts": len(self._writer.texts),
            "pending": len(self._pending),
            "deferred": len(self._deferred),
        }

    def costs(self) -> Mapping[str, int]:
        """The ticks of each rule's evaluations, found from those that were timed."""
        records = self._arrays["rules"]
        found = {}
        for name, variants in self._linker.linked.items():
            own = records[[one.number for one in variants]]
            own = own[own["timed"] > 0]
            if len(own):
                each = own["ticks"] / own["timed"]
                found[name] = int((each * own["evaluated"]).sum())
        return found

    def footprints(self) -> Mapping[str, int]:
        """The bytes that each rule takes (:mod:`rules.engine.memory.footprints`)."""
        return footprints(self._arrays, self._linker)

    # --- snapshots -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The engine's state by the events so far, for ``resume``; ValueError while some wait."""
        if self._pending or len(self._deferred):
            raise ValueError("events wait in the engine: advance it beyond them first")
        return Snapshot(
            snapshots.form_of(self._arrays),
            self._catalogue.floor,
            snapshots.taken_from(self._arrays),
            self._strings.kept(),
            self._writer.texts.kept(),
            tuple(self._writer.sources.names),
            self._pending.repeats.kept(),
        )

    def resume(self, kept: Snapshot) -> None:
        """Go on where another engine was, with the same rules and nothing else behind it.

        ValueError when the snapshot is of other rules, or of another version of the kernels.
        """
        if kept.form != snapshots.form_of(self._arrays):
            raise ValueError("the snapshot is of other rules, or of another version of the engine")
        self.advance(kept.mark)
        snapshots.put_into(self._arrays, kept.arrays)
        self._end_banned()
        self._strings.resume(kept.strings)
        self._writer.texts.resume(kept.texts)
        self._writer.sources.resume(kept.sources)
        self._pending.resume(kept.repeats)
        self._retention.set_horizons(self._arrays, TIME_MAX)
        self._ticking.assume(self.greatest)

    # --- rules -----------------------------------------------------------------------------

    def fresh(self) -> CdpEngine:
        """A new engine of the same kind and choices."""
        chooser = None if self._chooser is None else self._chooser.fresh()
        return CdpEngine(
            incremental=self._incremental, chooser=chooser, composites_max=self._yield_max
        )

    def joined(self, others: Sequence[CdpEngine], rules: Iterable[Deployed]) -> CdpEngine:
        """A new engine that evaluates rules, given in the order of E4, as this one and others
        have until now; what waits for the marks of types must be pushed to it again.
        """
        olds = [self, *others]
        marks = {name: mark for one in olds for name, mark in one.marks.items()}
        engine = self.fresh()
        engine._catalogue.follow(self._catalogue)
        engine._deploy_as(rules, marks)
        for old in olds:
            engine._pending.note(old._pending.times)
        move = Move([old._holding for old in olds], engine._holding)
        for type_number, rows in move.arrivals():
            engine._pending.restore(type_number, rows)
        engine._pending.let_arrive(TIME_MAX, None)
        engine.evaluate()
        engine._deferred.keep(engine._arrays)
        engine._deferred = Deferred(move.deferred())
        move.consume(growth.grow)
        engine._ticking.assume(engine.greatest)
        engine._overruns = [one for old in olds for one in old._overruns]
        return engine

    def take_over(
        self,
        rules: Iterable[Deployed],
        marks: Mapping[str, int],
        others: Catalogue,
        past: Iterable[EventBatch],
    ) -> None:
        """Evaluate rules, given in the order of E4, that another engine has evaluated up to their
        ``marks``; ``past`` are the events that the marks of their types have passed, as far as
        they may still see them. No rule is deployed here yet; ``others`` knows the types' marks.
        """
        self._catalogue.follow(others)
        self._deploy_as(rules, marks)
        for batch in past:
            self.push(batch)
        self._pending.let_arrive(TIME_MAX, None)
        self.evaluate()
        self._deferred.keep(self._arrays)

    def _deploy_as(self, rules: Iterable[Deployed], marks: Mapping[str, int]) -> None:
        """Have rules as another engine has, which has evaluated them up to their marks."""
        for (since, version), group in groupby(rules, lambda one: (one.since, one.version)):
            some = tuple(group)
            self._deploy(RuleSet(tuple(one.rule for one in some), {}), since, version, marks)
            for one in some:
                if one.has_ended:
                    self._linker.end(self._catalogue.end(one.rule.name))

    @property
    def _holding(self) -> Holding:
        return Holding(self._linker, self._writer, self._arrays, self._deferred.records)

    def refuse(self, rules: RuleSet) -> None:
        """Nothing: it takes every rule."""

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        """Add rules that hold from ``since``; RuleErrors when they are refused."""
        self.refuse(rules)
        self._deploy(rules, beginning(since, self.greatest), version, {})

    @collector_paused()
    def _deploy(self, rules: RuleSet, since: int, version: int, marks: Mapping[str, int]) -> None:
        for deployed in self._catalogue.deploy(rules, since, version, marks):
            source = self._writer.sources.rule_number(RULE_SOURCE + deployed.rule.name)
            self._linker.link(deployed, source, incremental=self._incremental)
            if uses_timer(deployed.rule):
                self._clock.append(deployed.rule.name)
            if deployed.rule.name in LAST_WORDS.banned:
                self._overruns.append(Overrun(deployed.rule.name, max(since, TIME_MIN + 1) - 1))
        self._rearrange()
        self._end_banned()

    def _end_banned(self) -> None:
        """Evaluate no rule that has ended the process before."""
        for name in LAST_WORDS.banned:
            if name in self._linker.linked:
                self._linker.end(self._catalogue.end(name))

    def remove(self, name: str) -> None:
        """Remove a rule; KeyError when no rule has that name."""
        removed = self._catalogue.remove(name)
        if name in self._clock:
            self._clock.remove(name)
            self._ticking.forget(name)
        self._deferred.forget(linked.number for linked in self._linker.linked[name])
        self._forget(self._linker.unlink(name))
        self._forget_types([type_.name for type_ in removed.types])
        self._rearrange()

    def go_on_from(self, name: str, mark: int) -> None:
        """Evaluate a rule, just deployed, at no instant before a mark."""
        self._catalogue.go_on_from(name, mark)
        self._rearrange()

    def consume(self, name: str, keys: UInt64s) -> None:
        """Let a rule see none of these events any more."""
        if self.begin({}):  # what waits enters columns; nothing is evaluated by that
            self.evaluate()
            self.finish()
        linked = self._linker.linked[name][0]
        have_consumed(self._arrays, self._linker.tables, linked, keys)
        self.evaluate()

    def _forget_types(self, names: Sequence[str]) -> None:
        """Give back the events of these types if no rule uses them any more; all memory with the
        last rule.
        """
        tables = self._linker.tables
        for number in tables.unused_types(names, self._catalogue.used):
            forget_rows(self._arrays.state, number)
            self._pending.forget(number)
        for number in tables.forget_types(names, self._catalogue.schemas):
            self._outlets.forget(number)
        if not self._linker.linked:
            self._arrays = growth.new_arrays(self._yield_max)
            self._pending.move_to(self._arrays)
            self._outlets = Outlets(self._arrays, self._linker.tables, self._writer)

    def choose(self) -> None:
        """Let rules be evaluated in the way that costs less, by what has come since the last time;
        nothing where there is no choice.
        """
        chooser, times = self._chooser, self._pending.times
        if chooser is not None and times is not None:
            linker = self._linker
            self.switch(chooser.choose(linker.linked, linker.tables, self._arrays, times))

    def switch(self, changes: Mapping[str, bool]) -> None:
        """Evaluate rules by automata from now on, or (False) without; see ``switching``."""
        pairs = linked_anew(self._linker, changes)
        if not pairs:
            return
        self._rearrange([old.deployed for old, _ in pairs])
        for old, new in pairs:
            fill(self._arrays, new, old, growth.grow)
        for old, _ in pairs:
            self._forget(self._linker.release(old))
        self._deferred.renumber({old.number: new.number for old, new in pairs})
        self._rearrange()

    def _forget(self, accesses: Iterable[int]) -> None:
        """Give back what accesses that are gone held."""
        for access in accesses:
            forget_access(self._arrays.state, access)

    def _rearrange(self, linked_anew: Sequence[Deployed] = ()) -> None:
        """Follow the catalogue after rules were added or removed, or linked anew."""
        catalogue, linker = self._catalogue, self._linker
        changed = (*catalogue.take_changed(), *linked_anew)
        if self._clock:
            for one in changed:
                if uses_timer(one.rule):
                    self._ticking.watch(one, self.greatest)
        sources = linker.refresh(changed, catalogue.used, catalogue.groups)
        if sources is not None:
            self._writer.sources.place_rules(sources)
        linker.show(self._arrays)
        loading.load(self._arrays, loading.needed(linker))
        self._pending.fit()
        growth.fit_scratch(self._arrays, linker)
        self._retention.follow(self._arrays)

    # --- events ----------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> None:
        """Add events, in any order; SchemaError when rules know another schema of their type."""
        one = row_of(batch)
        if one is not None:
            self.push_row(batch.type, one)
            return
        known = self._catalogue.known(batch.type)
        if len(batch) == 0:
            return
        if self._clock:
            self._ticking.note(batch.type.name, batch.time)
        if known is None:
            self._pending.note(times_of(batch))  # no rule uses the type
        else:
            self._pending.add(self._linker.tables.type_numbers[known.name], batch)

    def note(self, times: tuple[int, int]) -> None:
        """Know the least and the greatest time of events that no rule here uses."""
        self._pending.note(times)

    def push_row(self, type_: EventType, one: Row) -> None:
        """Add one event, as :meth:`push` does with a batch of it: the way in for single events."""
        if self._clock:
            self._ticking.note_one(type_.name, one.time)
        if one.text is None and self._pending.put(type_, one):
            return
        known = self._catalogue.known(type_)
        if known is None:
            self._pending.note((one.time, one.time))
        elif one.text is not None:
            self._pending.add(self._linker.tables.type_numbers[known.name], Single(type_, one))
        else:
            self._pending.expect(type_, self._linker.tables.type_numbers[known.name])
            self._pending.put(type_, one)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        """Evaluate every rule at every instant before its mark, in order of time (S14)."""
        if self._catalogue.has_turns:
            return self._advance_by_turns(marks)
        if not self.begin(marks, may_wait=not isinstance(marks, int)):
            return NOTHING
        self.evaluate()
        return self.finish()

    def advance_in_pieces(
        self, marks: int | Mapping[str, int], give: Callable[[Detections], None]
    ) -> None:
        """The same, but what is detected is given in pieces, each as soon as there is one (Law 3).

        ``give`` asks nothing of the engine.
        """
        with nullcontext() if self._catalogue.has_turns else self.in_pieces(give):
            give(self.advance(marks))

    @contextmanager
    def in_pieces(self, give: Callable[[Detections], None]) -> Iterator[None]:
        """Let what is detected meanwhile, without turns, be given in pieces (Law 3)."""
        self._give = give
        try:
            yield
        finally:
            self._give = None

    def _advance_by_turns(self, marks: int | Mapping[str, int]) -> Detections:
        """The same, turn by turn (catalogue, Law 5)."""
        pieces = []
        told: int | Mapping[str, int] | None = marks
        while told is not None:
            if self.begin(told):
                self.evaluate()
                pieces.append((self.finish(), self._order_of_rules()))
            told = {} if self.turn() else None
        taken = [(one, places) for one, places in pieces if isinstance(one, Taken)]
        return Merged(taken) if len(taken) > 1 else (taken[0][0] if taken else NOTHING)

    def _order_of_rules(self) -> Int64s:
        """For the places that rules have now, and that a turn may change, their order, which it
        does not.
        """
        places = np.sort(np.array([self.place_of(name) for name in self._linker.linked], np.int64))
        order = np.zeros(1 + int(places[-1]), np.int64)
        order[places] = np.arange(len(places))
        return order

    def turn(self) -> bool:
        """As the catalogue's."""
        has_turned = self._catalogue.turn()
        if has_turned:
            self._rearrange()
        return has_turned

    def begin(self, marks: int | Mapping[str, int], *, may_wait: bool = False) -> bool:
        """The first of the three steps of an advance: raise the marks; whether the others, to
        ``evaluate`` and then ``finish``, must follow, before anything else is done.

        ``may_wait``: they need not if all that is due is that events enter columns.
        """
        catalogue = self._catalogue
        if self._strings.given_up:
            self._end_slow()
        old = catalogue.groups.marks if self._clock else None
        has_risen = catalogue.advance_groups(marks)
        groups = catalogue.groups
        if not has_risen:
            waiting = self._pending.count
            if not waiting or (may_wait and waiting < WAITING_MAX):
                return False
            groups.rest()
        elif catalogue.is_level and old is None:
            self._arrays.counters[layout.LEVEL] = groups.level
        elif catalogue.is_level:
            groups.reach_level()
        if has_risen and old is not None:
            self._run_clock(old)
        self._order(TIME_MAX, is_last=True)
        return True

    def _order(self, until: int, *, is_last: bool) -> None:
        """Have the kernels work through what is complete before ``until`` when they run next;
        what they write is taken after the last portion of an advance.
        """
        catalogue = self._catalogue
        self._pending.let_arrive(
            catalogue.floor, None if catalogue.is_level else catalogue.mark_of_type, until
        )
        self._deferred.give(self._arrays, self._linker.rules.array, catalogue.groups, until)
        self._arrays.counters[layout.TAKING] = is_last

    def evaluate(self) -> None:
        """The second step, all of it in kernels: others may take theirs at once, elsewhere."""
        while (status := process(self._arrays.state)) != layout.DONE:
            self._provide(status)

    def _provide(self, status: int) -> None:
        """Do what a kernel asks for before it can go on."""
        if status == layout.GROW_OUT:
            self._give_piece()
            self._outlets.grow()
        elif status == layout.TOO_MANY:
            self._end_rule()
        elif status == layout.GROW_TAKEN:
            self._outlets.begin_anew()
        elif status in loading.LOADING:
            loading.load(self._arrays, (loading.LOADING[status],))
        elif status in growth.GROWING or status == layout.GROW_BUCKETS:
            growth.grow(self._arrays, status)
        else:
            self._pending.grow(status)

    def _give_piece(self) -> None:
        """Give what was written so far, if that is enough and may be given."""
        if self._give is None or (full := self._outlets.full) is None:
            return
        if full.name in self._catalogue.used or not self._catalogue.is_in_order:
            return
        self._arrays.counters[layout.PIECE] = 1
        while process(self._arrays.state) != layout.DONE:
            self._outlets.begin_anew()
        self._give(self._outlets.piece())

    def _end_rule(self) -> None:
        """Let a rule yield no more that has yielded all it may."""
        counters = self._arrays.counters
        name = self._linker.by_number[counters[layout.ENDED_RULE]].deployed.rule.name
        self._linker.end(self._catalogue.end(name))
        self._overruns.append(Overrun(name, counters[layout.INSTANT], self._yield_max))

    def _end_slow(self) -> None:
        """Let rules end whose owners have no time left for a pattern: at their marks, before any
        event is evaluated. A pattern that rules of others have, too, is worked out at their cost.
        """
        for function in dict.fromkeys(self._strings.given_up):
            owners: dict[str | None, list[str]] = {}
            for name, (linked, *_) in self._linker.linked.items():
                rule = linked.deployed.rule
                if rule.uses(function) and not self._catalogue.has_ended(name):
                    owners.setdefault(rule.owner, []).append(name)
            for owner, names in owners.items():
                if self._strings.is_paid(function, owner):
                    break
                for name in names:
                    self._linker.end(self._catalogue.end(name))
                    last = max(self.mark(name), TIME_MIN + 1) - 1
                    self._overruns.append(Overrun(name, last, pattern=function.pattern))
        self._strings.given_up.clear()

    def finish(self) -> Detections:
        """The third step: what was detected."""
        if self._arrays.counters[layout.DEFERRED]:
            self._deferred.keep(self._arrays)
        if not self._catalogue.is_level:
            self._pending.arrived()
        found = self._outlets.taken()
        if self._chooser is not None and self._chooser.is_due(self._linker.linked, self._arrays):
            self.choose()
        if self._arrays.counters[layout.ENTERED] >= self._retention.due:
            self._retention.follow(self._arrays)
        return found

    def _run_clock(self, old: Int64s) -> None:
        """Take in the ticks of the Timer, evaluating portion by portion what is complete; but for
        the last portion.
        """
        timer = self._linker.tables.type_number(TIMER)
        rules = [self._linker.linked[name][0].deployed for name in self._clock]
        times = self._pending.times
        for stop, ticks in portions(rules, old, self._catalogue, times, self._ticking):
            for one in ticks:
                self._pending.add(timer, one, is_new=True)
            if stop is not None:
                self._order(stop, is_last=False)
                self.evaluate()
                self._deferred.keep(self._arrays)
                self._pending.arrived()
                self._retention.set_horizons(self._arrays, stop)
