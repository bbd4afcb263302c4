"""A processing tree for each broker that has sinks (thesis 7.3.2): what is wanted of it, and when
it begins anew.

The single tree carries what is decided (planner, Law 1). In its answer to a pause each broker says
what its sinks want; the root's plan names the brokers that have trees, with what they want of them,
and the links that count.

Law 1: a tree goes on under its number while its plan is the same for all of its brokers, whatever
else a plan changes. Otherwise it begins anew, under the number of the plan. The tree of b1 began
with plan 3; plan 4 only adds a sink at b2: it is still number 3.

Law 2: a broker whose sinks want something else asks for a plan; so does one at the end of a link
that is lost, or is back, and belongs to a tree: what was under way there may be lost. A link that
is not there according to the link states belongs to no tree. The link of b2 and b3 was lost: the
trees over it begin anew, others go on.

Law 3: a tree that uses a type begins anew when a source of it joins: where nobody published it any
more others have been told that nothing more would come, and may be beyond where that source begins.
The last source of Temp at b3 has closed, and the tree of b1 has gone on; another one comes to b3.

Law 4: a subscription is confirmed once it is in force on the single tree, and once a plan has it,
and no plan that may be without it is on its way. A client subscribes to Fire while the tree pauses
for another: it hears after the plan for Fire.

Law 5: every broker's wants are told along the single tree, whatever way they are met. So they are
in force there when the rules of a type come back to it, because of another rule or another source.
These then begin anew (planner, Law 2), though rules above them may have had them evaluated there
all the time: what that found nobody was told, and trees of sinks may be behind it. Somebody
publishes Fire, too: sinks get all Fires along the single tree, from where they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from routing.messages import Plan, Report, RootRequest, RootTask, SinkTree
from routing.network.brokers.agreed import Agreed
from routing.network.brokers.context import BrokerContext
from routing.network.brokers.root_requests import RootRequests
from routing.network.brokers.sink_tree_traffic import SinkTreeTraffic
from routing.network.brokers.update_timer import UpdateTimer
from routing.network.strategy import has_sink_trees
from routing.network.tables.filter_cover import maximal
from routing.network.tables.filters import type_named
from routing.network.ways.sink_trees import Kinds, trees_wanted
from routing.overlay.graph import Component, Edge


class SinkTrees:
    """The trees of brokers with sinks, beside the single one."""

    def __init__(
        self,
        context: BrokerContext,
        agreed: Agreed,
        timer: UpdateTimer,
        root_requests: RootRequests,
        sink_traffic: SinkTreeTraffic,
    ) -> None:
        self._context = context
        self._router = context.router
        self._agreed = agreed
        self._timer = timer
        self._root_requests = root_requests
        self._sink_traffic = sink_traffic
        self._detection = context.detection
        self.has_work = False
        """At the root: whether somebody has asked for a plan because of trees."""
        self._lost: set[frozenset[str]] = set()
        """At the root: the links of trees that were lost since the last plan."""
        self._looked_at: Component | None = None
        """At the root: the network in which the links of trees were looked for last."""
        self._asked_for: tuple[str, ...] | None = None
        """Filters that this broker has asked for in its own tree, since the last plan."""
        self.joined: frozenset[str] = frozenset()
        """At the root: the types of which sources join with the plan that is being made (Law 3)."""

    # --- what sinks want ---

    @property
    def _kinds(self) -> Kinds:
        return self._agreed.kinds(self._agreed.choice)

    @property
    def _wanted(self) -> tuple[str, ...]:
        """The filters of this broker's sinks for its own tree."""
        context = self._context
        return self._kinds.own_filters(context.filters, context.advertisements.schemas)

    @property
    def is_wanted_planned(self) -> bool:
        """Whether the own tree gives what this broker's sinks want of it, and no plan that may be
        without it is on its way (Law 4).
        """
        return not self._detection.is_paused and self._wanted == self._planned

    @property
    def _planned(self) -> tuple[str, ...]:
        """The filters that the own tree is for."""
        tree = self._detection.tree_table.own
        return () if tree is None else tree.filters

    def ask_for_own(self) -> None:
        """Law 2, of sinks."""
        wanted = self._wanted
        if self._agreed.is_planned and wanted not in (self._planned, self._asked_for):
            self._asked_for = wanted
            self._root_requests.say(RootRequest(RootTask.TREES))

    # --- links (Law 2) ---

    def handle_request(self, request: RootRequest) -> None:
        """At the root: somebody needs a plan because of trees."""
        self.has_work = True
        if request.names:
            self._lost.add(frozenset(request.names))
        self._timer.tell_soon()

    def note_link(self, neighbour: str) -> None:
        """A link is up, or down: nothing goes on over what may have lost something."""
        self._sink_traffic.forget(neighbour)
        own = self._context.name
        trees = [one for one in self._detection.trees.values() if one.has_link(own, neighbour)]
        for tree in trees:
            tree.close(neighbour)
        if trees:
            self._root_requests.say(RootRequest(RootTask.TREES, (own, neighbour)))

    def look_at_links(self) -> None:
        """At the root: see whether the network still has the links of the plan."""
        part = self._context.overlay.topology.part
        if self._router.is_root and self._looked_at is not part:
            self._looked_at, plan = part, self._agreed.plan
            if plan is not None and not _pairs(plan.links) <= _pairs(self.standing_links(plan)):
                self.has_work = True

    def standing_links(self, plan: Plan) -> tuple[Edge, ...]:
        """The links between the brokers of a plan; those of the single tree in any case."""
        names = {name for name, _, _ in plan.nodes}
        single = [(name, father) for name, father, _ in plan.nodes if father]
        found = {frozenset(pair): (*sorted(pair), _UNKNOWN_US) for pair in single}
        for one, other, delay in self._context.overlay.topology.part.edges:
            pair = frozenset((one, other))
            if pair <= names and (pair in found or pair not in self._lost):
                found[pair] = (one, other, delay)
        return tuple(sorted(found.values()))  # type: ignore[arg-type]

    # --- plans ---

    def begin_round(self) -> None:
        """At the root: the tree is about to pause."""
        self.has_work = False

    def answer(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Say whether this broker has sinks, and what they want if there are trees for them."""
        filters, schemas = self._context.filters, self._context.advertisements.schemas
        wanted = maximal(filters, schemas) if has_sink_trees(self._agreed.strategy) else ()
        return ((self._context.name, wanted),) if filters else ()

    @property
    def rerouted(self) -> frozenset[str]:
        """At the root: the types that come along the single tree with the plan that is being made,
        and came to sinks from trees of their own with the last one (Law 5).
        """
        trees = self._detection.trees.values()
        before = {type_named(text) for tree in trees for text in tree.filters}
        return self._kinds.routed & before if before else frozenset()

    def plan(
        self,
        plan: Plan,
        found: Report,
        resume_from: Mapping[str, int],
        *,
        introduce: bool,
    ) -> Plan:
        """At the root: a plan with the trees of brokers with sinks, where any types come along such
        ones.
        """
        if not self._kinds.own:
            return plan
        before = None if introduce else self._agreed.plan
        links = self.standing_links(plan)
        if before is not None and _pairs(links) == _pairs(before.links):
            links = before.links  # delays that are measured a little otherwise move no tree
        plan = replace(plan, links=links, resume_from=tuple(sorted(resume_from.items())))
        schemas, trees = self._context.advertisements.schemas, []
        for tree in trees_wanted(found.wants, self._kinds, schemas, plan.number):
            if before is not None and self._goes_on(tree, plan):
                number = self._detection.trees[tree.root].generation.number
                tree = SinkTree(tree.root, number, tree.filters, tree.mixed)
            trees.append(tree)
        self._lost.clear()
        return replace(plan, trees=tuple(trees))

    def _goes_on(self, tree: SinkTree, plan: Plan) -> bool:
        """Whether a plan changes nothing for a tree (Law 1)."""
        old = self._detection.trees.get(tree.root)
        return (
            old is not None
            and (old.generation.centre, old.generation.epoch) == (plan.root, plan.epoch)
            and (old.filters, old.mixed) == (tree.filters, tree.mixed)
            and not any(old.has_link(*link) for link in self._lost)
            and old.used.isdisjoint(self.joined)
            and old.division == (new := self._agreed.divided_for(tree, plan))
            and old.division.ends == new.ends
        )

    def follow(self, plan: Plan) -> Mapping[str, int]:
        """Take part in the trees of a plan; gives, by source, from when on composite events come
        again.
        """
        divisions = [self._agreed.divided_for(tree, plan) for tree in plan.trees]
        again = self._detection.follow_trees(plan, divisions, self._kinds)
        self._sink_traffic.follow(plan)
        self._asked_for = None
        self._timer.look_again()  # what is wanted may be another than this plan has
        return again


def _pairs(links: Iterable[Edge]) -> set[frozenset[str]]:
    return {frozenset((one, other)) for one, other, _ in links}


_UNKNOWN_US = 1_000
"""The delay of a link of the single tree that the link states do not have yet."""
