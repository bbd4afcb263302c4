"""The engine and what decides over it: which rules, which events, up to which instant.

This is the one owner of the engine. Everything that is published and needed by a rule is pushed;
whenever a mark has changed the engine is advanced (:mod:`routing.serving.watermark`), and what it
detects goes to the sinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, EventType
from routing.config import NodeConfig
from routing.errors import Refusal
from routing.messages import Code, Deploy
from routing.serving.advertisements import Advertisements
from routing.serving.deployment import Deployed, Deployments, Ended
from routing.serving.sources import Source, Standing
from routing.serving.watermark import Watermarks
from rules.engine.conflict import Conflict
from rules.engine.engine import Detections, Detector, Placement
from rules.engine.overrun import Overrun
from rules.engine.timers import uses_timer
from rules.errors import RuleErrors
from rules.language import load
from rules.pattern import TIMER, RuleSet
from rules.syntax import ast
from rules.syntax.parser import parse


@dataclass(frozen=True, slots=True)
class Basis:
    """What a Detection works with, and whom it tells."""

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
        self._engine = basis.engine
        self._advertisements = basis.advertisements
        self._deployments = basis.deployments
        self._on_types = basis.on_types
        self._on_rules = basis.on_rules
        self._pending = False
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
        return self._engine.mark(name)

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

    def resume(self, source: Source, was: Standing) -> None:
        """A source is back; one that was left out takes the marks over for all its types."""
        if was is Standing.LEFT_OUT:
            marks = self.marks
            for name in source.floors:
                floor = self.watermarks.floor(name, marks)
                source.floors[name] = max(source.floors[name], floor)
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

    def leave_out(self, source: Source) -> None:
        """A source stalls nothing any more."""
        source.standing = Standing.LEFT_OUT
        source.goes_on = False
        self._touch(source)

    def advance(self, now: float) -> Detections | None:
        """Evaluate what the marks allow; None when no mark has changed."""
        changed = self.watermarks.refresh(now)
        if not (changed or self._pending) or not len(self._deployments):
            return None
        self._pending = False
        return self._engine.advance(self.watermarks.given)

    # --- rules ---

    def deploy(self, message: Deploy, now: float) -> tuple[Sequence[Deployed], Sequence[Ended]]:
        """Deploy a text; gives its rules, and those that they replace.

        Refusal, with nothing changed, when it is refused.
        """
        rules, replaced = self._read(message)
        self._check(rules, replaced)
        self._advertisements.forget_far(self._deployments.are_over)
        version = self._deployments.version_of(rules)
        sinces = self._sinces(rules, now)
        ended = self._take_out(replaced, rules)
        sinces = self._beyond_ends(sinces, ended)
        added: list[Deployed] = []
        for since in dict.fromkeys(sinces.values()):
            own = tuple(rule for rule in rules.rules if sinces[rule.name] == since)
            self._install(RuleSet(own, rules.schemas), since, version)
            added += self._deployments.add(own, since, version)
        self._rules_changed()
        return added, ended

    def remove(self, name: str) -> Ended:
        """Remove a rule; Refusal when there is none of that name."""
        deployed = self._deployments.find(name)
        if deployed is None or deployed.has_ended:
            raise Refusal(Code.UNKNOWN, f"no rule is named {name}")
        (ended,) = self._take_out([deployed], RuleSet((), {}))
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
        found = [self._deployments.find(rule.name) for rule in rules.rules]
        replaced = [one for one in found if one is not None] if message.replace else []
        return rules, replaced

    def _check(self, rules: RuleSet, replaced: Sequence[Deployed]) -> None:
        gone = _mentions_of(replaced)
        for schema in _mentions_of(_undeployed(rules)):
            known = self._advertisements.find(schema.name)
            if known is None or known.schema == schema:
                continue
            if known.advertisers or known.mentions > gone.count(known.schema):
                raise Refusal(
                    Code.SCHEMA,
                    f"event {schema} is already known as {known.schema} (tesla.md E5)",
                )
        names = {schema.name for schema in _mentions_of(_undeployed(rules))}
        if len(names | self._advertisements.schemas.keys()) > self._config.types_max:
            raise Refusal(Code.LIMIT, f"more than {self._config.types_max} types (types_max)")
        self._deployments.check(rules, replaced)

    def _sinces(self, rules: RuleSet, now: float) -> Mapping[str, int | None]:
        """The instants from which new rules hold (S15; Law 2 of routing.serving.deployment).

        One for all that need published events, so that hierarchies start whole, and beyond what has
        been evaluated of the rules above them; rules over the clock alone have their own, and one
        that ticks holds from now at the earliest.
        """
        needs = self._deployments.needs_of_new(rules, self._published())
        above = self._deployments.needs_above({rule.defines.name for rule in rules.rules})
        published = above.union(*needs.values()) - {TIMER.name}
        since = self._beyond(published)
        clock = round(now * MICROSECONDS) if self._config.wall_clock else None
        found = {name: since if own - {TIMER.name} else clock for name, own in needs.items()}
        if clock is not None:
            for rule in filter(uses_timer, rules.rules):
                known = found[rule.name]
                found[rule.name] = clock if known is None else max(clock, known)
        return found

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
        self, sinces: Mapping[str, int | None], ended: Iterable[Ended]
    ) -> Mapping[str, int | None]:
        """The instants from which new rules hold, none before what it replaces has ended (Law 5 of
        routing.serving.deployment).
        """
        found = dict(sinces)
        for one in ended:
            name = one.deployed.rule.name
            if name in found and one.until > TIME_MIN:
                since = found[name]
                found[name] = one.until if since is None else max(since, one.until)
        return found

    def _take_out(self, gone: Sequence[Deployed], rules: RuleSet) -> Sequence[Ended]:
        """Take rules out of force, for new ones whose types stay known in between."""
        ended = [Ended(deployed, self._mark_at_end(deployed.rule.name)) for deployed in gone]
        for deployed in gone:
            self.watermarks.touch(self._deployments.needs(deployed.rule.name))
            self._uninstall(deployed.rule.name)
            self._deployments.remove(deployed.rule.name)
        self._advertisements.exchange(_mentions_of(gone), _mentions_of(_undeployed(rules)))
        return ended

    def _install(self, rules: RuleSet, since: int | None, version: int) -> None:
        """Begin to evaluate rules."""
        self._engine.deploy(rules, since=since, version=version)

    def _uninstall(self, name: str) -> None:
        """Cease to evaluate a rule."""
        self._engine.remove(name)

    def _mark_at_end(self, name: str) -> int:
        """The mark of a rule that is about to be taken out of force."""
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
