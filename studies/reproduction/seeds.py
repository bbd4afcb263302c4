"""Figures of several seeds: how they are kept in tables, and read from them.

A table has the mean of each timed column, and beside it half the width of its 95 % interval where
there are several seeds; ``Table.runs`` has what each seed gave.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.reproduction.experiment import SEED, Figure, Table
from studies.reproduction.verdicts import Estimate, student


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds, and half the width of its 95 % confidence interval (None for one)."""

    value: float
    half: float | None
    seeds: tuple[float, ...] = ()
    """The figures of the seeds."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        count, value = len(values), float(np.mean(values))
        if count < 2:
            return cls(value, None, tuple(values))
        deviation = float(np.std(values, ddof=1))
        return cls(value, student(count) * deviation / math.sqrt(count), tuple(values))


def told(seeds: Sequence[int]) -> str:
    """Seeds in a row, in words."""
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def half(column: str) -> str:
    """The column of half the interval of a column: ``AIP +- [us]`` for ``AIP [us]``."""
    name, bracket, unit = column.partition(" [")
    return f"{name} +-{bracket}{unit}"


def table_of(
    first: str,
    places: Sequence[Figure],
    seeds: Sequence[int],
    means: Mapping[str, Sequence[Mean]],
    counted: Container[str] = (),
) -> Table:
    """A table of means by column, each for the places of the first; ``counted`` have no interval
    of their own.
    """
    columns: dict[str, Sequence[Figure]] = {first: places}
    for name, of_places in means.items():
        columns[name] = [one.value for one in of_places]
        if len(seeds) > 1 and name not in counted:
            columns[half(name)] = [one.half for one in of_places]
    rows = tuple(zip(*columns.values(), strict=True))
    return Table(tuple(columns), rows, _runs(first, places, seeds, means))


def _runs(
    first: str,
    places: Sequence[Figure],
    seeds: Sequence[int],
    means: Mapping[str, Sequence[Mean]],
) -> Table | None:
    """What each seed gave; None for one seed."""
    if len(seeds) < 2:
        return None
    rows = [
        (place, seed, *(of_places[at].seeds[run] for of_places in means.values()))
        for at, place in enumerate(places)
        for run, seed in enumerate(seeds)
    ]
    return Table((first, SEED, *means), tuple(rows))


def halves(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of half the intervals of columns; none where a table has none."""
    every = tuple(map(half, columns))
    return every if set(every) <= set(table.columns) else ()


def estimates(table: Table, column: str, label: str | None = None) -> list[Estimate]:
    """A column's timed figures from top to bottom, but for empty ones; each by ``label``, or the
    column, and its place.
    """
    name = column if label is None else label
    is_known = half(column) in table.columns
    intervals = table.column(half(column)) if is_known else [None] * len(table.rows)
    places = table.column(table.columns[0])
    rows = zip(places, table.column(column), intervals, table.by_seed(column), strict=True)
    return [
        replace(
            Estimate.measured(
                float(value), None if interval is None else float(interval), f"{name} at {place}"
            ),
            seeds=seeds,
        )
        for place, value, interval, seeds in rows
        if value is not None
    ]
