"""Composite events of several brokers that come to one at once."""

from __future__ import annotations

from collections.abc import Sequence

from rules.engine.engine import Detections, one_by_one


class MergedDetections(Detections):
    """Detections one after another, each of them in order; ``order`` is that in which they came.
    Each rule's stay in their order; what order rules have among themselves (E4) is known to who
    delivers to sinks (:mod:`routing.delivery.sinks`).
    """

    __slots__ = ()


def joined(found: Sequence[Detections]) -> Detections:
    """Detections as one, MergedDetections where there are several with events in them."""
    return found[0] if len(found) == 1 else one_by_one(found, MergedDetections)
