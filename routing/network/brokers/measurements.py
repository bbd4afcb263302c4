"""Choosing how rules are divided, by what is published (thesis 7.3.8).

The root takes a checkpoint of the tree now and then, and so hears how many events of each type
there were so far, and what was found of them. From one checkpoint to the next that gives rates, by
the events' own times, since windows go by these. It does so every ``ADAPT_AFTER_S`` until rates are
known, and then after twice as long each time, up to ``ADAPT_EVERY_S``. With each plan counting
begins anew.

At each checkpoint the root works out how the rules would be divided at these rates, as every broker
would follow it, with the masters that then cost least, and where the strategy chooses among several
by each of these, and what that costs (cost_model).

Law: the first time the cheapest is taken; later on it has to save the share ``SAVING`` of what the
present one costs. For a change is a pause, and what rules reach back may be sent once more, which
is little in the beginning. The plan bears rates and strategy, so all change at one instant. Now 100
bytes a second: 91 elsewhere change nothing, 89 do. By arrival the strategy stays the same, for what
moves would begin with nothing.

No trees of sinks are weighed in networks where they have more than ``PATHS_MAX`` brokers together,
which is so with 250 brokers with sinks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from matcher.identity import RULE_SOURCE
from matcher.model import MICROSECONDS
from routing.messages import Plan, Report, RootRequest, RootTask
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.root_requests import RootRequests
from routing.network.brokers.trees import SinkTrees
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.strategy import RATES_S, Choice, chosen_by, has_sink_trees_by
from routing.network.tables.filter_cover import maximal
from routing.network.tables.filters import type_named
from routing.network.ways.cost_model import CostModel, DividedTree, Measured
from routing.network.ways.sink_trees import trees_wanted

ADAPT_AFTER_S, ADAPT_EVERY_S = 8.0, 600.0
SAVING = 0.1
PATHS_MAX = 60_000
Wants: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Brokers, and what their sinks want."""


def preferred(costs: Mapping[Choice, float], now: Choice) -> Choice:
    """The choice to go by from now on (Law). ``costs``: bytes a second, of ``now`` as well."""
    cheapest = min(costs, key=costs.__getitem__)
    saving = SAVING if now.rates else 0.0
    return cheapest if costs[cheapest] < (1 - saving) * costs[now] else now


