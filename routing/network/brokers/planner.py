"""Plans: what the root makes of a pause (brokers.md section 5).

Law 1: the root does what was asked, and says in its plan who is in the tree and what is published
where; every broker works out the same division from that and from what is known (agreed). The plan
says: b1, and b2 with Temp and b3 with Smoke below it; all find fire at b1.

Law 2: when the tree is another than that of the last plan, or a rule has to be evaluated elsewhere,
or for sinks that had it from trees of their own, rules begin anew. What was under way may be lost;
but all events that may still matter are kept where they entered, are sent again (for rules alone,
where it is but a rule that moves: everybody else has what he wanted before the pause is over), and
what sinks have not yet got is found once more (routing.network.recovery.resume_points). b2 has
gone, fire moves to b1: b3 sends its Temps again from where fire is due.

Law 3: what a broker's sources publish, or have published, stays its own: a source that leaves moves
no rule. One that joins may; then rules begin anew, and nothing is lost. The last source of Temp at
b3 closes: fire stays at b2, and b3 still counts for Temp.

Law 4: an input, a type at a broker, is open while somebody publishes it there or may come back to
do so: while its broker is out of reach, or is back without its memory. Rules wait for it, at the
root or at its broker. When nobody has spoken for it for ``forget_s`` the root closes it, and rules
go on without. What is open again later begins beyond all marks, and what is earlier is late. A
closed type that no staying broker publishes is said to be published by the root, or by another that
stays. b3 with T is gone at 40 s; at 340 s a rule over T goes on; at 900 s b3 brings what is late.

Law 5: rules go on without sources that have closed. How far they have come without a type is known
where they are evaluated, which may be out of reach by the time that a source brings it again; no
further, in any case, than what the others that they need have promised. So that is its mark. Temp
has closed, Smoke is promised up to 40 s: a source of Temp begins at 40 s.

Law 6: a rule that ends is dropped with the first plan by which everybody has what it found before
its end. fire ends at 26 s: the resume points of the pause say 26 s or more, and no rule above it
may have to be evaluated once more from where it would need fire. While somebody is out of reach,
whose resume points nobody knows, no rule is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from matcher.model import TIME_MIN
from routing.messages import ENTRIES_MAX, Plan, Report
from routing.network.agreement.catalog import rules_of
from routing.network.agreement.rounds import Absent, raise_all
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.catalog_sync import CatalogSync
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.inputs import Inputs
from routing.network.brokers.measurements import Measurements
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.requests import Requests
from routing.network.brokers.trees import SinkTrees
from routing.network.evaluation.divided import DividedDetection
from routing.network.recovery.resume_points import Times, least
from routing.network.ways.division import divide_ahead
from routing.partition.places import Division
from routing.serving.slices import rest_of_slice
from routing.serving.status import time_or_none
from routing.watermarks.ends import CLOSED

INPUTS_CLOSED = "inputs closed"
"""Said in the root's log of brokers that were out of reach for too long (Law 4)."""
Homes: TypeAlias = dict[str, set[str]]
"""By broker, what is published there."""


