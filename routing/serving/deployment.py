"""Which rules are deployed, since when, and what each of them needs (tesla.md S15).

Law 1: a text is deployed whole or not at all, and everything that could refuse it is known before
anything is changed.

Law 2: a rule holds from an instant beyond all that has been published of what it needs; from the
beginning, when that is nothing yet, so that a live run equals a recorded one. One that ticks by the
clock holds from now at the earliest: where the input begins is known in a recording alone (S13),
and a broker that has seen an old event must not tick through all the years since.

Law 3: a rule ends at its mark. What it has not been evaluated for by then, because a source lags
say, it will never say; where it is replaced, neither will the new one, which holds from an instant
beyond all that was published. Both instants are told to who removes or replaces.

Law 4: a name's versions count up for ever, so that no two deployments share composite ids (S15).

Law 5: of a name, one version holds at an instant at most: one that replaces another holds from no
earlier than where that ended, whatever they need.

Law 6: a rule that has ended may have to be evaluated for some time yet (ended). It counts as a rule
then wherever composite events are found, waited for and passed on; it is not in force, and nobody
can name it.

Law 7: what sinks hold of rules outlasts the counting of these, which begins anew where others are
gone (Deployed.serial). So for their order a rule has a *turn*, which stays as it is for as long as
the rule is there; where rules are known in another order by now, all have later turns than before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from matcher.identity import plain_name
from matcher.model import TIME_MIN, EventType
from routing.config import NodeConfig
from routing.errors import Refusal
from routing.messages import Code
from routing.serving import ended as ending
from rules.checking.dependencies import arrange
from rules.errors import RuleErrors
from rules.pattern import TIMER, Rule, RuleSet


@dataclass(frozen=True, slots=True)
class Deployed:
    """A rule in force. ``since`` None: from the beginning; ``serial`` counts deployments.

    It stays the same rule while others that were deployed before it go, whatever it is counted as.
    """

    rule: Rule = field(compare=False)
    since: int | None
    version: int
    serial: int = field(compare=False)
    identity: tuple[str, str, tuple[EventType, ...]] = field(init=False, repr=False)
    """Its name, its text, and the types that this speaks of."""

    def __post_init__(self) -> None:
        rule = self.rule
        identity = rule.name, rule.text, (rule.defines, *rule.used_types)
        object.__setattr__(self, "identity", identity)

    @property
    def begin(self) -> int:
        """``since`` as a time, TIME_MIN for the beginning."""
        return TIME_MIN if self.since is None else self.since

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the rules, for simultaneous composite events (E4, S15)."""
        return self.begin, self.serial

    @property
    def mentions(self) -> tuple[EventType, ...]:
        """The types that it names, each once, ``Timer`` apart."""
        named = {schema.name: schema for schema in (self.rule.defines, *self.rule.used_types)}
        named.pop(TIMER.name, None)
        return tuple(named.values())

    @property
    def has_ended(self) -> bool:
        """Whether it is not in force any more (Law 6)."""
        return ending.has_ended(self.rule.name)


@dataclass(frozen=True, slots=True)
class Ended:
    """A rule that is not in force any more.

    ``until`` is its mark when it was taken out: it has held for every instant from ``since`` on
    that lies before ``until``, and for none beyond (S15).
    """

    deployed: Deployed
    until: int

    @property
    def name(self) -> str:
        """What the rule is called from its end on."""
        one = self.deployed
        return ending.name_of(one.rule.name, one.version, self.until)

    @property
    def rule(self) -> Deployed:
        """The rule as it is evaluated from its end on (Law 6), in its old place."""
        return replace(self.deployed, rule=ending.ended(self.deployed.rule, self.name))


