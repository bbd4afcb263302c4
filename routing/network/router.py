"""One broker's tables of the tree, and the way of events along it (thesis 7.3.3, 7.3.4, 7.3.6).

Law 1: each neighbour in the tree has told which filters have somebody beyond it who wants their
events; an event goes to every neighbour but the one it came from that wants it. What this broker
wants of a neighbour is what its own sinks, its other neighbours and, at the root, the strategy
want; it is told whenever it changes. A tree has one way between any two brokers, so every event
arrives once.

Law 2: promises go to the root behind the events that they follow, those of all sources of one
input together in one message. Marks of rules come back behind the composite events.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np

from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from routing.deployment import Deployed
from routing.messages import Flow
from routing.network.branch import Branch
from routing.network.covering import maximal
from routing.overlay.trees import Tree
from rules.engine.engine import NOTHING, Detections

CLOSED = TIME_MAX
"""The promise of a source that has closed."""


class Router:
    """What lies beyond each neighbour in the tree, and what came from there for this broker."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._branches: dict[str, Branch] = {}
        self.branches: Mapping[str, Branch] = self._branches
        """The branches by neighbour."""
        self._detected: list[Detections] = []
        self._schemas: Mapping[str, EventType] = {}
        self._wanting: dict[str, tuple[Branch, ...]] = {}
        """By type, the children that want events of it; made when such events come."""
        self.epoch: tuple[str, int] | None = None
        """The tree's root and epoch; None while there is no tree."""
        self.root: str | None = None
        self.father: str | None = None
        self.is_root = False
        self.marks: dict[str, int] = {}
        """Where this is not the root: up to where each rule's composite events have come."""
        self.has_news = False
        """Whether composite events or marks have come that ``take_detected`` was not asked for."""

    @property
    def has_tree(self) -> bool:
        """Whether there is a way to the root."""
        return self.is_root or self.father is not None

    @property
    def children(self) -> Iterator[Branch]:
        """The branches away from the root."""
        return (one for one in self._branches.values() if one.neighbour != self.father)

    def children_wanting(self, batches: Sequence[EventBatch]) -> Iterable[Branch]:
        """The children that may want some of these events."""
        if len(batches) != 1:
            return self.children
        name = batches[0].type.name
        found = self._wanting.get(name)
        if found is None:
            found = self._wanting[name] = tuple(one for one in self.children if one.wants(name))
        return found

    @property
    def has_untold(self) -> bool:
        """Whether a neighbour has yet to be told what is wanted of it."""
        for branch in self._branches.values():  # noqa: SIM110 (a generator has a step for each)
            if branch.told is None:
                return True
        return False

    def follow(self, tree: Tree | None) -> bool:
        """The tree may have changed; whether the way to the root has."""
        self._wanting.clear()
        before = self.root, self.father
        epoch = None if tree is None else (tree.root, tree.epoch)
        if epoch != self.epoch:
            self.epoch = epoch
            self._branches.clear()  # both ends of a branch start anew with an epoch
        self.father = None if tree is None else tree.father
        self.root = None if tree is None else tree.root
        self.is_root = self.root == self._name
        neighbours = set() if tree is None else set(tree.children)
        if self.father is not None:
            neighbours.add(self.father)
        if neighbours == self._branches.keys():
            return before != (self.root, self.father)
        for name in self._branches.keys() - neighbours:
            del self._branches[name]
        for name in sorted(neighbours - self._branches.keys()):
            self._branches[name] = Branch(name)
        return before != (self.root, self.father)

    # --- tables ---

    def want(self, neighbour: str, filters: tuple[str, ...]) -> bool:
        """A neighbour has told what it wants; whether that is a neighbour in the tree."""
        branch = self._branches.get(neighbour)
        if branch is None:
            return False
        branch.filters = filters
        return True

    def index(
        self, schemas: Mapping[str, EventType], defining: Mapping[str, Sequence[Deployed]]
    ) -> None:
        """Filters, types or rules have changed."""
        self._wanting.clear()
        self._schemas = schemas
        for branch in self._branches.values():
            branch.index(schemas, defining)

    def wants(
        self, own: Iterable[str], to: Container[str] | None = None
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What neighbours are to be told that is wanted from them (Law 1), where it is news.

        ``own``: what this broker's sinks, and the strategy at the root, want. ``to``: the
        neighbours that are to be told now, None for all.
        """
        here = list(own)
        for branch in self._branches.values():
            if to is not None and branch.neighbour not in to:
                continue
            others = [
                text
                for other in self._branches.values()
                if other is not branch
                for text in other.filters
            ]
            wanted = maximal([*here, *others], self._schemas)
            if wanted != branch.told:
                branch.told = wanted
                yield branch.neighbour, wanted

    # --- events ---

    def promise(self, source: str, mark: int) -> None:
        """Tell the root what a source promises."""
        if self.father is not None:
            self._branches[self.father].promise(source, mark)

    def keep_detected(self, batches: tuple[EventBatch, ...], order: Int64s | None) -> None:
        """Keep composite events for ``take_detected``."""
        self.has_news = True
        places = np.arange(sum(map(len, batches))) if order is None else order
        self._detected.append(Detections(batches, places))

    def take_detected(self) -> Detections | None:
        """Composite events for this broker's sinks; None when no mark has come either."""
        if not self.has_news:
            return None
        found, self._detected = self._detected, []
        self.has_news = False
        return joined(found)

    def take_flows(self) -> Iterator[tuple[str, Flow]]:
        """What is to be sent now, by neighbour."""
        for branch in self._branches.values():
            if branch.has_flows:
                for flow in branch.take_flows():
                    yield branch.neighbour, flow


def joined(found: Sequence[Detections]) -> Detections:
    """Detections one after another."""
    if len(found) <= 1:
        return found[0] if found else NOTHING
    starts = np.cumsum([0, *map(len, found)])
    return Detections(
        tuple(batch for one in found for batch in one.batches),
        np.concatenate([one.order + start for one, start in zip(found, starts, strict=False)]),
    )
