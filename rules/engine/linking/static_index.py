"""The columns that an event has to be tested against: the thesis's Static Index (5.4, 5.7).

A column whose conditions include ``attribute = constant`` is found through a table of such
attributes and constants (it is *dispatched*); the others of a type form a chain, *open* to every
event of the type.
"""

from __future__ import annotations

from matcher.model import AnyArray
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.entering import dispatch_place
from rules.engine.linking.tables import RecordTable
from runtime.memory import zeros

_PLACES_MIN = 64


class StaticIndex:
    """Owner of the chains of columns and of the table of dispatched ones."""

    def __init__(self, types: RecordTable, columns: RecordTable) -> None:
        self._types = types
        self._columns = columns
        self._dispatch = RecordTable(layout.DISPATCH)
        self._numbers: dict[tuple[int, int], int] = {}  # by type and attribute
        self._table = _empty(_PLACES_MIN)
        self._used = 0

    def __len__(self) -> int:
        """Places of the table that are taken, by columns there are or were."""
        return self._used

    def open(self, column: int, type_number: int) -> None:
        """Enter a column that every event of its type is tested against."""
        types = self._types.array
        self._columns.array[column]["next"] = types[type_number]["first_open"]
        types[type_number]["first_open"] = column

    def close(self, column: int, type_number: int) -> None:
        """Take an open column out."""
        unchain(self._columns, column, self._types, type_number, "first_open")

    def enter(self, column: int, type_number: int, attribute: int, word: int) -> tuple[int, int]:
        """Enter a column for events with this word as attribute; gives what ``leave`` takes."""
        number = self._dispatch_of(type_number, attribute)
        place = self._place(number, word)
        self._columns.array[column]["next"] = self._table[place]["head"]
        self._table[place]["head"] = column
        return number, word

    def leave(self, column: int, dispatch: tuple[int, int]) -> None:
        """Take a dispatched column out."""
        columns, place = self._columns.array, self._place(*dispatch)
        following = columns[column]["next"]
        before = int(self._table[place]["head"])
        if before == column:
            self._table[place]["head"] = following
            return
        while columns[before]["next"] != column:
            before = int(columns[before]["next"])
        columns[before]["next"] = following

    def forget_type(self, type_number: int) -> None:
        """Give back what stands for the attributes of a type that has no columns."""
        for key in [key for key in self._numbers if key[0] == type_number]:
            self._dispatch.release(self._numbers.pop(key))

    def show(self, arrays: Arrays) -> None:
        """Let the kernels see the tables as they now are."""
        arrays["dispatch"] = self._dispatch.array
        arrays["dispatched"] = self._table

    def _dispatch_of(self, type_number: int, attribute: int) -> int:
        """The record of an attribute, made if need be."""
        number = self._numbers.get((type_number, attribute))
        if number is None:
            types = self._types.array
            number = self._dispatch.add(
                attribute=layout.offset_of(attribute), next=types[type_number]["first_dispatch"]
            )
            types[type_number]["first_dispatch"] = number
            self._numbers[type_number, attribute] = number
        return number

    def _place(self, number: int, word: int) -> int:
        """Where the table has an attribute's word; it is there after."""
        place = int(dispatch_place(self._table, number, word))
        if self._table[place]["head"] == layout.NEVER_USED:
            if 2 * (self._used + 1) > len(self._table):
                self._make_anew()
                place = int(dispatch_place(self._table, number, word))
            self._used += 1
            self._table[place] = word, number, layout.NO_COLUMN
        return place

    def _make_anew(self) -> None:
        """Enter what columns ask for into a table at most a quarter full. Whatever no column asks
        for any more is left out, so it grows with the columns there are, not with those there were.
        """
        taken = self._table[self._table["head"] >= 0]
        self._table = _empty(max(_PLACES_MIN, 1 << (4 * len(taken)).bit_length()))
        self._used = len(taken)
        for record in taken:
            word, number, _ = record.item()
            self._table[int(dispatch_place(self._table, number, word))] = record


def _empty(length: int) -> AnyArray:
    """A table of so many places, a power of two."""
    table = zeros((length,), layout.DISPATCHED)
    table["head"] = layout.NEVER_USED
    return table


def unchain(chained: RecordTable, number: int, owners: RecordTable, owner: int, head: str) -> None:
    """Take a record out of the chain, along ``next``, that begins at ``head`` of its owner."""
    following = chained.array[number]["next"]
    place = int(owners.array[owner][head])
    if place == number:
        owners.array[owner][head] = following
        return
    while chained.array[place]["next"] != number:
        place = int(chained.array[place]["next"])
    chained.array[place]["next"] = following
