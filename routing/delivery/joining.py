"""Composite events of several brokers that come to one at once.

Law: each rule's stay in their order, and the others' are not looked at: what order rules have among
themselves (E4) is known to who delivers to sinks, and is his to make
(:mod:`routing.delivery.sinks`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.model import EventBatch
from rules.engine.engine import NOTHING, Detections


class Joined(Detections):
    """Detections one after another, each of them in order; ``order`` is that in which they came."""

    __slots__ = ()


def joined(found: Sequence[Detections]) -> Detections:
    """Detections as one, Joined where there are several with events in them."""
    found = [one for one in found if len(one)]
    if len(found) <= 1:
        return found[0] if found else NOTHING
    starts = np.cumsum([0, *map(len, found)])
    return Joined(
        tuple(batch for one in found for batch in one.batches),
        np.concatenate([one.order + start for one, start in zip(found, starts, strict=False)]),
    )


def with_batches(found: Detections, batches: tuple[EventBatch, ...]) -> Detections:
    """The same detections in other batches, event by event."""
    kind = Joined if isinstance(found, Joined) else Detections
    return kind(batches, found.order)
