"""Up to where each type has come to one broker, as those say who bring it (watermarks, Law 1).

What a child is expected to forward and has not spoken of yet stands at the beginning. CLOSED:
nobody brings anything of it any more. Of types that wait below until they are asked for it is also
bounded by what was answered (tree_evaluator, Law 1).

What is given is what looking at everything would give, but only types of which somebody has said
something else are looked at. Marks come with nearly every message, and a broker near the root of a
large network hears of thousands of types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from matcher.model import TIME_MIN
from routing.watermarks.ends import CLOSED
from routing.watermarks.type_progress import (
    UNSAID,
    ChildWatermark,
    CoupledTypes,
    TypeProgress,
    TypeRecords,
)

Table = dict[str, ChildWatermark]
"""The words of one child, by type."""


class InputWatermarks:
    """Owner of what was said, in the records of types."""

    def __init__(self, type_records: TypeRecords) -> None:
        self._type_records = type_records
        self.closed: set[TypeProgress] = set()
        """The types whose marks are CLOSED."""
        self.closings = 0
        """Counts up whenever ``closed`` changes."""
        self._published: frozenset[str] = frozenset()
        """The types that local sources publish."""
        self._children: dict[str, Table] = {}
        self._own: Mapping[str, int] = {}
        self._touched: set[TypeProgress] = set()
        """The types of which somebody has said something else."""

    @property
    def types(self) -> list[TypeProgress]:
        """The types of which something is said."""
        return [one for one in self._type_records.values() if one.mark != UNSAID]

    @staticmethod
    def furthest(coupled_types: CoupledTypes) -> int:
        """The greatest mark of one of these types that is not closed; TIME_MIN for none."""
        if coupled_types.furthest is None:
            still_open = [one.mark for one in coupled_types.types if one.mark < CLOSED]
            coupled_types.furthest = max(still_open, default=TIME_MIN)
        return coupled_types.furthest

    def by_child(self, name: str) -> dict[str, int]:
        """The mark that each child which forwards a type has said of it."""
        tables = self._children.items()
        return {child: table[name].mark for child, table in tables if name in table}

    def heard_at(self, child: str, name: str) -> float:
        """When a child has last spoken of a type, in seconds; 0 for never."""
        child_watermark = self._children.get(child, {}).get(name)
        return 0.0 if child_watermark is None else child_watermark.heard_at

    def arrange(
        self,
        published: frozenset[str],
        expected: Mapping[str, Collection[str]],
    ) -> None:
        """From now on local sources publish these types, and children forward those of
        ``expected``. What a child has said stays said, but for an end: what has ended may
        begin anew; if it does not, the child says so again.
        """
        before, self._children, self._published = self._children, {}, published
        self._touched = {self._type_records[name] for name in published.union(*expected.values())}
        for one in self._type_records.values():
            one.child_watermarks = []
            one.told = one.bound = one.mark = UNSAID
            one.coupled_types.furthest = None
        for child, names in expected.items():
            table = before.get(child, {})
            self._children[child] = {
                name: ChildWatermark(self._type_records[name], table.get(name)) for name in names
            }
        self.closed.clear()
        self.closings += 1

    def doubt(self, child: str, names: Iterable[str]) -> None:
        """Doubt what a child has said of these types; ``arrange`` must come next."""
        table = self._children.get(child, {})
        for name in names:
            table.pop(name, None)

    def forget(self) -> None:
        """Forget what children have said, but for when."""
        for table in self._children.values():
            for child_watermark in table.values():
                child_watermark.mark = TIME_MIN

    def take(self, child: str, marks: Iterable[tuple[str, int]], now: float) -> bool:
        """A child speaks of types; whether it says anything new."""
        table = self._children.get(child)
        if table is None:
            return False
        is_news = False
        for name, mark in marks:
            child_watermark = table.get(name)
            if child_watermark is None:
                continue
            child_watermark.heard_at = now
            if mark > child_watermark.mark:
                child_watermark.mark = mark
                self._touched.add(child_watermark.type_progress)
                is_news = True
        return is_news

    def hear_own(self, own: Mapping[str, int]) -> bool:
        """Local sources say this now, and nothing else; whether that is anything new."""
        before, self._own = self._own, own
        if own is before:
            return False
        news = {name for name, _ in own.items() - before.items()} | before.keys() - own.keys()
        for name in news:
            one = self._type_records[name]
            one.own = own.get(name, TIME_MIN)
            self._touched.add(one)
        return bool(news)

    def hear(self) -> set[TypeProgress]:
        """Give the types of which ``told`` is another than before, after all that was said."""
        moved: set[TypeProgress] = set()
        if not self._touched:
            return moved
        touched, self._touched = self._touched, set()
        for one in touched:
            mark = one.own if one.name in self._published else UNSAID
            for child_watermark in one.child_watermarks:
                if child_watermark.mark < mark:
                    mark = child_watermark.mark
            if mark != one.told:
                one.told = mark
                self._set(one, mark)
                moved.add(one)
        return moved

    def bound(self, limits: Mapping[str, int], moved: set[TypeProgress]) -> None:
        """No mark is beyond these limits, and beyond those that were given before for other
        types, until ``arrange`` is called. ``moved`` is what ``hear`` gave; adds to it what is
        another than before.
        """
        limited = [self._type_records[name] for name in limits]
        for one in limited:
            one.bound = limits[one.name]
        for one in moved.union(limited):
            if one.bound != UNSAID:
                mark = min(one.bound, one.told)
                if mark != one.mark:
                    self._set(one, mark)
                    moved.add(one)

    def _set(self, one: TypeProgress, mark: int) -> None:
        before, one.mark = one.mark, mark
        coupled_types = one.coupled_types
        if mark == CLOSED or mark < before:
            # The furthest may have been this one; or it was UNSAID, and says so for the first time.
            coupled_types.furthest = None
        elif coupled_types.furthest is not None and mark > coupled_types.furthest:
            coupled_types.furthest = mark
        if (mark == CLOSED) != (one in self.closed):
            (self.closed.add if mark == CLOSED else self.closed.discard)(one)
            self.closings += 1
