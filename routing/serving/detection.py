"""The engine and what decides over it: which rules, which events, up to which instant.

This is the one owner of the engine. Everything that is published and needed by a rule is pushed;
whenever a mark has changed the engine is advanced (:mod:`routing.watermarks`), and what it detects
goes to the sinks.

Law 1: what has been evaluated stays evaluated. A source that joins a type begins where rules that
use it have come to without it, and at no mark that its sources have given before: what it publishes
of before is late. A type that no rule needs binds nobody; nor, where events have the times at which
they come (``ordering = "arrival"``), does any. A rule over Temp was evaluated up to 40 s; a second
station joins: its readings of before are late.

Law 2: a rule that ends is dropped once its mark has come to ``until``, what it found is with the
sinks, and the rules over its composite events have come as far, or to ends of their own. Fire is
removed with 26 s for its end; smoke is promised up to 27 s, and it is gone. Where an alarm is made
of fires, and its bells are promised up to 20 s, fire is known up to 26 s until the alarm is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, EventType
from matcher.times import time_text
from routing.config import NodeConfig, Ordering
from routing.delivery.joining import joined
from routing.errors import Refusal
from routing.messages import Code, Deploy
from routing.serving.advertisements import Advertisements
from routing.serving.deployment import Deployed, Deployments
from routing.serving.sources import Source
from routing.watermarks.ends import CLOSED
from routing.watermarks.missing import Missing
from routing.watermarks.standing import UNSAID, TypeProgress
from routing.watermarks.watermarks import Watermarks
from rules.engine.conflict import Conflict
from rules.engine.engine import Detections, Detector, Placement
from rules.engine.intervals import Intervals
from rules.engine.overrun import Overrun
from rules.engine.timers import uses_timer
from rules.errors import RuleErrors
from rules.language import load
from rules.pattern import TIMER, Rule, RuleSet
from rules.syntax import ast
from rules.syntax.parser import parse

NO_RULES = RuleSet((), {})


@dataclass(frozen=True, slots=True)
class Basis:
    """The tables that a Detection works with, and the callbacks that it tells."""

    config: NodeConfig
    engine: Detector
    advertisements: Advertisements
    deployments: Deployments
    on_types: Callable[[], None]
    """Called when types have become known or were forgotten."""
    on_rules: Callable[[], None]
    """Called when rules have."""


class Detection:
    """Event types, rules and the engine of one node."""

    def __init__(self, basis: Basis) -> None:
        self._config = basis.config
        self._engine = Intervals(basis.engine)
        self._advertisements = basis.advertisements
        self._deployments = basis.deployments
        self._on_types = basis.on_types
        self._on_rules = basis.on_rules
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
        self._config = config
        self._missing.configure(config.waiting_events_max)

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark: its composite events before it have been detected."""
        return self._engine.marks

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
    def ticks(self) -> bool:
        """Whether a rule needs ``Timer`` and the clock drives it."""
        return self._deployments.need_clock and self._config.wall_clock

    def _time(self, now: float) -> int | None:
        """The mark of Timer, just beyond the last whole second, for nothing ticks between two of
        them; None where the clock does not count.
        """
        if not self.ticks:
            return None
        return math.floor(now - self._config.timer_slack_s) * MICROSECONDS + 1

    def is_absent(self, name: str) -> bool:
        """Whether rules wait for a first advertiser of the type."""
        known = self._advertisements.find(name)
        if known is None:
            return name != TIMER.name
        return not (known.was_advertised or known.given_up)

    @property
    def duplicates(self) -> int:
        """Events that the engine dropped as repeats (E1)."""
        return self._engine.duplicates

    def take_conflict(self) -> Conflict | None:
        """The first event, since the last call, that it dropped since its id is another's."""
        return self._engine.take_conflict()

    def take_overruns(self) -> Sequence[Overrun]:
        """The rules that have ended since the last call, having too many composite events."""
        return self._engine.take_overruns()

    @property
    def memory(self) -> Mapping[str, int]:
        """How much the engine keeps, by name."""
        return self._engine.memory()

    def placement(self, name: str) -> Placement | None:
        """Where the engine evaluates a rule, if it knows several places."""
        return self._engine.placement(name)

    @property
    def parts(self) -> Sequence[int]:
        """How many rules each part of the engine evaluates; parts may be evaluated at once."""
        return [len(names) for names in self._engine.parts]

    # --- sources ---

    def advertise(self, source: Source, types: Sequence[EventType]) -> None:
        """Take checked advertisements over."""
        names = [schema.name for schema in types]
        floors, absent = self._floors(names), list(filter(self.is_absent, names))
        for schema in types:
            self._advertisements.advertise(source, schema, floors[schema.name])
        if any(self._advertisements[name].mentions for name in absent):
            self._rearrange()  # a defined type may be published from now on (S12)
        self._touch(source.floors)
        self._on_types()

    def _floors(self, names: Iterable[str]) -> Mapping[str, int]:
        """Up to where types were evaluated: what is earlier, and comes now, is late (Law 1)."""
        if self._config.ordering is Ordering.ARRIVAL:
            return dict.fromkeys(names, TIME_MIN)
        return {name: self._evaluated(name) for name in names}

    def _evaluated(self, name: str) -> int:
        """Law 1; TIME_MIN before anything was."""
        given = self._watermarks.standings.of(name).given if name in self._needed else UNSAID
        rules, mark = self._deployments.using(name), self._engine.mark
        evaluated = [(one.since, mark(one.rule.name)) for one in rules]
        marks = [until for since, until in evaluated if since is None or until > since]
        return max([TIME_MIN if given == UNSAID else given, *marks])

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more."""
        self._touch(names)
        if self._advertisements.withdraw(source, names):
            self._on_types()

    def resume(self, source: Source) -> None:
        """A source is back."""
        self._touch(source.floors)

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
                self._watermarks.reach(self._watermarks.standings.of(name), front)
                if name in self._missing.waiting:
                    self._missing.count(name, len(batch))
        return self._give_up() if self._missing.absent else []

    def _give_up(self) -> list[str]:
        given_up = list(self._missing.take_unpublished())
        for absent in given_up:
            self._advertisements[absent].given_up = True
            self._is_arranged, self._pending = False, True
        return given_up

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        if source.keep_promise(mark, now):
            self._touch(source.floors)

    def advance(self, now: float) -> Detections | None:
        """Evaluate what the marks allow; None when no mark has changed."""
        self._drop_over()
        clock = self._time(now)
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
        found, said, of = False, self._watermarks.said, self._watermarks.standings.of
        for name in self._dirty:
            known = self._advertisements.find(name)
            mark = None if known is None else known.mark
            found |= mark is not None and of(name).own == CLOSED
            said.note_own(name, CLOSED if mark is None else mark)
        self._dirty.clear()
        return found

    # --- rules ---

    def deploy(self, message: Deploy, now: float) -> tuple[Sequence[Deployed], Sequence[Deployed]]:
        """Deploy a text; gives its rules, and those that they replace, with their ends.

        Refusal, with nothing changed, when it is refused.
        """
        self._drop_over()
        rules, replaced = self._read(message)
        ends = self._ends(replaced, now)
        self._check(rules, replaced, ends)
        self._advertisements.forget_far(self._deployments.are_over)
        version = self._deployments.version_of(rules)
        sinces = self._beyond_ends(self._sinces(rules, now), ends)
        ended = self._end(ends, rules)
        added: list[Deployed] = []
        for since in dict.fromkeys(sinces.values()):
            own = tuple(rule for rule in rules.rules if sinces[rule.name] == since)
            come = self._deployments.add(own, since, version)
            self._install(RuleSet(tuple(one.rule for one in come), rules.schemas), since, version)
            added += come
        self._rules_changed()
        return added, ended

    def remove(self, name: str, now: float) -> Deployed:
        """Remove a rule, and give it with its end; Refusal when there is none of that name."""
        self._drop_over()
        deployed = self._deployments.find_in_force(name)
        if deployed is None:
            raise Refusal(Code.UNKNOWN, f"no rule is named {name}")
        (ended,) = self._end(self._ends([deployed], now), NO_RULES)
        self._rules_changed()
        return ended

    def end(self, rule: str, until: int) -> Deployed | None:
        """Let a rule in force hold up to an instant, by its id; None where it is not in force."""
        deployed = self._deployments.find(rule)
        if deployed is None or deployed.until is not None:
            return None
        (ended,) = self._end({deployed: until}, NO_RULES)
        self._rules_changed()
        return ended

    def _read(self, message: Deploy) -> tuple[RuleSet, list[Deployed]]:
        """The text's rules, and those in force that they replace."""
        known = dict(self._advertisements.schemas)
        try:
            if message.replace:
                # What the text defines anew may change its schema; whether others rely on the
                # old one is checked once it is known what is replaced.
                for name in _defined_in(message):
                    if name in known and not self._advertisements[name].advertisers:
                        del known[name]
            rules = load(message.text, file=message.file, known=known)
        except RuleErrors as errors:
            raise Refusal(Code.BAD_RULES, str(errors)) from None
        if not rules.rules:
            raise Refusal(Code.BAD_RULES, f"{message.file}: there is no rule in the text")
        found = [self._deployments.find_in_force(rule.name) for rule in rules.rules]
        replaced = [one for one in found if one is not None] if message.replace else []
        return rules, replaced

    def _check(
        self, rules: RuleSet, replaced: Sequence[Deployed], ends: Mapping[Deployed, int]
    ) -> None:
        gone = _mentions_of(one for one, until in ends.items() if self._is_done(one, until))
        for schema in _mentions_of(_undeployed(rules)):
            known = self._advertisements.find(schema.name)
            if known is None or known.schema == schema:
                continue
            if known.advertisers or known.mentions > gone.count(known.schema):
                raise Refusal(
                    Code.SCHEMA,
                    f"event {schema} is already known as {known.schema} (tesla.md E5)"
                    + self._while_it_ends(known.schema, ends),
                )
        names = {schema.name for schema in _mentions_of(_undeployed(rules))}
        if len(names | self._advertisements.schemas.keys()) > self._config.types_max:
            raise Refusal(Code.LIMIT, f"more than {self._config.types_max} types (types_max)")
        self._deployments.check(rules, replaced)

    def _while_it_ends(self, schema: EventType, ends: Mapping[Deployed, int]) -> str:
        """In words, until when a type has this schema, if only rules that end rely on it."""
        ending = [replace(one, until=until) for one, until in ends.items()]
        ending = [one for one in (*ending, *self._deployments.ending) if schema in one.mentions]
        known = self._advertisements[schema.name]
        if known.advertisers or known.mentions > len(ending):
            return ""
        last = max(ending, key=lambda one: one.end)
        until = time_text(last.end)
        return f"; rule {last.name} holds up to {until}: remove it, and deploy this when it is over"

    def _sinces(self, rules: RuleSet, now: float) -> Mapping[str, int | None]:
        """The instants from which new rules hold (S15; Law 2 of routing.serving.deployment).

        One for all that need published events, so that hierarchies start whole, and beyond what has
        been evaluated of the rules above them.
        """
        needs = self._deployments.needs_of_new(rules, self._published())
        above = self._deployments.needs_above({rule.defines.name for rule in rules.rules})
        since = self._beyond(above.union(*needs.values()) - {TIMER.name})
        return {
            rule.name: self._instant(rule, needs[rule.name], since, now) for rule in rules.rules
        }

    def _ends(self, gone: Iterable[Deployed], now: float) -> Mapping[Deployed, int]:
        """The instants up to which rules hold that are removed, or replaced (Law 3 there): beyond
        what has been published, and not before any that they have been evaluated at. One that waits
        for the first source of a type, and has not been evaluated, has held for nothing.
        """
        ends = {}
        for one in gone:
            name = one.rule.name
            needs, mark = self._deployments.needs(name), self._mark_at_end(name)
            until = self._instant(one.rule, needs, self._beyond_fronts(needs - {TIMER.name}), now)
            if mark <= one.begin and any(map(self.is_absent, needs)):
                until = None
            ends[one] = max(mark, TIME_MIN if until is None else until)
        return ends

    def _instant(
        self, rule: Rule, needs: frozenset[str], beyond: int | None, now: float
    ) -> int | None:
        """An instant beyond all that a rule may have seen, which is ``beyond`` what it needs of
        published events. By the clock that is now; and now at the earliest, for one that ticks.
        """
        clock = round(now * MICROSECONDS) if self._config.wall_clock else None
        if not needs - {TIMER.name}:
            return clock
        if clock is None or not uses_timer(rule):
            return beyond
        return clock if beyond is None else max(clock, beyond)

    def _beyond(self, names: Iterable[str]) -> int | None:
        """An instant beyond all events and marks of these types; None when there is no event."""
        names, types = tuple(names), self._advertisements
        bounds = [front + 1 for name in names if (front := types.front(name)) is not None]
        if not bounds:
            return None
        known = [found for name in names if (found := types.find(name)) is not None]
        bounds += [found.mark for found in known if found.mark is not None]
        bounds += [self._evaluated(name) for name in names]
        return max(bounds)

    def _beyond_ends(
        self, sinces: Mapping[str, int | None], ends: Mapping[Deployed, int]
    ) -> Mapping[str, int | None]:
        """The instants from which new rules hold, none before what it replaces has ended (Law 5 of
        routing.serving.deployment).
        """
        found = dict(sinces)
        for one, until in ends.items():
            if one.name in found and until > one.begin:
                since = found[one.name]
                found[one.name] = until if since is None else max(since, until)
        return found

    def _beyond_fronts(self, names: Iterable[str]) -> int | None:
        """An instant beyond all events of these types; None when there is none."""
        fronts = [
            front for name in names if (front := self._advertisements.front(name)) is not None
        ]
        return max(fronts) + 1 if fronts else None

    def _end(self, ends: Mapping[Deployed, int], rules: RuleSet) -> Sequence[Deployed]:
        """Let rules hold up to these instants, for new ones whose types stay known in between; what
        has nothing more to find is dropped at once.
        """
        ended = [self._deployments.end(one.rule.name, until) for one, until in ends.items()]
        over = [one for one in ended if self._is_done(one, one.end)]
        for one in ended:
            self._finish(one.rule.name, one.end)
        self._drop(over, rules)
        return ended

    def _is_done(self, one: Deployed, until: int) -> bool:
        """Whether nothing is to be known any more of a rule that holds up to an instant (Law 2)."""
        mark, find = self._engine.mark, self._deployments.find
        above = (find(user.rule.name) for user in self._deployments.using(one.rule.defines.name))
        return until <= one.begin or (
            mark(one.rule.name) >= until
            and all(mark(user.rule.name) >= min(until, user.end) for user in above if user)
        )

    def drop(self, over: Collection[Deployed]) -> None:
        """Drop rules that have come to their ends."""
        if over:
            self._drop(over)
            self._rules_changed()

    def _drop_over(self) -> None:
        """Drop the rules that nothing is to be known of any more (Law 2)."""
        self.drop([one for one in self._deployments.ending if self._is_done(one, one.end)])

    def _drop(self, over: Collection[Deployed], rules: RuleSet = NO_RULES) -> None:
        for one in over:
            name = one.rule.name
            self._uninstall(name)
            self._deployments.drop(name)
        self._advertisements.exchange(_mentions_of(over), _mentions_of(_undeployed(rules)))

    def _install(self, rules: RuleSet, since: int | None, version: int) -> None:
        """Begin to evaluate rules."""
        self._engine.deploy(rules, since=since, version=version)

    def _finish(self, name: str, until: int) -> None:
        """Evaluate a rule up to an instant."""
        self._engine.end(name, until)

    def _uninstall(self, name: str) -> None:
        """Cease to evaluate a rule."""
        self._engine.remove(name)

    def _mark_at_end(self, name: str) -> int:
        """The mark of a rule that is to end."""
        return self._engine.mark(name)

    def _rules_changed(self) -> None:
        self._rearrange()
        self._pending = True
        self._on_types()
        self._on_rules()

    def _rearrange(self) -> None:
        self._deployments.rearrange(self._published())
        self._needed = needed = frozenset(self._deployments.needed) - {TIMER.name}
        self._is_arranged = False
        standings = self._watermarks.standings
        gone = [one.name for one in standings if one.is_published and one.name not in needed]
        if gone:  # nobody is bound any more by what rules did with these (Law 1)
            standings.keep({*needed, TIMER.name})
            self._advertisements.release(gone)
            self._engine.forget_marks()

    def _arrange(self) -> None:
        """Have watermarks of all that the rules need that there are by now."""
        self._is_arranged = True
        watermarks, types, deployments = self._watermarks, self._advertisements, self._deployments
        rules = deployments.rules
        uses = {one.rule.name: frozenset(map(_name_of, one.rule.used_types)) for one in rules}
        needs = {one.rule.name: deployments.needs(one.rule.name) for one in rules}
        timed = {name: of for name, of in needs.items() if TIMER.name in of}
        defining: dict[str, list[str]] = {}
        for one in rules:
            defining.setdefault(one.rule.defines.name, []).append(one.rule.name)
        for name in self._needed:
            front = types.front(name)
            watermarks.standings.of(name).front = TIME_MIN if front is None else front
        finished = watermarks.finished
        together = {uses[name] | needs[name] for name in uses}
        watermarks.arrange(uses, defining, timed, together, self._engine.over)
        if not finished <= watermarks.finished:
            self._engine.forget_marks()  # rules define these again
        absent = frozenset(filter(self.is_absent, self._needed))
        watermarks.said.arrange(self._needed - absent, {})
        self._missing.arrange((one.rule, needs[one.rule.name] & absent) for one in rules)
        self._dirty.update(self._needed - absent)

    def _published(self) -> list[str]:
        return [known.schema.name for known in self._advertisements if known.was_advertised]

    def _touch(self, names: Iterable[str]) -> None:
        """A source may say something else of these types than before."""
        self._dirty.update(name for name in names if name in self._needed)


def _name_of(schema: EventType) -> str:
    return schema.name


def _undeployed(rules: RuleSet) -> list[Deployed]:
    return [Deployed(rule, None, 0, 0) for rule in rules.rules]


def _mentions_of(deployed: Iterable[Deployed]) -> list[EventType]:
    """The types that the rules name, once for each rule that does."""
    return [schema for one in deployed for schema in one.mentions]


def _defined_in(message: Deploy) -> list[str]:
    statements = parse(message.text, file=message.file).statements
    return [one.type.text for one in statements if isinstance(one, ast.Rule)]
