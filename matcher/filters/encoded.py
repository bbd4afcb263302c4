"""Events in a vocabulary's numbers, as matchers read them (:mod:`matcher.filters.vocabulary`).

Events of one type look at the same filters. So events of several types are encoded type by type,
and what the first of a type has brought into the caches is there for the next; who asks gets the
answers in the events' own order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from matcher.model import AnyArray, Int64s
from matcher.sorting import stable_order

Texts: TypeAlias = tuple[Int64s, Int64s, Int64s, Int64s]
"""By text, where its hits begin (one more than there are texts); the hits, ascending for each;
by text, its place among the operands of order; and by test of order, that of its operand. The
first three are the beginnings of arrays that go on growing."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedEvents:
    """n events in a vocabulary's numbers, ready to be matched.

    ``offsets`` int64[n + 1] into ``cells`` int64[m, 2]: the term, plus 2**32 where the value is a
    float; and the value, an int, the bits of a float or the number of a text. Those of one event
    are in the order of the vocabulary's ``ranks``. ``generation``: see the vocabulary.
    ``texts``: what kernels read of the texts, as it was when they were encoded. ``rows`` int64[n]:
    which of the events that were given each is, None if they are in the same order.
    """

    offsets: Int64s
    cells: Int64s
    generation: int
    texts: Texts
    rows: Int64s | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: slice) -> EncodedEvents:
        """A run of events, of those that were given."""
        first, last, _ = rows.indices(len(self))
        last = max(first, last)
        if self.rows is None:
            offsets = self.offsets[first : last + 1]
            cells = self.cells[offsets[0] : offsets[-1]]
            return EncodedEvents(offsets - offsets[0], cells, self.generation, self.texts)
        places = np.flatnonzero((self.rows >= first) & (self.rows < last))
        begins, lengths = self.offsets[places], np.diff(self.offsets)[places]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        chosen = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        own = self.rows[places] - first
        return EncodedEvents(offsets, self.cells[chosen], self.generation, self.texts, own)

    def in_order(self, found: AnyArray) -> AnyArray:
        """Results of each event, [n, ...], for the events as they were given."""
        if self.rows is None:
            return found
        ordered = np.empty_like(found)
        ordered[self.rows] = found
        return ordered


def type_order(types: Int64s) -> Int64s | None:
    """The order in which events of these types stand together; None if they do."""
    if len(types) == 0 or (types == types[0]).all():
        return None
    return stable_order(types)
