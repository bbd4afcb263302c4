"""A broker's place in the processing trees (thesis 7.3.1; brokers.md section 4).

A root sends ``CreateTree`` to all its neighbours; who hears it for the first time takes the
sender as father, answers ``TreeAck`` and passes it on; who has heard it answers ``TreeNack``. The
first is the one that came the fastest, so the tree is one of shortest paths. A broker knows all its
children once all to whom it passed it on have answered.

Law 1: a tree is known by (root, epoch). Only the root starts an epoch; a later one replaces an
earlier one wherever it is heard of, and an earlier one is answered ``TreeNack``.

Law 2: within an epoch a father is chosen once. A broker that has lost its father stays where it is,
an orphan, and offers the tree to nobody, until a later epoch reaches it; so an epoch never has a
cycle of its own making. (Brokers below an orphan do not know that they are cut off, and one that
restarts may end up below one of them. That is why a lost link starts a new epoch.) Example: b3 has
b2 for father, and is offered the tree by b4 as well: TreeNack. The link to b2 is lost: b3 waits for
the next epoch, and does not turn to b4.

Law 3: when a link is lost of which this broker knows, or has to assume, that the tree uses it, the
tree is reported *broken*. Trees that did not use the link are left alone. Example: in a ring of
three the tree of b1 uses the links to b2 and b3; the one between these may come and go.

Law 4: a new link is offered all trees that stand, so that a broker that joins is taken in without
a new epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from routing.messages import CreateTree, TreeAck, TreeNack

TreeMessage: TypeAlias = CreateTree | TreeAck | TreeNack
Told = tuple[str, TreeMessage]
"""A message, and the neighbour that it is for."""


@dataclass(slots=True, eq=False)
class LocalTree:
    """One tree, as this broker knows it. ``father`` None: this is the root, or an orphan."""

    root: str
    epoch: int
    father: str | None
    orphan: bool = False
    children: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)

    @property
    def is_complete(self) -> bool:
        """Whether all children are known."""
        return not self.unanswered


class Trees:
    """The trees that this broker is in, by root."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._trees: dict[str, LocalTree] = {}

    def __iter__(self) -> Iterator[LocalTree]:
        return iter(self._trees.values())

    def __len__(self) -> int:
        return len(self._trees)

    def find(self, root: str) -> LocalTree | None:
        """The tree of a root, if this broker is in it."""
        return self._trees.get(root)

    def start(self, epoch: int, neighbours: Iterable[str]) -> list[Told]:
        """Be a root, from now on of that epoch."""
        own = self._trees.get(self._name)
        assert own is None or own.epoch < epoch, "epochs only grow"
        return self._enter(LocalTree(self._name, epoch, None), neighbours)

    def drop(self, root: str) -> None:
        """The tree is no more."""
        self._trees.pop(root, None)

    def cut(self, tree: LocalTree) -> None:
        """The root is out of reach: an orphan is left, so that Law 2 holds when it is back."""
        tree.father, tree.orphan = None, True
        tree.children.clear()
        tree.unanswered.clear()

    def receive(self, sender: str, message: TreeMessage, neighbours: Collection[str]) -> list[Told]:
        """Take in what a neighbour says of a tree."""
        tree = self._trees.get(message.root)
        if isinstance(message, CreateTree):
            return self._receive_create(sender, message, tree, neighbours)
        if tree is not None and tree.epoch == message.epoch:
            tree.unanswered.discard(sender)
            if isinstance(message, TreeAck):
                tree.children.add(sender)
            else:
                tree.children.discard(sender)
        return []

    def _receive_create(
        self, sender: str, message: CreateTree, tree: LocalTree | None, neighbours: Collection[str]
    ) -> list[Told]:
        root, epoch = message.root, message.epoch
        later = tree is None or tree.epoch < epoch
        if root == self._name or not later:
            again = tree is not None and tree.epoch == epoch and tree.father == sender
            return [(sender, TreeAck(root, epoch) if again else TreeNack(root, epoch))]
        others = [one for one in neighbours if one != sender]
        return [
            (sender, TreeAck(root, epoch)),
            *self._enter(LocalTree(root, epoch, sender), others),
        ]

    def _enter(self, tree: LocalTree, others: Iterable[str]) -> list[Told]:
        self._trees[tree.root] = tree
        tree.unanswered.update(others)
        return [(one, CreateTree(tree.root, tree.epoch)) for one in sorted(tree.unanswered)]

    def join(self, neighbour: str) -> list[Told]:
        """A link is up (Law 4)."""
        told: list[Told] = []
        for tree in self._trees.values():
            if not tree.orphan and neighbour != tree.father:
                tree.unanswered.add(neighbour)
                told.append((neighbour, CreateTree(tree.root, tree.epoch)))
        return told

    def leave(self, neighbour: str) -> list[tuple[str, int]]:
        """A link is down; gives root and epoch of the trees that are broken (Law 3)."""
        broken = []
        for tree in self._trees.values():
            # One that has not answered may have taken this broker as its father.
            used = neighbour in tree.children or neighbour in tree.unanswered
            if neighbour == tree.father:
                tree.father, tree.orphan, used = None, True, True
            tree.children.discard(neighbour)
            tree.unanswered.discard(neighbour)
            if used:
                broken.append((tree.root, tree.epoch))
        return broken
