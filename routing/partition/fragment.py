"""Fragments: the events that a node forwards for a rule that is evaluated above it (thesis 7.3.5).

A fragment is the thesis's derived rule, made exact. It decides nothing about composite events, only
which events its father must be sent; and since the columns of the father are shared, what it sends
must lead to the same composite events whatever further true events come beside it.

Its *members* are the numbered events of the rule whose types come from nowhere but this node's
subtree: of them alone the node knows all that there is. They form a tree (a forest) of *links*: how
far apart two of them may be, and which attributes must be equal. An event of a member has an
*assignment around it* when it has a partner along each link, each partner along its other links,
and so on. No match of the rule can do without one.

Its *roles* say what is forwarded (docs/reproduction/distribution.md):

- :class:`Plain`: all events that satisfy static conditions;
- :class:`Joined`: events of a member with an assignment around them (terminators, ``each``);
- :class:`Near`: events within a span of one that has an assignment around it (what is negated or
  aggregated, and what could be selected in place of an event of the match);
- :class:`Chosen`: the first or last few in the window of one that has an assignment around it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from routing.partition.masters import Pull
from routing.partition.predicates import Keys, Predicate
from routing.partition.windows import Span
from rules.pattern import Policy


@dataclass(frozen=True, slots=True)
class Member:
    """Events that may be number ``event`` of a match.

    ``absent`` lists negations over a window of its own: a predicate and how long before the event
    nothing may satisfy it (S6).
    """

    event: int
    predicate: Predicate
    absent: tuple[tuple[Predicate, int], ...] = ()


@dataclass(frozen=True, slots=True)
class MemberJoin:
    """Members ``first`` and ``second`` (places) are joined: ``span`` bounds t(second) - t(first).

    ``absent`` lists what may not lie between them, after the earlier and up to the later (S6). The
    first is the later then.
    """

    first: int
    second: int
    span: Span
    keys: Keys
    absent: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Plain:
    """Every event that satisfies the predicate passes."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Joined:
    """Every event of a member with an assignment around it passes."""

    member: int


@dataclass(frozen=True, slots=True)
class Near:
    """Events near one of a member with an assignment around it pass.

    ``span`` bounds t(member) - t(event); ``keys`` pair attributes of the event with the member's.
    ``guarded`` when negations may have ruled assignments out.
    """

    predicate: Predicate
    member: int
    span: Span
    keys: Keys
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class Chosen:
    """For each event of a member with an assignment around it, ``count`` events pass.

    They are the first or last of those up to ``duration`` microseconds before it that agree with
    it in ``keys`` (attributes of the event, then the member's), and whatever is simultaneous with
    the outermost of them: their order is for the evaluating node to say (E4).
    """

    predicate: Predicate
    member: int
    duration: int
    policy: Policy
    count: int
    keys: Keys


Role: TypeAlias = Plain | Joined | Near | Chosen


@dataclass(frozen=True, slots=True)
class Fragment:
    """The events that one node forwards for one rule. ``reach``: events further apart, in
    microseconds, have nothing to do with each other. ``pull``: how the rule is pulled, if it is
    (7.3.7).
    """

    members: tuple[Member, ...]
    links: tuple[MemberJoin, ...]
    roles: tuple[Role, ...]
    reach: int
    pull: Pull | None = None
    forwards: frozenset[str] = field(init=False, repr=False, compare=False)
    """The types of which events may pass."""
    kept: frozenset[str] = field(init=False, repr=False, compare=False)
    """The types whose events wait until they are asked for: slaves that pass plainly. What passes
    by other roles is near a master already, and is sent as it comes to be.
    """
    bound: tuple[Predicate, ...] = field(init=False, repr=False, compare=False)
    """The predicates whose events must be kept and looked at together, each once."""
    binds: frozenset[str] = field(init=False, repr=False, compare=False)
    """The types whose events must be looked at together."""
    types: frozenset[str] = field(init=False, repr=False, compare=False)
    """The types of which events are looked at."""

    def __post_init__(self) -> None:
        # Kept, since they are asked for of each rule whenever rules are divided.
        passing = frozenset(self.predicate_of(role).type.name for role in self.roles)
        object.__setattr__(self, "forwards", passing)
        slaves = frozenset[str]() if self.pull is None else self.pull.slaves
        kept = slaves.intersection(one.type.name for one in self.plain) if slaves else slaves
        object.__setattr__(self, "kept", kept)
        bound = tuple(dict.fromkeys(self._bound()))
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "binds", frozenset(one.type.name for one in bound))
        object.__setattr__(self, "types", passing | self.binds)

    def whole(self, pull: Pull | None, names: Container[str] | None = None) -> Fragment:
        """The fragment by which static conditions alone count, and being asked for; of the types of
        these names, or of all.
        """
        predicates = dict.fromkeys(self.predicate_of(role) for role in self.roles)
        chosen = [one for one in predicates if names is None or one.type.name in names]
        return Fragment((), (), tuple(map(Plain, chosen)), 0, pull)

    @property
    def plain(self) -> tuple[Predicate, ...]:
        """The predicates whose events pass at once."""
        return tuple(role.predicate for role in self.roles if isinstance(role, Plain))

    @property
    def asks(self) -> bool:
        """Whether the node is the one that asks those below, since it sees every master itself."""
        master = None if self.pull is None else self.pull.master.type
        return any(member.predicate.type == master for member in self.members)

    @property
    def pushed(self) -> frozenset[str]:
        """The types of which events may pass unasked."""
        return self.forwards - self.kept

    def predicate_of(self, role: Role) -> Predicate:
        """The predicate that an event must satisfy at least to pass by a role."""
        return self.members[role.member].predicate if isinstance(role, Joined) else role.predicate

    def _bound(self) -> Iterator[Predicate]:
        for role in self.roles:
            if isinstance(role, Near | Chosen):
                yield role.predicate
        for member in self.members:
            yield member.predicate
            yield from (predicate for predicate, _ in member.absent)
        for link in self.links:
            yield from link.absent
