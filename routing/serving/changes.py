"""Changes of rules: which may be deployed, from when they hold, and up to when what they replace.

Where rules are evaluated is no business of this file: a broker that works alone does it itself, in
a network the root decides for all. Laws are those of routing.deployment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from matcher.model import MICROSECONDS, TIME_MIN, EventType
from matcher.times import time_text
from routing.config import NodeConfig, Ordering
from routing.deployment import Deployed
from routing.errors import Refusal
from routing.messages import EVERYTHING, UNLIMITED, Code, Deploy, Rights
from routing.names import is_printable
from routing.permission import check_declared, check_rules, check_text
from routing.serving.claims import check_claims
from routing.serving.evaluator import Basis, Evaluator
from routing.serving.known_rules import remember
from routing.serving.limits import check_count
from rules.engine.engine import Selective
from rules.engine.order.timers import uses_timer
from rules.errors import RuleErrors
from rules.language import load, load_ahead
from rules.pattern import TIMER, Rule, RuleSet
from rules.syntax import ast
from rules.syntax.parser import parse, read, reading

NO_RULES = RuleSet((), {})


class RuleChanges:
    """Deploys, replaces and removes rules."""

    def __init__(self, basis: Basis, evaluator: Evaluator) -> None:
        self._config = basis.config
        self._advertisements = basis.advertisements
        self._deployments = basis.deployments
        self._on_types = basis.on_types
        self._on_rules = basis.on_rules
        self._evaluator = evaluator
        self._engine = basis.engine
        self._by_arrival = basis.config.ordering is Ordering.ARRIVAL
        self._gone: list[str] = []
        """Rules that were dropped, and ``evaluator`` has not been told of."""
        self._past: dict[str, int] = {}
        """Rules that hold from a past instant on, by id, and that instant, since ``take_past``."""

    def configure(self, config: NodeConfig) -> None:
        """Take over what is decided by it from now on."""
        self._config = config

    def deploy(
        self, message: Deploy, now: float, rights: Rights = EVERYTHING
    ) -> tuple[Sequence[Deployed], Sequence[Deployed]]:
        """Deploy a text; gives its rules, and those that they replace or that are removed with it,
        with their ends. They belong to the user who has these ``rights``.

        Refusal, with nothing changed, when it is refused.
        """
        rules, replaced = self._read(message, rights)
        check_rules(rights, rules, {one.name for one in replaced})
        replaced += self._removed(message, rules)
        self._check_limits(rights, rules, replaced)
        ends = self._ends(replaced, now)
        self._check(rules, replaced, ends)
        self._advertisements.forget_far(self._deployments.are_over)
        version = self._deployments.version_of(rules)
        sinces = beyond = self._beyond_ends(self._sinces(rules, now), ends)
        if message.since is not None:
            sinces = self._back_to(message.since, rules, replaced, beyond)
        ended = self._end(ends, rules)
        added: list[Deployed] = []
        for since in dict.fromkeys(sinces.values()):
            own = tuple(rule for rule in rules.rules if sinces[rule.name] == since)
            added += self._deployments.add(own, since, version, rights.user)
        if sinces != beyond:
            self._past.update((one.rule.name, one.begin) for one in added)
        remember(added)
        self._tell_changed(added)
        return added, ended

    def take_past(self) -> Mapping[str, int]:
        """Rules that have come since the last call and hold from a past instant on, by id, and that
        instant.
        """
        past, self._past = self._past, {}
        return past

    def _back_to(
        self,
        since: int,
        rules: RuleSet,
        replaced: Sequence[Deployed],
        sinces: Mapping[str, int | None],
    ) -> Mapping[str, int | None]:
        """The instants from which new rules hold that are to hold from a past one; Refusal where
        what they would have seen is not kept.
        """
        if replaced:
            reason = f"{replaced[0].name} is in force: what replaces it holds from its end on"
            raise Refusal(Code.IN_USE, reason)
        found = {name: own if own is None else min(since, own) for name, own in sinces.items()}
        if found != sinces:
            needs = self._deployments.needs_of_new(rules, self._advertisements.published)
            every = frozenset[str]().union(*needs.values())
            self._evaluator.check_past(rules, every - {TIMER.name}, since)
        return found

    def remove(self, name: str, now: float) -> Deployed:
        """Remove a rule, and give it with its end; Refusal when there is none of that name."""
        deployed = self._named(name)
        self._evaluator.check_reach(NO_RULES, [deployed])
        (ended,) = self._end(self._ends([deployed], now), NO_RULES)
        self._tell_changed()
        return ended

    def end(self, rule: str, until: int) -> Deployed | None:
        """Let a rule in force hold up to an instant, by its id; None where it is not in force."""
        deployed = self._deployments.find(rule)
        if deployed is None or deployed.until is not None:
            return None
        (ended,) = self._end({deployed: until}, NO_RULES)
        self._tell_changed()
        return ended

    def drop_over(self) -> None:
        """Drop the rules that nothing is to be known of any more."""
        over = self._evaluator.over({one: one.end for one in self._deployments.ending})
        if over:
            self._drop(over)
            self._tell_changed()

    def _check_limits(self, rights: Rights, rules: RuleSet, replaced: Sequence[Deployed]) -> None:
        self._deployments.check_size(rights.user, rules)
        if rights.limits == UNLIMITED:
            return
        freed = sum(1 for one in replaced if one.owner == rights.user)
        count = self._deployments.owned(rights.user) + len(rules.rules) - freed
        check_count(rights, "rules_max", count, "rules")
        for rule in rules.rules:
            check_claims(rights, rule, self._advertisements)

    def _read(self, message: Deploy, rights: Rights) -> tuple[RuleSet, list[Deployed]]:
        """The text's rules, and those in force that they replace."""
        known = self._advertisements.schemas
        try:
            rules = load(message.text, file=message.file, known=self._known_for(message))
        except RuleErrors as errors:
            file = read(message.text, file=message.file).file
            in_force = {one.name for one in self._deployments.in_force} if message.replace else ()
            check_text(rights, file, in_force, known)
            raise Refusal(Code.BAD_RULES, str(errors)) from None
        if rights.grants is not None:
            check_declared(rights, read(message.text, file=message.file).file, known)
        if not (rules.rules or message.removes):
            raise Refusal(Code.BAD_RULES, f"{message.file}: there is no rule in the text")
        found = [self._deployments.find_in_force(rule.name) for rule in rules.rules]
        replaced = [one for one in found if one is not None] if message.replace else []
        return rules, replaced

    def _removed(self, message: Deploy, rules: RuleSet) -> list[Deployed]:
        """The rules that are removed with a text; Refusal for one that it has, or nobody."""
        own = {rule.name for rule in rules.rules}
        found = [self._named(name) for name in dict.fromkeys(message.removes)]
        for one in found:
            if one.name in own:
                reason = f"rule {one.name} is to be removed, and stands in {message.file}"
                raise Refusal(Code.BAD_RULES, reason)
        return found

    def _named(self, name: str) -> Deployed:
        """The rule in force of a name; Refusal for none."""
        deployed = self._deployments.find_in_force(name)
        if deployed is None:
            raise Refusal(Code.UNKNOWN, f"no rule is named {name}")
        return deployed

    def read_ahead(self, message: Deploy) -> Iterator[None]:
        """Read and check a text that waits to be deployed; yields behind each rule."""
        try:
            yield from reading(message.text, file=message.file)  # else what it defines would be
            yield from load_ahead(message.text, file=message.file, known=self._known_for(message))
        except RuleErrors:
            return

    def _known_for(self, message: Deploy) -> Mapping[str, EventType]:
        """The types that a text may speak of; RuleErrors where it cannot be read."""
        known = dict(self._advertisements.schemas)
        if message.replace:
            # What the text defines anew may change its schema; whether others rely on the old one
            # is checked once it is known what is replaced.
            for name in _defined_in(message):
                if name in known and not self._advertisements[name].advertisers:
                    del known[name]
        return known

    def _check(
        self, rules: RuleSet, replaced: Sequence[Deployed], ends: Mapping[Deployed, int]
    ) -> None:
        gone = _mentions_of(one.rule for one in self._evaluator.over(ends))
        mentions = _mentions_of(rules.rules)
        for schema in mentions:
            known = self._advertisements.find(schema.name)
            if known is None or known.schema == schema:
                continue
            if known.advertisers or known.mentions > gone.count(known.schema):
                raise Refusal(
                    Code.SCHEMA,
                    f"event {schema} is already known as {known.schema} (tesla.md E5)"
                    + self._while_it_ends(known.schema, ends),
                )
        _check_names(rules.rules, mentions)
        names = {schema.name for schema in mentions}
        if len(names | self._advertisements.schemas.keys()) > self._config.types_max:
            raise Refusal(Code.LIMIT, f"more than {self._config.types_max} types (types_max)")
        self._deployments.check(rules, replaced)
        if isinstance(self._engine, Selective):
            try:
                self._engine.refuse(rules)
            except RuleErrors as errors:
                raise Refusal(Code.BAD_RULES, str(errors)) from None
        self._evaluator.check_reach(rules, replaced)

    def _while_it_ends(self, schema: EventType, ends: Mapping[Deployed, int]) -> str:
        """In words, until when a type has this schema, if only rules that end rely on it."""
        ending = [replace(one, until=until) for one, until in ends.items()]
        ending = [
            one for one in (*ending, *self._deployments.ending) if schema in one.rule.mentions
        ]
        known = self._advertisements[schema.name]
        if known.advertisers or known.mentions > len(ending):
            return ""
        last = max(ending, key=lambda one: one.end)
        until = time_text(last.end)
        return f"; rule {last.name} holds up to {until}: remove it, and deploy this when it is over"

    def _sinces(self, rules: RuleSet, now: float) -> Mapping[str, int | None]:
        """The instants from which new rules hold (S15; Law 2 of routing.deployment).

        One for all that need published events, so that hierarchies start whole, and beyond what has
        been evaluated of the rules above them.
        """
        needs = self._deployments.needs_of_new(rules, self._advertisements.published)
        above = self._deployments.needs_above({rule.defines.name for rule in rules.rules})
        since = self.beyond(above.union(*needs.values()) - {TIMER.name})
        return {
            rule.name: self._instant(rule, needs[rule.name], since, now) for rule in rules.rules
        }

    def _ends(self, gone: Iterable[Deployed], now: float) -> Mapping[Deployed, int]:
        """The instants up to which rules hold that are removed, or replaced (Law 3 there): beyond
        what has been published, and not before any that they have been evaluated at. One that waits
        for the first source of a type, and has not been evaluated, has held for nothing; by arrival
        a rule ends as soon as it is removed.
        """
        if self._by_arrival:
            return dict.fromkeys(gone, TIME_MIN)
        ends = {}
        for one in gone:
            name = one.rule.name
            needs, mark = self._deployments.needs(name), self._evaluator.mark_at_end(name)
            published = self._beyond_fronts(needs - {TIMER.name})
            until = self._instant(one.rule, needs, published, now)
            if mark <= one.begin and any(map(self._evaluator.is_absent, needs)):
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

    def beyond(self, names: Iterable[str]) -> int | None:
        """An instant beyond all events of these types and all that was evaluated by them; None when
        there is no event, and by arrival, where whoever evaluates a rule says from when it holds.
        """
        names = tuple(names)
        beyond = self._beyond_fronts(names)
        if beyond is None or self._by_arrival:
            return None
        return max(beyond, *map(self._evaluator.evaluated_to, names))

    def _beyond_fronts(self, names: Iterable[str]) -> int | None:
        fronts = [one for one in map(self._evaluator.front_of, names) if one is not None]
        return max(fronts) + 1 if fronts else None

    def _beyond_ends(
        self, sinces: Mapping[str, int | None], ends: Mapping[Deployed, int]
    ) -> Mapping[str, int | None]:
        """The instants from which new rules hold, none before what it replaces has ended (Law 5 of
        routing.deployment).
        """
        found = dict(sinces)
        for one, until in ends.items():
            if one.name in found and until > one.begin:
                since = found[one.name]
                found[one.name] = until if since is None else max(since, until)
        return found

    def _end(self, ends: Mapping[Deployed, int], rules: RuleSet) -> Sequence[Deployed]:
        """Let rules hold up to these instants, for new ones whose types stay known in between; what
        has nothing more to find is dropped at once.
        """
        ended = [self._deployments.end(one.rule.name, until) for one, until in ends.items()]
        self._drop(self._evaluator.over({one: one.end for one in ended}), rules)
        return ended

    def _drop(self, over: Collection[Deployed], rules: RuleSet = NO_RULES) -> None:
        self._gone += [self._deployments.drop(one.rule.name).rule.name for one in over]
        gone = _mentions_of(one.rule for one in over)
        self._advertisements.exchange(gone, _mentions_of(rules.rules))

    def _tell_changed(self, added: Sequence[Deployed] = ()) -> None:
        gone, self._gone = self._gone, []
        self._evaluator.follow_rules(gone, added)
        self._on_types()
        self._on_rules()


def _check_names(rules: Iterable[Rule], mentions: Iterable[EventType]) -> None:
    """Refusal of names that others could not print, or a message not bring."""
    names = [rule.name for rule in rules]
    names += [name for schema in mentions for name in (schema.name, *schema.names)]
    for name in names:
        if not is_printable(name):
            reason = f"the name {name!r} has characters that cannot be printed"
            raise Refusal(Code.BAD_NAME, reason)


def _mentions_of(rules: Iterable[Rule]) -> list[EventType]:
    """The types that the rules name, once for each rule that does."""
    return [schema for rule in rules for schema in rule.mentions]


def _defined_in(message: Deploy) -> list[str]:
    statements = parse(message.text, file=message.file).statements
    return [one.type.text for one in statements if isinstance(one, ast.Rule)]
