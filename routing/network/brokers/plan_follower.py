"""The plan follower: every broker's work on a plan of the root (brokers.md section 5).

It works out the same division as all others (division), from what it was told before, and tells its
children what is known and the plan before anything that follows from them.

Where rules begin anew (planner, Law 2), sinks drop what they hold of that, since it comes again;
not what is from before a rule holds, which is of an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matcher.identity import RULE_SOURCE
from routing.messages import Plan
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.catalog_sync import CatalogSync
from routing.network.brokers.checkpoints import Checkpoints
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.measurements import Measurements
from routing.network.brokers.single_tree_traffic import SingleTreeTraffic
from routing.network.brokers.subscription_sync import SubscriptionSync
from routing.network.brokers.trees import SinkTrees
from routing.network.recovery.resume_points import Times
from routing.serving.slices import rest_of_slice

REOPENED = "inputs that had been closed are open again"
"""Words of their broker's log for them, and for where they begin (planner, Law 4)."""


@dataclass(eq=False)
class PlanFollower:
    """Follows plans."""

    _context: BrokerContext
    _agreed: Agreed
    _subscription_sync: SubscriptionSync
    _catalog_sync: CatalogSync
    _single_traffic: SingleTreeTraffic
    _checkpoints: Checkpoints
    _trees: SinkTrees
    _measurements: Measurements | None
    _told_given_up: int = 0

    def prepare(self, plan: Plan) -> Iterator[None]:
        """Install the rules that are to be evaluated here by a plan; yields behind some of them."""
        if not self._agreed.by_arrival:
            agreed = self._agreed
            trees, division = [], agreed.divided(plan)
            for tree in plan.trees:
                yield
                trees.append(agreed.divided_for(tree, plan))
            yield from rest_of_slice(len(agreed.catalog.rules))
            yield from self._context.detection.install_ahead(plan, division, trees)

    def follow(self, plan: Plan, *, is_lost: bool) -> None:
        """Go by this plan. ``is_lost``: what was under way before it may be."""
        self._checkpoints.begin_anew()
        self._agreed.follow(plan)
        self._reopen(dict(plan.reopened).get(self._context.name, ()))
        self._take_over(plan)
        self._tell(self._partners_in(plan), plan)
        for rule, type_name, until in plan.ended:
            self._context.service.note_overrun(rule, type_name, until)
        again = self._divide(plan, is_lost=is_lost)
        if again:
            self._withdraw(again)
        if self._measurements is not None:
            self._measurements.follow()

    def _reopen(self, begins: Times) -> None:
        """Begin where the plan says (planner, Law 4). ``begins``: by type, where it begins."""
        if begins:
            self._context.outlet.log("warning", REOPENED, begin=dict(begins))
            self._context.detection.begin_at(dict(begins))

    def _take_over(self, plan: Plan) -> None:
        """Know what the plan says that this broker publishes."""
        own = self._context.name
        (types,) = (types for name, _, types in plan.nodes if name == own)
        self._context.detection.publishers.follow(types, dict(plan.absent).get(own, ()))

    def _partners_in(self, plan: Plan) -> list[str]:
        """Take father and children of the plan for partners; gives the children."""
        context, router = self._context, self._context.router
        partners = {name for name, father, _ in plan.nodes if father == context.name}
        children = sorted(partners & router.branches.keys())
        if router.father is not None:
            partners.add(router.father)
        router.join(partners)
        for child in children:
            router.branches[child].has_joined = True
        return children

    def _tell(self, children: list[str], plan: Plan) -> None:
        self._catalog_sync.pass_on()
        self._subscription_sync.index()
        self._subscription_sync.tell(children)
        for child in children:
            self._context.send(child, plan)

    def _divide(self, plan: Plan, *, is_lost: bool) -> dict[str, int]:
        """Do as the plan says; gives, by source, from when on composite events come again."""
        detection = self._context.detection
        division = self._agreed.divided(plan)
        again = dict(self._trees.follow(plan))
        detection.release_marks(plan.moved)
        if plan.anew:
            self._single_traffic.deduplicator.begin_anew()
            self._warn_of_what_was_given_up()
            resume_from = dict(plan.resume_from)
            again.update(detection.begin_anew(division, resume_from, plan.front, is_lost=is_lost))
        else:
            detection.follow(division)
        return again

    def _withdraw(self, again: dict[str, int]) -> None:
        """Drop what sinks hold and will get again; ``again``: by source, from when on it comes."""
        context = self._context
        for one in context.deployments.rules:
            source = RULE_SOURCE + one.rule.name
            if source in again:
                again[source] = max(again[source], one.begin)
        for sink in context.sinks:
            sink.held.withdraw(again)
            context.sinks.touch(sink)

    def _warn_of_what_was_given_up(self) -> None:
        events = self._context.detection.replay_buffer.given_up
        if events > self._told_given_up:
            self._told_given_up = events
            text = "the network changed; what was under way of events given up may be lost"
            self._context.outlet.log("warning", text, events=events)
