"""The trees of brokers with sinks in which one broker takes part, and which of them have news.

A broker is in many trees, and an input concerns few of them. A tree has *news* once anything has
come that may have it evaluate, ask, tell or send: events or promises of types that its rules use,
words of a child or its father, another plan. What follows an input looks at the trees that have
news, in the order of all, and ``settle`` ends it. A tree whose father has not opened it, or that
must not evaluate yet, has news again when that changes. A Temp comes to b2, which is in the trees
of b1, b3 and b4: only b3's has a rule over Temp, and only it is looked at.

Law: own types (routing.network.ways.sink_trees) come to sinks from the broker's own tree, all
others from the single one. So of rules of own types this broker has what its own tree has given,
however far the single one, which may evaluate them for the sake of others, has come. When such a
type is routed they are to be found once more from there on (brokers.trees, Law 5). b3 has Fires of
its own tree up to 40 s, the single one is at 50 s: b3 has them up to 40 s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from matcher.matching import Matching
from matcher.model import EventBatch
from routing.deployment import Deployed
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import Plan
from routing.network.evaluation.processing_tree import ProcessingTree, generation_of
from routing.network.recovery.resume_points import chosen
from routing.network.ways.sink_trees import Kinds
from routing.partition.places import Division
from rules.engine.engine import Detections


class TreeTable:
    """Owner of one broker's trees, by root. Where the strategy has none, nothing is done here.

    ``new_evaluator`` makes that of a tree. By arrival, what a tree evaluates goes on.
    """

    def __init__(
        self,
        name: str,
        matching: Matching,
        new_evaluator: Callable[[], TreeEvaluator],
        *,
        by_arrival: bool = False,
    ) -> None:
        self._name = name
        self._matching = matching
        self._new_evaluator = new_evaluator
        self._by_arrival = by_arrival
        self.trees: Mapping[str, ProcessingTree] = {}
        self.own: ProcessingTree | None = None
        """The tree of this broker's own sinks."""
        self.begun: Mapping[str, ProcessingTree] = {}
        """The trees that have begun with the last plan."""
        self.fathers: Sequence[str] = ()
        """The neighbours that events of local sources are sent to, to be evaluated."""
        self.kinds = Kinds(frozenset(), frozenset())
        """The types that rules define, by the trees that they come along."""
        self._ahead: dict[str, TreeEvaluator] = {}
        """By root, evaluators of trees that are about to begin."""
        self._marks: Mapping[str, int] = {}
        """The marks of types that local sources publish when the trees were last told them."""
        self._clock: int | None = None
        """The mark of Timer then."""
        self._users: dict[str, list[str]] = {}
        """By type, the roots of the trees whose rules use it."""
        self._news: set[str] = set()
        """The roots of the trees that have news."""

    # --- this broker's own sinks (Law) ---

    def brings(self, deployed: Deployed | None) -> bool:
        """Whether this broker's sinks get a rule's composite events from their own tree."""
        own = self.own
        if own is None or deployed is None or deployed.rule.defines.name not in self.kinds.own:
            return False
        found = own.rules.get(deployed.rule.name)  # mostly the same, which compares in no time
        return found is deployed or found == deployed

    def only_routed(self, detections: Detections) -> Detections:
        """Detections of the single tree but for those that sinks get from their own."""
        return chosen(detections, lambda batch: batch.type.name not in self.kinds.own)

    def resume_points(self, wanted: Collection[str]) -> Iterator[tuple[str, int]]:
        """Up to where this broker has the composite events of rules that are evaluated here in any
        tree, or wanted, and may still give some.
        """
        for tree in self.trees.values():
            yield from tree.due_from(tree.evaluator.rules).items()
        own = self.own
        if own is not None:
            for name in sorted(own.wanted.intersection(wanted)):
                if not own.has_ended(name):
                    yield name, own.mark_of(name)

    # --- plans ---

    def install_ahead(self, plan: Plan, divisions: Sequence[Division]) -> Iterator[None]:
        """Install the rules of trees that are about to begin, as ``follow`` has them."""
        self._ahead = {}
        for planned, divided in zip(plan.trees, divisions, strict=True):
            tree = self.trees.get(planned.root)
            if tree is None or tree.generation != generation_of(planned, plan):
                evaluator = self._ahead[planned.root] = self._new_evaluator()
                yield from evaluator.install_ahead(divided, anew=False)

    def follow(self, plan: Plan, divisions: Sequence[Division], kinds: Kinds) -> None:
        """Replace the trees by those of a plan, with their divisions."""
        before, standing = self.trees, dict[str, ProcessingTree]()
        for planned, divided in zip(plan.trees, divisions, strict=True):
            tree = before.get(planned.root)
            if tree is None or tree.generation != generation_of(planned, plan):
                evaluator, matching = self._evaluator_for(planned.root), self._matching
                tree = ProcessingTree(self._name, plan, planned, divided, evaluator, matching)
            standing[planned.root] = tree
        self.begun = {root: tree for root, tree in standing.items() if before.get(root) is not tree}
        fathers = [tree.father for tree in standing.values() if tree.father is not None]
        self.fathers, self.kinds = tuple(dict.fromkeys(fathers)), kinds
        self.replace(standing)

    def _evaluator_for(self, root: str) -> TreeEvaluator:
        """An evaluator for a tree; by arrival, what goes on goes on (arrival)."""
        old, ahead = self.trees.get(root), self._ahead.pop(root, None)
        if self._by_arrival and old is not None:
            return old.evaluator
        evaluator = ahead or self._new_evaluator()
        if old is not None:
            evaluator.skew = old.evaluator.skew
        return evaluator

    def replace(self, trees: Mapping[str, ProcessingTree]) -> None:
        """Replace the trees by these, which a plan names by their roots' names, in order."""
        self.trees, self.own = trees, trees.get(self._name)
        self._users = {}
        for root, tree in trees.items():
            for name in tree.used:
                self._users.setdefault(name, []).append(root)
        self._news = set(trees)

    # --- events and marks ---

    def push(self, batches: Sequence[EventBatch]) -> None:
        """Events of local sources."""
        self.touch_users([batch.type.name for batch in batches])
        for tree in self.news:
            tree.push(batches)

    def advance(
        self, own: Mapping[str, int], clock: int | None, now: int, *, is_at_work: bool
    ) -> Iterator[Detections]:
        """Evaluate what marks allow in the trees that have news, as TreePart.advance, if any is to
        be evaluated; gives what is for own sinks.
        """
        if own is not self._marks:
            self.touch_users({name for name, _ in own.items() ^ self._marks.items()})
        if clock is not None or self._clock is not None:
            self.touch_all()
        self._marks, self._clock = own, clock
        for tree in self.news:
            yield from tree.advance(own, clock, now) if is_at_work else tree.take_relayed()

    def tell_all(self) -> None:
        """Tell all marks, whether anybody waits for them or not."""
        for tree in self.trees.values():
            tree.tell_all()
        self.touch_all()

    # --- news ---

    def touch(self, root: str) -> None:
        """A tree has news."""
        self._news.add(root)

    def touch_all(self) -> None:
        """All trees have news."""
        self._news.update(self.trees)

    def touch_users(self, names: Iterable[str]) -> None:
        """The trees whose rules use any of these types have news."""
        for name in names:
            self._news.update(self._users.get(name, ()))

    @property
    def news(self) -> Sequence[ProcessingTree]:
        """The trees that have news."""
        return [self.trees[root] for root in sorted(self._news)] if self._news else []

    def settle(self) -> None:
        """All that follows from what has come is done."""
        self._news.clear()
