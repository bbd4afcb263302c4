"""From a rule, and what a node sees, to the fragment that the node evaluates.

The argument is this. A match over all events has its members' events here, so each of them has an
assignment around it, and passes. Now take a match that the evaluating node would find in what it
was sent, but that is none over all events. Its events are true ones too, and its members' events
have come by here: so each of them has an assignment around it. But somewhere a clause decided
otherwise than over all events, and so a deciding event must be missing: one that would have been
selected, or that is negated, or aggregated. But each of these is near an event of the match, and
everything near such an event was sent. In detail (the letters are those of the decisions in
docs/reproduction/distribution.md):

- (a), (b), (d): an event that a single selection may choose is sent for every event that may be its
  selector, the first or last few if the choice depends on nothing but the selector, else all in the
  window; if the selector is not a member, all that may be in its window.
- (c): terminators and ``each`` events are sent when there is an assignment around them.
- (e): a negation rules out assignments only if the node sees all of its type and both its bounds
  directly linked, and not in a rule that consumes, nor where one event could be both negated and in
  the match. What it negates is sent as if it ruled out nothing. Nor does it where what it would
  rule out may come by all the same, since another rule asks for it (pulling): by then a node on the
  way may have forgotten what is negated.
- (f): types that are consumed are sent whenever their static conditions hold; so is everything of
  types that come from elsewhere too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from matcher.model import EventType
from routing.partition.fragment import (
    Chosen,
    Fragment,
    Joined,
    Member,
    MemberJoin,
    Near,
    Plain,
    Role,
)
from routing.partition.masters import Pull
from routing.partition.predicates import Equalities, Keys, Predicate, equality, subjects
from routing.partition.uses import SideUse, oriented, own_keys, side_uses
from routing.partition.windows import Distances, Span, reach
from rules.pattern import Constraint, Negated, Policy, Rule, Selected, uses_of
from rules.terms import CANDIDATE, TERMINATOR, Aggregate, Expression, Window, Within


@lru_cache(maxsize=8_192)
def fragment_of(
    rule: Rule,
    present: frozenset[str],
    sole: frozenset[str],
    pull: Pull | None = None,
    asked: frozenset[str] = frozenset(),
) -> Fragment:
    """The fragment of a rule for a node. It forwards events of each of the ``present`` types, those
    of the rule's that are advertised in the node's subtree; ``sole`` names those of them that are
    advertised nowhere else. The rule's ``strict`` flags are decided. With ``pull`` a
    node that does not see all masters looks at nothing but static conditions: what it is asked for
    is near a master already, and else it would wait for what is itself waiting to be asked for.
    ``asked``: the types whose events other rules ask for (e).
    """
    if pull is not None and pull.master.type.name not in sole:
        sole = frozenset()
    ways = rule.alternatives or (rule,)
    consumed = frozenset(_types(way)[number].name for way in ways for number in way.consuming)
    numbered = {type_.name for way in ways for type_ in _types(way)}
    guards = numbered.isdisjoint(asked)
    whole = _joined(
        [_Derivation(way, present, sole & present, consumed, guards).whole() for way in ways]
    )
    members, links = whole.members, whole.links
    passing = {predicate.type for predicate in whole.plain if not predicate.conditions}
    roles: set[Role] = {Plain(Predicate(type_)) for type_ in passing}
    roles |= {role for role in whole.roles if whole.predicate_of(role).type not in passing}
    ordered = tuple(
        sorted(roles, key=lambda role: (whole.predicate_of(role).type.name, repr(role)))
    )
    if all(isinstance(role, Plain) for role in ordered):
        members, links = (), ()
    return Fragment(members, links, ordered, whole.reach, pull)


def reach_of(rule: Rule) -> int:
    """How far apart in time may be what a rule sees at once, in microseconds; see Fragment."""
    nothing = frozenset[str]()
    ways = rule.alternatives or (rule,)
    return max(_Derivation(way, nothing, nothing, nothing).reach for way in ways)


def reaches_of(rule: Rule) -> Mapping[str, int]:
    """How far before a composite event of a rule may be what it depends on, in microseconds, by
    type: no further than the windows around its terminator in which events of the type count. Of
    events that come together any may be the terminator (X1).
    """
    if rule.together is not None:
        return dict.fromkeys([one.name for one in rule.used_types], reach_of(rule))
    found: dict[str, int] = {}
    for way in rule.alternatives or (rule,):
        distances = Distances.of(way)
        chosen = [one for clause in way.selected for one in (clause, *clause.rivals)]
        windows: list[tuple[str, Window]] = [(one.type.name, one.window) for one in chosen]
        windows += [(one.use.type.name, one.use.window) for one in side_uses(way)]
        found.setdefault(way.terminator.name, 0)
        for name, window in windows:
            far = distances.from_window(window, TERMINATOR).most
            found[name] = max(far, found.get(name, 0))
    return found


def _joined(parts: Sequence[Fragment]) -> Fragment:
    """The fragment of a rule that is several rules (X2): what passes for any of them passes.

    Assignments follow links, so each part keeps to its own members.
    """
    members: list[Member] = []
    links: list[MemberJoin] = []
    roles: list[Role] = []
    for part in parts:
        shift = len(members)
        members += part.members
        links += (
            replace(link, first=link.first + shift, second=link.second + shift)
            for link in part.links
        )
        roles += (
            role if isinstance(role, Plain) else replace(role, member=role.member + shift)
            for role in part.roles
        )
    reach = max(part.reach for part in parts)
    return Fragment(tuple(members), tuple(links), tuple(roles), reach)


def _types(rule: Rule) -> tuple[EventType, ...]:
    return (rule.terminator, *(clause.type for clause in rule.selected))


class _Derivation:
    """One rule at one node, or one way to choose the types of its events (X2).

    ``consumed`` names the types that are consumed in any way; ``guards``: whether negations may
    rule anything out (e).
    """

    def __init__(
        self,
        rule: Rule,
        present: frozenset[str],
        sole: frozenset[str],
        consumed: frozenset[str],
        guards: bool = True,
    ) -> None:
        self.rule = rule
        self.guards = guards
        self.present = present
        self.types = _types(rule)
        strict = {use.type.name for use in uses_of(rule) if use.strict}
        self.sole = sole - strict  # of a cycle's types, its rules' node is an advertiser
        self.consumed = consumed
        self.distances = Distances.of(rule)
        self.equalities = Equalities(rule)
        self.uses = tuple(side_uses(rule))
        windows: list[Window] = [clause.window for clause in rule.selected]
        windows += [one.use.window for one in self.uses]
        self.reach = reach(rule, self.distances, windows)
        self.numbers = [n for n, type_ in enumerate(self.types) if type_.name in self.sole]
        pairs = self._pairs()
        self.members = tuple(self._member(number) for number in self.numbers)
        self.links = tuple(self._link(first, second) for first, second in pairs)
        self.has_guards = any(member.absent for member in self.members) or any(
            link.absent for link in self.links
        )

    def whole(self) -> Fragment:
        """All that passes for this rule."""
        roles = tuple(map(self.simplified, self.roles()))
        return Fragment(self.members, self.links, roles, self.reach)

    # --- members and links -------------------------------------------------------------------

    def _member(self, number: int) -> Member:
        conditions = list(self._own_conditions(number))
        conditions += [
            clause.condition
            for clause in self.rule.clauses
            if isinstance(clause, Constraint) and subjects(clause.condition) == frozenset({number})
        ]
        absent = [
            (_negated(clause), clause.window.duration)
            for clause in self._guards()
            if isinstance(clause.window, Within) and clause.window.anchor == number
        ]
        predicate = Predicate.of(self.types[number], conditions, number)
        return Member(number, predicate, tuple(absent))

    def _pairs(self) -> list[tuple[int, int]]:
        """The members that are linked: a spanning tree, by Kruskal.

        Pairs that a negation lies between come first, then those with attributes to be equal, then
        those that are close together.
        """
        negated = {
            frozenset((clause.window.earlier, clause.window.later))
            for clause in self._guards()
            if not isinstance(clause.window, Within)
        }
        pairs = [(one, other) for one in self.numbers for other in self.numbers if one < other]
        pairs.sort(
            key=lambda pair: (
                frozenset(pair) not in negated,
                not self.equalities.keys(*pair),
                self.distances.between(*pair).width,
                pair,
            )
        )
        trees = {number: {number} for number in self.numbers}
        chosen = []
        for one, other in pairs:
            if trees[one] is not trees[other]:
                chosen.append((one, other))
                trees[one] |= trees[other]
                for number in trees[other]:
                    trees[number] = trees[one]
        return chosen

    def _link(self, one: int, other: int) -> MemberJoin:
        absent = [
            (clause.window.later, _negated(clause))
            for clause in self._guards()
            if not isinstance(clause.window, Within)
            and {clause.window.earlier, clause.window.later} == {one, other}
        ]
        first, second = (other, one) if absent and absent[0][0] == other else (one, other)
        return MemberJoin(
            self.numbers.index(first),
            self.numbers.index(second),
            self.distances.between(first, second),
            self.equalities.keys(first, second),
            tuple(predicate for _, predicate in absent),
        )

    def _guards(self) -> Iterator[Negated]:
        """The negations that may rule assignments out (e)."""
        if self.rule.consuming or not self.guards:
            return
        in_match = {type_.name for type_ in self.types}
        for clause in self.rule.clauses:
            if (
                isinstance(clause, Negated)
                and clause.type.name in self.sole
                and clause.type.name not in in_match
                and all(
                    subjects(item) in (frozenset(), frozenset({CANDIDATE}))
                    for item in clause.conditions
                )
            ):
                yield clause

    # --- roles -------------------------------------------------------------------------------

    def roles(self) -> Iterator[Role]:
        """The roles by which the node forwards events, use by use."""
        for number, type_ in enumerate(self.types):
            if type_.name in self.present:
                yield self._role(number, type_)
        for one in self.uses:
            if one.use.type.name in self.present:
                yield self._side_role(one)
        for clause in self.rule.selected:
            for rival in clause.rivals:
                if rival.type.name in self.present:
                    yield self._rival_role(rival)

    def simplified(self, role: Role) -> Role:
        """The role as a plain one if it lets everything pass.

        A member without links has an assignment around each of its events, and each is near itself.
        """
        if isinstance(role, Plain | Chosen) or self.links or self.members[role.member].absent:
            return role
        predicate = self.members[role.member].predicate
        if isinstance(role, Joined):
            return Plain(predicate)
        reflexive = all(own == other for own, other in role.keys)
        is_itself = role.predicate == predicate and role.span.least <= 0 <= role.span.most
        return Plain(predicate) if is_itself and reflexive else role

    def _role(self, number: int, type_: EventType) -> Role:
        predicate = Predicate.of(type_, self._own_conditions(number), number)
        if type_.name not in self.sole or type_.name in self.consumed:
            return Plain(predicate)
        if number == TERMINATOR:
            return Joined(self.numbers.index(number))
        clause = self.rule.selected[number - 1]
        if clause.policy is Policy.EACH:
            return Joined(self.numbers.index(number))
        anchor = clause.window.anchor
        keys = self._keys(clause.conditions, number, anchor)
        if anchor in self.numbers and self._decides(clause, anchor):
            before = sum(one == type_ for one in self.types[:number])  # excluded, at the most (S3)
            return Chosen(
                predicate,
                self.numbers.index(anchor),
                clause.window.duration,
                clause.policy,
                clause.rank + before,
                keys,
            )
        span, member, keys = self._nearest(clause.window, clause.conditions, number, None)
        return Near(predicate, member, span, keys)

    def _decides(self, clause: Selected, anchor: int) -> bool:
        """Whether the choice depends on nothing but the selector's own attributes."""
        for condition in clause.conditions:
            if subjects(condition) in (frozenset(), frozenset({clause.event})):
                continue
            pair = equality(condition)
            if pair is None:
                return False
            _, place = oriented(pair, clause.event)
            if self.equalities.attribute(place, anchor) is None:
                return False
        return True

    def _rival_role(self, rival: Selected) -> Role:
        """An event of another type that may be chosen in place of one of the match (X2)."""
        predicate = Predicate.of(rival.type, rival.conditions, rival.event)
        name = rival.type.name
        if name not in self.sole or name in self.consumed or not self.numbers:
            return Plain(predicate)
        span, member, keys = self._nearest(rival.window, rival.conditions, rival.event, None)
        return Near(predicate, member, span, keys)

    def _side_role(self, one: SideUse) -> Role:
        use = one.use
        predicate = _negated(use)
        name = use.type.name
        if name not in self.sole or name in self.consumed or not self.numbers:
            return Plain(predicate)
        span, member, keys = self._nearest(use.window, use.conditions, CANDIDATE, one.home)
        guarded = not (isinstance(use, Negated) and self.has_guards)
        return Near(predicate, member, span, keys, guarded)

    def _nearest(
        self,
        window: Window,
        conditions: tuple[Expression, ...],
        event: int,
        home: int | None,
    ) -> tuple[Span, int, Keys]:
        """The member that says most about events in a window: it has attributes in common with
        them, or is close to them. Gives the span of t(member) - t(event), its place, and keys.
        """
        found = []
        for place, number in enumerate(self.numbers):
            span = self.distances.from_window(window, number)
            keys = self._keys(conditions, event, number, home)
            found.append((not keys, span.width, place, span, keys))
        _, _, place, span, keys = min(found, key=lambda one: one[:3])
        return span, place, keys

    def _keys(
        self, conditions: tuple[Expression, ...], event: int, number: int, home: int | None = None
    ) -> Keys:
        return own_keys(self.equalities, conditions, event, number, home)

    def _own_conditions(self, number: int) -> tuple[Expression, ...]:
        if number == TERMINATOR:
            return self.rule.conditions
        return self.rule.selected[number - 1].conditions


def _negated(use: Negated | Aggregate) -> Predicate:
    """The events that a negation or an aggregate may range over."""
    return Predicate.of(use.type, use.conditions, CANDIDATE)
