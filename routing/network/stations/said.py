"""Up to where each type has come to one broker, as those say who bring it (progress, Law 1).

Law 1: a type's mark is the least of those who say something of it: the local sources, and each
child that forwards it. What a child is expected to forward and has not spoken of yet stands at the
beginning. CLOSED: nobody brings anything of it any more.

Law 2: of types that wait below until they are asked for it is also bounded by what was answered.

Law 3: what is given is what looking at everything would give, but only types of which somebody has
said something else are looked at. Marks come with nearly every message, and a broker near the root
of a large network hears of thousands of types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matcher.model import TIME_MIN
from routing.network.tables.router import CLOSED

Table = dict[str, int]
"""The marks that one child has told, by type."""


class Said:
    """Owner of what was said; ``marks`` is what follows, ``closed`` which of them are CLOSED."""

    def __init__(self) -> None:
        self.children: dict[str, Table] = {}
        self.told: dict[str, int] = {}
        """Law 1 alone."""
        self.marks: dict[str, int] = {}
        self.closed: set[str] = set()
        self.closings = 0
        """Counts up whenever ``closed`` changes."""
        self._own: Mapping[str, int] = {}
        self._published: frozenset[str] = frozenset()
        self._given_up: frozenset[str] = frozenset()
        self._tables: dict[str, list[Table]] = {}
        """By type, those of the children that forward it."""
        self._touched: set[str] = set()
        self._bounds: dict[str, int] = {}
        self._is_anew = True
        """Whether all bounds are to be looked at."""
        self._furthest: int | None = TIME_MIN

    @property
    def furthest(self) -> int:
        """The greatest mark of a type that is not closed; TIME_MIN for none."""
        if self._furthest is None:
            self._furthest = max(
                (mark for mark in self.marks.values() if mark != CLOSED), default=TIME_MIN
            )
        return self._furthest

    def arrange(
        self,
        published: frozenset[str],
        given_up: frozenset[str],
        expected: Mapping[str, Iterable[str]],
    ) -> None:
        """From now on local sources publish these types, these are given up, and children forward
        those of ``expected``. What a child has said stays said, but for an end: what has ended may
        begin anew; if it does not, the child says so again.
        """
        before = self.children
        self.children = {
            child: {name: _open(before.get(child, {}).get(name, TIME_MIN)) for name in names}
            for child, names in expected.items()
        }
        self._published = published
        self._tables = {}
        for table in self.children.values():
            for name in table:
                self._tables.setdefault(name, []).append(table)
        self._bounds = {}
        self.give_up(given_up)

    def give_up(self, names: frozenset[str]) -> None:
        """These types are brought by nobody, whoever might have."""
        self._given_up = names
        self._touched = {*self._published, *names, *self._tables}
        self.told, self.marks, self._is_anew = {}, {}, True
        self.closed.clear()
        self.closings += 1
        self._furthest = None

    def doubt(self, child: str, names: Iterable[str]) -> None:
        """What a child has said of these types counts no more; ``arrange`` must come next."""
        table = self.children.get(child, {})
        for name in names:
            table.pop(name, None)

    def forget(self) -> None:
        """What children have said counts no more."""
        self.children = {}

    def take(self, child: str, marks: Iterable[tuple[str, int]]) -> bool:
        """A child speaks of types; whether it says anything new."""
        table = self.children.get(child)
        if table is None:
            return False
        is_news = False
        for name, mark in marks:
            if mark > table.get(name, CLOSED):
                table[name] = mark
                self._touched.add(name)
                is_news = True
        return is_news

    def hear(self, own: Mapping[str, int]) -> set[str]:
        """Local sources say this now; gives the types of which ``told`` is another than before."""
        before, self._own = self._own, own
        if own is not before and own != before:
            for name in own.keys() | before.keys():
                if own.get(name) != before.get(name):
                    self._touched.add(name)
        moved: set[str] = set()
        if not self._touched:
            return moved
        touched, self._touched = self._touched, set()
        for name in touched:
            mark = self._least(name)
            if mark is not None and self.told.get(name) != mark:
                self.told[name] = mark
                self._set(name, mark)
                moved.add(name)
        return moved

    def bound(self, limits: Mapping[str, int], moved: set[str]) -> None:
        """Law 2: no mark is beyond these limits, and beyond those that were given before for other
        types, until ``arrange`` is called. ``moved`` is what ``hear`` gave; adds to it what is
        another than before.
        """
        bounds = self._bounds
        bounds.update(limits)
        names = bounds.keys() if self._is_anew else {*limits, *(moved & bounds.keys())}
        self._is_anew = False
        for name in names:
            bound = min(bounds[name], self.told.get(name, CLOSED))
            if self.marks.get(name) != bound:
                self._set(name, bound)
                moved.add(name)

    def _least(self, name: str) -> int | None:
        """Law 1; None for a type of which nobody is expected to say anything."""
        least = None
        if name in self._given_up:
            least = CLOSED
        elif name in self._published:
            least = self._own.get(name, TIME_MIN)
        for table in self._tables.get(name, ()):
            mark = table[name]
            if least is None or mark < least:
                least = mark
        return least

    def _set(self, name: str, mark: int) -> None:
        before = self.marks.get(name, TIME_MIN)
        self.marks[name] = mark
        if mark == CLOSED or mark < before:
            self._furthest = None  # the furthest may have been this one
        elif self._furthest is not None and mark > self._furthest:
            self._furthest = mark
        if (mark == CLOSED) != (name in self.closed):
            (self.closed.add if mark == CLOSED else self.closed.discard)(name)
            self.closings += 1


def _open(mark: int) -> int:
    return TIME_MIN if mark == CLOSED else mark
