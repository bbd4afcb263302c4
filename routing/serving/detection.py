"""The engine and what decides over it: which rules, which events, up to which instant.

This is the one owner of the engine. Everything that is published and needed by a rule is pushed;
whenever a mark has changed the engine is advanced (:mod:`routing.serving.watermark`), and what it
detects goes to the sinks.

Law: a rule that ends is dropped once its mark has come to ``until``, what it found is with the
sinks, and the rules over its composite events have come as far, or to ends of their own. Fire is
removed with 26 s for its end; smoke is promised up to 27 s, and it is gone. Where an alarm is made
of fires, and its bells are promised up to 20 s, fire is known up to 26 s until the alarm is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, EventType
from matcher.times import time_text
from routing.config import NodeConfig
from routing.delivery.joining import joined
from routing.errors import Refusal
from routing.messages import Code, Deploy
from routing.serving.advertisements import Advertisements
from routing.serving.deployment import Deployed, Deployments
from routing.serving.sources import Source
from routing.serving.watermark import Watermarks
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
        self._over: Mapping[str, int] = {}
        """Types that only rules define which are over, and up to when these held."""
        self.watermarks = Watermarks(basis.config, basis.advertisements, basis.deployments)

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self._config = config
        self.watermarks.configure(config)

    @property
    def marks(self) -> Mapping[str, int]:
        """Each rule's mark: its composite events before it have been detected."""
        return self._engine.marks

    def due_mark(self, deployed: Deployed) -> int:
        """Up to where a rule's composite events are complete: nothing earlier will come."""
        name = deployed.rule.name
        if self.watermarks.has_ended(self._deployments.needs(name)):
            return TIME_MAX
        mark = self._engine.mark(name)
        return TIME_MAX if mark >= deployed.end else mark

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
        floors = self._floors([schema.name for schema in types])
        for schema in types:
            self._advertisements.advertise(source, schema, floors[schema.name])
        if any(self._advertisements[schema.name].mentions for schema in types):
            self._rearrange()  # a defined type may be published from now on (S12)
        self._touch(source)
        self._on_types()

    def _floors(self, names: Iterable[str]) -> Mapping[str, int]:
        """Up to where types have been evaluated: what is earlier, and comes now, is late."""
        marks = self.marks
        return {name: self.watermarks.floor(name, marks) for name in names}

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more."""
        self.watermarks.touch(names)
        if self._advertisements.withdraw(source, names):
            self._on_types()

    def resume(self, source: Source) -> None:
        """A source is back."""
        self._touch(source)

    def push(self, batches: Sequence[EventBatch], horizon: int) -> list[str]:
        """Give published events to the engine, if a rule needs them. ``horizon``: from when on
        times are too far ahead of the clock.

        Gives the types that rules have waited for, and now wait for no longer.
        """
        given_up: list[str] = []
        for batch in batches:
            known = self._advertisements[batch.type.name]
            known.take(batch, horizon)
            if known.mentions:
                self._engine.push(batch)
                given_up += self.watermarks.keep(batch.type.name, len(batch))
        return given_up

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        if source.keep_promise(mark, now):
            self._touch(source)

    def advance(self, now: float) -> Detections | None:
        """Evaluate what the marks allow; None when no mark has changed."""
        if self._deployments.has_ending:
            self._drop_over()
        changed = self.watermarks.refresh(now)
        if not (changed or self._pending) or not len(self._deployments):
            return None
        self._pending = False
        self._note_over()
        found = self._engine.advance(self._given)
        while self._note_over():  # rules over these may go on
            found = joined((found, self._engine.advance(self._given)))
        return found

    @property
    def _given(self) -> Mapping[str, int]:
        """The marks of types that the engine is given."""
        given = self.watermarks.given
        return {**given, **self._over} if self._over else given

    def _note_over(self) -> bool:
        """Rules may have come to their ends; whether that is news."""
        if not (self._over or self._deployments.ending):
            return False
        over: dict[str, int] = {}
        for name in {one.rule.defines.name for one in self._deployments.ending}:
            defining = self._deployments.defining(name)
            if name not in self.watermarks.given and all(map(self._is_over, defining)):
                over[name] = max(one.end for one in defining)
        if over == self._over:
            return False
        if self._over.keys() - over.keys():
            self._engine.forget_marks()  # they have other marks from now on
        self._over = over
        return True

    def _is_over(self, one: Deployed) -> bool:
        """Whether a rule has come to its end."""
        return one.rule.name in self._engine.over

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
            if mark <= one.begin and any(map(self.watermarks.is_absent, needs)):
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
        given = self.watermarks.given
        bounds += [found.mark for found in known if found.mark is not None]
        bounds += [given[name] for name in names if name in given]
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
        """Whether nothing is to be known any more of a rule that holds up to an instant (Law)."""
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
        """Drop the rules that nothing is to be known of any more (Law)."""
        self.drop([one for one in self._deployments.ending if self._is_done(one, one.end)])

    def _drop(self, over: Collection[Deployed], rules: RuleSet = NO_RULES) -> None:
        for one in over:
            name = one.rule.name
            self.watermarks.touch(self._deployments.needs(name))
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
        forgotten = self.watermarks.forget_groups()
        if forgotten:
            self._advertisements.release(forgotten)
            self._engine.forget_marks()
        self.watermarks.touch(self._deployments.needed)
        self._pending = True
        self._on_types()
        self._on_rules()

    def _rearrange(self) -> None:
        self._deployments.rearrange(self._published())

    def _published(self) -> list[str]:
        return [known.schema.name for known in self._advertisements if known.was_advertised]

    def _touch(self, source: Source) -> None:
        self.watermarks.touch(source.floors)


def _undeployed(rules: RuleSet) -> list[Deployed]:
    return [Deployed(rule, None, 0, 0) for rule in rules.rules]


def _mentions_of(deployed: Iterable[Deployed]) -> list[EventType]:
    """The types that the rules name, once for each rule that does."""
    return [schema for one in deployed for schema in one.mentions]


def _defined_in(message: Deploy) -> list[str]:
    statements = parse(message.text, file=message.file).statements
    return [one.type.text for one in statements if isinstance(one, ast.Rule)]
