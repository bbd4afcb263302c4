"""What section 4.5 of the thesis says of its figures, and whether our tables say so too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.reproduction.experiment import Claim, Table
from benchmarks.reproduction.methods import CCM, CORES, METHODS, OCM, SFF, ms, speedup


def numbers(table: Table, column: str) -> np.ndarray:
    return np.array(table.column(column), np.float64)


def from_to(table: Table, column: str) -> str:
    """A column's first and last figure, in words."""
    figures = numbers(table, column)
    return f"{column}: {figures[0]:.3g} to {figures[-1]:.3g}"


def ends(table: Table, *columns: str) -> str:
    return "; ".join(from_to(table, column) for column in columns)


def grows(table: Table, column: str) -> bool:
    figures = numbers(table, column)
    return bool(figures[-1] > figures[0])


def growth(table: Table, column: str) -> float:
    figures = numbers(table, column)
    return float(figures[-1] / figures[0])


ON_GPU = "needs a GPU"


def of_ccm(table: Table, published: str, holds: Callable[[float, float], bool]) -> Claim:
    """What is said of CCM's speed beside SFF's, judged by the first and the last of it."""
    if speedup(CCM) not in table.columns:
        return Claim(published, ON_GPU, None)
    ratio = numbers(table, speedup(CCM)).tolist()
    return Claim(published, from_to(table, speedup(CCM)), holds(ratio[0], ratio[-1]))


def of_attributes(table: Table) -> tuple[Claim, ...]:
    return (
        Claim(
            "all algorithms take longer with more attributes",
            ends(table, *map(ms, METHODS)),
            all(grows(table, ms(method)) for method in METHODS),
        ),
        Claim(
            "the time of SFF grows faster, so that OCM's advantage grows (4x to 6x, six cores)",
            ends(table, speedup(OCM)),
            grows(table, speedup(OCM)),
        ),
        of_ccm(
            table, "CCM is ten times faster than SFF with 9 attributes", lambda _, last: last >= 10
        ),
    )


def of_constraints(table: Table) -> tuple[Claim, ...]:
    ratio = numbers(table, speedup(OCM))
    return (
        Claim(
            "times grow with the constraints of a filter, SFF's much faster than OCM's",
            ends(table, ms(SFF), ms(OCM)),
            growth(table, ms(SFF)) > growth(table, ms(OCM)) > 1,
        ),
        Claim(
            "with one or two constraints a filter SFF is faster than OCM: its pruning works best",
            f"speed of OCM with the fewest: {ratio[0]:.3g} times SFF's",
            bool(ratio[0] < 1),
        ),
        Claim(
            "with 9 constraints a filter OCM is more than 6 times as fast as SFF, on six cores",
            f"{ratio[-1]:.3g} times with {CORES}",
            bool(ratio[-1] > CORES),
        ),
    )


def of_filters(table: Table) -> tuple[Claim, ...]:
    ratio = numbers(table, speedup(OCM))
    return (
        Claim(
            "with very few filters (under 700 an interface) SFF is faster than OCM",
            f"speed of OCM with the fewest: {ratio[0]:.3g} times SFF's",
            bool(ratio[0] < 1),
        ),
        Claim(
            "OCM's advantage over SFF falls again beyond 50,000 filters an interface",
            f"greatest {ratio.max():.3g}, at the most filters {ratio[-1]:.3g}",
            bool(ratio[-1] < ratio.max()),
        ),
    )


def of_interfaces(table: Table) -> tuple[Claim, ...]:
    count = numbers(table, table.columns[0])
    more = count[-1] / count[0]
    return (
        Claim(
            "all times grow with the interfaces, which bring their filters",
            ends(table, *map(ms, METHODS)),
            all(grows(table, ms(method)) for method in METHODS),
        ),
        Claim(
            "OCM's grows more than linearly",
            f"{more:.3g} times the interfaces, {growth(table, ms(OCM)):.3g} times the time",
            growth(table, ms(OCM)) > more,
        ),
        Claim(
            "so that its advantage over SFF falls",
            ends(table, speedup(OCM)),
            growth(table, speedup(OCM)) < 1,
        ),
        of_ccm(
            table,
            "CCM's advantage over SFF grows from 7x to more than 13x",
            lambda first, last: first < last and last > 13,
        ),
    )


def of_names(table: Table) -> tuple[Claim, ...]:
    counts = table.column(table.columns[0])
    at_hundred = counts.index(100) if 100 in counts else 0
    advantage, thirty = numbers(table, speedup(OCM)), min(1, len(counts) - 1)
    early, late = (
        numbers(table, ms(OCM))[0] / numbers(table, ms(OCM))[at_hundred],
        numbers(table, ms(OCM))[at_hundred] / numbers(table, ms(OCM))[-1],
    )
    return (
        Claim(
            "all algorithms are faster with more names",
            ends(table, *map(ms, METHODS)),
            not any(grows(table, ms(method)) for method in METHODS),
        ),
        Claim(
            "above all from 10 to 100 names; then times tend to be stable",
            f"OCM's time falls {early:.3g} times up to 100 names, {late:.3g} times after",
            bool(early > late),
        ),
        Claim(
            "OCM's advantage over SFF grows from 10 to 30 names, since pruning no longer helps",
            ends(table, speedup(OCM)) + f", at 30 {advantage[thirty]:.3g}",
            bool(advantage[thirty] > advantage[0]),
        ),
        Claim(
            "and falls after that, though even with 1,000 names it is there",
            f"{advantage[thirty]:.3g} to {advantage[-1]:.3g}",
            bool(1 < advantage[-1] < advantage[thirty]),
        ),
    )


def of_kinds(table: Table) -> tuple[Claim, ...]:
    return (
        Claim(
            "SFF's time grows with the share of constraints on numbers",
            ends(table, ms(SFF)),
            grows(table, ms(SFF)),
        ),
        Claim(
            "that of OCM is constant or falls, so that its advantage grows",
            ends(table, ms(OCM), speedup(OCM)),
            growth(table, ms(OCM)) < 1.1 and grows(table, speedup(OCM)),
        ),
    )
