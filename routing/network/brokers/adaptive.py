"""A broker of a network whose root chooses the strategy, by what was measured.

A network begins with the first of the candidates. At each survey the root works out how each would
divide the rules, as every broker would follow it, and what that costs (cost_model).

Law: the first time the cheapest is taken; later on it has to save the share ``SAVING`` of what the
present one costs. For a change is a pause, and what rules reach back is sent once more, which is
little in the beginning. The plan says which it is, so all change at one instant. Now 100 bytes a
second: 91 elsewhere change nothing, 89 do.

No trees of sinks are weighed in networks where they have more than ``PATHS_MAX`` brokers together,
which is so with 250 brokers with sinks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matcher.identity import RULE_SOURCE
from routing.config import Ordering
from routing.messages import Plan
from routing.network.agreement.rounds import Tally
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.ground import Ground
from routing.network.brokers.trees import SinkTrees
from routing.network.strategy import CANDIDATES, RATES_S, Choice, has_sink_trees
from routing.network.tables.covering import maximal
from routing.network.tables.filters import type_named
from routing.network.ways.cost_model import CostModel, DividedTree, Measured
from routing.network.ways.sink_trees import trees_wanted

SAVING = 0.1
PATHS_MAX = 60_000


def preferred(costs: Mapping[Choice, float], now: Choice) -> Choice:
    """The choice to go by from now on (Law). ``costs``: bytes a second, of ``now`` as well."""
    cheapest = min(costs, key=costs.__getitem__)
    saving = SAVING if now.rates else 0.0
    return cheapest if costs[cheapest] < (1 - saving) * costs[now] else now


class CheapestStrategy:
    """A Chooser of one of CANDIDATES."""

    def __init__(self, ground: Ground, agreed: Agreed, trees: SinkTrees) -> None:
        self._ground = ground
        self._agreed = agreed
        self._trees = trees
        self._chosen: Choice | None = None
        """At the root: what the next plan is to say."""
        self._found_before: Mapping[str, tuple[int, int]] = {}
        agreed.choice = Choice(candidate=next(iter(CANDIDATES)))

    def add_to(self, tally: Tally) -> None:
        """Add the composite events found here, and the filters of the sinks here."""
        ground = self._ground
        for station in ground.detection.stations:
            tally.find((source, *counts) for source, counts in station.found.items())
        wanted = maximal(ground.filters, ground.advertisements.schemas)
        if wanted:
            tally.wants.append((ground.name, wanted))

    def follow(self, plan: Plan) -> bool:
        """Rules may be elsewhere: all is measured anew."""
        self._found_before = {}
        for station in self._ground.detection.stations:
            station.found.clear()
        return True

    def choose(self) -> None:
        """As Chooser."""
        if self._chosen is not None:
            self._agreed.choice, self._chosen = self._chosen, None

    def note(self, tally: Tally) -> None:
        """As Chooser."""
        self._found_before = dict(tally.found)

    def would_pay(self, rates: Mapping[str, float], seconds: float, tally: Tally) -> bool:
        """As Chooser."""
        plan = self._agreed.plan
        if plan is None or self._ground.config.ordering is Ordering.ARRIVAL:
            return False  # by arrival, what moves would begin with nothing
        if not any(rates.values()):
            return False
        model = self._model(plan, rates, seconds, tally)
        said = tuple((name, round(rate * RATES_S)) for name, rate in rates.items())
        is_small = len(plan.nodes) * (1 + len(tally.wants)) <= PATHS_MAX
        choices = [
            Choice(said, name)
            for name, strategy in CANDIDATES.items()
            if is_small or not has_sink_trees(strategy)
        ]
        now = self._agreed.choice
        costs = {one: self._cost(model, plan, one, tally) for one in (now, *choices)}
        chosen = preferred(costs, now)
        self._chosen = None if chosen == now else chosen
        return chosen != now

    def _model(
        self, plan: Plan, rates: Mapping[str, float], seconds: float, tally: Tally
    ) -> CostModel:
        found = {}
        for source, (size, batches) in tally.found.items():
            before = self._found_before.get(source, (0, 0))
            more = max(0, size - before[0]) / seconds, max(0, batches - before[1]) / seconds
            found[source.removeprefix(RULE_SOURCE)] = more
        time = max(front for _, front in tally.counts.values())
        age = sum(count for count, _ in tally.counts.values()) / sum(rates.values())
        return CostModel(
            Measured(seconds, age, rates, found, time),
            {name: frozenset(types) for name, _, types in plan.nodes},
            self._ground.advertisements.schemas,
            [one.rule for one in self._ground.deployments.in_force],
        )

    def _cost(self, model: CostModel, plan: Plan, choice: Choice, tally: Tally) -> float:
        """The cost of a choice in the network of the present plan, with what sinks want by now."""
        agreed, kinds = self._agreed, self._agreed.kinds(choice)
        schemas = self._ground.advertisements.schemas
        trees = tuple(trees_wanted(tally.wants, kinds, schemas, plan.number))
        links = self._trees.standing_links(plan)
        plan = replace(
            plan, rates=choice.rates, candidate=choice.candidate, trees=trees, links=links
        )
        wants = {
            broker: frozenset(name for text in texts if (name := type_named(text)) is not None)
            for broker, texts in tally.wants
        }
        own = []
        for tree in trees:
            division = agreed.divided_for(tree, plan)
            mixed = frozenset({tree.root} if tree.mixed else ())
            laid = DividedTree(division.tree(tree.root), division, {}, mixed)
            wanted = wants[tree.root] & kinds.own & laid.places.keys()
            own.append(replace(laid, wants={tree.root: wanted}))
        division = agreed.divided(plan)
        mixed = frozenset(one.root for one in trees if one.mixed)
        single = DividedTree(division.tree(plan.root), division, {}, mixed)
        routed = kinds.routed & single.places.keys()
        by_broker = {
            broker: names & routed
            for broker, names in wants.items()
            if broker in single.tree.depths and names & routed
        }
        return model.cost(replace(single, wants=by_broker), own)
