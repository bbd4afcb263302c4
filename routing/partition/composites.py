"""Composite events on their way up: their order, decided where they were detected (E4).

The node that evaluates the rules of a type knows the order of its simultaneous composite events:
the places of their rules, then their causes. Another engine knows neither, and orders them by
their sequence numbers instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from matcher.model import EventBatch, Int64s

_RULE_SHIFT = 40
"""So many bits of a number are for the place among the events of one rule and instant."""


def numbered(batch: EventBatch, ranks: Mapping[str, int]) -> EventBatch:
    """The composite events of one type and one ``advance``, with their places as sequence numbers.

    ``ranks`` orders the sources of the rules that define the type. All composite events of a rule
    and an instant come from one ``advance``, in order.
    """
    sources = batch.ids.source
    of_source = np.array([ranks.get(name, 0) for name in sources.values], np.int64)[sources.codes]
    sequence = of_source << _RULE_SHIFT
    if len(batch) > 1:  # one alone, which is common, is the first of its instant
        sequence += _places(batch.time, of_source)
    return batch.with_ids(replace(batch.ids, sequence=sequence))


def _places(times: Int64s, of_source: Int64s) -> Int64s:
    """The place of each event among those of its instant and rule."""
    order = np.lexsort((of_source, times))
    time, rank = times[order], of_source[order]
    is_first = np.ones(len(times), np.bool_)
    is_first[1:] = (time[1:] != time[:-1]) | (rank[1:] != rank[:-1])
    numbers = np.arange(len(times))
    places = np.empty(len(times), np.int64)
    places[order] = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    return places
