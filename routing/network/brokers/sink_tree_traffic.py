"""Traffic over the links for the trees of brokers with sinks (thesis 7.3.2).

Whoever follows a plan with which trees begin tells it to its neighbours in these (PlanFollowed).
Links keep the order of messages, so all that comes behind that was said by this plan or a later
one. For a tree nothing is sent to a neighbour, nor taken of it, before it has said that it follows
the plan with which the tree began (processing_tree, Law 2).

Events that go over a link for several trees at one moment cross it once (tables.shared_batches).
"""

from __future__ import annotations

from routing.messages import Plan, PlanFollowed, Shared
from routing.network.brokers.context import BrokerContext
from routing.network.tables.shared_batches import ForTree, messages_of, share


class SinkTreeTraffic:
    """Both directions of each link, for all trees together."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._tree_table = context.detection.tree_table
        self._followed: dict[str, PlanFollowed] = {}
        """The plans that neighbours have said last that they follow."""

    def forget(self, neighbour: str) -> None:
        """The link is lost, or back."""
        self._followed.pop(neighbour, None)

    # --- plans ---

    def follow(self, plan: Plan) -> None:
        """The trees of a plan stand: tell neighbours in those that begin, and see what they have
        said.
        """
        begun = self._tree_table.begun.values()
        followed = PlanFollowed(plan.root, plan.epoch, plan.number)
        for neighbour in sorted(frozenset[str]().union(*(tree.neighbours for tree in begun))):
            self._context.send(neighbour, followed)
            if neighbour in self._followed:
                self._meet(neighbour, self._followed[neighbour])

    def hear_followed(self, neighbour: str, followed: PlanFollowed) -> None:
        """A neighbour follows a plan."""
        self._followed[neighbour] = followed
        self._meet(neighbour, followed)

    def _meet(self, neighbour: str, followed: PlanFollowed) -> None:
        for root, tree in self._tree_table.trees.items():
            if tree.meet(neighbour, followed):
                self._tree_table.touch(root)

    # --- what comes ---

    def hear_shared(self, neighbour: str, shared: Shared) -> None:
        """A child has sent what is for the trees in which it is one."""
        context = self._context
        context.check_schemas(shared.batches)
        now = context.moment.now
        for root, message in messages_of(shared):
            tree = self._tree_table.trees.get(root)
            if tree is not None and neighbour in tree.children and neighbour in tree.met:
                self._tree_table.touch(root)
                tree.take(neighbour, message, now)

    # --- what goes ---

    def settle(self) -> None:
        """Send up what is for fathers that follow the plan."""
        up: dict[str, list[ForTree]] = {}
        for tree in self._tree_table.news:
            if tree.father is not None and tree.is_open and tree.has_messages:
                to_father = up.setdefault(tree.father, [])
                to_father += [(tree.root, message) for message in tree.take_messages()]
        self._tree_table.settle()
        overlay, now = self._context.overlay, self._context.moment.now
        for father in self._tree_table.fathers:
            for shared in share(up.get(father, ())):
                overlay.send(father, shared, now)
