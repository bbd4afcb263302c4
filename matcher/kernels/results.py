"""How a match is noted."""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined


@inlined
def hit(event, slot, interface, bits, found, size, wanted):
    """Note that a filter matches an event; the numbers in ``found`` wanted so far."""
    bits[event, interface >> 6] |= np.int64(1) << (interface & 63)
    if not wanted:
        return size
    if size < len(found):
        found[size] = slot
    return size + 1
