"""Rules that are deployed, since when, and the types that each of them needs (tesla.md S15).

Law 1: a text is deployed whole or not at all, and everything that could refuse it is known before
anything is changed.

Law 2: a rule holds from an instant beyond all that has been published of what it needs; from the
beginning, when that is nothing yet, so that a live run equals a recorded one. One that ticks by the
clock holds from now at the earliest: where the input begins is known in a recording alone (S13),
and a broker that has seen an old event must not tick through all the years since. Example: Temp has
come to 40 s: a rule over Temp that is deployed now holds from just beyond 40 s.

Law 3: a rule holds up to an instant that is chosen when it is removed: beyond all that has been
published of what it needs, and not before any that it has been evaluated at. What was published
before is still found. Both instants are told to who removes or replaces. Until everybody has what
it found it is a rule as any other, only that nobody can name it; then it is dropped. Example: Smoke
of 25 s has been published when ``fire`` is removed: with the Temp that is still to come it makes a
Fire, Smoke of 26 s makes none.

Law 4: a name's versions count up for ever, so that no two deployments share composite ids (S15).
Each is a rule of its own, with an id (matcher.identity.rule_id) for name.

Law 5: a version that replaces another holds from no earlier than where that ends, whatever they
need: of both, one holds at an instant at most.

Law 6: what sinks hold of rules outlasts the counting of these, which begins anew where others are
gone (Deployed.serial). So for their order a rule has a *turn*, which stays as it is for as long as
the rule is there; where rules are known in another order by now, all have later turns than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from operator import attrgetter

from matcher.identity import plain_name, rule_id
from matcher.model import TIME_MAX, TIME_MIN, EventType
from routing.config import NodeConfig
from routing.errors import Refusal
from routing.messages import Code, RuleFacts
from rules.checking.dependencies import arrange
from rules.engine.order.intervals import Intervals
from rules.errors import RuleErrors
from rules.pattern import TIMER, Rule, RuleSet, Wiring

RULES_BYTES_MAX = 3 << 22
"""Bytes of the texts of all rules: with what they speak of they fit into a frame."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A rule that holds in [since, until). ``since`` None: from the beginning; ``until`` None: it
    is in force, and nobody knows yet; ``serial`` counts deployments. The rule's name is its id.

    It stays the same rule while others that were deployed before it go, whatever it is counted as,
    and when it is known to end.
    """

    rule: Rule = field(compare=False)
    since: int | None
    version: int
    serial: int = field(compare=False)
    until: int | None = field(default=None, compare=False)
    owner: str = field(default="", compare=False)
    """The user who deployed it; "" where nobody had to say who they are."""
    identity: tuple[str, str, tuple[EventType, ...]] = field(init=False, repr=False)
    """Its id, its text, and the types that this speaks of."""
    name: str = field(init=False, repr=False, compare=False)
    """The name by which clients call it, in whatever version."""
    place: tuple[int, int] = field(init=False, repr=False, compare=False)
    """Its place among the rules, for simultaneous composite events (E4, S15)."""
    facts: RuleFacts = field(init=False, repr=False, compare=False)
    """The rule as it is told."""

    def __post_init__(self) -> None:
        rule, name = self.rule, plain_name(self.rule.name)
        identity = rule.name, rule.text, (rule.defines, *rule.used_types)
        facts = RuleFacts(name, rule.text, self.since, self.version, self.until, self.owner)
        object.__setattr__(self, "identity", identity)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "place", (self.begin, self.serial))
        object.__setattr__(self, "facts", facts)

    @property
    def begin(self) -> int:
        """``since`` as a time, TIME_MIN for the beginning."""
        return TIME_MIN if self.since is None else self.since

    @property
    def end(self) -> int:
        """``until`` as a time, TIME_MAX where nobody knows yet."""
        return TIME_MAX if self.until is None else self.until


class Deployments:
    """All rules by id: those in force, at most ``rules_max``, and those that end (Law 3).

    ``published`` below are the names of the types that have, or have had, advertisers.
    """

    def __init__(self, config: NodeConfig) -> None:
        self.by_id: dict[str, Deployed] = {}
        """All rules."""
        self._in_order: tuple[Deployed, ...] | None = ()
        """The same in their order; None until somebody asks."""
        self._in_force: dict[str, Deployed] = {}
        """Rules that nobody has removed or replaced, by name."""
        self._versions: dict[str, int] = {}
        self._alike: dict[Wiring, dict[str, Deployed]] = {}
        """Rules by id, those of one wiring together."""
        self._users: Mapping[str, Sequence[Wiring]] = {}
        """By type, the wirings of rules that use it."""
        self._groups: dict[str, tuple[frozenset[str], ...]] = {}
        self._needs: dict[frozenset[str], frozenset[str]] = {}
        """By the types that a rule uses."""
        self.need_clock = False
        """Whether a rule needs ``Timer``."""
        self._defining: Mapping[str, Sequence[Wiring]] = {}
        self._published: frozenset[str] = frozenset()
        """The defined types that were published when the needs were worked out."""
        self._serial = 0
        self._turns: dict[str, int] = {}
        """By id (Law 6)."""
        self._last_turn = 0
        self.configure(config)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limit."""
        self._rules_max = config.rules_max

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Deployed]:
        return iter(self.by_id.values())

    @property
    def rules(self) -> tuple[Deployed, ...]:
        """All rules, in their order (E4)."""
        if self._in_order is None:
            self._in_order = tuple(sorted(self.by_id.values(), key=attrgetter("place")))
        return self._in_order

    @property
    def in_force(self) -> tuple[Deployed, ...]:
        """Rules in force, in their order."""
        return tuple(sorted(self._in_force.values(), key=attrgetter("place")))

    @property
    def ending(self) -> tuple[Deployed, ...]:
        """Rules that are known to end (Law 3)."""
        if len(self.by_id) == len(self._in_force):
            return ()
        return tuple(one for one in self.by_id.values() if one.until is not None)

    def find(self, rule: str) -> Deployed | None:
        """The rule of that id, if there is one."""
        return self.by_id.get(rule)

    def find_in_force(self, name: str) -> Deployed | None:
        """The version of the rule of that name that is in force, if there is one."""
        return self._in_force.get(name)

    def order(self, name: str) -> tuple[int, int]:
        """Where composite events of a rule stand among simultaneous ones (E4), as ``place``, but
        for as long as they may be held (Law 6); (0, 0) for one that is not there.
        """
        deployed = self.find(name)
        return (0, 0) if deployed is None else (deployed.begin, self._turns[name])

    def defining(self, type_name: str) -> tuple[Deployed, ...]:
        """The rules that define a type."""
        rules = self._of(self._defining.get(type_name, ()))
        return tuple(sorted(rules, key=attrgetter("place")))

    def _of(self, wirings: Iterable[Wiring]) -> Iterator[Deployed]:
        """The rules of these wirings."""
        for one in wirings:
            yield from self._alike[one].values()

    def is_used(self, type_name: str) -> bool:
        """Whether some rule uses events of a type."""
        return type_name in self._users

    def needs(self, rule_name: str) -> frozenset[str]:
        """The published types (``Timer`` too) whose marks bind a rule, through all rules below."""
        return self._needs[self.by_id[rule_name].rule.wiring.used]

    def are_over(self, type_name: str) -> bool:
        """Whether some rule names a type."""
        return type_name in self._users or type_name in self._defining

    def published_below(self, type_name: str) -> set[str]:
        """The published types that events of a type come, or are made, from."""
        needed = (self._needs[one.used] for one in self._defining.get(type_name, ()))
        return {type_name}.union(*needed)

    def groups(self, type_name: str) -> tuple[frozenset[str], ...]:
        """The distinct sets of needs that have this type in them."""
        return self._groups.get(type_name, ())

    @property
    def used(self) -> Iterable[str]:
        """The types that some rule uses."""
        return self._users.keys()

    # --- changes ---

    def check(self, rules: RuleSet, replaced: Sequence[Deployed]) -> None:
        """Refusal when the rules do not go with those that are there, of which they replace some
        (Law 1). Those hold for a while yet, beside the new ones.
        """
        gone = {deployed.name for deployed in replaced}
        for rule in rules.rules:
            if rule.name in self._in_force and rule.name not in gone:
                raise Refusal(
                    Code.IN_USE,
                    f"a rule named {rule.name} is deployed; replace it, or remove it first",
                )
        if len(self._in_force) - len(gone) + len(rules.rules) > self._rules_max:
            raise Refusal(Code.LIMIT, f"more than {self._rules_max} rules (rules_max)")
        in_force = [one.rule for one in self._in_force.values() if one.name not in gone]
        ending = [one.rule for one in (*self.ending, *replaced)]
        for beside in ([], ending) if ending else ([],):
            try:
                arrange([*in_force, *beside, *rules.rules])
            except RuleErrors as errors:
                names = ", ".join(sorted({plain_name(rule.name) for rule in beside}))
                hint = "still holds for a while as it was: remove it, and deploy this later"
                said = f"{errors}\n{names} {hint}" if beside else str(errors)
                raise Refusal(Code.BAD_RULES, said) from None

    def check_size(self, user: str, rules: RuleSet) -> None:
        """Refusal of texts that no message could tell beside all others; and of a user's that would
        take half of that, so that others can deploy, too.
        """
        own = (one.rule for one in self if one.owner == user)
        if user and _size(own) + _size(rules.rules) > RULES_BYTES_MAX // 2:
            reason = f"more than {RULES_BYTES_MAX // 2} bytes of rules of user {user!r}"
            raise Refusal(Code.LIMIT, reason)
        if _size(one.rule for one in self) + _size(rules.rules) > RULES_BYTES_MAX:
            raise Refusal(Code.LIMIT, f"more than {RULES_BYTES_MAX} bytes of rules in the network")

    def owned(self, user: str) -> int:
        """How many rules in force a user owns."""
        return sum(1 for one in self._in_force.values() if one.owner == user)

    def version_of(self, rules: RuleSet) -> int:
        """The version that a set of rules gets (Law 4)."""
        return max((self._versions.get(rule.name, -1) + 1 for rule in rules.rules), default=0)

    def add(
        self, rules: Sequence[Rule], since: int | None, version: int, owner: str = ""
    ) -> tuple[Deployed, ...]:
        """Put rules in force that were checked. ``rearrange`` must follow."""
        self._forget_turns()
        added = []
        for rule in rules:
            self._serial += 1
            named = _by_itself(rule).named(rule_id(rule.name, version), owner)
            added.append(Deployed(named, since, version, self._serial, owner=owner))
            self._versions[rule.name] = version
            self._take_turn(named.name)
        self._exchange((), added)
        self.by_id.update((deployed.rule.name, deployed) for deployed in added)
        self._in_force.update((deployed.name, deployed) for deployed in added)
        return tuple(added)

    def _exchange(self, gone: Iterable[Deployed], come: Iterable[Deployed]) -> None:
        """Have other rules among those of one wiring."""
        self._in_order = None
        for one in gone:
            del self._alike[one.rule.wiring][one.rule.name]
        for one in come:
            self._alike.setdefault(one.rule.wiring, {})[one.rule.name] = one

    @property
    def ended(self) -> Mapping[str, int]:
        """The last versions of the rules that are not in force any more, by name (Law 4)."""
        names = self._versions.keys() - self._in_force.keys()
        return {name: self._versions[name] for name in names}

    def adopt(
        self,
        rules: Iterable[Deployed],
        published: Iterable[str],
        ended: Iterable[tuple[str, int]] = (),
    ) -> tuple[str, ...]:
        """Have exactly these rules, as another broker says (Law 1 was kept there).

        Gives the ids that mean no rule any more, or another than before.
        """
        before = self.by_id
        self.by_id = after = {deployed.rule.name: deployed for deployed in rules}
        moved = [name for name, one in before.items() if after.get(name) is not one]
        come = [one for name, one in after.items() if before.get(name) is not one]
        self._exchange([before[name] for name in moved], come)
        self._in_force = {one.name: one for one in self.by_id.values() if one.until is None}
        gone = tuple(name for name in moved if after.get(name) != before[name])
        self._versions.update(ended)
        self._versions.update((name, one.version) for name, one in self._in_force.items())
        self._serial = max((one.serial for one in self.by_id.values()), default=0)
        advertised = frozenset(published)
        if moved or come or advertised.intersection(self._defining) != self._published:
            self._take_turns()
            self.rearrange(advertised)
        return gone

    def end(self, rule: str, until: int) -> Deployed:
        """Let a rule in force hold up to an instant (Law 3)."""
        before = self.by_id[rule]
        ending = self.by_id[rule] = replace(before, until=until)
        self._exchange((before,), (ending,))
        del self._in_force[ending.name]
        return ending

    def drop(self, rule: str) -> Deployed:
        """Drop a rule that ends. ``rearrange`` must follow."""
        gone = self.by_id.pop(rule)
        self._exchange((gone,), ())
        return gone

    def rearrange(self, published: Iterable[str]) -> None:
        """Work out anew what each rule needs: rules or the published types have changed."""
        self._alike = {wiring: rules for wiring, rules in self._alike.items() if rules}
        users: dict[str, list[Wiring]] = {}
        defining: dict[str, list[Wiring]] = {}
        for wiring in self._alike:
            defining.setdefault(wiring.defined, []).append(wiring)
            for name in wiring.used:
                users.setdefault(name, []).append(wiring)
        self._users, self._defining = users, defining
        uses, advertised = _graph(self._alike), frozenset(published)
        self._published = advertised.intersection(uses)
        together = dict.fromkeys(one.used for one in self._alike)
        self._needs = {used: _needs(used, uses, advertised) for used in together}
        groups: dict[str, dict[frozenset[str], None]] = {}
        for needs in dict.fromkeys(self._needs.values()):
            for type_name in needs:
                groups.setdefault(type_name, {})[needs] = None
        self._groups = {name: tuple(sets) for name, sets in groups.items()}
        self.need_clock = TIMER.name in self._groups

    def _take_turns(self) -> None:
        """Others are known than before, perhaps in another order (Law 6)."""
        before, self._turns = self._turns, {}
        rules = sorted(self.by_id, key=lambda one: self.by_id[one].serial)
        known = [before[one] for one in rules if one in before]
        is_order_kept = known == sorted(known) and before.keys().isdisjoint(rules[len(known) :])
        for one in rules:
            if is_order_kept and one in before:
                self._turns[one] = before[one]
            else:
                self._take_turn(one)

    def _take_turn(self, rule: str) -> None:
        self._last_turn += 1
        self._turns[rule] = self._last_turn

    def _forget_turns(self) -> None:
        """Of rules that are gone, once there are many of them."""
        if len(self._turns) > 2 * (1 + len(self.by_id)):
            self._turns = {one: turn for one, turn in self._turns.items() if one in self.by_id}

    def needs_of_new(
        self, rules: RuleSet, published: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """The types that rules of a set which is not yet in force will need, by name."""
        uses = _graph([*self._alike, *(rule.wiring for rule in rules.rules)])
        advertised = frozenset(published)
        return {rule.name: _needs(rule.wiring.used, uses, advertised) for rule in rules.rules}

    def needs_above(self, defined: Iterable[str]) -> frozenset[str]:
        """The types needed by rules that take events of these types, be it through other rules."""
        taken = self._made_of(defined)
        needs = (self._needs[one.used] for name in taken for one in self._users.get(name, ()))
        return frozenset[str]().union(*needs)

    def resting_on(self, type_name: str) -> Iterator[tuple[int, str]]:
        """The rules that take events of a type, be it through other rules, each with the time from
        which on these can matter to it: those that come between hold from some instant, too.
        """
        waiting = [(one.begin, one.rule.name) for one in self._of(self._users.get(type_name, ()))]
        heapify(waiting)
        seen: set[str] = set()
        while waiting:  # the earliest first, so each rule is looked at once
            begin, name = heappop(waiting)
            one = self.find(name)
            if one is None or name in seen:
                continue
            seen.add(name)
            yield begin, name
            for above in self._of(self._users.get(one.rule.defines.name, ())):
                if above.rule.name not in seen:
                    heappush(waiting, (max(begin, above.begin), above.rule.name))

    def _made_of(self, types: Iterable[str]) -> set[str]:
        """Find these types, and those of composite events that are made of them."""
        waiting = list(types)
        taken = set(waiting)
        while waiting:
            above = {one.defined for one in self._users.get(waiting.pop(), ())} - taken
            taken |= above
            waiting += above
        return taken


def install(engine: Intervals, rules: Iterable[Deployed], schemas: Mapping[str, EventType]) -> None:
    """Have an engine evaluate rules."""
    together: dict[tuple[int, int], list[Rule]] = {}
    for one in rules:
        together.setdefault((one.begin, one.version), []).append(one.rule)
    for (since, version), some in together.items():
        engine.deploy(RuleSet(tuple(some), schemas), since=since, version=version)


def _by_itself(rule: Rule) -> Rule:
    """The rule as its text alone says, which is all that other brokers are told. What it may see of
    a cycle that others draw it into (S12) is decided wherever rules are arranged.
    """
    return arrange([rule]).rules[0] if rule.is_strict else rule


def _graph(wirings: Iterable[Wiring]) -> dict[str, set[str]]:
    """The types that each defined type depends on."""
    uses: dict[str, set[str]] = {}
    for one in wirings:
        uses.setdefault(one.defined, set()).update(one.used)
    return uses


def _needs(
    used: Iterable[str], uses: Mapping[str, set[str]], published: frozenset[str]
) -> frozenset[str]:
    """The types within reach that are not merely defined by rules (S12)."""
    reached: set[str] = set()
    waiting = list(used)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(uses.get(name, ()))
    return frozenset(name for name in reached if name not in uses or name in published)


def _size(rules: Iterable[Rule]) -> int:
    return sum(len(one.text.encode()) for one in rules)
