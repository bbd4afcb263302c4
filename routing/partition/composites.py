"""Composite events on their way up: their order, decided where they were detected (E4).

The node that evaluates the rules of a type knows the order of its simultaneous composite events:
the places of their rules, then their causes. Another engine knows neither, and orders them by
their sequence numbers instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from matcher.model import EventBatch

_RULE_SHIFT = 40
"""So many bits of a number are for the place among the events of one rule and instant."""


def numbered(batch: EventBatch, ranks: Mapping[str, int]) -> EventBatch:
    """The composite events of one type and one ``advance``, with their places as sequence numbers.

    ``ranks`` orders the sources of the rules that define the type. All composite events of a rule
    and an instant come from one ``advance``, in order.
    """
    sources = batch.ids.source
    of_source = np.array([ranks.get(name, 0) for name in sources.values], np.int64)[sources.codes]
    order = np.lexsort((of_source, batch.time))
    time, rank = batch.time[order], of_source[order]
    is_first = np.ones(len(batch), np.bool_)
    is_first[1:] = (time[1:] != time[:-1]) | (rank[1:] != rank[:-1])
    places = np.arange(len(batch))
    sequence = np.empty(len(batch), np.int64)
    sequence[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    ids = replace(batch.ids, sequence=(of_source << _RULE_SHIFT) + sequence)
    return replace(batch, ids=ids)
