"""Least and greatest values of columns, and whether something holds of all rows.

Numpy's reductions take a microsecond or two, however short a column is: longer than all else that
is done with a few hundred events. To ask for the place of an extreme, and to look there, takes a
fifth of that, and no longer where columns are long.

These are the reductions ``min``, ``max`` and ``all``, of columns with a row at least. The place of
either extreme of floats is that of the first NaN, if there is any.
"""

from __future__ import annotations

import math
from typing import Any

from matcher.model import Bools, Int64s


def least(numbers: Int64s) -> int:
    """The least of numbers."""
    return numbers.item(numbers.argmin())


def greatest(numbers: Int64s) -> int:
    """The greatest of numbers."""
    return numbers.item(numbers.argmax())


def holds_of_all(mask: Bools) -> bool:
    """Whether a mask is true everywhere; of one without rows, too."""
    return len(mask) == 0 or mask.item(mask.argmin())


def are_finite(values: Any) -> bool:
    """Whether floats are all finite: then their extremes are, and neither is a NaN."""
    isfinite, item = math.isfinite, values.item
    return isfinite(item(values.argmin())) and isfinite(item(values.argmax()))
