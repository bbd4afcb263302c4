"""Rounds, plans and surveys: how the brokers of a tree come to do the same (4.3, 4.4).

Law 1: before the root changes what the division of the rules follows from it lets the whole tree
pause: all brokers hold their local sources, and say how far they are once all that came before has
gone up. Then it tells Known and Plan, and every broker works out the same division. From its
answer to the plan a broker does nothing, so nothing is under way when the division changes.

Law 2: when the tree is another than that of the last plan, or a rule has to be evaluated elsewhere,
rules begin anew. What was under way may be lost; but all events that may still matter are kept
where they entered, are sent again, and what those who wanted it have not yet got is found once
more (routing.network.recovery). While there is no plan for the tree as it is a broker evaluates,
sends and believes nothing.

Law 3: a broker that keeps many events asks for a survey: up to where composite events have
arrived everywhere. While brokers are out of reach there is none, for they may need everything.

Law 4: types that are published at brokers out of reach stay so: rules that need them are evaluated
at the root and wait, until the brokers are back or, ``forget_s`` later, forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from matcher.model import TIME_MIN, EventType
from routing.config import NodeConfig, Ordering
from routing.deployment import Deployed
from routing.errors import Refusal
from routing.messages import (
    Advertise,
    Asked,
    Code,
    Committed,
    Known,
    Need,
    Needed,
    Pause,
    Paused,
    Plan,
    Survey,
    Surveyed,
    Want,
)
from routing.network.arrivals import Arrivals
from routing.network.broker import Broker
from routing.network.knowledge import digest_of, knowledge_of, merged, rules_of
from routing.network.rounds import Node, Round, Tally, raise_all
from routing.network.station import Division
from routing.network.strategy import Strategy
from routing.overlay.config import OverlayConfig
from routing.partition.placement import Tree
from rules.engine.engine import Detector

Absent = tuple[tuple[str, tuple[str, ...]], ...]
"""Brokers out of reach, and what their sources publish or have published."""


class PlanningBroker(Broker):
    """A Broker that takes part in plans."""

    def __init__(
        self,
        config: NodeConfig,
        overlay: OverlayConfig,
        engine: Detector,
        strategy: Strategy,
        now: float = 0.0,
    ) -> None:
        self._round: Round | None = None
        self._to_pause: tuple[str, Pause] | None = None
        """Who has asked this broker to pause; it will, once it knows all of its children."""
        self._plan: Plan | None = None
        self._last_number = 0
        self._planned_for: tuple[str, int] | None = None
        """The tree for which the last plan was made."""
        self._needs_plan = False
        """At the root: whether brokers have joined the tree."""
        self._needs_survey = False
        self._tally: Tally | None = None
        self._hopeless: set[str] = set()
        """At the root: types that are given up."""
        self._lent: list[EventType] = []
        """At the root: types that are known until the next plan, whoever mentions them."""
        self._committed: Mapping[str, int] = {}
        self._asked_for_survey = False
        self._partners: set[str] = set()
        """The neighbours in the tree that follow the same plan."""
        self._newcomers: Sequence[str] = ()
        self._entered: dict[str, int] = {}
        """The last epoch of each root's tree that this broker was in."""
        self._arrivals = Arrivals()
        super().__init__(config, overlay, engine, strategy, now)

    # --- what the plan is for ---

    @property
    def _has_whole_tree(self) -> bool:
        """Whether all children are known."""
        tree = self.overlay.single_tree
        return tree is not None and tree.is_complete

    @property
    def _is_planned(self) -> bool:
        """Whether the last plan is for the tree as it is."""
        return self._planned_for is not None and self._planned_for == self._router.epoch

    @property
    def _has_work(self) -> bool:
        """At the root: whether there is a reason to divide the rules anew."""
        return self._needs_plan or self._has_forgotten

    @property
    def _has_forgotten(self) -> bool:
        """Whether a broker that was out of reach is forgotten by now."""
        if not self._known_absent:
            return False
        remembered = {state.origin for state in self.overlay.states}
        return any(name not in remembered for name, _ in self._known_absent)

    @property
    def _known_absent(self) -> Absent:
        return () if self._plan is None else self._plan.absent

    def _follow_overlay(self, now: float) -> None:
        super()._follow_overlay(now)
        if self._router.is_root:
            if not self._is_planned or (self._has_work and self._tell_at is None):
                self._begin_round()
        elif self._to_pause is not None:
            neighbour, pause = self._to_pause
            if self._is_meant(neighbour, pause) and self._has_whole_tree:
                self._to_pause = None
                self._pause(pause)
        self._look_for_newcomers()

    def _stop_work(self) -> None:
        self._detection.hold()
        self._detection.is_at_work = False
        self._tally = None

    def _is_meant(self, neighbour: str, message: Pause | Plan) -> bool:
        """Whether the father says this, and of the tree as it is."""
        is_from_father = neighbour == self._router.father
        return is_from_father and (message.root, message.epoch) == self._router.epoch

    def _works_with(self, neighbour: str) -> bool:
        """Whether what a neighbour sends of events is said under the plan as it is.

        What it sent before it took part comes before its answer to the pause, and is void.
        """
        return self._detection.is_at_work and neighbour in self._partners

    def _look_for_newcomers(self) -> None:
        if not (self._is_planned and self._detection.is_at_work):
            return
        new = sorted({one.neighbour for one in self._router.children} - self._partners)
        if new and new != self._newcomers:
            self._need(Need(Needed.PLAN, tuple(new)))
        self._newcomers = new

    # --- what is known and wanted ---

    def _index(self) -> None:
        """Types, rules, subscriptions or neighbours have changed."""
        defining: dict[str, list[Deployed]] = {}
        for one in self._deployments.rules:
            defining.setdefault(one.rule.defines.name, []).append(one)
        self._router.index(self._advertisements.schemas, defining)
        father = self._router.branches.get(self._router.father or "")
        self._detection.station.want(() if father is None else father.predicates)

    def _know(self) -> None:
        self._index()
        if not self._answered:
            self._tell_known()

    def _tell(self) -> None:
        """Tell what is wanted, and what was answered."""
        self._tell_at = None
        self._detection.tell_marks()
        self._tell_wants(None)
        if self._is_planned:
            self._confirm(self._confirmations.take_done())
        self._tell_known()
        self._send_flows()
        if self._router.is_root and self._has_work:
            self._begin_round()

    def _tell_wants(self, to: Sequence[str] | None) -> None:
        own = [one.text for sink in self._sinks for one in sink.interests]
        for neighbour, filters in self._router.wants(own, to):
            number = self._confirmations.next_number(neighbour)
            self.overlay.send(neighbour, Want(filters, number), self._now)

    def _tell_known(self) -> None:
        """What the root knows is told while there is a plan; before, it may have more to learn."""
        if self._is_planned:
            if self._router.is_root:
                self._known = self._knowledge()
            self._send_known()
        answered, self._answered = self._answered, []
        for neighbour, message in answered:
            self.overlay.send(neighbour, message, self._now)

    def _send_known(self) -> None:
        self._send_flows()  # events first: their types may be known no more
        for branch in self._router.children:
            if branch.known is not self._known and branch.known != self._known:
                branch.known = self._known
                self.overlay.send(branch.neighbour, self._known, self._now)

    def _hear_known(self, neighbour: str, known: Known) -> None:
        """Take over what the root knows, and tell it on."""
        if neighbour != self._router.father:
            return
        rules = rules_of(known)
        types = [one for one in known.types if self._goes_with_own(one)]
        self._known = known
        self._advertisements.exchange(self._adopted, types)
        self._adopted = tuple(types)
        self._deployments.adopt(rules, [schema.name for schema in types], known.ended)
        self._detection.station.give_up(known.given_up)
        self._check_interests()
        self._follow()
        self._send_known()

    def _goes_with_own(self, schema: EventType) -> bool:
        """Whether no local source publishes the type with another schema (a part of the network
        that was out of reach may know one).
        """
        own = self._advertisements.find(schema.name)
        fits = own is None or own.schema == schema or not own.advertisers
        if not fits:
            self._log("error", "sources publish a type with two schemas", type=schema.name)
        return fits

    def _adopt(self, known: Known) -> None:
        """At the root: know this."""
        rules = rules_of(known)
        before = [schema for one in self._deployments.rules for schema in one.mentions]
        after = [schema for one in rules for schema in one.mentions]
        schemas = self._advertisements.schemas
        lent = [one for one in known.types if schemas.get(one.name, one) == one]
        self._advertisements.exchange(before, [*after, *lent])
        self._lent += lent
        self._deployments.adopt(rules, [schema.name for schema in known.types], known.ended)
        self._hopeless = set(known.given_up)
        self._check_interests()

    def _change_role(self) -> None:
        """The broker is the root from now on, or no longer; what it knows stays known."""
        rules = [schema for one in self._deployments.rules for schema in one.mentions]
        if self._router.is_root:
            self._advertisements.exchange((), rules)
            self._lent, self._adopted = [*self._adopted], ()
            self._hopeless = set(self._known.given_up)
        else:
            for visitor in self._visitors:
                self._sources.close(visitor)
                self._advertisements.withdraw(visitor, list(visitor.floors))
            self._visitors.clear()
            types = self._known.types
            self._advertisements.exchange([*rules, *self._lent], types)
            self._lent, self._adopted = [], types
        self._check_interests()

    def _carry_out_due(self, homes: dict[str, set[str]]) -> None:
        """At the root, while the tree pauses: do what was asked. ``homes``: by broker, what is
        published there; what comes to it is added.
        """
        raise NotImplementedError

    def _introduce(self, name: str, home: str, types: tuple[EventType, ...]) -> None:
        """At the root: a source at another broker publishes; Refusal when its name is taken."""
        if self._links.named(name) is not None:
            raise Refusal(Code.NAME_TAKEN, f"a client here and one of {home} are named {name!r}")
        link = self._visitors.admit(Asked((home,), 0, name, Advertise(0, types)), self._now)
        source = self._source_of(link)
        for schema in types:
            self._advertisements.advertise(source, schema, TIME_MIN)

    def _change_root(self) -> None:
        """The tree is another, or this broker's place in it."""
        self._stop_work()
        self._round = self._planned_for = None
        super()._change_root()
        epoch = self._router.epoch
        if epoch is None:
            return
        if self._entered.get(epoch[0]) == epoch[1] and not self._router.is_root:
            # It has been away, and has forgotten what neighbours said in this epoch.
            self._to_pause = None
            self._need(Need(Needed.PLAN, (self.overlay.name,)))
        self._entered[epoch[0]] = epoch[1]

    # --- needs ---

    def _need(self, need: Need) -> None:
        """Something is needed of the root."""
        if not self._router.is_root:
            if self._router.father is not None:
                self.overlay.send(self._router.father, need, self._now)
        elif need.what is Needed.SURVEY:
            self._needs_survey = True
            self._begin_survey()
        elif need.what is Needed.RELEASE:
            self._give_up(need.names)
        else:
            self._needs_plan = True
            self._tell_soon()

    def _hear_need(self, neighbour: str, need: Need) -> None:
        if neighbour in self._router.branches:
            self._need(need)

    def _give_up(self, names: Sequence[str]) -> None:
        """At the root: rules wait for these types no longer."""
        self._hopeless.update(names)
        self._log("warning", "rules wait no longer", types=sorted(names))
        self._told_version = -1
        self._detection.station.give_up(self._hopeless)

    # --- rounds ---

    def _begin_round(self) -> None:
        """At the root: let the tree pause, unless it does already, or is not complete yet.

        A pause that somebody has not taken part in from its beginning is begun again.
        """
        is_idle = self._round is None or self._needs_plan
        if is_idle and self._has_whole_tree and self._router.epoch is not None:
            introduce = self._needs_plan or not self._is_planned
            self._needs_plan = False
            self._last_number += 1
            digest = digest_of(self._known)
            self._pause(Pause(*self._router.epoch, self._last_number, digest, introduce))
            self._settle()

    def _knowledge(self) -> Known:
        """At the root: what there is to know."""
        homes = dict(self._known.homes)
        return knowledge_of(self._advertisements, self._deployments, homes, self._hopeless)

    def _pause(self, pause: Pause) -> None:
        children = [branch.neighbour for branch in self._router.children]
        self._round = Round(pause, set(children))
        self._detection.hold()
        if pause.introduce:
            for branch in self._router.branches.values():
                branch.told = branch.known = None  # it may have been told before it listened
        for child in children:
            self.overlay.send(child, pause, self._now)
        self._look_whether_all_pause()

    def _hear_pause(self, neighbour: str, message: Pause) -> None:
        # It may come before this broker knows that the sender is its father.
        self._to_pause = neighbour, message

    def _hear_paused(self, neighbour: str, message: Paused) -> None:
        found = self._round
        if found is not None and found.is_answered_by(message):
            found.add(message)
            found.awaited.discard(neighbour)
            self._look_whether_all_pause()

    def _look_whether_all_pause(self) -> None:
        if self._round is None or self._round.awaited:
            return
        found, self._round = self._round, None
        self._settle()  # all that has come goes up before the answer
        self._answer_for_itself(found)
        if self._router.is_root:
            self._divide(found)
        elif self._router.father is not None:
            self._index()
            self._tell_wants((self._router.father,))
            self.overlay.send(self._router.father, found.said(), self._now)
            self._detection.is_at_work = False

    def _answer_for_itself(self, found: Round) -> None:
        detection, name = self._detection, self.overlay.name
        station, published = detection.station, detection.published
        found.nodes.append((name, self._router.father or "", tuple(published)))
        own = [self._advertisements.find(one) for one in published]
        raise_all(
            found.fronts,
            ((one.schema.name, one.front) for one in own if one and one.front is not None),
        )
        raise_all(found.marks, station.type_marks.items())
        raise_all(found.rules, ((rule, station.mark(rule)) for rule in station.rules))
        found.need(tuple(detection.due_of(self._wanted_rules).items()))
        if found.pause.introduce:
            found.sources += [(one, name, types) for one, types in detection.open_sources]
            if not self._router.is_root:
                found.known += [one for one in self._else_known(found) if one not in found.known]

    def _else_known(self, found: Round) -> tuple[Known, ...]:
        """What this broker knows and the root does not; also types of which events are kept."""
        known = () if digest_of(self._known) == found.pause.known else (self._known,)
        names = {one.name for one in self._known.types}
        kept = {
            batch.type.name: batch.type
            for batches in self._detection.ledger
            for batch in batches
            if batch.type.name not in names
        }
        return (*known, Known(tuple(kept[name] for name in sorted(kept)), ())) if kept else known

    @property
    def _wanted_rules(self) -> set[str]:
        """The rules whose composite events this broker's sinks want."""
        return {one.rule.name for sink in self._sinks for one in sink.rules}

    # --- plans ---

    def _divide(self, found: Round) -> None:
        """At the root: the whole tree pauses."""
        detection, before = self._detection, self._division()
        raise_all(detection.fronts, found.fronts.items())
        raise_all(detection.type_marks, found.marks.items())
        raise_all(detection.rule_marks, found.rules.items())
        lent, self._lent = self._lent, []
        if found.pause.introduce:
            self._learn(found)
        self._advertisements.exchange(lent, ())
        homes = {name: set(types) for name, _, types in found.nodes}
        self._carry_out_due(homes)
        remembered = {state.origin for state in self.overlay.states}
        absent = tuple(
            one for one in self._known.homes if one[0] not in homes and one[0] in remembered
        )
        everywhere = {**homes, **dict(absent)}
        self._hopeless -= {one for types in everywhere.values() for one in types}
        self._known = knowledge_of(
            self._advertisements, self._deployments, everywhere, self._hopeless
        )
        nodes = tuple(
            (name, father, tuple(sorted(homes[name]))) for name, father, _ in sorted(found.nodes)
        )
        tree = found.pause.root, found.pause.epoch, found.pause.number
        plan = Plan(*tree, nodes, absent)
        after = self._divided(plan)
        if found.pause.introduce or has_moved(before, after):
            due = tuple(sorted(self._due_in(found).items()))
            plan = Plan(*tree, nodes, absent, True, due)
        answered, self._answered = self._answered, []
        self._send_known()
        self._follow_plan(plan)
        self._answered = answered
        self._told_version = -1  # the answers follow

    def _learn(self, found: Round) -> None:
        """At the root: what others know, and who publishes there."""
        if found.known:
            together = merged(self._knowledge(), found.known)
            if together.left_out:
                self._log("error", "parts of the network knew otherwise", lost=together.left_out)
            self._adopt(together.known)
        for name, home, types in found.sources:
            if home == self.overlay.name or self._visitors.find(name) is not None:
                continue
            schemas = self._advertisements.schemas
            known = tuple(schemas[one] for one in types if one in schemas)
            try:
                self._introduce(name, home, known)
            except Refusal as refusal:
                self._log("error", "a source is not known", source=name, reason=str(refusal))

    def _due_in(self, found: Round) -> Mapping[str, int]:
        """From when on rules have to give their composite events once more."""
        due = {}
        for one in self._deployments.rules:
            name = one.rule.name
            bounds = [table[name] for table in (found.due, self._committed) if name in table]
            if bounds:
                due[name] = max(bounds)
        return due

    def _hear_plan(self, neighbour: str, plan: Plan) -> None:
        if self._is_meant(neighbour, plan):
            self._round = None
            self._follow_plan(plan)

    def _follow_plan(self, plan: Plan) -> None:
        self._plan, self._planned_for = plan, self._router.epoch
        self._tally, self._asked_for_survey = None, False
        self._partners = {name for name, father, _ in plan.nodes if father == self.overlay.name}
        if self._router.father is not None:
            self._partners.add(self._router.father)
        self._index()
        children = [branch.neighbour for branch in self._router.children]
        self._tell_wants(children)
        for child in children:
            self.overlay.send(child, plan, self._now)
        division = self._divided(plan)
        self._detection.station.give_up(self._known.given_up)
        if not plan.anew:
            self._detection.follow(division)
            return
        self._arrivals.begin_anew()
        again = self._detection.begin_anew(division, dict(plan.due))
        for sink in self._sinks:
            sink.withdraw(again)
            self._sinks.touch(sink)

    def _division(self) -> Division | None:
        return None if self._plan is None else self._divided(self._plan)

    def _divided(self, plan: Plan) -> Division:
        ordering = self._config.ordering
        return divided(type(self._strategy), ordering, plan.nodes, plan.absent, self._known)

    # --- surveys ---

    def _begin_survey(self) -> None:
        """At the root: ask up to where composite events have arrived, if that can be known."""
        ready = self._tally is None and self._is_planned and not self._known_absent
        if self._needs_survey and ready and self._round is None:
            self._needs_survey = False
            self._last_number += 1
            self._survey(Survey(self._last_number))

    def _hear_survey(self, neighbour: str, survey: Survey) -> None:
        if neighbour == self._router.father and self._detection.is_at_work:
            self._survey(survey)

    def _survey(self, survey: Survey) -> None:
        self._detection.ledger.survey()
        children = [branch.neighbour for branch in self._router.children]
        due = self._detection.due_of(self._wanted_rules)
        self._tally = Tally(survey.number, set(children), due)
        for child in children:
            self.overlay.send(child, survey, self._now)
        self._look_whether_all_answered()

    def _hear_surveyed(self, neighbour: str, message: Surveyed) -> None:
        if self._tally is not None and message.number == self._tally.number:
            self._tally.add(message)
            self._tally.awaited.discard(neighbour)
            self._look_whether_all_answered()

    def _look_whether_all_answered(self) -> None:
        tally = self._tally
        if tally is None or tally.awaited:
            return
        self._tally = None
        due = tuple(sorted(tally.due.items()))
        if self._router.is_root:
            self._commit(Committed(tally.number, due))
        elif self._router.father is not None:
            self.overlay.send(self._router.father, Surveyed(tally.number, due), self._now)

    def _hear_committed(self, neighbour: str, message: Committed) -> None:
        if neighbour == self._router.father and self._detection.is_at_work:
            self._commit(message)

    def _commit(self, message: Committed) -> None:
        self._asked_for_survey = False
        self._committed = dict(message.due)
        self._detection.commit(self._committed)
        for branch in self._router.children:
            self.overlay.send(branch.neighbour, message, self._now)

    def _look_at_ledger(self) -> None:
        """Ask for what the station and the ledger need of the root."""
        detection = self._detection
        if not detection.is_at_work:
            return
        hopeless = detection.station.take_hopeless()
        if hopeless:
            self._need(Need(Needed.RELEASE, hopeless))
        if detection.ledger.is_full and not self._asked_for_survey:
            self._asked_for_survey = True
            self._need(Need(Needed.SURVEY))


