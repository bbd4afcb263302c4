"""One broker's tables of the tree, and the way of events along it (thesis 7.3.3, 7.3.4, 7.3.6).

Law 1: each neighbour in the tree has told which filters have somebody beyond it who wants their
events; an event goes to every neighbour but the one it came from that wants it. What this broker
wants of a neighbour is what its own sinks, its other neighbours and, at the root, the strategy
want; it is told whenever it changes. A tree has one way between any two brokers, so every event
arrives once.

Law 2: that a source has closed goes to the root behind its events, of all sources of one input in
one message. Marks of rules come back behind the composite events.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np

from matcher.matching import ON_PROCESSOR, Matching
from matcher.model import TIME_MAX, EventBatch, EventType, Int64s
from routing.delivery.joining import joined
from routing.messages import Flow, Want
from routing.network.tables.branch import Branch
from routing.network.tables.covering import maximal_of_type
from routing.network.tables.filters import type_of
from routing.overlay.trees import LocalTree
from routing.serving.deployment import Deployed
from rules.engine.engine import Detections

CLOSED = TIME_MAX
"""The promise of a source that has closed."""


class Router:
    """The branches beyond each neighbour in the tree, and what came from there for this broker."""

    def __init__(self, name: str, matching: Matching = ON_PROCESSOR) -> None:
        self._name = name
        self.matching = matching
        """How many filters of a type that lead to one neighbour are matched."""
        self._branches: dict[str, Branch] = {}
        self.branches: Mapping[str, Branch] = self._branches
        """The branches by neighbour."""
        self._detected: list[Detections] = []
        self._schemas: Mapping[str, EventType] = {}
        self._wanting: dict[str, tuple[Branch, ...]] = {}
        """By type, the children that want events of it; made when such events come."""
        self._own: dict[str, tuple[str, ...]] = {}
        """Filters of this broker itself when it last told its neighbours, by type."""
        self.epoch: tuple[str, int] | None = None
        """The tree's root and epoch; None while there is no tree."""
        self._followed: dict[str, int] = {}
        """The last epoch of each root by whose tree this broker has gone."""
        self.is_back = False
        """Whether this broker had gone by its tree before it followed it last: it has been away, or
        its father is another, and it has forgotten what neighbours said in this epoch."""
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

    def follow(self, tree: LocalTree | None) -> bool:
        """The tree may have changed; whether the way to the root has."""
        self._wanting.clear()
        before = self.root, self.father
        epoch = None if tree is None else (tree.root, tree.epoch)
        if epoch != self.epoch:
            self.epoch = epoch
            self._branches.clear()  # both ends of a branch start anew with an epoch
        if tree is not None:
            self.is_back = not self.is_new(tree)
            self._followed[tree.root] = tree.epoch
        self.father = None if tree is None else tree.father
        self.root = None if tree is None else tree.root
        self.is_root = self.root == self._name
        neighbours = set() if tree is None else set(tree.children)
        if self.father is not None:
            neighbours.add(self.father)
        if neighbours == self._branches.keys():
            return before != (self.root, self.father)
        for name in self._branches.keys() - neighbours:
            self._touch(self._branches.pop(name).types)
        for name in sorted(neighbours - self._branches.keys()):
            self._branches[name] = Branch(name, self.matching)
        return before != (self.root, self.father)

    def is_new(self, tree: LocalTree) -> bool:
        """Whether this broker did not go by a tree yet, nor by a later one of its root."""
        return tree.epoch > self._followed.get(tree.root, 0)

    # --- tables ---

    def want(self, neighbour: str, want: Want) -> bool:
        """A neighbour has told what it wants; whether that is one in the tree, and makes sense."""
        branch = self._branches.get(neighbour)
        news = None if branch is None else branch.hear(want)
        if news is None:
            return False
        self._touch(news, branch)
        return True

    def _touch(self, names: Iterable[str], source: Branch | None = None) -> None:
        """Of these types the neighbours, but that one, may have to be told something else."""
        for branch in self._branches.values():
            if branch is not source:
                branch.untold.update(names)

    def index(
        self, schemas: Mapping[str, EventType], defining: Mapping[str, Sequence[Deployed]]
    ) -> None:
        """Filters, types or rules have changed."""
        self._wanting.clear()
        before, self._schemas = self._schemas, schemas
        changed: set[str] = set()
        if before is not schemas:
            changed = {name for name, one in schemas.items() if before.get(name) is not one}
            changed |= before.keys() - schemas.keys()
            self._touch(changed)
        for branch in self._branches.values():
            branch.index(schemas, defining, changed)

    def wants(
        self, own: Iterable[str], to: Container[str] | None = None
    ) -> Iterator[tuple[Branch, Want]]:
        """Wants to tell neighbours (Law 1), where they are news; the caller numbers them.

        ``own``: what this broker's sinks, and the strategy at the root, want. ``to``: the
        neighbours that are to be told now, None for all.
        """
        self._want_here(own)
        for branch in self._branches.values():
            if to is None or branch.neighbour in to:
                want = self._want_of(branch)
                if want is not None:
                    yield branch, want

    def _want_here(self, own: Iterable[str]) -> None:
        before, found = self._own, dict[str, set[str]]()
        for text in own:
            found.setdefault(type_of(text), set()).add(text)
        self._own = {name: tuple(sorted(texts)) for name, texts in found.items()}
        names = before.keys() | self._own.keys()
        self._touch({name for name in names if before.get(name) != self._own.get(name)})

    def _want_of(self, branch: Branch) -> Want | None:
        """The want to tell one neighbour: the whole, if it was told nothing yet, else the
        difference; None for nothing.
        """
        others = [other for other in self._branches.values() if other is not branch]
        told, names = branch.told, branch.untold
        if told is None:
            names = {*self._own, *(name for other in others for name in other.types)}
        after, branch.untold = told, set()
        if after is None:
            after = branch.told = {}
        new: list[str] = []
        gone: list[str] = []
        for name in names:
            before, now = after.get(name, ()), self._wanted_of(name, others)
            if before != now:
                new += set(now).difference(before)
                gone += set(before).difference(now)
                if now:
                    after[name] = now
                else:
                    del after[name]
        if told is None:
            return Want(tuple(sorted(new)))
        if new or gone:
            return Want(tuple(sorted(new)), 0, tuple(sorted(gone)), branch.told_number)
        return None

    def _wanted_of(self, name: str, others: Iterable[Branch]) -> tuple[str, ...]:
        """The filters of a type that somebody wants here or beyond those neighbours."""
        found = {self._own.get(name, ()), *(other.texts(name) for other in others)}
        found.discard(())
        if len(found) == 1:
            (texts,) = found
        else:
            texts = tuple(sorted({text for one in found for text in one}))
        return maximal_of_type(texts, self._schemas.get(name))

    # --- events ---

    def tell_closed(self, source: str, last_sequence: int) -> None:
        """Tell the root that a source has closed, behind its events."""
        if self.father is not None:
            self._branches[self.father].add_closed(source, last_sequence)

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

    @property
    def has_flows(self) -> bool:
        """Whether ``take_flows`` has something to give."""
        for branch in self._branches.values():  # noqa: SIM110 (a generator has a step for each)
            if branch.has_flows:
                return True
        return False

    def take_flows(self) -> Iterator[tuple[str, Flow]]:
        """Give the flows to send now, by neighbour."""
        for branch in self._branches.values():
            if branch.has_flows:
                for flow in branch.take_flows():
                    yield branch.neighbour, flow
