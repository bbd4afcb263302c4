"""Tables that grow: records one by one, and blocks of consecutive records.

Deploying a rule costs what the rule is long, not what is deployed already: records and blocks
that a removed rule gave back are used again, and growing doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from matcher.model import AnyArray
from runtime.memory import first_length, grown, zeros


class RecordTable:
    """Records of one dtype; ``array`` is replaced when the table grows."""

    def __init__(self, dtype: npt.DTypeLike, capacity: int = 16) -> None:
        self.array: AnyArray = zeros((first_length(capacity),), dtype)
        self._top = 0
        self._free: list[int] = []

    def __len__(self) -> int:
        """Records that were ever in use: the numbers given are all below it."""
        return self._top

    def add(self, **fields: int) -> int:
        """A new record with these fields, the others 0: its number."""
        if self._free:
            number = self._free.pop()
        else:
            if self._top == len(self.array):
                self.array = grown(self.array, 2 * self._top)
            number = self._top
            self._top += 1
        record = self.array[number]
        for name in self.array.dtype.names or ():
            record[name] = fields.get(name, 0)
        return number

    def release(self, number: int) -> None:
        """Give a record back."""
        self._free.append(number)


class BlockTable:
    """Blocks of consecutive records; a block given back serves one of the same length.

    Each begins at a multiple of ``unit`` records.
    """

    def __init__(self, dtype: npt.DTypeLike, capacity: int = 64, unit: int = 1) -> None:
        self.array: AnyArray = zeros((first_length(capacity),), dtype)
        self._unit = unit
        self._top = 0
        self._free: dict[int, list[int]] = {}

    def reserve(self, count: int) -> int:
        """Room for ``count`` consecutive records: the number of the first."""
        count = self._taken_by(count)
        if waiting := self._free.get(count):
            return waiting.pop()
        if self._top + count > len(self.array):
            self.array = grown(self.array, max(2 * len(self.array), self._top + count))
        self._top += count
        return self._top - count

    def add(self, records: Sequence[Any]) -> int:
        """Enter records, tuples for a structured dtype, in a row: the number of the first."""
        first = self.reserve(len(records))
        for place, record in enumerate(records, first):
            self.array[place] = record
        return first

    def release(self, first: int, count: int) -> None:
        """Give a block back."""
        self._free.setdefault(self._taken_by(count), []).append(first)

    def _taken_by(self, count: int) -> int:
        return -(-count // self._unit) * self._unit
