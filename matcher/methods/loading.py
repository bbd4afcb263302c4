"""Loading the kernels of an index before they are needed.

A kernel is loaded from disk when it is called first, in some milliseconds, and those that make
groups are called first at a filter that may come at any time: a pause of 30 ms that nothing about
that filter explains. Once ``load_kernels`` has returned, no filter that comes or goes and no
event waits for one.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from matcher.filters.constraint import Filter
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import FilterBatch, MixedEvents
from matcher.filters.table import FilterTable
from matcher.kernels.index import move_heads
from matcher.kernels.layout import COUNTS, GROUP_MIN, PARTS
from matcher.kernels.results import in_order
from matcher.methods.indexed import Index
from matcher.methods.tabled import Found
from matcher.model import Int64s

_TYPED = Filter.of(("a", ">", 0), ("b", "<", "x"), type="T")
_UNTYPED = Filter.of(("a", ">", 0), ("b", "<", "x"))
_NONE = np.empty(0, np.int64)


@cache
def load_kernels() -> None:
    """Put filters of all kinds into an index, match an event, and take them out again.

    The first call takes a tenth of a second, or, once after an installation, as long as compiling.
    """
    table = FilterTable()
    index = Index(table, by_access=False)
    for filter_ in (_TYPED, _UNTYPED):
        first = len(table)
        numbers = range(first, first + 2 * GROUP_MIN)
        index.insert(table.add_all(FilterBatch.of([(one, one, filter_) for one in numbers])))
    for number in range(PARTS):  # until some part of the table has to grow
        slot = table.add(-1 - number, 0, Filter.of((f"n{number}", ">", 0)))
        index.insert(np.array([slot], np.int64))
    _match(index, table, table.vocabulary.encode(MixedEvents.of([{"a": 1, "b": "w"}], ["T"])))
    for identifier in range(-PARTS, 4 * GROUP_MIN):
        index.delete(table.slot(identifier))
        table.remove(identifier)
    move_heads(np.zeros((1, 2), np.int64), np.zeros((1, 2), np.int64))
    in_order(np.zeros(1, np.int64), _NONE, _NONE, np.zeros(1, np.int64), _NONE)


def _match(index: Index, table: FilterTable, events: EncodedEvents) -> None:
    bits: Int64s = np.zeros((len(events), table.interfaces.size // 64 + 1), np.int64)
    index.run(events, 0, Found(bits, _NONE, _NONE, False), np.zeros(COUNTS, np.int64))
