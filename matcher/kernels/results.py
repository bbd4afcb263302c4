"""How a match is noted."""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined


@inlined
def hit(event, slot, interface, bits, found, size, wanted):
    """Note that a filter matches an event; the rows of ``found`` wanted so far."""
    bits[event, interface >> 6] |= np.int64(1) << (interface & 63)
    if not wanted:
        return size
    if size < len(found):
        found[size, 0] = event
        found[size, 1] = slot
    return size + 1
