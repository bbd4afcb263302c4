"""The trees of brokers with sinks in which one broker takes part, and which of them have news.

A broker is in many trees, and an input concerns few of them. A tree has *news* once anything has
come that may have it evaluate, ask, tell or send: events or promises of types that its rules use,
words of a child or its father, another plan. What follows an input looks at the trees that have
news, in the order of all, and ``settle`` ends it. A tree whose father has not opened it, or that
must not evaluate yet, has news again when that changes. A Temp comes to b2, which is in the trees
of b1, b3 and b4: only b3's has a rule over Temp, and only it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from routing.network.evaluation.processing_tree import ProcessingTree


class TreeTable:
    """Owner of one broker's trees, by root."""

    def __init__(self) -> None:
        self.trees: Mapping[str, ProcessingTree] = {}
        self._users: dict[str, list[str]] = {}
        """By type, the roots of the trees whose rules use it."""
        self._news: set[str] = set()
        """The roots of the trees that have news."""

    def replace(self, trees: Mapping[str, ProcessingTree]) -> None:
        """Replace the trees by these, which a plan names by their roots' names, in order."""
        self.trees = trees
        self._users = {}
        for root, tree in trees.items():
            for name in tree.used:
                self._users.setdefault(name, []).append(root)
        self._news = set(trees)

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
