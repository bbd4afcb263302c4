"""An index that tells which events of a batch satisfy which of many predicates.

Rules of one kind mostly differ in a constant (``area = "a7"``). So predicates with an equality of
an attribute and a constant are found by the values that a batch has of that attribute; only those
that are found, and those without one, are evaluated, each once for all fragments that ask for it:
over the columns of a batch, or over the values of an event that comes alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from matcher.model import EventBatch, Int64s, StringColumn
from matcher.single import Single
from routing.partition.predicates import Predicate
from rules.planning.columnar import satisfied
from rules.planning.rowwise import Evaluate, evaluator, is_satisfied
from rules.terms import TIME, AttributeOf, Compare, Comparison, Expression, Literal

_FIRST = np.zeros(1, np.int64)


class PredicateIndex:
    """The predicates of one type."""

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        self._open: list[Predicate] = []
        self._by_value: dict[int, dict[Any, list[Predicate]]] = {}  # by attribute
        self._evaluators: dict[int, tuple[Evaluate, ...]] = {}
        """By the identity of each predicate here, made when first asked for."""
        for predicate in predicates:
            found = next(filter(None, map(_constant, predicate.conditions)), None)
            if found is None:
                self._open.append(predicate)
            else:
                attribute, value = found
                self._by_value.setdefault(attribute, {}).setdefault(value, []).append(predicate)

    def sift(self, batch: EventBatch) -> Iterator[tuple[Predicate, Int64s]]:
        """The predicates that some events satisfy, and the places of these in the batch."""
        if isinstance(batch, Single):
            for predicate in self.sift_single(batch):
                yield predicate, _FIRST
            return
        for predicate in (*self._open, *self._found(batch)):
            places = np.flatnonzero(satisfied(predicate.conditions, batch))
            if len(places):
                yield predicate, places

    def sift_single(self, event: Single) -> list[Predicate]:
        """The predicates that an event satisfies."""
        values, predicates = event.row.values, self._open
        if self._by_value:
            found = [by_value.get(values[place], ()) for place, by_value in self._by_value.items()]
            predicates = [*predicates, *itertools.chain.from_iterable(found)]
        holding = []
        for one in predicates:
            made = self._evaluators.get(id(one))
            if made is None:
                made = self._evaluators[id(one)] = tuple(map(evaluator, one.conditions))
            if is_satisfied(made, values):
                holding.append(one)
        return holding

    def _found(self, batch: EventBatch) -> Iterator[Predicate]:
        for attribute, by_value in self._by_value.items():
            column = batch.columns[attribute]
            present: set[Any]
            if isinstance(column, StringColumn):
                present = set(column.compact().values)
            else:
                present = set(column.tolist())
            for value in present & by_value.keys():
                yield from by_value[value]


@lru_cache(maxsize=4_096)
def index_of(predicates: tuple[Predicate, ...]) -> PredicateIndex:
    """The index of these predicates. Most stay as they are when others come or go."""
    return PredicateIndex(predicates)


def _constant(condition: Expression) -> tuple[int, Any] | None:
    """The attribute and the value of a condition ``attribute = constant``."""
    if not (isinstance(condition, Compare) and condition.comparison is Comparison.EQUAL):
        return None
    left, right = condition.left, condition.right
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(left, AttributeOf) and left.attribute != TIME and isinstance(right, Literal):
        return left.attribute, right.value
    return None
