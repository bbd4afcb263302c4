"""How much the accesses hold: one walk over all lists, a few nanoseconds each."""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.layout import LISTS_TOP


@kernel
def tally(state: int, entries, keys) -> None:  # type: ignore[no-untyped-def]
    """Add to ``entries`` and ``keys``, int64 by access, how many events and keys there are."""
    for number in range(arrays.counters(state)[LISTS_TOP]):
        record = arrays.lists(state)[number]
        if record.capacity > 0 and record.length > 0:
            entries[record.access] += record.length
            keys[record.access] += 1
