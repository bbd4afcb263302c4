"""Rules and events of a broker that evaluates its part of the rules, on the single tree and on each
tree for sinks (7.3.2, 7.3.5, 7.3.6).

Law 1: what comes from local sources is kept in the replay buffer, and goes to each tree whose rules
use it and to those below that want it. While there is no plan for the tree as it is, it waits; so
do the sources' promises. A tree that begins is sent all that is kept and may still matter to it,
one that goes on what was held, slice by slice (evaluation.replay): both have all that matters, and
nothing twice. A Temp comes while the tree pauses: the tree of b1 goes on and gets it, that of b2
begins with all.

Law 2: a rule of which nobody says up to where he has it is evaluated nowhere. It is due from where
the sources of what it needs have promised to be: who subscribes later gets its composite events
from there on. Where all of them have closed that is beyond their last event, and the beginning
while it waits for a type that nobody publishes or has published; by the clock alone, now. What
those out of reach have promised nobody knows, and they may have the rule in some tree: until they
are back it stays due from where it last was. Nobody has subscribed to fire, and Temp and Smoke are
promised up to 40 s and 45 s: who subscribes now gets the Fires from 40 s on.

Law 3: where somebody is out of reach who publishes what a rule needs, or what those above it need,
nobody here can say how far that has been evaluated there, so neither from which instant on the rule
would hold nor up to which it does: it is neither deployed nor removed. By arrival there is no such
instant, and nothing is refused; a rule ends as soon as it is removed. b3 has published Temp, and is
out of reach: fire over Temp cannot be removed.

Law 4: a type that no rule uses binds nobody who publishes it: what is earlier than others have
promised is not late. fire has come to 40 s and is removed: another source of Temp begins anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS, TIME_MAX, TIME_MIN, EventBatch, EventType
from routing.config import NodeConfig, Ordering
from routing.delivery.merged_detections import joined
from routing.deployment import Deployed
from routing.durability.state_table import StateTable, put_down
from routing.errors import Refusal
from routing.evaluation.arrival import ArrivalEvaluator
from routing.evaluation.publishers import Publishers
from routing.evaluation.replay import HasRoom
from routing.evaluation.skew import SkewLimit
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import Code, Plan, RuleState
from routing.network.evaluation.processing_tree import ProcessingTree
from routing.network.evaluation.router import Router
from routing.network.evaluation.tree_part import TreePart
from routing.network.evaluation.tree_table import TreeTable
from routing.network.recovery.past import check_logs, past_of
from routing.network.recovery.replay_buffer import ReplayBuffer
from routing.network.recovery.resume_points import over
from routing.network.tables.branch import Branch
from routing.network.ways.sink_trees import Kinds, below
from routing.order import in_sequence
from routing.partition.places import Division
from routing.partition.replay_starts import replay_starts
from routing.partition.rule_states import groups_of
from routing.serving.changes import RuleChanges
from routing.serving.evaluator import Basis, Evaluator
from routing.serving.sources import Source, SourceState
from routing.storage import KeptLog
from routing.watermarks.ends import CLOSED
from rules.engine.engine import Detections, Placement
from rules.engine.order.intervals import Intervals
from rules.pattern import TIMER, RuleSet

OUT_OF_REACH = "is out of reach"
"""Words of a refusal by Law 3 for a broker; nothing has been done then."""


class Keeper(Protocol):
    """Told of what local sources say, to keep it over a restart (recovery.journal)."""

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Take in published events."""

    def touch(self, source: Source) -> None:
        """Take in that a source says something else than before."""


