"""Detections of several engines, as if one had made them: put into one order when somebody asks.

The events of one rule are all of one engine and stand there in the order of their causes; so does
what one evaluation made, which is a run. Engines are therefore merged run by run, by time and by
their rules' places (tesla.md E4), and no event is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from matcher.model import Int64s
from rules.engine.engine import Detections
from rules.engine.kernels.emission import spread_runs
from rules.engine.results.taken import Taken

Ranked: TypeAlias = tuple[Taken, Int64s]
"""The detections of an engine; and for the places that its rules have in it, those that they have
among the rules of all engines."""


class Merged(Detections):
    """Detections of several engines, of which only the number is known until someone asks."""

    # The fields are the slots of Detections, empty until ``__getattr__`` is asked for one.
    __slots__ = ("_count", "_parts")
    _count: int
    _parts: Sequence[Ranked]

    def __init__(self, parts: Sequence[Ranked]) -> None:
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_count", sum(len(taken) for taken, _ in parts))

    def __len__(self) -> int:
        return self._count

    def __getattr__(self, name: str) -> Any:
        if name == "batches":
            made: Any = tuple(batch for taken, _ in self._parts for batch in taken.batches)
        elif name == "order":
            made = self._in_order()
        else:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        object.__setattr__(self, name, made)
        return made

    def _in_order(self) -> Int64s:
        """The common order of the batches' events."""
        runs, positions, before, types = [], [], 0, 0
        for taken, places in self._parts:
            own = taken.runs().copy()
            own["place"] = places[own["place"]]
            own["type"] += types
            runs.append(own)
            positions.append(taken.positions(before))
            before += len(taken)
            types += len(positions[-1])
        merged = np.concatenate(runs)
        order = np.empty(self._count, np.int64)
        in_order = _order(merged["time"], merged["place"])
        spread_runs(merged[in_order], np.concatenate(positions), order)
        return order


def _order(times: Int64s, places: Int64s) -> Int64s:
    """The permutation that puts rows in the order of times and, among equal ones, of places,
    stably.

    A stable sort by one key merges the runs that the parts are in one pass; by two it sorts anew.
    """
    first, width = int(times.min()), int(places.max()) + 1
    if (int(times.max()) - first + 1) * width < 2**63:
        return np.argsort((times - first) * width + places, kind="stable")
    return np.lexsort((places, times))
