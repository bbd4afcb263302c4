"""Plans: what the root makes of a pause (protocol.md section 9).

Law 1: the root does what was asked, and says in its plan who is in the tree and what is published
where; every broker works out the same division from that and from what is known (agreed).

Law 2: when the tree is another than that of the last plan, or a rule has to be evaluated elsewhere,
or for sinks that had it from trees of their own, rules begin anew. What was under way may be lost;
but all events that may still matter are kept where they entered, are sent again (for rules alone,
where it is but a rule that moves: everybody else has what he wanted before the pause is over), and
what sinks have not yet got is found once more (routing.network.recovery.dues).

Law 3: what a broker's sources publish, or have published, stays its own: a source that leaves
moves no rule. One that joins may; then rules begin anew, and nothing is lost.

Law 4: types that are published at brokers out of reach stay so: rules that need them are evaluated
at the root and wait, until the brokers are back or, ``forget_s`` later, forgotten: then rules go on
without what was published there, and a type that nobody else publishes is given up. Types that
were published at a broker that is back and has forgotten them, by sources that had closed, are
given up: nobody else says that nothing more of them comes. Where some may have been open, since
another broker was the root while they were, the broker that is back publishes the type still, and
says what comes of it (stations.publishers, Law 2).

Law 5: rules go on without sources that have closed. How far they have come without a type is known
where they are evaluated, which may be out of reach by the time that a source brings it again; no
further, in any case, than what the others that they need have promised. So that is its mark.

Law 6: a rule that ends is dropped with the first plan by which everybody has what it found before
its end. fire ends at 26 s: the dues of the pause say 26 s or more, and no rule above it may have to
be evaluated once more from where it would need fire. While somebody is out of reach, whose dues
nobody knows, no rule is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from matcher.model import TIME_MIN
from routing.messages import Known, Plan
from routing.network.agreement.rounds import Absent, Round, raise_all
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.asking import Requests
from routing.network.brokers.ground import Ground
from routing.network.brokers.knowing import Knowing
from routing.network.brokers.measuring import Measuring
from routing.network.brokers.trees import SinkTrees
from routing.network.brokers.visiting import Visiting
from routing.network.recovery.dues import Times, concluded, over
from routing.network.tables.router import CLOSED
from routing.network.ways.places import Division
from routing.serving.status import time_or_none

INPUTS_CLOSED = "inputs closed"
"""Said in the root's log of brokers that were out of reach for too long (Law 4)."""
Homes: TypeAlias = dict[str, set[str]]
"""By broker, what is published there."""


