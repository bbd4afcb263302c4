"""Pauses: how the brokers of a tree come to do the same, at one instant (brokers.md section 5).

Law 1: before the root changes what the division of the rules follows from it lets the whole tree
pause: all brokers hold their local sources, and say how far they are once all that came before has
gone up. Then it tells Catalog and Plan, and every broker works out the same division. From its
answer to the plan a broker does nothing, so nothing is under way when the division changes. A rule
is deployed: b1 to b3 hold their Temps for two round trips, then send them by the plan.

Law 2: while there is no plan for the tree as it is a broker evaluates, sends and believes nothing.
The link from b2 to b3 breaks: b3 holds its Temps until b2 or another has planned.

Law 3: whoever joins the tree, or has been away from it, asks for a plan; a pause that somebody has
not taken part in from its beginning is begun again. b4 is linked to b3 while the tree pauses: b3
asks for a plan, and all pause once more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from routing.messages import Catalog, Pause, Plan, Report, RootRequest, RootTask
from routing.network.agreement.catalog import digest_of
from routing.network.agreement.rounds import combined, raise_all
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.checkpoints import Checkpoints
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.plan_follower import PlanFollower
from routing.network.brokers.planner import Planner
from routing.network.brokers.registry import SourceRegistry
from routing.network.brokers.report_collector import ReportCollector
from routing.network.brokers.root_requests import RootRequests
from routing.network.brokers.subscription_sync import SubscriptionSync
from routing.network.brokers.trees import SinkTrees
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.router import Router
from routing.network.ways.division import divide_ahead
from routing.serving.ahead import horizon_of
from routing.serving.slices import Slices, rest_of_slice


class Reason(Protocol):
    """A part that may have a reason for a plan."""

    @property
    def has_work(self) -> bool:
        """At the root: whether it has."""
        ...


@dataclass(eq=False)
class Pauses:
    """Lets the tree pause, at the root, and pauses. ``reasons``: whose work a plan is made for."""

    _context: BrokerContext
    _agreed: Agreed
    _timer: UpdateTimer
    _root_requests: RootRequests
    _collector: ReportCollector
    _subscription_sync: SubscriptionSync
    _checkpoints: Checkpoints
    _planner: Planner
    _follower: PlanFollower
    _trees: SinkTrees
    _slices: Slices
    _registry: SourceRegistry
    _reasons: Sequence[Reason]
    _router: Router = field(init=False)
    _detection: DividedDetection = field(init=False)
    _to_pause: dict[str, Pause] = field(default_factory=dict)
    """Brokers that asked this one to pause last: its father in some tree by which it may not go
    yet. It will pause once it does."""
    _may_have_lost: bool = True
    """Whether the last pause was in another tree than the plan before it, or with others."""
    _needs_plan: bool = False
    """At the root: whether brokers have joined the tree."""
    _is_asked: bool = False
    """At the root: whether anybody needs a pause."""
    _newcomers: Sequence[str] = ()
    _own: Plan | None = None
    """At the root: the plan that is about to be followed."""

    def __post_init__(self) -> None:
        self._router = self._context.router
        self._detection = self._context.detection

    # --- what a plan is for ---

    @property
    def has_work(self) -> bool:
        """At the root: whether there is a reason to divide the rules anew."""
        if self._is_asked:
            return True
        for one in self._reasons:  # noqa: SIM110 (a generator has a step for each)
            if one.has_work:
                return True
        return False

    def handle_request(self, request: RootRequest) -> None:
        """At the root: somebody needs a plan, or says in a pause which rule has ended by itself."""
        self._is_asked = True
        self._needs_plan |= request.what is not RootTask.END
        self._timer.tell_soon()

    # --- the tree ---

    def stop(self) -> None:
        """The tree is another (Law 2)."""
        self._detection.hold()
        self._detection.is_at_work = False
        self._collector.stop()
        self._agreed.void()

    def enter(self) -> None:
        """The tree is this from now on, or there is none."""
        router = self._router
        if router.epoch is not None and router.is_back and not router.is_root:
            self._to_pause.clear()
            self._root_requests.say(RootRequest(RootTask.PLAN, (self._context.name,)))

    def look(self) -> None:
        """Something has come from neighbours: see whether it is time to pause."""
        router, agreed = self._router, self._agreed
        if router.is_root:
            if not agreed.is_planned or (self._timer.tell_at is None and self.has_work):
                self.begin()
        elif router.father is not None:
            pause = self._to_pause.get(router.father)
            if pause is not None and self._is_meant(router.father, pause):
                del self._to_pause[router.father]
                self._pause(pause)
        if (self._newcomers or router.has_strangers) and agreed.is_planned:
            self._look_for_newcomers()

    def _look_for_newcomers(self) -> None:
        router = self._router
        if not self._detection.is_at_work:
            return
        new = sorted({one.neighbour for one in router.children} - router.partners)
        if new and new != self._newcomers:
            self._root_requests.say(RootRequest(RootTask.PLAN, tuple(new)))
        self._newcomers = new

    def _is_meant(self, neighbour: str, message: Pause | Plan) -> bool:
        """Whether the father says this, and of the tree as it is."""
        is_from_father = neighbour == self._router.father
        return is_from_father and (message.root, message.epoch) == self._router.epoch

    # --- rounds ---

    def begin(self) -> None:
        """At the root: let the tree pause, unless it does already."""
        is_idle = self._needs_plan or not isinstance(self._collector.question, Pause)
        epoch = self._router.epoch
        if is_idle and epoch is not None:
            introduce = self._needs_plan or not self._agreed.is_planned
            self._needs_plan = self._is_asked = False
            self._trees.begin_round()
            pause = Pause(*epoch, self._agreed.next_number(), "", introduce)
            if introduce:
                states = tuple(self._detection.states.marks.items())
                pause = replace(pause, known=digest_of(self._agreed.catalog), states=states)
            self._pause(pause)
            self._context.service.settle()

    def _pause(self, pause: Pause) -> None:
        self._may_have_lost = pause.introduce
        self._detection.hold()
        if pause.introduce:
            for branch in self._router.branches.values():
                branch.told = branch.catalog = None  # it may have been told before it listened
                branch.has_joined = False  # and may know what the root does not
        self._context.tell_all_marks()  # so resume points are not older than need be
        self._collector.ask(pause, lambda reports: self._conclude(pause, reports))

    def hear_pause(self, neighbour: str, message: Pause) -> None:
        """A father, in some tree, asks this broker to pause."""
        self._to_pause[neighbour] = message

    def _conclude(self, pause: Pause, reports: list[Report]) -> None:
        """All below pause."""
        context, father = self._context, self._router.father
        context.service.settle()  # all that has come goes up before the answer
        is_far = self._detection.forget_far(horizon_of(context.config, context.moment.now))
        report = combined(self._report(pause), reports)
        if self._router.is_root:
            plan = self._planner.plan(report, introduce=pause.introduce, anew=is_far)
            self._slices.prepare(self._prepare_own(plan), self._follow_own)
        elif father is not None:
            self._subscription_sync.index()
            self._subscription_sync.tell((father,))
            if pause.introduce:  # what the root may not have, which rules go on by
                for state in self._detection.states.beyond(dict(pause.states)):
                    context.send(father, state)
            context.send(father, report)
            self._detection.is_at_work = False

    def _prepare_own(self, planning: Generator[None, None, Plan]) -> Iterator[None]:
        self._own = yield from planning
        yield from self._rest_of_slice()
        yield from self._follower.prepare(self._own)
        yield from self._rest_of_slice()

    def _rest_of_slice(self) -> Iterator[None]:
        return rest_of_slice(len(self._agreed.catalog.rules))

    def _follow_own(self) -> None:
        assert self._own is not None
        plan, self._own = self._own, None
        self._follower.follow(plan, is_lost=self._may_have_lost)
        self._timer.look_again()  # the answers follow

    def _report(self, pause: Pause) -> Report:
        """Say how far this broker is, and what it has to do with."""
        context, detection, name = self._context, self._detection, self._context.name
        published = detection.publishers.types
        fronts = ((one, context.advertisements.front(one)) for one in published)
        marks: dict[str, int] = {}
        rules: dict[str, int] = {}
        for evaluator in detection.evaluators:
            raise_all(marks, evaluator.progress.types.items())
            raise_all(rules, evaluator.progress.marks.items())
        raise_all(detection.evaluated, rules.items())
        report = Report(
            pause.root,
            pause.epoch,
            pause.number,
            nodes=((name, self._router.father or "", tuple(published)),),
            fronts=tuple((one, front) for one, front in fronts if front is not None),
            marks=tuple(marks.items()),
            rules=tuple(rules.items()),
            resume_from=tuple(detection.resume_points_of(context.wanted_rules).items()),
            wants=self._trees.answer(),
            front=detection.front,
            ended=tuple(detection.ended.items()),
            promises=tuple(detection.promises.items()),
            logs=() if detection.log is None else ((name, detection.log.whole_from),),
            lost=context.sources.lost_at(name),
        )
        if not pause.introduce:
            return report
        return replace(  # of whoever was the root before, and is it no longer
            report,
            committed=tuple(detection.committed.items()),
            rules=tuple(detection.evaluated.items()),
            sources=tuple((one, name, types) for one, types in detection.publishers.open),
            known=self._else_known(pause),
            stays=self._registry.stays(),
        )

    def _else_known(self, pause: Pause) -> tuple[Catalog, ...]:
        """Knowledge of this broker that the root has not; also who is out of reach, of whom the
        root may never have heard, and the types of events that are kept and will be sent again:
        perhaps published no more, and mentioned by no rule, or by one that ends with this pause.
        """
        own, part = self._agreed.catalog, self._context.overlay.topology.part
        known = () if digest_of(own) == pause.known else (own,)
        homes = () if known else tuple(one for one in own.homes if one[0] not in part.nodes)
        kept = {
            batch.type.name: batch.type
            for batches in self._detection.replay_buffer
            for batch in batches
        }
        also = Catalog(tuple(kept[name] for name in sorted(kept)), (), homes=homes)
        return (*known, also) if kept or homes else known

    # --- plans ---

    def hear_plan(self, neighbour: str, plan: Plan) -> None:
        """The root's plan, which ends the pause."""
        if self._is_to_be_followed(neighbour, plan):
            self._collector.stop()
            self._follower.follow(plan, is_lost=self._may_have_lost)

    def prepare_plan(self, neighbour: str, plan: Plan) -> Iterator[None]:
        """Install the rules that it is about to evaluate; yields behind each."""
        if self._is_to_be_followed(neighbour, plan) and not self._detection.is_at_work:
            yield from self._rest_of_slice()  # the catalog may have come with it
            yield from divide_ahead(self._agreed.strategy, self._agreed.catalog)
            yield from self._follower.prepare(plan)

    def _is_to_be_followed(self, neighbour: str, plan: Plan) -> bool:
        """Whether this broker is in a plan, of the tree as it is."""
        own = self._context.name
        is_in_it = any((name, father) == (own, neighbour) for name, father, _ in plan.nodes)
        return is_in_it and self._is_meant(neighbour, plan)
