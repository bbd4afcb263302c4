"""Events of a rule that wait until they are asked for, and how far around (thesis 7.3.7).

One numbered event of a rule is its *master*: its type is sent as it comes, and the other types, the
*slaves*, only in the windows around events of the master. No match is without a master, so:

Law 1: whatever a match with a master at time t may be made of, and whatever may decide otherwise
about it (what would be selected, negated or aggregated instead), lies in the windows around t. They
are those of all uses of a type, whole, and follow from the rule's time constraints like the windows
of fragments. So what is evaluated over the masters that have come and what was asked for around
them has the same matches as over everything: none can be without a master that has come, and what
decides about it was asked for with that master.

Law 2: where what a rule looks at of a type must have an attribute equal to one of the master, by
conditions that bear on what is looked at (uses), events with other values decide nothing. So those
with the master's value are enough; but a type is asked for whole if any use of it is.

Law 3: types that only serve negations and aggregates are never masters: a rule that waits for
nothing to happen would never be woken. Neither is what rules define, whose marks depend on those
of the types that would wait for it, nor Timer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from matcher.model import EventType
from routing.partition.predicates import Equalities, Keys, Predicate, subjects
from routing.partition.uses import own_keys, side_uses
from routing.partition.windows import Distances, Span, reach
from rules.pattern import TIMER, Constraint, Policy, Rule, uses_of
from rules.terms import CANDIDATE, TERMINATOR

PULLS = 4
"""Rules whose pulls are worked out together."""


@dataclass(frozen=True, slots=True)
class Around:
    """Of a slave type: the microseconds before and after a master in which it is asked for.

    ``keys``: its attributes that must be equal to a value of the master's (Law 2), each with that
    value's place in Pull.values.
    """

    type: str
    before: int
    after: int
    keys: Keys = ()


@dataclass(frozen=True, slots=True)
class Pull:
    """The master of a rule, and the windows of all of the rule's other types around it.

    ``number`` is the master's among the rule's events; ``reach``: as in Fragment. ``values``: the
    attributes of the master whose values are said when something is asked for.
    """

    number: int
    master: Predicate
    around: tuple[Around, ...]
    reach: int
    values: tuple[int, ...] = ()

    @property
    def slaves(self) -> frozenset[str]:
        """The types that are asked for."""
        return frozenset(one.type for one in self.around)

    @property
    def slack(self) -> int:
        """Masters no further apart than that, in microseconds, have windows that meet."""
        return min(one.before + one.after for one in self.around)

    def without(self, names: Container[str]) -> Pull | None:
        """The same, but these types are sent as they come; None if nothing waits then."""
        around = tuple(one for one in self.around if one.type not in names)
        return replace(self, around=around) if around else None

    def after(self, names: Container[str]) -> int:
        """How far beyond a master events of some types are asked for, in microseconds."""
        return max(one.after for one in self.around if one.type in names)


def masters_of(rule: Rule, defined: Container[str]) -> tuple[int, ...]:
    """The numbered events that may be a rule's master. ``defined``: the types that rules define.

    In a rule that is several (X2) they are those of one type in all of them.
    """
    found = []
    for number in range(1 + len(rule.selected)):
        types = {_type_of(way, number) for way in rule.alternatives or (rule,)}
        (name, *others) = (type_.name for type_ in types)
        if not others and name not in defined and name != TIMER.name:
            found.append(number)
    return tuple(found)


@lru_cache(maxsize=8_192)
def pull_of(rule: Rule, master: int) -> Pull | None:
    """How a rule is pulled by one of its ``masters_of``; None when it has no other types."""
    ways = rule.alternatives or (rule,)
    predicates = dict.fromkeys(_predicate_of(way, master) for way in ways)
    own = _type_of(rule, master)
    predicate = next(iter(predicates)) if len(predicates) == 1 else Predicate(own)
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    keys: dict[str, set[tuple[int, int]]] = {}
    for way in ways:
        for name, span, equal in _uses(way, master):
            before[name] = max(before.get(name, 0), span.most)
            after[name] = max(after.get(name, 0), -span.least)
            keys[name] = keys.get(name, set(equal)) & set(equal)
    slaves = sorted(before.keys() - {own.name, TIMER.name})
    values = tuple(sorted({its for name in slaves for _, its in keys[name]}))
    around = tuple(
        Around(
            name,
            before[name],
            after[name],
            tuple(sorted((one, values.index(its)) for one, its in keys[name])),
        )
        for name in slaves
    )
    far = max(reach(way, Distances.of(way), [use.window for use in uses_of(way)]) for way in ways)
    return Pull(master, predicate, around, far, values) if around else None


def work_out_pulls(rules: Iterable[Rule]) -> Iterator[None]:
    """Have ``pull_of`` remember how rules are pulled by any of their masters; yields behind some,
    which take about as long as one takes to be loaded.
    """
    for count, rule in enumerate(rules, 1):
        for master in masters_of(rule, ()):
            pull_of(rule, master)
        if count % PULLS == 0:
            yield


def _uses(rule: Rule, master: int) -> Iterator[tuple[str, Span, Keys]]:
    """For each use of a type, the bounds of t(master) - t, and what must be equal (Law 2)."""
    distances, equalities = Distances.of(rule), Equalities(rule)
    yield rule.terminator.name, distances.between(0, master), equalities.keys(0, master)
    for clause in rule.selected:
        for one in (clause, *clause.rivals):
            if one.policy is Policy.EACH:
                # One that goes with no match takes no other's place: all that a match has counts.
                keys = equalities.keys(one.event, master)
            else:
                keys = own_keys(equalities, one.conditions, one.event, master)
            yield one.type.name, distances.between(one.event, master), keys
            if rule.together is None:  # else its window means nothing (X1)
                yield one.type.name, distances.from_window(one.window, master), keys
    for side in side_uses(rule):
        use = side.use
        keys = own_keys(equalities, use.conditions, CANDIDATE, master, side.home)
        yield use.type.name, distances.from_window(use.window, master), keys


def _type_of(rule: Rule, number: int) -> EventType:
    return rule.terminator if number == TERMINATOR else rule.selected[number - 1].type


def _predicate_of(rule: Rule, number: int) -> Predicate:
    """The predicate that every event with that number in a match satisfies by itself."""
    own = rule.conditions if number == TERMINATOR else rule.selected[number - 1].conditions
    conditions = [
        *own,
        *(
            clause.condition
            for clause in rule.clauses
            if isinstance(clause, Constraint) and subjects(clause.condition) == frozenset({number})
        ),
    ]
    return Predicate.of(_type_of(rule, number), conditions, number)