class Measurements:
    """Measures at the root what is published, and chooses by that."""

    def __init__(
        self,
        context: BrokerContext,
        agreed: Agreed,
        timer: UpdateTimer,
        root_requests: RootRequests,
        trees: SinkTrees,
    ) -> None:
        self._context = context
        self._agreed = agreed
        self._timer = timer
        self._root_requests = root_requests
        self._trees = trees
        self._candidates = chosen_by(agreed.strategy)
        agreed.choice = Choice(candidate=self._candidates[0])
        self.due_at: float | None = None
        """When the root takes the next checkpoint; None elsewhere."""
        self._after_s = ADAPT_AFTER_S
        self._before: Report | None = None
        """The findings of the last checkpoint under the present plan."""
        self._chosen: Choice | None = None
        """At the root: what the next plan is to say, where another would pay."""
        context.detection.measure()

    @property
    def has_work(self) -> bool:
        """At the root: whether a plan would pay."""
        return self._chosen is not None

    def handle_timer(self) -> None:
        """Take a checkpoint, at the root, and where there is something to measure."""
        context = self._context
        self.due_at = context.moment.now + self._after_s
        if context.router.is_root and context.detection.is_at_work and len(context.deployments):
            self._root_requests.say(RootRequest(RootTask.CHECKPOINT))

    def follow(self) -> None:
        """There is another plan: rules may be elsewhere, and all is measured anew."""
        self._before = None
        for evaluator in self._context.detection.evaluators:
            evaluator.found.clear()
        if not self._context.router.is_root:
            self.due_at = None
        elif self.due_at is None:
            self._after_s = ADAPT_AFTER_S
            self.due_at = self._context.moment.now + ADAPT_AFTER_S

    def begin_plan(self) -> None:
        """At the root: a plan is made."""
        if self._chosen is not None:
            self._agreed.choice, self._chosen = self._chosen, None

    # --- checkpoints ---

    def added_to(self, own: Report) -> Report:
        """Add to a checkpoint what was published and found here, and what sinks here want."""
        context, detection = self._context, self._context.detection
        published = [context.advertisements.find(name) for name in detection.publishers.types]
        counts = [
            (one.schema.name, one.events, one.front)
            for one in published
            if one is not None and one.front is not None
        ]
        found = [
            (source, *counts)
            for evaluator in detection.evaluators
            for source, counts in evaluator.found.items()
        ]
        wanted = maximal(context.filters, context.advertisements.schemas)
        wants = ((context.name, wanted),) if wanted else ()
        return replace(own, counts=tuple(counts), found=tuple(found), wants=wants)

    def weigh(self, report: Report) -> None:
        """At the root: a checkpoint has brought this."""
        before, self._before = self._before, report
        plan = self._agreed.plan
        if plan is None or before is None or not (before.counts and report.counts):
            return
        seconds = (_front_of(report) - _front_of(before)) / MICROSECONDS
        if seconds <= 0:
            return
        self._after_s = min(2 * self._after_s, ADAPT_EVERY_S)
        had = {name: events for name, events, _ in before.counts}
        rates = {
            name: max(0, events - had.get(name, 0)) / seconds for name, events, _ in report.counts
        }
        if any(rates.values()):
            self._choose(plan, rates, _measured(before, report, rates, seconds), report.wants)

    def _choose(
        self, plan: Plan, rates: Mapping[str, float], measured: Measured, wants: Wants
    ) -> None:
        agreed, now = self._agreed, self._agreed.choice
        said = tuple((name, round(rate * RATES_S)) for name, rate in rates.items())
        is_small = len(plan.nodes) * (1 + len(wants)) <= PATHS_MAX
        choices = [
            one
            for one in (Choice(said, name) for name in self._candidates)
            if (is_small or not has_sink_trees_by(agreed.strategy, one))
            and (one.candidate == now.candidate or not agreed.by_arrival)
        ]
        if not choices:
            return
        model = CostModel(
            measured,
            {name: frozenset(types) for name, _, types in plan.nodes},
            self._context.advertisements.schemas,
            [one.rule for one in self._context.deployments.in_force],
        )
        costs = {one: self._cost(model, plan, one, wants) for one in (now, *choices)}
        chosen = preferred(costs, now)
        self._chosen = None if chosen == now else chosen
        if self.has_work:
            self._timer.tell_soon()

    def _cost(self, model: CostModel, plan: Plan, choice: Choice, wants: Wants) -> float:
        """The cost of a choice in the network of the present plan, with what sinks want by now."""
        agreed, kinds = self._agreed, self._agreed.kinds(choice)
        schemas = self._context.advertisements.schemas
        trees = tuple(trees_wanted(wants, kinds, schemas, plan.number))
        links = self._trees.standing_links(plan)
        plan = replace(
            plan, rates=choice.rates, candidate=choice.candidate, trees=trees, links=links
        )
        types = {
            broker: frozenset(name for text in texts if (name := type_named(text)) is not None)
            for broker, texts in wants
        }
        own = []
        for tree in trees:
            division = agreed.divided_for(tree, plan)
            mixed = frozenset({tree.root} if tree.mixed else ())
            laid = DividedTree(division.tree(tree.root), division, {}, mixed)
            wanted = types[tree.root] & kinds.own & laid.places.keys()
            own.append(replace(laid, wants={tree.root: wanted}))
        division = agreed.divided(plan)
        mixed = frozenset(one.root for one in trees if one.mixed)
        single = DividedTree(division.tree(plan.root), division, {}, mixed)
        routed = kinds.routed & single.places.keys()
        by_broker = {
            broker: names & routed
            for broker, names in types.items()
            if broker in single.tree.depths and names & routed
        }
        return model.cost(replace(single, wants=by_broker), own)


def _front_of(report: Report) -> int:
    return max(front for _, _, front in report.counts)


def _measured(
    before: Report, report: Report, rates: Mapping[str, float], seconds: float
) -> Measured:
    """The findings of two checkpoints, so many seconds apart."""
    had = {source: counts for source, *counts in before.found}
    found = {}
    for source, size, batches in report.found:
        size_before, batches_before = had.get(source, (0, 0))
        more = max(0, size - size_before) / seconds, max(0, batches - batches_before) / seconds
        found[source.removeprefix(RULE_SOURCE)] = more
    age = sum(events for _, events, _ in report.counts) / sum(rates.values())
    return Measured(seconds, age, rates, found, _front_of(report))
