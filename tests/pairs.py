"""Samples of what is alike: combinations of parameters such that every pair of values occurs, and
the first of many seeds.

Faults are nearly always the doing of one value or of two that meet; which third they met at matters
rarely. So a test of three parameters tries each pair of values, and all combinations where
REXMQ_COMBINATIONS is set (``make combinations``).
"""

import os
from collections.abc import Iterable
from itertools import combinations, product

Combination = tuple[object, ...]
WHOLE = bool(os.environ.get("REXMQ_COMBINATIONS"))


def every_pair(*values: Iterable[object]) -> list[Combination]:
    """Combinations of a value of each, such that any two values of two of them meet in one."""
    everything = list(product(*map(tuple, values)))
    return everything if WHOLE else _covering(everything)


def some_of_each(*values: Iterable[object]) -> list[Combination]:
    """Combinations in which every value occurs twice or more, with another of the others each time.

    For values that are samples of one thing, such as moments.
    """
    columns = [tuple(one) for one in values]
    if WHOLE:
        return list(product(*columns))
    most = max(map(len, columns))
    return [
        tuple(one[(row + turn * number) % len(one)] for number, one in enumerate(columns))
        for turn in range(2)
        for row in range(most)
    ]


def seeds(few: int, all_: int) -> range:
    """Seeds of random cases that others are like: a few, and all where everything is tried."""
    return range(all_ if WHOLE else few)


def some_of(values: Iterable[object], *places: int) -> list[object]:
    """Values at these places, or all: the others are tried by tests that are like it."""
    everything = list(values)
    return everything if WHOLE else [everything[place] for place in places]


def _covering(everything: list[Combination]) -> list[Combination]:
    """Greedily: ever the first of those with the most pairs that have not been met."""
    left = {one: _pairs(one) for one in everything}
    open_ = set[object]().union(*left.values())
    chosen = []
    while open_:
        best = max(left, key=lambda one: len(left[one] & open_))
        open_ -= left.pop(best)
        chosen.append(best)
    return chosen


def _pairs(combination: Combination) -> set[object]:
    return set(combinations(enumerate(combination), 2))
