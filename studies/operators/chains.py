"""Operators one behind the other: the events that come out of one go into the next.

Where the first is a filter, and the next is of the same place, they become one operator with the
condition ahead of its window: what the filter keeps stays on the device, and only the number of
events comes back in between. Other operators hand batches on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from matcher.model import EventBatch
from studies.operators.aggregates import Aggregate
from studies.operators.filters import Filter
from studies.operators.operator import Operator
from studies.operators.sliding import Window


class Chain:
    """Operators of one input, in order; the last may give anything."""

    def __init__(self, *operators: Operator[EventBatch, Any]) -> None:
        if not operators:
            raise ValueError("a chain of no operators")
        self.operators: Sequence[Operator[EventBatch, Any]] = _merged(operators)

    def push(self, batch: EventBatch) -> Any:
        """The output of the last operator, for one batch."""
        made: Any = batch
        for operator in self.operators:
            made = operator.push(made)
        return made

    def stream(self, batches: Iterable[EventBatch]) -> Iterator[Any]:
        """The same for one batch after another."""
        made: Iterator[Any] = iter(batches)
        for operator in self.operators:
            made = operator.stream(made)
        return made


def _merged(operators: Sequence[Operator[EventBatch, Any]]) -> list[Operator[EventBatch, Any]]:
    """Filters taken into what stands behind them in the same place."""
    found: list[Operator[EventBatch, Any]] = []
    for operator in operators:
        last = found[-1] if found else None
        if (
            isinstance(last, Filter)
            and isinstance(operator, Aggregate | Window)
            and last.place is operator.place
        ):
            found[-1] = operator.behind(last)
        else:
            found.append(operator)
    return found
