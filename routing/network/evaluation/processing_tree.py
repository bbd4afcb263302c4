"""A broker's part in the processing tree of one broker with sinks (thesis 7.3.2, 7.3.6).

It is of one *generation*: of the plan that this tree began with (brokers.trees, Law 1). While that
lasts its rules, fragments and ways stay as they are; the next generation is another ProcessingTree.

Law 1: everything goes up. What fragments let pass and what rules below find for rules above is
forwarded; what the root's sinks want of composite events follows the same way, with marks, and only
the root offers anything to sinks. In the tree of b1 b3 sends Temps and b2 the Fires that it finds:
b1 alone delivers.

Law 2: nothing is sent to a neighbour, nor taken of it, before it follows this plan or a later one
(brokers.sink_tree_traffic). A father that is behind in its plan so misses nothing, and one that is
ahead believes nothing of before. b2 follows plan 7 before its father b1: what it has for the tree
of b1 waits until b1 follows 7, and what it sent by plan 6 is void.

Law 3: of rules that are pulled (routing.partition.pulls) a father asks nothing before all children
that keep something follow the plan of this generation, since one that is behind would not know what
is meant. b3 keeps Temps for b2 and still goes by plan 6: b2 asks once b3 follows 7.

Law 4: composite events and marks pass while the network pauses, too: nobody finds those of a rule
again that ends with the plan. The network pauses to drop fire: a Fire on its way from b3 still
comes to b1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matcher.matching import Matching
from matcher.model import EventBatch
from routing.evaluation.replay import HasRoom
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.messages import Flow, Forward, Plan, PlanFollowed, SinkTree, SubscriptionUpdate
from routing.network.evaluation.router import Router
from routing.network.evaluation.tree_part import TreePart
from routing.network.recovery.resume_points import needed
from routing.network.tables.filters import type_named
from routing.overlay.trees import LocalTree
from routing.partition.places import Division
from routing.partition.questions import AskedSpans
from routing.partition.replay_starts import replay_starts
from rules.engine.engine import Detections


@dataclass(frozen=True, slots=True)
class Generation:
    """The plan that a tree began with: of which centre, in which epoch, and its number."""

    centre: str
    epoch: int
    number: int


def generation_of(planned: SinkTree, plan: Plan) -> Generation:
    """The generation of a tree of a plan, which may have begun with an earlier one."""
    return Generation(plan.root, plan.epoch, planned.number)


class ProcessingTree(TreePart):
    """Owner of what one broker knows and does in one tree of a plan."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        planned: SinkTree,
        division: Division,
        evaluator: TreeEvaluator,
        matching: Matching,
    ) -> None:
        super().__init__(evaluator, Router(name, matching))
        self.root, self.filters, self.mixed = planned.root, planned.filters, planned.mixed
        self.generation = generation_of(planned, plan)
        self.division = division
        self.rules = {one.rule.name: one for one in division.rules}
        types = {type_named(text) for text in self.filters}
        self.wanted = frozenset(
            one.rule.name for one in division.rules if one.rule.defines.name in types
        )
        """The rules whose composite events the root's sinks get; others serve these."""
        fathers, nodes = division.fathers, [node for node, _, _ in plan.nodes]
        self._fathers = {node: fathers[node] for node in nodes if node in fathers}
        """The fathers of brokers in reach: others stand below the root in the division alone."""
        self.father = self._fathers.get(name)
        self.children = frozenset(one for one, father in self._fathers.items() if father == name)
        self.neighbours = {*self.children, *([] if self.father is None else [self.father])}
        """The father and the children, but for those over whose links it is at its end."""
        self.met: set[str] = set()
        """The neighbours that are known to follow the plan of this generation (Law 2)."""
        self._keeping = frozenset(filter(division.partition.keeps, self.children))
        """The children that keep something until they are asked for it (Law 3)."""
        self.used = frozenset(used.name for one in division.rules for used in one.rule.used_types)
        """The types that rules of this tree use."""
        self._front = plan.front
        self.resume_from = {name: time for name, time in plan.resume_from if name in self.rules}
        self._arrange_router()
        evaluator.follow(division)

    def _arrange_router(self) -> None:
        router = self.router
        router.follow(LocalTree(self.root, 1, self.father, children=set(self.children)))
        router.join(router.branches)
        router.follow_division(self.division, [self.root] if self.mixed else [])
        router.begin_anew((), {}, self._front)
        if self.father is not None:
            router.hear_update(self.father, SubscriptionUpdate(self.filters))
        router.index(self.division.schemas, self.division.defining)

    @property
    def is_root(self) -> bool:
        """Whether the tree is for this broker's own sinks."""
        return self.father is None

    @property
    def is_open(self) -> bool:
        """Whether the father follows the plan of this generation."""
        return self.father in self.met

    def meet(self, neighbour: str, followed: PlanFollowed) -> bool:
        """Somebody follows a plan; whether it is a neighbour here that is met by that."""
        begun = self.generation
        is_same = (followed.root, followed.epoch) == (begun.centre, begun.epoch)
        is_met = is_same and followed.number >= begun.number and neighbour in self.neighbours
        if is_met:
            self.met.add(neighbour)
        return is_met

    def close(self, neighbour: str) -> None:
        """The link to a neighbour was lost, or is anew: this generation is at its end there."""
        self.neighbours.discard(neighbour)
        self.met.discard(neighbour)
        self.children -= {neighbour}

    def has_link(self, one: str, other: str) -> bool:
        """Whether the tree uses the link between two brokers."""
        return self._fathers.get(one) == other or self._fathers.get(other) == one

    def resume(self, reached: Mapping[str, int]) -> Mapping[str, int]:
        """Begin where the last generation was; gives, by source, what is news from when on."""
        self.router.reach((name, mark) for name, mark in reached.items() if name in self.rules)
        return self.router.begin_anew(self.rules.keys(), self.resume_from, self._front)

    # --- events ---

    def push(self, batches: Sequence[EventBatch]) -> None:
        """Events of local sources."""
        used = [batch for batch in batches if batch.type.name in self.used]
        if used:
            self.evaluator.push_own(used)

    def begin(self, kept: Iterable[Sequence[EventBatch]]) -> None:
        """Events of local sources that are kept: those that anything still due may depend on."""
        since = replay_starts(self.division.rules, self.resume_from).horizons
        self.wait(tuple(needed(batches, since)) for batches in kept)

    def wait(self, messages: Iterable[Sequence[EventBatch]]) -> None:
        """Have the events of these messages that are used here sent when there is room."""
        for batches in messages:
            used = [batch for batch in batches if batch.type.name in self.used]
            if used:
                self.evaluator.replay.add(used)

    def takes(self, has_room: HasRoom) -> bool:
        """Whether the father takes more of this tree for now (Law 2)."""
        return self.father is None or (self.is_open and has_room(self.father))

    def take(self, child: str, message: Forward | Flow, now: float) -> None:
        """Take in what a child has sent; ``advance`` evaluates it, and gives what is for sinks."""
        if isinstance(message, Forward):
            self.evaluator.take(child, message, now)
            return
        if message.batches:
            self.router.pass_detected(message.batches, message.order, child)
        if message.marks:
            self.router.pass_marks(message.marks, child)

    def advance(self, own: Mapping[str, int], clock: int | None, now: int) -> list[Detections]:
        """Evaluate what marks allow, as TreePart.advance; at the root gives what its sinks want."""
        used = {name: own[name] for name in own.keys() & self.used}
        found = super().advance(used, clock, now)
        return found if self.is_root else []

    def take_relayed(self) -> list[Detections]:
        """The same, where nothing is evaluated (Law 4)."""
        found = super().take_relayed()
        return found if self.is_root else []

    @property
    def has_messages(self) -> bool:
        """Whether there is anything to be sent to the father."""
        return bool(self.evaluator.outbox.waiting) or self.router.has_flows

    def take_messages(self) -> Iterator[Forward | Flow]:
        """Give the messages to the father, once it is met (Law 2)."""
        yield from self.evaluator.outbox.take()
        yield from (flow for _, flow in self.router.take_flows())

    def take_asked(self) -> dict[str, AskedSpans]:
        """Give the questions to children (Law 3)."""
        if not self.met >= self.children & self._keeping:
            return {}
        asked = self.evaluator.take_asked()
        return {child: of for child, of in asked.items() if child in self.children}
