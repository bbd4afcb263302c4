"""Rules that share a mark, and their marks.

With each event that comes alone marks are raised, mostly in vain. So what is asked is asked in one
call of a kernel, of memory that the engine's kernels share; nothing is made for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from matcher.model import TIME_MIN, AnyArray, Int64s
from rules.engine.kernels import layout
from rules.engine.order.raising import raise_groups
from runtime.memory import sheltered


class _Shape(NamedTuple):
    """The part of groups that does not change while marks rise: see :class:`Groups`."""

    numbers: Mapping[frozenset[str], int]
    types: tuple[str, ...]
    places: Mapping[str, int]  # of each type's name in ``types``
    members: Int64s  # as ``raise_groups`` takes them, behind where those of each group begin

    @classmethod
    def of(cls, groups: Iterable[frozenset[str]]) -> _Shape:
        numbers = {group: number for number, group in enumerate(groups)}
        types = tuple(sorted(frozenset[str]().union(*numbers)))
        places = {name: place for place, name in enumerate(types)}
        members = [places[name] for group in numbers for name in sorted(group)]
        starts = np.cumsum([0, *map(len, numbers)])
        return cls(numbers, types, places, np.concatenate([starts, members]).astype(np.int64))


class Groups:
    """The groups of rules that share a mark, and their marks.

    ``records`` layout.GROUP[n]: in the advance at hand a group goes from the one mark to the other.
    Each mark is the greater of that and of ``level``, which rises with each event that comes alone
    while all types have the same mark; nobody writes it down until kernels run.

    Rules that use the same types, through the rules that define these too, are a group: whatever
    mark is named, they have the same one, that of the type that is farthest behind (tesla.md S14).
    Marks never go back.
    """

    def __init__(self, shape: _Shape, marks: Int64s) -> None:
        count, types = len(shape.numbers), len(shape.types)
        self._shape = shape
        self._sizes = count, types
        least = np.full(types, TIME_MIN, np.int64)
        self._words: Int64s = sheltered(np.concatenate([np.repeat(marks, 2), least, shape.members]))
        self._items = self._words.data  # which are read and set far sooner
        self._types = self._words[2 * count : 2 * count + types]
        self._has_moved = False
        self.records: AnyArray = self._words[: 2 * count].view(layout.GROUP)
        self.level = TIME_MIN

    @classmethod
    def of(cls, groups: Iterable[frozenset[str]], marks: Int64s) -> Groups:
        """Groups and the mark of each, int64[n]."""
        return cls(_Shape.of(groups), marks)

    @property
    def numbers(self) -> Mapping[frozenset[str], int]:
        """The place of each group in ``marks``."""
        return self._shape.numbers

    @property
    def types(self) -> tuple[str, ...]:
        """The names of all types in any group."""
        return self._shape.types

    @property
    def marks(self) -> Int64s:
        """The mark of each group; before it, all instants are to be evaluated."""
        marks: Int64s = np.maximum(self.records["mark"], self.level)
        return marks

    def mark(self, group: frozenset[str]) -> int:
        """The mark of one group."""
        return max(self._items[2 * self._shape.numbers[group] + 1], self.level)

    def followed_by(self, groups: Iterable[frozenset[str]]) -> Groups:
        """Another collection of groups: a mark is kept, and a new group starts without one."""
        wanted = tuple(dict.fromkeys(groups))
        marks = [self.mark(group) if group in self.numbers else TIME_MIN for group in wanted]
        return Groups.of(wanted, np.array(marks, np.int64))

    # --- the marks of types ------------------------------------------------------------------

    def take_types(self, marks: Sequence[int]) -> None:
        """Take the marks of all ``types``."""
        self._types[:] = marks
        self._has_moved = True

    def raise_types(self, mark: int) -> None:
        """Raise the marks of all types to this one."""
        np.maximum(self._types, mark, out=self._types)
        self._has_moved = True

    def raise_type(self, name: str, mark: int) -> None:
        """Raise the mark of one type; nothing where no group has it."""
        place = self._shape.places.get(name)
        if place is not None:
            word = 2 * self._sizes[0] + place
            if mark > self._items[word]:
                self._items[word] = mark
                self._has_moved = True

    # --- the marks of groups -----------------------------------------------------------------

    def rise(self) -> bool:
        """Raise each mark to the least of its types'; whether any rises. Every group has a type."""
        if not self._has_moved:
            return False
        self._has_moved = False
        return raise_groups(self._words, *self._sizes) > 0

    def raise_to(self, mark: int) -> bool:
        """Raise ``level``, the mark of all types; whether any group was not known to be there."""
        if mark <= self.level or not self._sizes[0]:
            return False
        self.level = mark
        return True

    def reach_level(self) -> None:
        """Write down that each group goes to ``level``, as kernels do that are told to."""
        self.rest()
        self.records["mark"] = self.marks

    def rest(self) -> None:
        """Write down that every group stays where it is."""
        self.records["evaluated"] = self.records["mark"]