def has_moved(before: Division | None, after: Division) -> bool:
    """Whether a rule that stays in force is evaluated elsewhere."""
    if before is None:
        return False
    was = {one.rule.name: one.version for one in before.rules}
    old, new = before.partition.places, after.partition.places
    return any(
        was.get(one.rule.name) == one.version and old.get(one.rule.name) != new[one.rule.name]
        for one in after.rules
    )


@lru_cache(maxsize=8)
def divided(
    strategy: type[Strategy],
    ordering: Ordering,
    nodes: tuple[Node, ...],
    absent: Absent,
    known: Known,
) -> Division:
    """The division that follows from what the root has told; one for all brokers.

    Brokers out of reach stand below the root, which will hear nothing of them (Law 4).
    """
    deployed, types = rules_of(known), known.types
    (root,) = (name for name, father, _ in nodes if not father)
    fathers = {name: father for name, father, _ in nodes if father}
    fathers |= {name: root for name, _ in absent}
    children: dict[str, tuple[str, ...]] = {}
    for name, father in fathers.items():
        children[father] = (*children.get(father, ()), name)
    published = {name: frozenset(names) for name, _, names in nodes}
    published |= {name: frozenset(names) for name, names in absent}
    schemas = {schema.name: schema for schema in types}
    found = strategy().divide(
        Tree(root, children),
        {
            node: tuple(schemas[name] for name in sorted(names) if name in schemas)
            for node, names in published.items()
        },
        [one.rule for one in deployed],
    )
    if ordering is Ordering.ARRIVAL:
        found = found.whole()  # how far events are apart is for the evaluating broker to say
    return Division(found, fathers, published, deployed, schemas)
