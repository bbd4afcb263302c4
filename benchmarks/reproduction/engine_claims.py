"""How what sections 5.8 and 6.4 of the thesis say of their figures is held against our tables.

Two times are called equal when they differ by less than a quarter: less than that is not to be
seen in the thesis's plots.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.reproduction.experiment import Claim, Table

EQUAL = 1.25
AIP, CDP = "AIP", "CDP"
NO_ENGINE = "there is no such engine here"
ON_GPU = "needs a GPU"


def us(engine: str) -> str:
    """The column of an engine's time for an event."""
    return f"{engine} [us]"


def half(engine: str) -> str:
    """The column of half the interval of that time."""
    return f"{engine} +- [us]"


def sustained(engine: str) -> str:
    """The column of the highest rate of arrival at which nothing is dropped."""
    return f"{engine} sustained [events/s]"


COMPOSITES = "composite events per event"


def figures(table: Table, column: str) -> np.ndarray:
    return np.array(table.column(column), np.float64)


def has(table: Table, *columns: str) -> bool:
    return all(column in table.columns for column in columns)


def course(table: Table, column: str) -> str:
    """A column's figures, in words."""
    return f"{column}: {', '.join(f'{value:.3g}' for value in figures(table, column))}"


def claim(
    published: str,
    table: Table,
    columns: tuple[str, ...],
    holds: Callable[..., bool],
    *,
    why: str = "",
) -> Claim:
    """A claim about some columns, whose figures ``holds`` is given; ``why``, if it does not."""
    if not has(table, *columns):
        return Claim(published, NO_ENGINE, None)
    measured = "; ".join(course(table, column) for column in columns)
    borne_out = bool(holds(*(figures(table, one) for one in columns)))
    if why and not borne_out:
        measured += f" ({why})"
    return Claim(published, measured, borne_out)


def grows(values: np.ndarray) -> bool:
    return bool(values[-1] > EQUAL * values[0])


def flat(values: np.ndarray) -> bool:
    return bool(values.max() <= EQUAL * values.min())


def falls(values: np.ndarray) -> bool:
    return bool(values[-1] * EQUAL < values[0])


def below(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the first is nowhere above the second."""
    return bool((first <= second).all())
