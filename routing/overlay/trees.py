"""A broker's place in the processing trees that roots tell of (brokers.md section 4).

A tree is part of the link state of its root: its epoch, and the father of every broker in it. So
all that hear of it have the same one, and both ends of a branch know that it is there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from routing.messages import LinkState


@dataclass(slots=True, eq=False)
class LocalTree:
    """One tree, as this broker knows it. ``father`` None: this is the root, or an orphan. A tree is
    known by its root and its epoch, which the root alone begins.
    """

    root: str
    epoch: int
    father: str | None
    orphan: bool = False
    children: set[str] = field(default_factory=set)
    fathers: tuple[tuple[str, str], ...] = ()
    """The father of each broker in it, as the root has told them."""

    @property
    def facts(self) -> dict[str, Any]:
        """The tree as a broker's status shows it."""
        return {
            "root": self.root,
            "epoch": self.epoch,
            "father": self.father,
            "children": sorted(self.children),
        }


class Trees:
    """The trees that this broker is in, by root.

    Within an epoch a father is chosen once, and brokers are only added. A broker that has lost its
    father stays where it is, an orphan, until a later epoch, and a child that was lost is none any
    more, though the link may be back. (Brokers below an orphan do not know that they are cut off.
    That is why a lost link starts a new epoch.) b3 loses the link to its father b2, and finds it
    again: it waits for the next epoch.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._trees: dict[str, LocalTree] = {}

    def __iter__(self) -> Iterator[LocalTree]:
        return iter(self._trees.values())

    def find(self, root: str) -> LocalTree | None:
        """The tree of a root, if this broker is in it."""
        return self._trees.get(root)

    def drop(self, root: str) -> None:
        """The tree is no more."""
        self._trees.pop(root, None)

    def cut(self, tree: LocalTree) -> None:
        """The root is out of reach: an orphan is left until a later epoch, wherever the root is
        then.
        """
        tree.father, tree.orphan = None, True
        tree.children.clear()

    def hear(self, state: LinkState, linked: Container[str]) -> bool:
        """Take in what a root says of its tree; whether this broker has lost a link of it already.

        ``linked``: the neighbours whose links are up.
        """
        root, fathers = state.origin, state.fathers
        tree = self._trees.get(root)
        if tree is None or tree.epoch != state.epoch:
            father = dict(fathers).get(self._name)
            if not state.epoch or (father is None and root != self._name):
                self.drop(root)
                return False
            orphan = father is not None and father not in linked
            tree = LocalTree(root, state.epoch, None if orphan else father, orphan)
            self._trees[root] = tree
        added = set(fathers).difference(tree.fathers)
        tree.fathers = fathers
        children = {one for one, father in added if father == self._name}
        lost = {one for one in children if one not in linked}
        if not tree.orphan:
            tree.children |= children - lost
        return tree.orphan or bool(lost)

    def leave(self, neighbour: str) -> list[tuple[str, int]]:
        """A link is down; gives root and epoch of the trees that are broken: those that used it. In
        a ring of three the tree of b1 uses the links to b2 and b3; the one between these may come
        and go.
        """
        broken = []
        for tree in self._trees.values():
            used = neighbour in tree.children or neighbour == tree.father
            if neighbour == tree.father:
                tree.father, tree.orphan = None, True
            tree.children.discard(neighbour)
            if used:
                broken.append((tree.root, tree.epoch))
        return broken