class DividedDetection(Evaluator):
    """Evaluates the rules that its broker has on the single tree, and on those for sinks."""

    def __init__(self, name: str, router: Router, basis: Basis) -> None:
        super().__init__(basis)
        self.changes = RuleChanges(basis, self)
        self._name = name
        self._by_arrival = self._config.ordering is Ordering.ARRIVAL
        self.out_of_reach: Mapping[str, Collection[str]] = {}
        """At the root: the brokers that are out of reach, and what is published there."""
        self._router = router
        self.skew_limit = SkewLimit(self._config.lead_max_us)
        """The types that lag here, in all trees."""
        self.ended: dict[str, int] = {}
        """The rules that have ended by themselves in some tree here, and up to when they hold."""
        self._is_measured = False
        self.part = TreePart(self._new_station(), router)
        """The broker's part in the single tree."""
        self.replay_buffer = ReplayBuffer(
            self._config.retained_events_max, self._config.unasked_events_max
        )
        self.publishers = Publishers()
        self.is_paused = True
        """Whether local sources wait for the rules to be divided (Law 1)."""
        self._held: list[Sequence[EventBatch]] = []
        """Batches that do."""
        self.is_sending_again = False
        """Whether events wait to be sent along some tree (evaluation.replay)."""
        self.is_at_work = False
        """Whether there is a plan for the tree as it is, and no other one is under way."""
        self.fronts: dict[str, int] = {}
        self.type_marks: dict[str, int] = {}
        self.rule_marks: dict[str, int] = {}
        """At the root, what was last found in the whole network: see messages.Report."""
        self.resume_points: Mapping[str, int] | None = None
        """At the root, while it does what was asked and nobody is out of reach: up to where all
        have the rules' composite events."""
        self.evaluated: dict[str, int] = {}
        """By rule, how far it has ever been evaluated here, when it was last asked: it may have
        begun anew since, and the root may be another."""
        self.committed: dict[str, int] = {}
        """By rule, up to where composite events have arrived everywhere (checkpoints)."""
        self.states = StateTable()
        """States of rules whose memory no window bounds."""
        new_evaluator, arrival = self._new_station, self._by_arrival
        self.tree_table = TreeTable(name, router.matching, new_evaluator, by_arrival=arrival)
        """The trees for sinks."""
        self._let_back: set[str] = set()  # see take_let_back
        self._routed: frozenset[str] = frozenset()
        """The rules whose composite events come along the single tree."""
        self._used: frozenset[str] = frozenset()
        """The types that rules use."""
        self._published_types: frozenset[str] = frozenset()
        """The types that somebody publishes or has published, Timer too."""
        self.keeper: Keeper | None = None
        """Told of what is to be kept over a restart, where anything is."""
        self.log: KeptLog | None = None
        """The events that its store has kept, further back than the replay buffer."""
        self.logs: Mapping[str, int] = {}
        """At the root: the brokers that have logs, and from which time on each is whole."""
        self.homes: Mapping[str, Collection[str]] = {}
        """At the root: the brokers of the tree, and what is published there."""

    def _new_station(self) -> TreeEvaluator:
        kind = ArrivalEvaluator if self._by_arrival else TreeEvaluator
        engine, most = self.engine.fresh(), self._config.waiting_events_max
        evaluator = kind(self._name, engine, most, self.skew_limit)
        evaluator.is_measured = self._is_measured
        return evaluator

    def measure(self) -> None:
        """Have the evaluators count what they find."""
        self._is_measured = True
        for evaluator in self.evaluators:
            evaluator.is_measured = True

    @property
    def is_alone(self) -> bool:
        """Whether this broker is the root of a tree of one, and knows all that there is to know."""
        return self._router.is_root and not self._router.branches

    @property
    def evaluator(self) -> TreeEvaluator:
        """The evaluator of the single tree."""
        return self.part.evaluator

    @property
    def branches(self) -> Mapping[str, Branch]:
        """The branch beyond each neighbour in the single tree."""
        return self._router.branches

    @property
    def trees(self) -> Mapping[str, ProcessingTree]:
        """The trees for sinks that stand, by root."""
        return self.tree_table.trees

    @property
    def evaluators(self) -> Sequence[TreeEvaluator]:
        """The broker's part in each tree."""
        return (self.evaluator, *[tree.evaluator for tree in self.trees.values()])

    @property
    def _fed(self) -> Sequence[TreeEvaluator]:
        """The evaluators that something may have come for with this input."""
        trees = self.tree_table.news
        return (self.evaluator, *[tree.evaluator for tree in trees]) if trees else (self.evaluator,)

    @property
    def is_held(self) -> bool:
        """Whether events of local sources wait here, for whatever reason."""
        return self.is_paused or self.is_sending_again

    @property
    def held_types(self) -> Iterable[EventType]:
        """The types of the events that are held, each once."""
        return {batch.type.name: batch.type for one in self._held for batch in one}.values()

    @property
    def given(self) -> Mapping[str, int]:
        """The marks of types here, in the single tree."""
        return self.evaluator.progress.types

    def placement(self, name: str) -> Placement | None:
        """Where the single tree's engine evaluates a rule, if it knows several places."""
        return self.evaluator.placement(name)

    @property
    def engines(self) -> Sequence[Intervals]:
        """Engines of all trees."""
        return [evaluator.engine for evaluator in self.evaluators]

    def complete_to(self, rules: Sequence[Deployed]) -> int:
        """Up to where the composite events of all these rules have come, and are complete.

        CLOSED for no rule.
        """
        if self._by_arrival:
            return CLOSED  # nothing waits
        own = self.tree_table.own
        if own is None:
            return self.part.complete_to(rules)
        told: dict[TreePart, list[Deployed]] = {self.part: [], own: []}
        for one in rules:
            told[self._part_of(one.rule.name)].append(one)
        return min(part.complete_to(of) for part, of in told.items())

    def reached(self, rule: str) -> int:
        """Up to where this broker has a rule's composite events."""
        return self._part_of(rule).mark_of(rule)

    def _part_of(self, name: str) -> TreePart:
        """The part in the tree from which this broker's sinks get a rule's composite events."""
        own, brings = self.tree_table.own, self.tree_table.brings
        return self.part if own is None or not brings(self._deployments.find(name)) else own

    def resume_points_of(self, wanted: Iterable[str]) -> dict[str, int]:
        """Up to where this broker has the composite events of rules that are evaluated or wanted
        here; of those that it was told something about, and that may still give some.
        """
        wanted = set(wanted)
        found = self.part.resume_points(wanted & self._routed)
        for name, mark in self.tree_table.resume_points(wanted):
            found[name] = min(mark, found.get(name, CLOSED))
        return found

    @property
    def promises(self) -> dict[str, int]:
        """The promises of local sources, by type, but for types that they have closed."""
        marks = self.publishers.marks
        found = {name: marks.get(name, TIME_MIN) for name in self.publishers.types}
        return {name: mark for name, mark in found.items() if mark != CLOSED}

    def with_unsaid(
        self,
        said: Mapping[str, int],
        promises: Mapping[str, int],
        apart: Collection[str],
        planned: Mapping[str, int],
        now: float,
    ) -> dict[str, int]:
        """At the root: the resume points that were said, and those by Law 2. ``promises``: the
        least that there are of types; ``apart``: the types that are published out of reach;
        ``planned``: the resume points of the last plan.
        """
        found = dict(said)
        for name in [one.rule.name for one in self._deployments if one.rule.name not in said]:
            needs = self._deployments.needs(name)
            if not needs.isdisjoint(apart):
                found[name] = max(table.get(name, TIME_MIN) for table in (planned, self.committed))
            elif not needs <= self._published_types.union(promises):
                found[name] = TIME_MIN
            elif (resume_from := self._promised(needs, promises, now)) is not None:
                found[name] = resume_from
        return found

    def _promised(
        self, needs: Collection[str], promises: Mapping[str, int], now: float
    ) -> int | None:
        if needs == {TIMER.name}:
            return self.time(now)
        still_open = [promises[name] for name in needs if name in promises]
        return min(still_open) if still_open else self.changes.beyond(needs)

    def recall_marks(self, marks: Mapping[str, int]) -> None:
        """Have these rules' composite events up to there, as before a restart."""
        self._routed = frozenset(marks)
        self._router.reach(marks.items())

    def count_on(self, names: Iterable[str]) -> None:
        """Count on these rules' composite events, from where they have come to."""
        self._router.count_on(names, self.committed)

    def forget(self, names: Collection[str]) -> None:
        """Forget rules that are gone: nothing that was said or found of them counts."""
        for name in names:
            self.part.forget(name)
            for known in (self.rule_marks, self.evaluated, self.committed, self.ended):
                known.pop(name, None)
        self.states.forget(names)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limits of what waits and of what is kept."""
        super().configure(config)
        self.changes.configure(config)
        self.replay_buffer.events_max = config.retained_events_max
        self.skew_limit.configure(config.lead_max_us)
        for evaluator in self.evaluators:
            evaluator.missing.configure(config.waiting_events_max)
            evaluator.look_again()

    # --- local sources ---

    def floors(self, names: Iterable[str]) -> Mapping[str, int]:
        """At the root: as was last found in the whole network. Of rules it is output watermarks
        that are known here: what comes before may still be evaluated (evaluation.tree_progress).
        """
        return {
            name: max(self.type_marks.get(name, TIME_MIN), self._gone_on_to(name))
            if self._deployments.is_used(name)
            else TIME_MIN
            for name in names
        }

    def _gone_on_to(self, name: str) -> int:
        """At the root: how far rules over a type, or above these, have come anywhere since its
        sources closed, of which none moves. What waits for the first has not, whatever its state.
        """
        known = self._advertisements.find(name)
        if self._by_arrival or name in self._let_back or self.is_absent(name):
            return TIME_MIN
        return TIME_MIN if known and known.advertisers else self._evaluated_with(name)

    def _evaluated_with(self, name: str) -> int:
        rules = self._deployments.resting_on(name)
        marks = ((begin, self.rule_marks.get(rule, TIME_MIN)) for begin, rule in rules)
        return max((mark for begin, mark in marks if begin < mark < CLOSED), default=TIME_MIN)

    def let_back(self, promises: Mapping[str, int | None]) -> None:
        """At the root: sources go on elsewhere, beyond these promises, or (None: nobody knows it)
        where rules have come to. All begins anew with the plan: no other promise binds them.
        """
        for name, mark in promises.items():
            least = self._evaluated_with(name) if mark is None else mark
            self.type_marks[name] = min(least, self.type_marks.get(name, TIME_MIN))
        self._let_back.update(promises)
        self.release_marks(promises)

    def take_let_back(self) -> tuple[str, ...]:
        """The types that ``let_back`` was told of since the last call."""
        names, self._let_back = tuple(sorted(self._let_back)), set()
        return names

    def release_marks(self, names: Iterable[str]) -> None:
        """All marks of these types begin anew."""
        for evaluator in self.evaluators if names else ():
            evaluator.progress.release_marks(names)

    def add_own(self, source: Source, names: Sequence[str]) -> None:
        """A local source publishes these types: its events lie beyond the marks given here. From
        now on its promise counts.
        """
        self.publishers.add(source, names)
        marks = self.evaluator.progress.types
        for name in names:
            source.begin_at(name, marks.get(name, TIME_MIN) if name in self._used else TIME_MIN)
        source.goes_on = True
        self._keep((source,))

    def begin_at(self, begins: Mapping[str, int]) -> None:
        """Nothing that local sources publish from now on counts if it is before these times."""
        for source in self.publishers.all:
            for name in source.floors.keys() & begins:
                source.floors[name] = max(source.floors[name], begins[name])
        self.publishers.touch()
        self._keep(self.publishers.all)

    def _keep(self, sources: Iterable[Source]) -> None:
        """Have it kept over a restart what these say."""
        if self.keeper is not None:
            for source in sources:
                self.keeper.touch(source)

    def resume(self, source: Source) -> None:
        """A source is back, perhaps at another broker."""
        if source.home:
            self.publishers.drop(source)
        super().resume(source)

    def push(self, batches: Sequence[EventBatch], horizon: int) -> None:
        """Events of local sources."""
        for batch in batches:
            self._advertisements[batch.type.name].take(batch, horizon)
        if not self._by_arrival:
            is_sent = not (self.is_paused or self.is_sending_again)
            self.replay_buffer.add(batches, is_sent=is_sent)
            if self.keeper is not None:
                self.keeper.append(batches)
        if self.is_paused:
            self._held.append(batches)
            return
        if self.part.evaluator.push_own(batches) and self._router.branches:  # behind what waits
            self._router.route_down(batches, in_sequence(batches), None)
        if self.tree_table.trees:
            self.tree_table.push(batches)

    def keep_promise(self, source: Source, mark: int | None, now: float) -> None:
        """A source promises."""
        if source.keep_promise(mark, now):
            self.publishers.note_promise(source)
        if self.keeper is not None:  # of what it has published, too
            self.keeper.touch(source)

    def forget_far(self, horizon: int) -> bool:
        """Forget what a replay has brought from beyond the horizon, far ahead of the clock: it
        binds nothing any more once no rule names its types, and nobody replays them
        (routing.serving.advertisements). Gives whether something has been forgotten here:
        then all must begin anew, for others were told of it.
        """

        def is_far(name: str, time: int) -> bool:
            return horizon < time < CLOSED and not (are_over(name) or is_replayed(name))

        are_over, is_replayed = self._deployments.are_over, self._advertisements.is_replayed
        self._advertisements.forget_far(are_over)
        self.replay_buffer.drop(is_far)
        for known in self._advertisements:
            name = known.schema.name
            for source in known.advertisers.values():
                if is_far(name, source.floors[name]):
                    source.floors[name] = TIME_MIN
                    self.publishers.touch()
        forgotten = [evaluator.forget_far(is_far) for evaluator in self.evaluators]
        for table in (self.fronts, self.type_marks):
            far = [name for name, time in table.items() if is_far(name, time)]
            forgotten.append(bool(far))
            for name in far:
                del table[name]
        return any(forgotten)

    def withdraw(self, source: Source, names: Sequence[str]) -> None:
        """A source publishes these types no more; one that has closed, nothing at all."""
        super().withdraw(source, names)
        self.publishers.touch()
        self._keep((source,))
        if source.standing is SourceState.CLOSED:
            if not source.home:
                self._accounts.end(source.name, self._name, source.last_sequence)
            if self._router.is_root:
                self.publishers.drop(source)
            else:
                self.publishers.leave(source)

    def take_leaving(self) -> list[Source]:
        """The local sources that have closed and of which nothing is held; the root has to hear it
        after the last of their events.
        """
        return [] if self.is_held else self.publishers.take_leaving()

    def touch(self, names: Iterable[str]) -> None:
        """A source may say something else than before."""
        self.publishers.touch()

    # --- division ---

    def hold(self) -> None:
        """Hold local sources."""
        self.is_paused = True

    def follow_trees(
        self, plan: Plan, divisions: Sequence[Division], kinds: Kinds
    ) -> Mapping[str, int]:
        """Set the trees for sinks that stand from now on, with their divisions.

        ``follow`` or ``begin_anew`` must come next. Gives, by source, from when on the composite
        events come again that this broker's sinks want.
        """
        tree_table, reached = self.tree_table, dict[str, int]()
        if plan.anew or plan.trees or self.trees:  # else all goes on where it is
            reached = self._reached()
        tree_table.follow(plan, divisions, kinds)
        self._router.reach(reached.items())
        own = tree_table.begun.get(self._name)
        return {} if own is None else own.resume(reached)

    def _reached(self) -> dict[str, int]:
        """How far this broker has the composite events of the rules that its sinks want."""
        parts: dict[TreePart, list[str]] = {}
        for one in self._deployments:
            parts.setdefault(self._part_of(one.rule.name), []).append(one.rule.name)
        marks = [one for part, names in parts.items() for one in part.marks_of(names).items()]
        return {name: mark for name, mark in marks if mark > TIME_MIN}

    def install_ahead(
        self, plan: Plan, division: Division, divisions: Sequence[Division]
    ) -> Iterator[None]:
        """Install new rules of a plan's divisions, as ``follow_trees`` has them, or all rules where
        they begin anew, before it is followed.
        """
        yield from self.evaluator.install_ahead(division, anew=plan.anew)
        yield from self.tree_table.install_ahead(plan, divisions)

    def follow(self, division: Division) -> None:
        """Evaluate what this broker has to from now on; what was held goes on (Law 1)."""
        self._follow(division)
        self._go_on(self._held)

    def _follow(self, division: Division) -> None:
        self._feed_trees()
        routed = self.tree_table.kinds.routed
        rules = [(one.rule.name, one.rule.wiring.defined) for one in division.rules]
        self._routed = frozenset([name for name, defined in rules if defined in routed])
        self._router.aside = {name for name, _ in rules} - self._routed
        self._published_types = frozenset({TIMER.name}).union(*division.published.values())
        self._release()
        self.skew_limit.keep(evaluator.skew for evaluator in self.evaluators)
        self._router.follow_division(
            division, [tree.root for tree in self.trees.values() if tree.mixed]
        )
        self.evaluator.follow(division)
        self.part.settle()

    def begin_anew(
        self,
        division: Division,
        resume_from: Mapping[str, int],
        front: int,
        *,
        is_lost: bool = True,
    ) -> Mapping[str, int]:
        """The same, but on the single tree all that is kept is sent and evaluated once more.

        ``front`` as in Plan. ``is_lost``: what was under way may be; else what is sent again is
        for rules alone, since whoever wanted it has got it. Gives, by source, from when on
        composite events come again. By arrival, nothing does.
        """
        if self._by_arrival:
            self.follow(division)
            return {}
        rules = [one.rule.name for one in division.rules]
        here = frozenset(rules)
        self.part.resume_from = {name: time for name, time in resume_from.items() if name in here}
        again = self._router.begin_anew(rules, self.part.resume_from, front)
        waiting = self.evaluator.replay.fresh_messages
        said = {name: self.part.resume_from.get(name, TIME_MAX) for name in rules}
        marks = replay_starts(division.rules, said, self.states.marks).marks
        self.evaluator.begin_anew(self.states.resumed(marks))
        self._follow(division)
        self.replay_buffer.begin_anew()
        kept = self._kept_for(self.part, division.rules)
        unsent = waiting + len(self._held)  # the last of what is kept
        came = 0 if is_lost else max(len(kept) - unsent, 0)
        self._go_on(kept, came)
        routed = {RULE_SOURCE + name for name in self._routed}
        return {source: time for source, time in again.items() if source in routed}

    def _kept_for(self, part: TreePart, rules: Sequence[Deployed]) -> list[Sequence[EventBatch]]:
        """Give the events that are kept; others, which the log alone has, are read before these."""
        buffer, schemas = self.replay_buffer, self._advertisements.schemas
        said = {one.rule.name: part.resume_from.get(one.rule.name, TIME_MAX) for one in rules}
        since = replay_starts(rules, said, self.states.marks).horizons
        part.evaluator.replay.begin_with(past_of(buffer, self.log, since, schemas))
        return list(buffer.fitting(schemas))

    def _feed_trees(self) -> None:
        """Give the trees for sinks what they need of what is kept, and of what was held (Law 1)."""
        for root, tree in self.trees.items():
            if root in self.tree_table.begun and not self._by_arrival:
                tree.begin(self._kept_for(tree, tree.division.rules))
            else:
                tree.wait(self._held)

    def _release(self) -> None:
        """Let nobody be late any more for what rules that are gone did with types (Law 4)."""
        before, self._used = self._used, frozenset(self._deployments.used)
        if before - self._used:
            self._advertisements.release(before - self._used)
            self.publishers.touch()
            self._keep(self.publishers.all)

    def _go_on(self, messages: Iterable[Sequence[EventBatch]], came: int = 0) -> None:
        """Send these, the first slices at once; so many that came first are for rules alone."""
        for place, batches in enumerate(messages):
            self.evaluator.replay.add(batches, fresh=place >= came)
        self._held, self.is_paused, self.is_at_work = [], False, True
        self.send_slices([one for one in self.evaluators if one.replay])

    def send_slices(self, evaluators: Sequence[TreeEvaluator]) -> None:
        """Send the next slice along the trees of these. A checkpoint that has come by in between
        did not follow what was yet to be sent: another is asked for once all has been.
        """
        was_sending_again = self.is_sending_again
        for one in evaluators:
            for batches in one.take_slice():
                if one is self.evaluator:
                    self._router.route_down(batches, in_sequence(batches), None)
        self.tree_table.touch_all()
        self.is_sending_again = any(one.replay for one in self.evaluators)
        if was_sending_again and not self.is_sending_again:
            self.replay_buffer.look_soon()

    def may_send(self, has_room: HasRoom) -> Sequence[TreeEvaluator]:
        """The evaluators for whose trees something waits that may go, by what links have room."""
        if self.is_paused or not (self.is_sending_again and self.is_at_work):
            return ()
        found = [one.evaluator for one in self.trees.values() if one.takes(has_room)]
        if all(map(has_room, self._router.branches)):
            found.append(self.evaluator)
        return [one for one in found if one.replay]

    def probe(self) -> None:
        """A checkpoint has come by: it follows what came before it, unless that is yet to go."""
        if not self.is_sending_again:
            self.replay_buffer.probe()

    def take_unpublished(self) -> tuple[str, ...]:
        """The types that rules here have waited for too long, each once."""
        found: set[str] = set()
        for evaluator in self._fed:
            if evaluator.missing.absent:
                found.update(evaluator.missing.take_unpublished())
        return tuple(sorted(found)) if found else ()

    def put_down(self, resume_from: Mapping[str, int]) -> list[RuleState]:
        """At the root: raise the states of rules, by composite events that have arrived up to these
        times; gives what is new of them, which all have to be told before they let go of anything.
        """
        if self._by_arrival or not self.evaluator.notes.rules:
            return []
        return put_down(self.states, self.evaluator, self._deployments.rules, resume_from)

    def not_before_committed(self, resume_from: Mapping[str, int]) -> dict[str, int]:
        """Resume points, none before what was committed, which who begins anew has yet to reach."""
        names, times = resume_from.keys(), resume_from.values()
        return dict(zip(names, map(max, times, map(self.committed.get, names, times)), strict=True))

    def commit(self, resume_from: Mapping[str, int]) -> None:
        """Composite events have arrived up to these times: what nobody needs can go."""
        rules, states = self._deployments.rules, self.states
        self.committed = self.not_before_committed(resume_from)
        needed = replay_starts(rules, self.committed, states.marks)
        self.replay_buffer.commit(needed.horizons)
        states.let_go(rules, needed.starts)
        if self.keeper is None:
            states.take_changes()

    def front_of(self, name: str) -> int | None:
        """At the root: the greatest time of a type's events, as was last found everywhere."""
        return self.fronts.get(name)

    def evaluated_to(self, name: str) -> int:
        """At the root: the mark of a type, as was last found everywhere."""
        return self.type_marks.get(name, TIME_MIN)

    def over(self, ends: Mapping[Deployed, int]) -> Collection[Deployed]:
        """The rules that never hold, and while a plan is made those that everybody has, too."""
        done = [one for one, end in ends.items() if end <= one.begin]
        if self.resume_points is None or len(done) == len(ends):
            return done
        until = {one.rule.name: max(one.begin, end) for one, end in ends.items()}
        rules = self._deployments.rules
        ending = [
            one if (end := until.get(one.rule.name)) is None else replace(one, until=end)
            for one in rules
        ]
        names = {one.rule.name for one in over(ending, self.resume_points)}
        return [one for one, end in ends.items() if end <= one.begin or one.rule.name in names]

    def follow_rules(self, gone: Collection[str], added: Sequence[Deployed]) -> None:
        """There are other rules: some are no more; the plan that follows divides the others."""
        self.forget(gone)
        self.follow_types()

    def mark_at_end(self, rule: str) -> int:
        """Whoever is out of reach may have evaluated a rule for its own sinks, but only as far as
        what it needs was promised by those who publish it, who are all here (Law 3).
        """
        mark = self.rule_marks.get(rule, TIME_MIN)
        if not self.out_of_reach:
            return mark
        needs = self._deployments.needs(rule)
        promised = min((self.type_marks.get(one, TIME_MIN) for one in needs), default=TIME_MIN)
        return max(mark, promised if promised != CLOSED else self.changes.beyond(needs) or TIME_MIN)

    # --- who is out of reach (Law 3) ---

    def check_reach(self, rules: RuleSet, ending: Sequence[Deployed]) -> None:
        """Raise Refusal where somebody is out of reach who publishes what these rules need, or what
        one does that is to end, or who evaluates that, too, since it goes by the clock alone.
        """
        if self._by_arrival or not self.out_of_reach:
            return
        before = [self._deployments.needs(one.rule.name) for one in ending]
        every = self._needs_with_reach(rules).union(*before)
        for broker, published in self.out_of_reach.items():
            missed = sorted(every.intersection(published))
            if missed:
                reason = f"broker {broker} {OUT_OF_REACH}, which has published {', '.join(missed)}"
                raise Refusal(Code.SILENT, reason)
            if any(one <= {TIMER.name} for one in before):
                reason = f"broker {broker} {OUT_OF_REACH}, where the rule goes by the clock, too"
                raise Refusal(Code.SILENT, reason)

    def check_past(self, rules: RuleSet, needs: Collection[str], since: int) -> None:
        """Raise Refusal where events of these types since then are kept nowhere; or from the
        beginning, where rules below are to find once more what their states begin beyond.
        """
        if self._by_arrival:
            raise Refusal(Code.BAD_RULES, "by arrival rules hold from when they are deployed")
        used = {type_.name for rule in rules.rules for type_ in rule.used_types}
        under = below(used, self._deployments.rules)
        groups = groups_of(one.rule for one in under)
        begins = [one.begin for one in under if one.rule.name in groups]
        check_logs(needs, min([since, *begins]), self.homes, self.logs)

    def _needs_with_reach(self, rules: RuleSet) -> frozenset[str]:
        """The types that new rules need, and those above them, by all that is published."""
        published = {*self._advertisements.published}.union(*self.out_of_reach.values())
        needs = self._deployments.needs_of_new(rules, published).values()
        above = self._deployments.needs_above({one.defines.name for one in rules.rules})
        return above.union(*needs)

    # --- evaluation ---

    def advance(self, now: float) -> Detections | None:
        """Advance; gives detections for this broker's sinks, from here and elsewhere."""
        microseconds, tree_table = round(now * MICROSECONDS), self.tree_table
        if not self.is_at_work:
            found = self.part.take_relayed()
        else:
            if not self.is_paused:
                self.publishers.say()
            clock = self.time(now) if self._deployments.need_clock else None
            found = self.part.advance(self.publishers.marks, clock, microseconds)
        if tree_table.trees:
            own, clock, is_at_work = self.publishers.marks, self.time(now), self.is_at_work
            found = [tree_table.only_routed(one) for one in found]
            found += tree_table.advance(own, clock, microseconds, is_at_work=is_at_work)
        if len(found) < 2:  # common
            return found[0] if found else None
        return joined(found)

    @property
    def front(self) -> int:
        """The greatest mark of a rule that is evaluated, or was told of, here."""
        found = [one.progress.output_watermarks(one.rules).values() for one in self.evaluators]
        own = self.tree_table.own
        told = () if own is None else own.marks_of(own.wanted).values()
        front: int = max([TIME_MIN, *chain(*found), *self._router.marks.values(), *told])
        return front

    def tell_all_marks(self) -> None:
        """Tell all marks, whether anybody waits for them or not."""
        self.part.tell_all()
        self.tree_table.tell_all()

    def tell_marks(self) -> None:
        """Somebody may want marks who has not heard them."""
        if self.is_at_work and not self._by_arrival:
            self.part.tell_marks()
