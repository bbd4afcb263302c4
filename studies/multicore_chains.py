"""Streams of :mod:`benchmarks.hybrid_workloads` for the simulated multicore: the same events, the
same conditions.

A condition of TESLA that is arithmetic alone reads the same in Python, so it is evaluated as it
stands, with columns for the names: ``change < later.change`` compares two arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.hybrid_workloads import Stream
from matcher.model import TIME_MAX, Int64s
from studies.multicore.chains import Bools, Chain, Fits

Columns = Mapping[str, np.ndarray]


class _Row(dict[str, Any]):
    """Attributes of some events by their names, found when they are asked for; those of the events
    after them by ``later.``.
    """

    def __init__(self, columns: Columns, numbers: Int64s, later: _Row | None = None) -> None:
        super().__init__()
        self._columns, self._numbers = columns, numbers
        if later is not None:
            self["later"] = later

    def __missing__(self, name: str) -> np.ndarray:
        self[name] = found = self._columns[name][self._numbers]
        return found

    def __getattr__(self, name: str) -> np.ndarray:
        return self[name]


def chain_of(stream: Stream, repeated: int = 0, repeats: int = 1) -> Chain:
    """A stream as a chain; ValueError where it has conditions that are no arithmetic."""
    if not stream.places:
        raise ValueError(f"{stream.name}: its conditions are not arithmetic alone")
    times, columns = [], []
    for name in stream.places:
        batches = [one for chunk in stream.chunks for one in chunk if one.type.name == name]
        times.append(np.concatenate([one.time for one in batches]))
        names = batches[0].type.names
        values = zip(*(one.columns for one in batches), strict=True)
        columns.append({key: np.concatenate(one) for key, one in zip(names, values, strict=True)})
    marks = [max(int(one.time[-1]) for one in chunk) for chunk in stream.chunks]
    fits = fits_of(columns, stream.conditions)
    return Chain(tuple(times), stream.window, fits, repeated, repeats, (*marks, TIME_MAX))


def fits_of(columns: Sequence[Columns], conditions: Sequence[str]) -> Fits:
    """Whether events fit those that follow them, by conditions as rules have them."""
    programs = [compile(one, "condition", "eval") for one in conditions]

    def fits(place: int, numbers: Int64s, later: int, others: Int64s) -> Bools:
        # Bare names are those of the earlier of two events.
        row = _Row(columns[place], numbers, _Row(columns[later], others))
        found = np.ones(len(numbers), np.bool_)
        for program in programs:
            found &= eval(program, {}, row)
        return found

    return fits
