"""The engine of a broker that works alone, and what decides over it: which rules, which events, up
to which instant.

This is the one owner of the engine. Everything that is published and needed by a rule is pushed;
whenever a mark has changed the engine is advanced (:mod:`routing.watermarks`), and what it detects
goes to the sinks.

Law 1: what has been evaluated stays evaluated. A source that joins a type begins where rules that
use it have come to without it, and at no mark that its sources have given before: what it publishes
of before is late. A type that no rule needs binds nobody. A rule over Temp was evaluated up to
40 s; a second station joins: its readings of before are late.

Law 2: a rule that ends is dropped once its mark has come to ``until``, what it found is with the
sinks, and the rules over its composite events have come as far, or to ends of their own. Fire is
removed with 26 s for its end; smoke is promised up to 27 s, and it is gone. Where an alarm is made
of fires, and its bells are promised up to 20 s, fire is known up to 26 s until the alarm is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MAX, TIME_MIN, EventBatch
from routing.config import NodeConfig
from routing.delivery.joining import joined
from routing.errors import Refusal
from routing.messages import Code
from routing.serving.changes import Basis
from routing.serving.deployment import Deployed, install
from routing.serving.evaluator import Evaluator
from routing.watermarks.ends import CLOSED
from routing.watermarks.missing import Missing
from routing.watermarks.standing import UNSAID, TypeProgress
from routing.watermarks.watermarks import Watermarks
from rules.engine.conflict import Conflict
from rules.engine.engine import Detections, Placement
from rules.engine.intervals import Intervals
from rules.pattern import TIMER, RuleSet


class Detection(Evaluator):
    """Event types, rules and the engine of a node that works alone."""

    def __init__(self, basis: Basis) -> None:
        super().__init__(basis)
        self._pending = False
        """Whether the engine is to be advanced, whatever marks say."""
        self._is_arranged = True
        """Whether the watermarks follow from the rules and types that there are."""
        self._watermarks = Watermarks()
        self._missing = Missing(basis.config.waiting_events_max)
        self._dirty: set[str] = set()
        """The types of which a source may say something else than before."""
        self._needed: frozenset[str] = frozenset()
        """The published types that rules need, for which there are watermarks."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        super().configure(config)
        self._missing.configure(config.waiting_events_max)

    def reached(self, rule: str) -> int:
        """A rule's mark: its composite events before it have been detected."""
        return self._engine.mark(rule)

    def due_mark(self, deployed: Deployed) -> int:
        """Up to where a rule's composite events are complete: nothing earlier will come."""
        name = deployed.rule.name
        if name in self._watermarks.ends.rules:
            return TIME_MAX
        mark = self._engine.mark(name)
        return TIME_MAX if mark >= deployed.end else mark

    @property
    def given(self) -> Mapping[str, int]:
        """The marks of types that the engine was given, which never go back."""
        brought = self._watermarks.brought
        return {
            one.name: brought(one) if one.given == UNSAID else max(one.given, brought(one))
            for one in self._watermarks.said.types
        }

    @property
    def engines(self) -> Sequence[Intervals]:
        """The only engine."""
        return (self._engine,)

    def take_conflict(self) -> Conflict | None:
        """The first event, since the last call, that it dropped since its id is another's."""
        return self._engine.take_conflict()

    def placement(self, name: str) -> Placement | None:
        """Where the engine evaluates a rule, if it knows several places."""
        return self._engine.placement(name)

    # --- sources ---

    def floors(self, names: Iterable[str]) -> Mapping[str, int]:
        """Up to where types were evaluated: what is earlier, and comes now, is late (Law 1)."""
        return {name: self._bound(name) for name in names}

    def _bound(self, name: str) -> int:
        """Law 1; TIME_MIN before anything was."""
        given = self._watermarks.standings[name].given if name in self._needed else UNSAID
        rules, mark = self._deployments.using(name), self._engine.mark
        evaluated = [(one.since, mark(one.rule.name)) for one in rules]
        marks = [until for since, until in evaluated if since is None or until > since]
        return max([TIME_MIN if given == UNSAID else given, *marks])

    def touch(self, names: Iterable[str]) -> None:
        """A source may say something else of these types than before."""
        self._dirty |= self._needed.intersection(names)

    def push(self, batches: Sequence[EventBatch], horizon: int) -> list[str]:
        """Give published events to the engine, if a rule needs them. ``horizon``: from when on
        times are too far ahead of the clock.

        Gives the types that rules have waited for, and now wait for no longer.
        """
        for batch in batches:
            name = batch.type.name
            known = self._advertisements[name]
            front = known.take(batch, horizon)
            if known.mentions:
                self._engine.push(batch)
                self._watermarks.reach(self._watermarks.standings[name], front)
                if name in self._missing.waiting:
                    self._missing.count(name, len(batch))
        return self._give_up() if self._missing.absent else []

    def _give_up(self) -> list[str]:
        given_up = list(self._missing.take_unpublished())
        for absent in given_up:
            self._advertisements[absent].given_up = True
            self._is_arranged, self._pending = False, True
        return given_up

    def advance(self, now: float) -> Detections | None:
        """Evaluate what the marks allow; None when no mark has changed."""
        if self._deployments.has_ending:
            self.changes.drop_over()
        clock = self.time(now)
        if not (self._dirty or self._pending or clock is not None) or not len(self._deployments):
            return None
        moved, marks = self._hear(clock)
        if not (moved or self._pending):
            return None
        self._pending = False
        found, watermarks = self._engine.advance(marks), self._watermarks
        while self._deployments.ending and watermarks.note_over(self._engine.over):
            marks = watermarks.due(set(), clock)  # rules over these may go on
            watermarks.end(set(), is_timed=clock is not None)
            found = joined((found, self._engine.advance(marks)))
        return found

    def _hear(self, clock: int | None) -> tuple[set[TypeProgress], Mapping[str, int]]:
        """Take in what sources say; gives the types that have moved by that, and their marks."""
        is_anew = not self._is_arranged
        if is_anew:
            self._arrange()
        watermarks, said = self._watermarks, self._watermarks.said
        if self._is_open_again():
            self._engine.forget_marks()  # those of before were given without this source
            is_anew = True
        moved = said.hear()
        if is_anew:
            moved = set(said.types)
        watermarks.look_beyond(moved, is_anew=is_anew)
        marks = watermarks.due(moved, clock)
        for one in moved:
            if one.mark < CLOSED:
                one.given = one.mark if one.given == UNSAID else max(one.mark, one.given)
        if watermarks.end(moved, is_timed=clock is not None):
            self._pending = True
        return moved, marks

    def _is_open_again(self) -> bool:
        """Note what sources say of types; whether one has a source that had none any more."""
        found, said = False, self._watermarks.said
        for name in self._dirty:
            known = self._advertisements.find(name)
            mark = None if known is None else known.mark
            found |= mark is not None and self._watermarks.standings[name].own == CLOSED
            said.note_own(name, CLOSED if mark is None else mark)
        self._dirty.clear()
        return found

    # --- rules ---

    def front_of(self, name: str) -> int | None:
        """The greatest time of a type's published events; None if there were none."""
        return self._advertisements.front(name)

    def evaluated_to(self, name: str) -> int:
        """Up to where a type was promised, or rules that use it evaluated; TIME_MIN for nowhere."""
        known = self._advertisements.find(name)
        mark = None if known is None else known.mark
        return self._bound(name) if mark is None else max(mark, self._bound(name))

    def mark_at_end(self, rule: str) -> int:
        """The mark of a rule that is to end."""
        return self._engine.mark(rule)

    def is_done(self, one: Deployed, until: int) -> bool:
        """Whether nothing is to be known any more of a rule that holds up to an instant (Law 2)."""
        mark, find = self._engine.mark, self._deployments.find
        above = (find(user.rule.name) for user in self._deployments.using(one.rule.defines.name))
        return until <= one.begin or (
            mark(one.rule.name) >= until
            and all(mark(user.rule.name) >= min(until, user.end) for user in above if user)
        )

    def check_past(self, needs: Collection[str], since: int) -> None:
        """Refuse: nothing is kept here."""
        reason = f"broker {self._config.name!r} keeps no log (--data)"
        raise Refusal(Code.NO_STORE, reason)

    def check_reach(self, rules: RuleSet, ending: Sequence[Deployed]) -> None:
        """Nobody is out of reach."""

    def follow_rules(self, gone: Collection[str], added: Sequence[Deployed]) -> None:
        """There are other rules: some are no more, and some have been added."""
        for rule in gone:
            self._engine.remove(rule)
        install(self._engine, added, self._advertisements.schemas)
        for one in self._deployments.ending:
            self._engine.end(one.rule.name, one.end)
        self.follow_types()
        self._pending = True

    def follow_types(self) -> None:
        """Work out anew what each rule needs, and what there are watermarks of."""
        super().follow_types()
        self._needed = needed = frozenset(self._deployments.needed) - {TIMER.name}
        self._is_arranged = False
        standings = self._watermarks.standings
        gone = [
            one.name for one in standings.values() if one.is_published and one.name not in needed
        ]
        if gone:  # nobody is bound any more by what rules did with these (Law 1)
            standings.keep({*needed, TIMER.name})
            self._advertisements.release(gone)
            self._engine.forget_marks()

    def _arrange(self) -> None:
        """Have watermarks of all that the rules need that there are by now."""
        self._is_arranged = True
        watermarks, types, deployments = self._watermarks, self._advertisements, self._deployments
        uses = {one.rule.name: one.uses for one in deployments}
        needs = {rule: deployments.needs(rule) for rule in uses}
        timed = {rule: of for rule, of in needs.items() if TIMER.name in of}
        defining: dict[str, list[str]] = {}
        for one in deployments:
            defining.setdefault(one.rule.defines.name, []).append(one.rule.name)
        watermarks.standings.keep(self._needed.union([TIMER.name], *uses.values()))
        for name in self._needed:
            front = types.front(name)
            watermarks.standings[name].front = TIME_MIN if front is None else front
        finished = watermarks.finished
        together = {uses[rule] | needs[rule] for rule in uses}
        watermarks.arrange(uses, defining, timed, together, self._engine.over)
        if not finished <= watermarks.finished:
            self._engine.forget_marks()  # rules define these again
        absent = frozenset(filter(self.is_absent, self._needed))
        watermarks.said.arrange(self._needed - absent, {})
        self._missing.arrange((one.uses, needs[one.rule.name] & absent) for one in deployments)
        self._dirty.update(self._needed - absent)