class Planning:
    """Makes plans, at the root."""

    def __init__(
        self,
        ground: Ground,
        agreed: Agreed,
        visiting: Visiting,
        knowing: Knowing,
        requests: Requests,
        trees: SinkTrees | None,
        measuring: Measuring | None,
    ) -> None:
        self._ground = ground
        self._detection = ground.detection
        self._agreed = agreed
        self._visiting = visiting
        self._knowing = knowing
        self._requests = requests
        self._trees = trees
        self._measuring = measuring

    def plan(self, found: Round) -> Plan:
        """Do what was asked, while the whole tree pauses, and tell what is known by that; gives
        the plan that follows.
        """
        agreed, before = self._agreed, self._agreed.division()
        known = {facts.id for facts in agreed.known.rules}
        homes: Homes = {name: set(types) for name, _, types in found.nodes}
        remembered = {state.origin for state in self._ground.overlay.states}
        self._visiting.forget(remembered | homes.keys())
        elsewhere = self._known_elsewhere(found, homes)
        absent = tuple(
            (name, tuple(sorted(types)))
            for name, types in sorted(elsewhere.items())
            if name in remembered
        )
        forgotten = {name: types for name, types in elsewhere.items() if name not in remembered}
        if self._trees is not None:
            self._trees.hold_dues(found, absent)
        self._learn(found, homes)
        if found.pause.introduce and not agreed.by_arrival:
            self._raise_closed(found, homes, absent)
        for rule, until in sorted(found.ended.items()):
            self._detection.end(rule, until)
        due = self._due_in(found)
        self._go_on_without(forgotten, homes, absent, due)
        self._drop_over(due, absent)
        self._detection.out_of_reach = dict(absent)
        self._do_what_was_asked(homes)
        self._drop_over(due, absent)
        due = {name: time for name, time in due.items() if self._ground.deployments.find(name)}
        reopened, closed = self._closed_in(found, homes)
        self._knowing.conclude({**homes, **dict(absent)}, closed.union(forgotten))
        nodes = tuple(
            (name, father, tuple(sorted(homes[name]))) for name, father, _ in sorted(found.nodes)
        )
        tree = found.pause.root, found.pause.epoch, found.pause.number
        rates, candidate = agreed.choice.rates, agreed.choice.candidate
        plan = Plan(
            *tree,
            nodes,
            absent,
            rates=rates,
            candidate=candidate,
            front=found.front,
            reopened=tuple((name, self._begin_of(homes[name])) for name in reopened),
        )
        dues = tuple(sorted(due.items()))
        after = agreed.divided(plan)
        rerouted = () if self._trees is None else self._trees.rerouted
        is_moved = has_moved(known, before, after, rerouted)
        if found.pause.introduce or found.is_anew or is_moved:
            plan = replace(plan, anew=True, due=dues)
        if self._trees is not None:
            plan = self._trees.plan(plan, found, dues)
        return plan

    def _learn(self, found: Round, homes: Homes) -> None:
        """What others know, who publishes there, and how far all are; what may still be published
        somewhere is added to ``homes``.
        """
        detection, knowing = self._detection, self._knowing
        raise_all(detection.fronts, found.fronts.items())
        raise_all(detection.type_marks, found.marks.items())
        lent = knowing.take_lent()
        if not found.pause.introduce:  # a broker may be back before anybody has missed it
            self._bring_back(_forgotten(homes, (self._agreed.known,)), homes)
        else:
            others = (self._agreed.known, *found.known)
            forgotten = _forgotten(homes, others)
            knowing.learn(found.known)
            self._bring_back(forgotten, homes)
            self._owe(found, others)
            present = {(name, home) for name, home, _ in found.sources}
            self._visiting.part_with(present, {name for name, _, _ in found.nodes})
            for name, home, types in filter(_is_named, found.sources):
                schemas = self._ground.advertisements.schemas
                known = tuple(schemas[one] for one in types if one in schemas)
                self._visiting.introduce(name, home, known)
        raise_all(detection.rule_marks, found.rules.items())
        knowing.lend(detection.held_types)
        self._ground.advertisements.exchange(lent, ())

    def _bring_back(self, forgotten: Iterable[tuple[str, str]], homes: Homes) -> None:
        """Brokers have forgotten that they published these types (Law 4)."""
        visiting, needed = self._visiting, {*self._ground.deployments.needed}
        still_open, hopeless = visiting.publishing, set[str]()
        for name, one in forgotten:
            if name in visiting.heard:
                if (name, one) not in still_open:
                    hopeless.add(one)
            elif one in needed:
                homes[name].add(one)
        self._knowing.wait_no_longer(hopeless)

    def _raise_closed(self, found: Round, homes: Homes, absent: Absent) -> None:
        """Law 5. Where brokers are out of reach, or have forgotten what they published (Law 4),
        sources may be open that have not said so.
        """
        marks, fronts = self._detection.type_marks, self._detection.fronts
        said = {one for _, _, types in found.nodes for one in types}
        may_come = {one for types in homes.values() for one in types} - said
        may_come.update(one for _, types in absent for one in types)
        may_come.update(one for _, _, types in found.sources for one in types)
        for name in sorted(said - may_come):
            for group in self._ground.deployments.groups(name):
                bounds = [marks.get(one, TIME_MIN) for one in group if one in may_come]
                come = [fronts[one] + 1 for one in group if one in fronts]
                bound = min(bounds) if bounds else max(come, default=TIME_MIN)
                marks[name] = max(bound, marks.get(name, TIME_MIN))

    def _known_elsewhere(self, found: Round, homes: Container[str]) -> Homes:
        """Who belongs to the network as far as anybody here knows, and is not in the tree (Law 4);
        this broker may have been away longer than others, or have forgotten all.
        """
        elsewhere: Homes = {}
        for known in (self._agreed.known, *found.known):
            for name, types in known.homes:
                if name not in homes:
                    elsewhere.setdefault(name, set()).update(types)
        return elsewhere

    def _go_on_without(
        self, forgotten: Homes, homes: Homes, absent: Absent, due: Mapping[str, int]
    ) -> None:
        """Rules wait no longer for brokers that are forgotten (Law 4), and it is said from when on
        they may lack what was published there.
        """
        gone = {one for types in forgotten.values() for one in types}
        others = {one for types in homes.values() for one in types}
        others.update(one for _, types in absent for one in types)
        self._knowing.wait_no_longer(gone - others)
        if forgotten and not self._agreed.by_arrival:
            rules = self._ground.deployments.rules
            needs = self._ground.deployments.needs
            since = [
                due.get(one.rule.name, TIME_MIN)
                for one in rules
                if not gone.isdisjoint(needs(one.rule.name))
            ]
            self._ground.desk.log(
                "warning",
                INPUTS_CLOSED,
                why="unreachable",
                brokers=sorted(forgotten),
                types=sorted(gone),
                since=time_or_none(min(since, default=TIME_MIN)),
            )

    def _closed_in(self, found: Round, homes: Homes) -> tuple[Sequence[str], set[str]]:
        """The brokers in the tree whose inputs were closed, and those whose inputs still are. Where
        parts have closed one another it is the root's that goes on; one that was away itself, and
        has closed nobody, is told by the others.
        """
        own = {*self._agreed.known.closed}
        others = {name for known in found.known for name in known.closed}
        back = own.intersection(homes) or others.intersection(homes)
        return sorted(back), (own | others).difference(homes)

    def _begin_of(self, types: Iterable[str]) -> Times:
        """Where inputs of these types begin that are open again; by arrival, anywhere."""
        marks = {} if self._agreed.by_arrival else self._detection.type_marks
        given = ((name, marks.get(name, TIME_MIN)) for name in sorted(types))
        return tuple((name, mark) for name, mark in given if TIME_MIN < mark < CLOSED)

    def _drop_over(self, due: Mapping[str, int], absent: Absent) -> None:
        """Law 6: before anything is done that was asked, and where that has ended some."""
        if not absent:
            self._detection.drop(over(self._ground.deployments.rules, due))

    def _do_what_was_asked(self, homes: Homes) -> None:
        if self._trees is not None:
            self._trees.note_publishing()
        self._requests.do_due(homes)
        if self._trees is not None:
            self._trees.note_returned()
        if self._measuring is not None:
            self._measuring.begin_plan()

    def _due_in(self, found: Round) -> dict[str, int]:
        """From when on rules have to give their composite events once more."""
        due, said = {}, concluded(found.due)
        for one in self._ground.deployments.rules:
            name = one.rule.name
            tables = said, self._detection.committed
            bounds = [table[name] for table in tables if name in table]
            if bounds:
                due[name] = max(bounds)
        return due

    def _owe(self, found: Round, knew: Iterable[Known]) -> None:
        """Who was apart when a rule came has nothing of it, and no due to tell. Those in a plan are
        among the homes that they know; who is not, and has no sinks yet, is owed nothing, and who
        tells of others out of reach alone knows the rest as the root does.
        """
        present = {name for name, _, _ in found.nodes}
        for known in knew:
            if any(name in present for name, _ in known.homes):
                had = {facts.id for facts in known.rules}
                rules = self._ground.deployments.rules
                new = [one for one in rules if one.rule.name not in had]
                found.need(tuple((one.rule.name, one.begin) for one in new))


def _is_named(source: tuple[str, str, tuple[str, ...]]) -> bool:
    """Whether it is a source, not clients that may come back (stations.publishers, Law 3)."""
    name, _, _ = source
    return bool(name)


def _forgotten(homes: Homes, others: Iterable[Known]) -> set[tuple[str, str]]:
    """By what others know, brokers that are here and types that they have published, while nobody
    here says anything of these any more.
    """
    published = {one for types in homes.values() for one in types}
    return {
        (name, one)
        for known in others
        for name, types in known.homes
        if name in homes
        for one in types
        if one not in published
    }


def has_moved(
    known: Collection[str],
    before: Division | None,
    after: Division,
    rerouted: Collection[str] = (),
) -> bool:
    """Whether a rule that was known before is evaluated elsewhere; or has been so for sinks: those
    of the types that are ``rerouted`` had them from trees of their own, wherever else they were
    evaluated for other rules.
    """
    if before is None:
        return False
    old, new = before.partition.places, after.partition.places
    for one in after.rules:
        name = one.rule.name
        is_elsewhere = old.get(name) != new[name] or one.rule.defines.name in rerouted
        if is_elsewhere and name in known:
            return True
    return False
