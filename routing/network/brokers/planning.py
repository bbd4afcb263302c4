"""Rounds and plans: how the brokers of a tree come to do the same (4.3, 4.4).

Law 1: before the root changes what the division of the rules follows from it lets the whole tree
pause: all brokers hold their local sources, and say how far they are once all that came before has
gone up. Then it tells Known and Plan, and every broker works out the same division. From its
answer to the plan a broker does nothing, so nothing is under way when the division changes.

Law 2: when the tree is another than that of the last plan, or a rule has to be evaluated elsewhere,
rules begin anew. What was under way may be lost; but all events that may still matter are kept
where they entered, are sent again (for rules alone, where it is but a rule that moves: everybody
else has what he wanted before the pause is over), and what sinks have not yet got is found once
more (routing.network.recovery.needs). While there is no plan for the tree as it is a broker
evaluates, sends and believes nothing.

Law 3: types that are published at brokers out of reach stay so: rules that need them are evaluated
at the root and wait, until the brokers are back or, ``forget_s`` later, forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from routing.config import NodeConfig
from routing.errors import Refusal
from routing.messages import (
    Known,
    Need,
    Needed,
    Pause,
    Paused,
    Plan,
)
from routing.network.agreement.confirmations import Client, Waiter
from routing.network.agreement.knowledge import digest_of, knowledge_of, merged
from routing.network.agreement.rounds import Absent, Round, raise_all
from routing.network.brokers.telling import TellingBroker
from routing.network.recovery.arrivals import Arrivals
from routing.network.setup import Setup
from routing.network.ways.division import NOTHING, choice_of, divided
from routing.network.ways.places import Division


class PlanningBroker(TellingBroker):
    """A Broker that takes part in plans."""

    def __init__(self, setup: Setup) -> None:
        self._round: Round | None = None
        self._to_pause: dict[str, Pause] = {}
        """Who has asked this broker to pause last: its father in some tree, which it may not know
        yet. It will pause once it does, and knows all of its children."""
        self._plan: Plan | None = None
        self._may_have_lost = True
        """Whether the last pause was in another tree than the plan before it, or with others."""
        self._told_given_up = 0
        self._last_number = 0
        self._choice = NOTHING
        """What the last plan went by, or the next one will."""
        self._needs_plan = False
        """At the root: whether brokers have joined the tree."""
        self._committed: Mapping[str, int] = {}
        self._newcomers: Sequence[str] = ()
        self._entered: dict[str, int] = {}
        """The last epoch of each root's tree that this broker was in."""
        self._arrivals = Arrivals(setup.config.repeat_ids_max)
        super().__init__(setup)

    def configure(self, config: NodeConfig, now: float) -> None:
        """Take over what a running broker can change."""
        super().configure(config, now)
        self._arrivals.ids_max = config.repeat_ids_max

    # --- what the plan is for ---

    @property
    def _has_whole_tree(self) -> bool:
        """Whether all children are known."""
        tree = self.overlay.single_tree
        return tree is not None and tree.is_complete

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
        elif self._router.father is not None:
            pause = self._to_pause.get(self._router.father)
            if pause is not None and self._is_meant(self._router.father, pause):
                self._pause_once_complete(self._router.father, pause)
        self._look_for_newcomers()

    def _pause_once_complete(self, father: str, pause: Pause) -> None:
        if self._has_whole_tree:
            del self._to_pause[father]
            self._pause(pause)

    def _stop_work(self) -> None:
        self._detection.hold()
        self._detection.is_at_work = False

    def _is_meant(self, neighbour: str, message: Pause | Plan) -> bool:
        """Whether the father says this, and of the tree as it is."""
        is_from_father = neighbour == self._router.father
        return is_from_father and (message.root, message.epoch) == self._router.epoch

    def _works_with(self, neighbour: str) -> bool:
        """Whether what a neighbour sends of events is said under the plan as it is.

        What it sent before it took part comes before its answer to the pause, and is void.
        """
        return self._detection.is_at_work and neighbour in self._router.partners

    def _look_for_newcomers(self) -> None:
        if not (self._is_planned and self._detection.is_at_work):
            return
        if not self._newcomers and self._router.branches.keys() <= self._router.partners:
            return
        new = sorted({one.neighbour for one in self._router.children} - self._router.partners)
        if new and new != self._newcomers:
            self._need(Need(Needed.PLAN, tuple(new)))
        self._newcomers = new

    def _tell(self) -> None:
        super()._tell()
        if self._router.is_root and self._has_work:
            self._begin_round()

    def _carry_out_due(self, homes: dict[str, set[str]]) -> None:
        """At the root, while the tree pauses: do what was asked. ``homes``: by broker, what is
        published there; what comes to it is added.
        """
        raise NotImplementedError

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
            self._to_pause.clear()
            self._need(Need(Needed.PLAN, (self.overlay.name,)))
        self._entered[epoch[0]] = epoch[1]

    # --- needs ---

    def _need(self, need: Need) -> None:
        """Something is needed of the root."""
        if not self._router.is_root:
            if self._router.father is not None:
                self.overlay.send(self._router.father, need, self._now)
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
        self._detection.give_up(self._hopeless)

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

    def _pause(self, pause: Pause) -> None:
        children = [branch.neighbour for branch in self._router.children]
        self._round = Round(pause, set(children))
        self._may_have_lost = pause.introduce
        self._detection.hold()
        if pause.introduce:
            for branch in self._router.branches.values():
                branch.told = branch.known = None  # it may have been told before it listened
        self._tell_all_marks()  # so that the dues in the answers are not older than need be
        for child in children:
            self.overlay.send(child, pause, self._now)
        self._look_whether_all_pause()

    def _tell_all_marks(self) -> None:
        self._detection.tell_all_marks()
        self._send_flows()

    def _hear_pause(self, neighbour: str, message: Pause) -> None:
        self._to_pause[neighbour] = message

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
        published = detection.published
        found.nodes.append((name, self._router.father or "", tuple(published)))
        fronts = ((one, self._advertisements.front(one)) for one in published)
        raise_all(found.fronts, ((one, front) for one, front in fronts if front is not None))
        for station in detection.stations:
            raise_all(found.marks, station.type_marks.items())
            raise_all(found.rules, ((rule, station.mark(rule)) for rule in station.rules))
        found.front = max(found.front, detection.front)
        found.need(tuple(detection.due_of(self._wanted_rules).items()))
        if found.pause.introduce:
            found.sources += [(one, name, types) for one, types in detection.open_sources]
            found.known += [one for one in self._else_known(found) if one not in found.known]

    def _else_known(self, found: Round) -> tuple[Known, ...]:
        """What this broker knows and the root does not; also the types of events that are kept and
        will be sent again, which may be published no more and mentioned by no rule.
        """
        known = () if digest_of(self._known) == found.pause.known else (self._known,)
        names = {schema.name for one in self._deployments.rules for schema in one.mentions}
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
        versions = {facts.name: facts.version for facts in self._known.rules}
        raise_all(detection.fronts, found.fronts.items())
        raise_all(detection.type_marks, found.marks.items())
        raise_all(detection.rule_marks, found.rules.items())
        lent, self._lent = self._lent, []
        if found.pause.introduce:
            self._learn(found)
        self._lend(detection.held_types)
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
        rates, ways = self._choice.rates, self._choice.ways
        plan = Plan(*tree, nodes, absent, rates=rates, ways=ways, front=found.front)
        if found.pause.introduce or has_moved(versions, before, self._divided(plan)):
            due = tuple(sorted(self._due_in(found).items()))
            plan = replace(plan, anew=True, due=due)
        plan = self._with_trees(plan, found)
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
        own = self.overlay.name
        is_in_it = any((name, father) == (own, neighbour) for name, father, _ in plan.nodes)
        if is_in_it and self._is_meant(neighbour, plan):
            self._round = None
            self._follow_plan(plan)

    def _follow_plan(self, plan: Plan) -> None:
        self._plan, self._planned_for = plan, self._router.epoch
        self._choice = choice_of(plan)
        partners = {name for name, father, _ in plan.nodes if father == self.overlay.name}
        children = sorted(partners & self._router.branches.keys())
        if self._router.father is not None:
            partners.add(self._router.father)
        self._router.partners = partners
        self._index()
        self._tell_wants(children)
        for child in children:
            self.overlay.send(child, plan, self._now)
        division = self._divided(plan)
        again = dict(self._follow_trees(plan, division))
        self._detection.give_up(self._known.given_up)
        if plan.anew:
            self._arrivals.begin_anew()
            self._warn_of_what_was_given_up()
            lost, due = self._may_have_lost, dict(plan.due)
            again.update(self._detection.begin_anew(division, due, plan.front, is_lost=lost))
        else:
            self._detection.follow(division)
        for sink in self._sinks if again else ():
            sink.withdraw(again)
            self._sinks.touch(sink)

    def _warn_of_what_was_given_up(self) -> None:
        events = self._detection.ledger.given_up
        if events > self._told_given_up:
            self._told_given_up = events
            text = "the network changed; what was under way of events given up may be lost"
            self._log("warning", text, events=events)

    def _with_trees(self, plan: Plan, found: Round) -> Plan:
        """At the root: a plan with the trees of brokers with sinks, where there are any."""
        return plan

    def _follow_trees(self, plan: Plan, division: Division) -> Mapping[str, int]:
        """Take part in these trees; gives, by source, from when on composite events come again."""
        return {}

    def _confirm(self, waiters: Iterable[Waiter]) -> None:
        confirmed = list(waiters)
        super()._confirm(confirmed)
        if any(isinstance(one, Client) for one in confirmed):
            # What they get begins here, though nothing may have been told of it yet.
            self._detection.count_on(self._wanted_rules, self._committed)

    @property
    def _divisions(self) -> Iterator[tuple[str, Division]]:
        """The roots of the trees of the plan, and how rules are divided over each."""
        division = self._division()
        if division is not None:
            yield str(self._router.root), division

    def _division(self) -> Division | None:
        return None if self._plan is None else self._divided(self._plan)

    def _divided(self, plan: Plan) -> Division:
        ordering = self._config.ordering
        kind = type(self._strategy)
        return divided(kind, ordering, plan.nodes, plan.absent, self._known, choice_of(plan))


def has_moved(versions: Mapping[str, int], before: Division | None, after: Division) -> bool:
    """Whether a rule that stays in force, as it was in that version, is evaluated elsewhere."""
    if before is None:
        return False
    old, new = before.partition.places, after.partition.places
    return any(
        versions.get(one.rule.name) == one.version and old.get(one.rule.name) != new[one.rule.name]
        for one in after.rules
    )
