"""Agreement of the brokers of a tree, as this one was last told, and what follows from it.

It is told by the root and taken over whole (catalog_sync, planning); at the root it is what is told
next.
"""

from __future__ import annotations

from collections.abc import Collection

from routing.config import Ordering
from routing.messages import Catalog, Plan, Report, SinkTree
from routing.network.agreement.rounds import Absent
from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.router import Router
from routing.network.strategy import Choice, Strategy, has_sink_trees_by
from routing.network.ways.division import NOTHING, choice_of, divided, divided_for_sinks
from routing.network.ways.sink_trees import Kinds, kinds_of
from routing.partition.places import Division


class Agreed:
    """The catalog of the network, and the plan."""

    def __init__(self, strategy: type[Strategy], ordering: Ordering, router: Router) -> None:
        self.strategy = strategy
        self._ordering = ordering
        self._router = router
        self.catalog = Catalog((), ())
        """The root's catalog; at the root, as it has told it last."""
        self.plan: Plan | None = None
        self.choice = NOTHING
        """The choice that the last plan went by, or the next one will."""
        self._planned_for: tuple[str, int] | None = None
        """The tree for which the last plan was made."""
        self._last_number = 0
        self._divided: tuple[Plan, Catalog, Division] | None = None
        """The last division, for which overviews ask with each rule."""

    @property
    def by_arrival(self) -> bool:
        """Whether events have the times at which they come."""
        return self._ordering is Ordering.ARRIVAL

    def next_number(self) -> int:
        """At the root: the number of a pause, or of a checkpoint."""
        self._last_number += 1
        return self._last_number

    def follow(self, plan: Plan) -> None:
        """The tree goes by this plan from now on."""
        self.plan, self._planned_for = plan, self._router.epoch
        self.choice = choice_of(plan)

    def void(self) -> None:
        """There is no plan for the tree as it is."""
        self._planned_for = None

    @property
    def is_planned(self) -> bool:
        """Whether the last plan is for the tree as it is."""
        return self._planned_for is not None and self._planned_for == self._router.epoch

    @property
    def absent(self) -> Absent:
        """As in the last plan."""
        return () if self.plan is None else self.plan.absent

    @property
    def out_of_reach(self) -> Collection[str]:
        """The brokers that were out of reach when the last plan was made."""
        nodes = () if self.plan is None else self.plan.nodes
        return {name for name, _ in self.absent}.difference(name for name, _, _ in nodes)

    def resume_points(
        self, detection: DividedDetection, found: Report, apart: Collection[str], now: float
    ) -> dict[str, int]:
        """The resume points of all rules by what was found in the whole tree, perhaps before what
        was committed; ``apart``: types published out of reach, beside those of the plan.
        """
        apart = {*apart, *(one for _, types in self.absent for one in types)}
        planned = {} if self.plan is None else dict(self.plan.resume_from)
        said, promises = dict(found.resume_from), dict(found.promises)
        return detection.with_unsaid(said, promises, apart, planned, now)

    def division(self) -> Division | None:
        """How rules are divided over the single tree; None before there was a plan."""
        return None if self.plan is None else self.divided(self.plan)

    def divided(self, plan: Plan) -> Division:
        """How a plan divides rules over the single tree."""
        known, last = self.catalog, self._divided
        if last is None or last[0] is not plan or last[1] is not known:
            kind, ordering, choice = self.strategy, self._ordering, choice_of(plan)
            found = divided(kind, ordering, plan.nodes, plan.absent, known, choice)
            last = self._divided = plan, known, found
        return last[2]

    def kinds(self, choice: Choice) -> Kinds:
        """The types that come along the trees by a choice."""
        return kinds_of(self.catalog, has_sink_trees_by(self.strategy, choice))

    def divided_for(self, tree: SinkTree, plan: Plan) -> Division:
        """How a plan divides over a tree for sinks what these want."""
        kind, ordering, choice = self.strategy, self._ordering, choice_of(plan)
        known = plan.nodes, plan.links, plan.absent, self.catalog
        return divided_for_sinks(kind, ordering, tree.root, tree.filters, *known, choice)