class Deployments:
    """The rules in force by name, at most ``rules_max`` of them, and those of Law 6.

    ``published`` below are the names of the types that have, or have had, advertisers.
    """

    def __init__(self, config: NodeConfig) -> None:
        self._rules: dict[str, Deployed] = {}
        self._lingering: dict[str, Deployed] = {}
        self._versions: dict[str, int] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._users: Mapping[str, Sequence[Deployed]] = {}
        """By type, the rules that use it."""
        self._groups: dict[str, tuple[frozenset[str], ...]] = {}
        self.need_clock = False
        """Whether a rule needs ``Timer``."""
        self._defining: dict[str, tuple[Deployed, ...]] = {}
        self._published: frozenset[str] = frozenset()
        """The defined types that were published when the needs were worked out."""
        self._serial = 0
        self._turns: dict[tuple[str, int], int] = {}
        """By the names that rules were deployed with, and versions (Law 7)."""
        self._last_turn = 0
        self.configure(config)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limit."""
        self._rules_max = config.rules_max

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def rules(self) -> tuple[Deployed, ...]:
        """All rules that are evaluated, in their order (E4)."""
        return tuple(sorted(self._all, key=lambda deployed: deployed.place))

    @property
    def in_force(self) -> tuple[Deployed, ...]:
        """Those in force, in their order."""
        return tuple(sorted(self._rules.values(), key=lambda deployed: deployed.place))

    @property
    def lingering(self) -> Collection[Deployed]:
        """Those that have ended (Law 6)."""
        return self._lingering.values()

    @property
    def _all(self) -> Iterable[Deployed]:
        rules = self._rules.values()
        return (*rules, *self._lingering.values()) if self._lingering else rules

    def find(self, name: str) -> Deployed | None:
        """The rule of that name, if it is evaluated."""
        return self._rules.get(name) or self._lingering.get(name)

    def order(self, name: str) -> tuple[int, int]:
        """Where composite events of a rule stand among simultaneous ones (E4), as ``place``, but
        for as long as they may be held (Law 7); (0, 0) for a rule that is not evaluated.
        """
        deployed = self.find(name)
        return (0, 0) if deployed is None else (deployed.begin, self._turns[_bearer(deployed)])

    def defining(self, type_name: str) -> tuple[Deployed, ...]:
        """The rules that define a type."""
        return self._defining.get(type_name, ())

    def needs(self, rule_name: str) -> frozenset[str]:
        """The published types (``Timer`` too) whose marks bind a rule, through all rules below."""
        return self._needs[rule_name]

    def are_over(self, type_name: str) -> bool:
        """Whether some rule names a type, be it one that has ended (Law 6)."""
        return type_name in self._users or type_name in self._defining

    def published_below(self, type_name: str) -> set[str]:
        """The published types that events of a type come, or are made, from."""
        needed = (self.needs(one.rule.name) for one in self.defining(type_name))
        return {type_name}.union(*needed)

    def groups(self, type_name: str) -> tuple[frozenset[str], ...]:
        """The distinct sets of needs that have this type in them."""
        return self._groups.get(type_name, ())

    @property
    def needed(self) -> Iterable[str]:
        """The types that some rule needs."""
        return self._groups.keys()

    # --- changes ---

    def check(self, rules: RuleSet, replaced: Sequence[Deployed]) -> None:
        """Refusal when the rules do not go with those in force, less ``replaced`` (Law 1)."""
        gone = {deployed.rule.name for deployed in replaced}
        kept = [one for one in self._rules.values() if one.rule.name not in gone]
        taken = {deployed.rule.name for deployed in kept}
        for rule in rules.rules:
            if rule.name in taken:
                raise Refusal(
                    Code.IN_USE,
                    f"a rule named {rule.name} is deployed; replace it, or remove it first",
                )
        if len(kept) + len(rules.rules) > self._rules_max:
            raise Refusal(Code.LIMIT, f"more than {self._rules_max} rules (rules_max)")
        try:
            arrange([*(deployed.rule for deployed in kept), *rules.rules])
        except RuleErrors as errors:
            raise Refusal(Code.BAD_RULES, str(errors)) from None

    def version_of(self, rules: RuleSet) -> int:
        """The version that a set of rules gets (Law 4)."""
        return max((self._versions.get(rule.name, -1) + 1 for rule in rules.rules), default=0)

    def add(self, rules: Sequence[Rule], since: int | None, version: int) -> tuple[Deployed, ...]:
        """Put rules in force that were checked. ``rearrange`` must follow."""
        self._forget_turns()
        added = []
        for rule in rules:
            self._serial += 1
            added.append(Deployed(_by_itself(rule), since, version, self._serial))
            self._versions[rule.name] = version
            self._take_turn(_bearer(added[-1]))
        self._rules.update((deployed.rule.name, deployed) for deployed in added)
        return tuple(added)

    @property
    def ended(self) -> Mapping[str, int]:
        """The last versions of the rules that are not in force any more, by name (Law 4)."""
        return {name: one for name, one in self._versions.items() if name not in self._rules}

    def adopt(
        self,
        rules: Iterable[Deployed],
        published: Iterable[str],
        ended: Iterable[tuple[str, int]] = (),
    ) -> tuple[str, ...]:
        """Have exactly these rules in force, as another broker says (Law 1 was kept there).

        Gives the names that mean no rule any more, or another than before.
        """
        before = self._rules, self._lingering
        named = {deployed.rule.name: deployed for deployed in rules}
        gone = tuple(one.rule.name for one in self._all if named.get(one.rule.name) != one)
        self._lingering = {name: one for name, one in named.items() if one.has_ended}
        self._rules = {name: one for name, one in named.items() if not one.has_ended}
        self._versions.update(ended)
        self._versions.update((name, one.version) for name, one in self._rules.items())
        self._serial = max((one.serial for one in self._all), default=0)
        advertised = frozenset(published)
        if (self._rules, self._lingering) != before or advertised.intersection(
            self._defining
        ) != self._published:
            self._take_turns()
            self.rearrange(advertised)
        return gone

    def keep(self, one: Deployed) -> None:
        """Have a rule that has ended linger. ``rearrange`` must follow."""
        self._lingering[one.rule.name] = one

    def let_go(self, name: str) -> Deployed:
        """Have one linger no more. ``rearrange`` must follow."""
        return self._lingering.pop(name)

    def remove(self, name: str) -> Deployed:
        """Take a rule out of force. ``rearrange`` must follow."""
        return self._rules.pop(name)

    def rearrange(self, published: Iterable[str]) -> None:
        """Work out anew what each rule needs: rules or the published types have changed."""
        uses, defining = _graph(self._all)
        self._defining = {
            name: tuple(sorted(rules, key=lambda deployed: deployed.place))
            for name, rules in defining.items()
        }
        users: dict[str, list[Deployed]] = {}
        for one in self._all:
            for name in _used(one.rule):
                users.setdefault(name, []).append(one)
        self._users = users
        advertised = frozenset(published)
        self._published = advertised.intersection(uses)
        self._needs = {one.rule.name: _needs(one.rule, uses, advertised) for one in self._all}
        groups: dict[str, dict[frozenset[str], None]] = {}
        for needs in self._needs.values():
            for type_name in needs:
                groups.setdefault(type_name, {})[needs] = None
        self._groups = {name: tuple(sets) for name, sets in groups.items()}
        self.need_clock = TIMER.name in self._groups

    def _take_turns(self) -> None:
        """Others are known than before, perhaps in another order (Law 7)."""
        before, self._turns = self._turns, {}
        bearers = [_bearer(one) for one in sorted(self._all, key=lambda one: one.serial)]
        known = [before[one] for one in bearers if one in before]
        is_order_kept = known == sorted(known) and before.keys().isdisjoint(bearers[len(known) :])
        for one in bearers:
            if is_order_kept and one in before:
                self._turns[one] = before[one]
            else:
                self._take_turn(one)

    def _take_turn(self, bearer: tuple[str, int]) -> None:
        self._last_turn += 1
        self._turns[bearer] = self._last_turn

    def _forget_turns(self) -> None:
        """Of rules that are gone, once there are many of them."""
        if len(self._turns) > 2 * (1 + len(self._rules) + len(self._lingering)):
            bearers = set(map(_bearer, self._all))
            self._turns = {one: turn for one, turn in self._turns.items() if one in bearers}

    def needs_of_new(
        self, rules: RuleSet, published: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """What the rules of a set that is not yet in force will need, by name."""
        uses, _ = _graph(self._rules.values())
        for rule in rules.rules:
            uses.setdefault(rule.defines.name, set()).update(_used(rule))
        advertised = frozenset(published)
        return {rule.name: _needs(rule, uses, advertised) for rule in rules.rules}

    def needs_above(self, defined: Iterable[str]) -> frozenset[str]:
        """What the rules need that take events of these types, be it through other rules."""
        needs = (self._needs[one.rule.name] for one in self._taking(self._made_of(defined)))
        return frozenset[str]().union(*needs)

    def resting_on(self, type_name: str) -> Iterator[tuple[int, str]]:
        """The rules that take events of a type, be it through other rules, each with the time from
        which on these can matter to it: those that come between hold from some instant, too.
        """
        waiting = [(one.begin, one.rule.name) for one in self._users.get(type_name, ())]
        heapify(waiting)
        seen: set[str] = set()
        while waiting:  # the earliest first, so each rule is looked at once
            begin, name = heappop(waiting)
            one = self.find(name)
            if one is None or name in seen:
                continue
            seen.add(name)
            yield begin, name
            for above in self._users.get(one.rule.defines.name, ()):
                if above.rule.name not in seen:
                    heappush(waiting, (max(begin, above.begin), above.rule.name))

    def _made_of(self, types: Iterable[str]) -> set[str]:
        """These types, and those of composite events that are made of them."""
        waiting = list(types)
        taken = set(waiting)
        while waiting:
            above = {one.rule.defines.name for one in self._users.get(waiting.pop(), ())} - taken
            taken |= above
            waiting += above
        return taken

    def _taking(self, types: Iterable[str]) -> Collection[Deployed]:
        """The rules that use any of these types."""
        found = (one for name in types for one in self._users.get(name, ()))
        return {one.rule.name: one for one in found}.values()


def _by_itself(rule: Rule) -> Rule:
    """The rule as its text alone says, which is all that other brokers are told. What it may see of
    a cycle that others draw it into (S12) is decided wherever rules are arranged.
    """
    return arrange([rule]).rules[0] if rule.is_strict else rule


def _bearer(deployed: Deployed) -> tuple[str, int]:
    return plain_name(deployed.rule.name), deployed.version


def _used(rule: Rule) -> list[str]:
    return [schema.name for schema in rule.used_types]


def _graph(
    rules: Iterable[Deployed],
) -> tuple[dict[str, set[str]], dict[str, list[Deployed]]]:
    """The types that each defined type depends on, and the rules that define it."""
    uses: dict[str, set[str]] = {}
    defining: dict[str, list[Deployed]] = {}
    for deployed in rules:
        name = deployed.rule.defines.name
        uses.setdefault(name, set()).update(_used(deployed.rule))
        defining.setdefault(name, []).append(deployed)
    return uses, defining


def _needs(rule: Rule, uses: Mapping[str, set[str]], published: frozenset[str]) -> frozenset[str]:
    """The types within reach that are not merely defined by rules (S12)."""
    reached: set[str] = set()
    waiting = _used(rule)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(uses.get(name, ()))
    return frozenset(name for name in reached if name not in uses or name in published)
