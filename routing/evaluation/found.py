"""Composite events that an engine has found, as they go on from there."""

from __future__ import annotations

import numpy as np

from routing.wire.composites import CAUSES_MAX, encode_alone
from rules.engine.engine import Detections
from rules.engine.results.taken import Taken


def as_found(detections: Detections) -> Detections:
    """The detections of an advance, in the form that costs least from here on. They are the same
    events in the same order. On a live link an advance finds a Fire, or a Fire and an Alarm: each
    goes on alone as the bytes that it crosses links in (:mod:`routing.wire.composites`). Many
    events stay in columns.
    """
    if type(detections) is not Taken:
        return detections
    alone = detections.alone(CAUSES_MAX)
    if alone is None:
        return detections
    events, order = alone
    return Detections(tuple(map(encode_alone, events)), np.array(order, np.int64))
