"""A broker of a network whose root chooses which way each rule goes, by what was measured.

Law 1: a rule goes one of three ways: along the trees of the brokers whose sinks want it, or along
the single tree, to its root or as deep as may be. But at the root it may be pulled, too, and over
some links be pushed all the same. All begin at the root of the single tree, which asks for no plan
when sinks want something else.

Law 2: with what a survey says of rates, of composite events and of what sinks want, the root weighs
what ways cost (weighing), and prefers others only where they clearly cost less (preferring). Its
plan says what it has chosen, so all change at one instant, and what moves begins anew as it does
when the network changes: nothing is lost, and nothing comes twice.

Law 3: it stays at that in networks that are too large to weigh, of 250 brokers with sinks say.
"""

from __future__ import annotations

from collections.abc import Mapping

from matcher.identity import RULE_SOURCE
from routing.config import Ordering
from routing.messages import Plan, Ways
from routing.network.agreement.rounds import Tally
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.ground import Ground
from routing.network.brokers.trees import SinkTrees
from routing.network.strategy import Choice
from routing.network.tables.covering import maximal
from routing.network.tables.filters import type_named
from routing.network.ways.preferring import PATHS_MAX, prefer
from routing.network.ways.sink_trees import fathers_of
from routing.network.ways.terrain import Facts
from routing.network.ways.weighing import Weighing
from routing.partition.placement import tree_of


class CheapestWays:
    """A Chooser of the way that each rule goes."""

    def __init__(self, ground: Ground, agreed: Agreed, trees: SinkTrees) -> None:
        self._ground = ground
        self._agreed = agreed
        self._trees = trees
        self._chosen: Ways | None = None
        """At the root: what the next plan is to say."""
        self._found_before: Mapping[str, tuple[int, int]] = {}
        agreed.choice = Choice(ways=Ways())

    def add_to(self, tally: Tally) -> None:
        """What was found of composite events, and what sinks here want."""
        ground = self._ground
        for station in ground.detection.stations:
            tally.find((source, *counts) for source, counts in station.found.items())
        wanted = maximal(ground.filters, ground.advertisements.schemas)
        if wanted:
            tally.wants.append((ground.name, wanted))

    def follow(self, plan: Plan) -> bool:
        """Rules may go other ways: all is measured anew."""
        self._found_before = {}
        for station in self._ground.detection.stations:
            station.found.clear()
        return True

    def choose(self) -> None:
        """As Chooser."""
        if self._chosen is not None:
            self._agreed.choice, self._chosen = Choice(ways=self._chosen), None

    def note(self, tally: Tally) -> None:
        """As Chooser."""
        self._found_before = dict(tally.found)

    def would_pay(self, rates: Mapping[str, float], seconds: float, tally: Tally) -> bool:
        """As Chooser."""
        plan, now = self._agreed.plan, self._agreed.choice.ways
        if plan is None or now is None or self._ground.config.ordering is Ordering.ARRIVAL:
            return False  # by arrival, what moves would begin with nothing
        if len(plan.nodes) * (1 + len(tally.wants)) > PATHS_MAX or not any(rates.values()):
            return False
        self._chosen = prefer(Weighing(self._facts(plan, rates, seconds, tally)), now)
        return self._chosen != now

    def _facts(self, plan: Plan, rates: Mapping[str, float], seconds: float, tally: Tally) -> Facts:
        names = tuple(name for name, _, _ in plan.nodes)
        (root,) = (name for name, father, _ in plan.nodes if not father)
        links = self._trees.standing_links(plan)
        wants = {
            broker: frozenset(name for text in texts if (name := type_named(text)) is not None)
            for broker, texts in tally.wants
        }
        rules = [one.rule for one in self._ground.deployments.in_force]
        defined = {rule.defines.name for rule in rules}
        found = {}
        for source, (size, batches) in tally.found.items():
            before = self._found_before.get(source, (0, 0))
            more = max(0, size - before[0]) / seconds, max(0, batches - before[1]) / seconds
            found[source.removeprefix(RULE_SOURCE)] = more
        return Facts(
            single=tree_of(root, {name: father for name, father, _ in plan.nodes if father}),
            trees={
                broker: tree_of(broker, fathers_of(broker, names, links))
                for broker, wanted in sorted(wants.items())
                if wanted & defined and broker in names
            },
            published={name: frozenset(types) for name, _, types in plan.nodes},
            schemas=self._ground.advertisements.schemas,
            rules=rules,
            rates=rates,
            found=found,
            wants=wants,
            seconds=seconds,
            age=sum(count for count, _ in tally.counts.values()) / sum(rates.values()),
            time=max(front for _, front in tally.counts.values()),
        )
