"""Work that is written as a generator, so that a host may do other things in between.

It yields about every millisecond, and returns its result. A text of 1,000 rules yields 3,000 times;
who has the time lets ``finished`` do all of it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

_Result = TypeVar("_Result")
Stepwise: TypeAlias = Generator[None, None, _Result]
STEP_WORDS = 256
"""Words of a text that take about a millisecond to be read."""


def finished(work: Stepwise[_Result]) -> _Result:
    """Do all of it."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: _Result = done.value
            return result