@dataclass(eq=False)
class Planner:
    """Makes plans, at the root."""

    _context: BrokerContext
    _agreed: Agreed
    _inputs: Inputs
    _registry: SourceRegistry
    _catalog_sync: CatalogSync
    _requests: Requests
    _trees: SinkTrees
    _measurements: Measurements | None
    _detection: DividedDetection = field(init=False)

    def __post_init__(self) -> None:
        self._detection = self._context.detection

    def plan(self, found: Report, *, introduce: bool, anew: bool) -> Generator[None, None, Plan]:
        """Do what was asked while the whole tree pauses, and tell all of it; gives the plan, and
        yields before rules are divided. ``introduce`` as in Pause; ``anew``: rules are to begin
        anew, whatever else there is.
        """
        agreed, before = self._agreed, self._agreed.division()
        known = {one.rule.name for one in rules_of(agreed.catalog)}
        homes: Homes = {name: set(types) for name, _, types in found.nodes}
        waited_for = self._waited_for(found, homes)
        self._learn(found, homes, waited_for, introduce=introduce)
        if introduce:
            found = self._with_owed(found)
        overdue = self._inputs.overdue(waited_for)
        away = {name: types for name, types in waited_for.items() if name not in {*homes, *overdue}}
        if introduce and not agreed.by_arrival:
            self._raise_closed(found, homes, waited_for)
        ended = self._end_overrun(found.ended)
        resume_from = self._resume_points_in(found, away)
        self._close(overdue, waited_for, homes, resume_from)
        self._detection.resume_points = None if away else resume_from
        self._detection.changes.drop_over()
        self._detection.out_of_reach = away
        self._detection.logs, self._detection.homes = dict(found.logs), homes
        self._do_what_was_asked(homes)
        self._detection.changes.drop_over()  # rules below those that have ended with it
        self._detection.resume_points = None
        for name in resume_from.keys() - self._context.deployments.by_id.keys():
            del resume_from[name]
        resume_from.update(past := self._detection.changes.take_past())
        reopened, closed = self._closed_in(found, homes, overdue)
        left = self._inputs.leaving  # one that is back may have a source by now
        staying = {name: types for name, types in homes.items() if types or name not in left}
        self._catalog_sync.conclude({**staying, **away}, closed)
        plan = self._plan_of(found, homes, self._absent(away, waited_for, homes), reopened, ended)
        self._detection.is_at_work = False
        yield from rest_of_slice(len(agreed.catalog.rules))
        yield from divide_ahead(agreed.strategy, agreed.catalog)
        after = agreed.divided(plan)
        is_moved = plan.moved or has_moved(known, before, after, self._trees.rerouted)
        if introduce or anew or is_moved or past:
            plan = replace(plan, anew=True, resume_from=tuple(sorted(resume_from.items())))
        return self._trees.plan(plan, found, resume_from, introduce=introduce)

    def _end_overrun(self, overrun: Times) -> tuple[tuple[str, str, int], ...]:
        """Take rules out of force that have ended by themselves; gives them as in Plan."""
        changes, ended = self._detection.changes, []
        for rule, until in overrun:
            one = changes.end(rule, TIME_MIN if self._agreed.by_arrival else until)
            if one is not None:
                ended.append((rule, one.rule.defines.name, until))
        return tuple(ended)

    def _plan_of(
        self,
        found: Report,
        homes: Homes,
        absent: Absent,
        reopened: Iterable[str],
        ended: tuple[tuple[str, str, int], ...],
    ) -> Plan:
        """The plan by which rules go on as they are, on the single tree."""
        choice, nodes = self._agreed.choice, sorted(found.nodes)
        return Plan(
            found.root,
            found.epoch,
            found.number,
            tuple((name, father, tuple(sorted(homes[name]))) for name, father, _ in nodes),
            absent,
            rates=choice.rates,
            candidate=choice.candidate,
            front=found.front,
            reopened=tuple((name, self._begin_of(homes[name])) for name in reopened),
            ended=ended,
            moved=self._detection.take_let_back(),
        )

    def _learn(self, found: Report, homes: Homes, waited_for: Homes, *, introduce: bool) -> None:
        """Learn what others know, who publishes there, and how far all are; what may still be
        published somewhere is added to ``homes``.
        """
        detection, catalog_sync = self._detection, self._catalog_sync
        raise_all(detection.fronts, found.fronts)
        raise_all(detection.type_marks, found.marks)
        borrowed = catalog_sync.take_borrowed()
        self._registry.note(found)
        forgotten = {name: types for name, types in waited_for.items() if name in homes}
        self._registry.lose(forgotten)
        if introduce:
            catalog_sync.learn(found.known)
            self._registry.learn(found.stays)
            self._registry.part_with_closed(stay.name for stay in found.stays)
            for name, home, types in found.sources:
                schemas = self._context.advertisements.schemas
                known = tuple(schemas[one] for one in types if one in schemas)
                self._registry.introduce(name, home, known)
        for name, gone in forgotten.items():
            homes[name] |= gone
        raise_all(detection.rule_marks, found.rules)
        catalog_sync.borrow(detection.held_types)
        self._context.advertisements.exchange(borrowed, ())

    def _raise_closed(self, found: Report, homes: Homes, waited_for: Homes) -> None:
        """Law 5. Inputs may be open that nobody speaks for (Law 4)."""
        marks, fronts = self._detection.type_marks, self._detection.fronts
        said = {one for _, _, types in found.nodes for one in types}
        may_come = {one for types in homes.values() for one in types} - said
        may_come.update(one for types in waited_for.values() for one in types)
        may_come.update(one for _, _, types in found.sources for one in types)
        for name in sorted(said - may_come):
            for group in self._context.deployments.groups(name):
                bounds = [marks.get(one, TIME_MIN) for one in group if one in may_come]
                come = [fronts[one] + 1 for one in group if one in fronts]
                bound = min(bounds) if bounds else max(come, default=TIME_MIN)
                marks[name] = max(bound, marks.get(name, TIME_MIN))

    def _waited_for(self, found: Report, homes: Homes) -> Homes:
        """The inputs that may be open with nobody there (Law 4): of all brokers that anybody here
        knows and that are not in the tree, and those that brokers of the tree have forgotten.
        """
        waited_for: Homes = {}
        self._inputs.leaving.difference_update(name for name, types in homes.items() if types)
        knew = (self._agreed.catalog, *found.known)
        closed = {name for known in knew for name in known.closed}
        for known in knew:
            for name, types in known.homes:
                if name in self._inputs.leaving:
                    continue
                lost = set(types) - homes.get(name, set())
                if lost if name in homes else name not in closed:
                    waited_for.setdefault(name, set()).update(lost)
        for name, types in self._agreed.absent:
            if name in homes and name not in self._agreed.out_of_reach:
                waited_for.setdefault(name, set()).update(types)
        return waited_for

    def _absent(self, away: Homes, waited_for: Homes, homes: Homes) -> Absent:
        """The plan's word of these: somebody may be back by now, or may have closed."""
        absent = dict(away)
        for name in waited_for.keys() & homes.keys():
            if types := self._registry.may_be_lost(name, waited_for[name]):
                absent[name] = types
        self._inputs.keep(absent)
        return tuple((name, tuple(sorted(types))) for name, types in sorted(absent.items()))

    def _close(
        self,
        overdue: Collection[str],
        waited_for: Homes,
        homes: Homes,
        resume_from: Mapping[str, int],
    ) -> None:
        """Law 4, of brokers, and types waited for in vain; the log tells what rules may lack."""
        closed = self._inputs.take_unpublished()
        for known in filter(None, map(self._context.advertisements.find, closed)):
            known.given_up = True
        self._tell_closed("never", (), closed, resume_from)
        for why, names in (
            ("unreachable", [name for name in overdue if name not in homes]),
            ("lost", [name for name in overdue if name in homes]),
        ):
            types = {one for name in names for one in waited_for.pop(name)}
            for name in names:
                self._registry.close_all(name, lost_alone=name in homes)
            self._tell_closed(why, names, types, resume_from)
            closed |= types
        left, name = self._inputs.leaving, self._context.name
        closed.update(
            one for had, types in self._agreed.catalog.homes if had in left for one in types
        )
        heir = name if name not in left else min(homes.keys() - left, default=name)
        homes[heir] |= closed.difference(*homes.values(), *waited_for.values())

    def _tell_closed(
        self,
        why: str,
        brokers: Sequence[str],
        types: Collection[str],
        resume_from: Mapping[str, int],
    ) -> None:
        if self._agreed.by_arrival or not (brokers or types):
            return
        deployments, needs = self._context.deployments, self._context.deployments.needs
        over = (one for one in deployments.rules if not needs(one.rule.name).isdisjoint(types))
        since = [resume_from.get(one.rule.name, TIME_MIN) for one in over]
        self._context.outlet.log(
            "warning",
            INPUTS_CLOSED,
            why=why,
            brokers=sorted(brokers),
            types=sorted(types),
            since=time_or_none(min(since, default=TIME_MIN)),
        )

    def _closed_in(
        self, found: Report, homes: Homes, overdue: Collection[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """The brokers in the tree whose inputs were closed, and those whose inputs still are. Where
        parts have closed one another it is the root's that goes on; one that was away itself, and
        has closed nobody, is told by the others.
        """
        own = {*self._agreed.catalog.closed}
        others = {name for known in found.known for name in known.closed}
        back = own.intersection(homes) or others.intersection(homes)
        closed = own.union(others, overdue).difference(homes)
        return sorted(back), sorted(closed)[:ENTRIES_MAX]

    def _begin_of(self, types: Iterable[str]) -> Times:
        """Where inputs of these types begin that are open again; by arrival, anywhere."""
        marks = {} if self._agreed.by_arrival else self._detection.type_marks
        given = ((name, marks.get(name, TIME_MIN)) for name in sorted(types))
        return tuple((name, mark) for name, mark in given if TIME_MIN < mark < CLOSED)

    def _do_what_was_asked(self, homes: Homes) -> None:
        before = self._registry.published
        self._requests.do_queued(homes)
        self._trees.joined = frozenset(name for _, _, name in self._registry.published - before)
        if self._measurements is not None:
            self._measurements.begin_plan()

    def _resume_points_in(self, found: Report, away: Homes) -> dict[str, int]:
        """From when on rules have to give their composite events once more: not before what has
        been committed, here or where another part of the network has let go of what it would see.
        """
        detection, rules = self._detection, self._context.deployments.by_id.keys()
        apart = set[str]().union(*away.values())
        resume_from = self._agreed.resume_points(detection, found, apart, self._context.moment.now)
        for known in (detection.committed.items(), found.committed, detection.states.marks.items()):
            raise_all(resume_from, known)
        for name in resume_from.keys() - rules:
            del resume_from[name]
        return resume_from

    def _with_owed(self, found: Report) -> Report:
        """The same, with rules owed to brokers with sinks that were apart when they came, and have
        nothing of them, and no resume point. Who was in a plan is among the homes that it knows;
        who tells of others out of reach alone knows the rest as the root does.
        """
        wanting, resume_points = {name for name, _ in found.wants}, [found.resume_from]
        for known in (self._agreed.catalog, *found.known):
            if any(name in wanting for name, _ in known.homes):
                had = {facts.id for facts in known.rules}
                rules = self._context.deployments.rules
                new = [one for one in rules if one.rule.name not in had]
                resume_points.append(tuple((one.rule.name, one.begin) for one in new))
        return replace(found, resume_from=tuple(least(resume_points).items()))


def has_moved(
    known: Collection[str], before: Division | None, after: Division, rerouted: Collection[str] = ()
) -> bool:
    """Whether a rule that was known before is evaluated elsewhere; or has been so for sinks: those
    of the types that are ``rerouted`` had them from trees of their own, wherever else they were
    evaluated for other rules.
    """
    if before is None:
        return False
    old, new = before.partition.places, after.partition.places
    moved = {name for name, place in new.items() if old.get(name) != place}
    if rerouted:
        moved.update(one.rule.name for one in after.rules if one.rule.defines.name in rerouted)
    return not moved.isdisjoint(known)
