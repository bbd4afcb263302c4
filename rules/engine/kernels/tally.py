"""How much the accesses hold, and of how long a time: one walk over all lists, a few nanoseconds
each.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import first_entry
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.layout import ENTRY_WORDS, LISTS_TOP


@kernel
def tally(state: int, entries, keys, first, last) -> None:  # type: ignore[no-untyped-def]
    """Add to ``entries`` and ``keys``, int64 by access, how many events and keys there are; lower
    ``first`` and raise ``last`` to their least and greatest times.
    """
    heap = arrays.heap(state)
    for number in range(arrays.counters(state)[LISTS_TOP]):
        record = arrays.lists(state)[number]
        if record.capacity > 0 and record.length > 0:
            entries[record.access] += record.length
            keys[record.access] += 1
            at = first_entry(record)
            first[record.access] = min(first[record.access], heap[at])
            at += (record.length - 1) * ENTRY_WORDS
            last[record.access] = max(last[record.access], heap[at])
