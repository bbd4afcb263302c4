"""Rules that share a mark, and their marks.

Law: marks never go back. Rules that use the same types, through the rules that define these too,
are a *group*: whatever mark is named, they have the same one, that of the type that is farthest
behind (tesla.md S14).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from matcher.model import TIME_MIN, Int64s


class _Shape(NamedTuple):
    """What does not change about groups while marks rise: see :class:`Groups`."""

    numbers: Mapping[frozenset[str], int]
    types: tuple[str, ...]
    places: Mapping[str, int]  # of each type's name in ``types``
    members: Int64s  # the places of each group's types, group after group,
    starts: Int64s  # and where those of each begin

    @classmethod
    def of(cls, groups: Iterable[frozenset[str]]) -> _Shape:
        numbers = {group: number for number, group in enumerate(groups)}
        types = tuple(sorted(frozenset[str]().union(*numbers)))
        places = {name: place for place, name in enumerate(types)}
        members = [[places[name] for name in sorted(group)] for group in numbers]
        sizes = np.array([len(group) for group in members], np.int64)
        flat = np.array([place for group in members for place in group], np.int64)
        return cls(numbers, types, places, flat, np.cumsum(sizes) - sizes)


class Groups:
    """The groups of rules that share a mark, and their marks.

    Each mark is the greater of its own, int64[n], and ``level``, which rises with each event that
    comes alone; arrays of marks are values.
    """

    def __init__(self, shape: _Shape, own: Int64s) -> None:
        self._shape = shape
        self._own = own
        self.level = TIME_MIN
        self._marks: Int64s | None = own

    @classmethod
    def of(cls, groups: Iterable[frozenset[str]], marks: Int64s) -> Groups:
        """Groups and the mark of each."""
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
        if self._marks is None:
            self._marks = np.maximum(self._own, self.level)
        return self._marks

    def followed_by(self, groups: Iterable[frozenset[str]]) -> Groups:
        """Another collection of groups: a mark is kept, and a new group starts without one."""
        wanted = tuple(dict.fromkeys(groups))
        marks = [
            int(self.marks[self.numbers[group]]) if group in self.numbers else TIME_MIN
            for group in wanted
        ]
        return Groups.of(wanted, np.array(marks, np.int64))

    def place_of(self, name: str) -> int | None:
        """Where in ``types`` a type's name is."""
        return self._shape.places.get(name)

    def raised(self, types: Int64s) -> Groups | None:
        """The groups with marks raised to the least of their types'; None when none rises.

        ``types`` int64 holds the mark of each of ``types``. Every group holds a type.
        """
        if len(self._own) == 0:
            return None
        _, _, _, members, starts = self._shape
        marks = np.maximum(self.marks, np.minimum.reduceat(types[members], starts))
        return Groups(self._shape, marks) if (marks != self.marks).any() else None

    def raise_to(self, mark: int) -> bool:
        """Raise each mark to this one, of all types; whether any was not known to be there."""
        if mark <= self.level or len(self._own) == 0:
            return False
        self.level = mark
        self._marks = None
        return True
