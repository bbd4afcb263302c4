"""Arrays of an index by address, for the kernel that matches.

A kernel that is handed an array spends a tenth of a microsecond on it, and one event takes less
than all of an index's arrays would. So the kernel gets the address of two words for each: where it
is and how many rows it has (:func:`words_of`). Nothing is kept alive by that: who gives the words
sees to it that the arrays are those of now, and that they stay while the kernel runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba.core import types

from matcher.kernels.layout import GROUP_COLUMNS
from matcher.model import AnyArray, Int64s
from runtime.instructions.views import accessor

COLUMNS: Mapping[str, int] = {
    "table": 2,
    "parts": 3,
    "masks": 0,
    "arena": 4,
    "bloom": 0,
    "state": 0,
    "rows": 2,
    "identifiers": 0,
    "sorts": 0,
    "blocks": 0,
    "groups": GROUP_COLUMNS,
    "heads": 2,
}
"""The arrays, all of int64, in the order of their words, and how many columns they have; 0 for
vectors."""


def words_of(arrays: Mapping[str, AnyArray]) -> Int64s:
    """Addresses and lengths of all the arrays of COLUMNS; the kernel is given its own address."""
    words: list[int] = []
    for name, columns in COLUMNS.items():
        array = arrays[name]
        assert array.dtype == np.int64, name
        assert array.shape[1:] == ((columns,) if columns else ()), name
        assert array.flags.c_contiguous, name
        words += (array.__array_interface__["data"][0], len(array))
    return np.array(words, np.int64)


def _accessor(name: str) -> Any:
    columns = COLUMNS[name]
    kind = types.Array(types.int64, 2 if columns else 1, "C")
    return accessor(2 * list(COLUMNS).index(name), kind, columns)


table_in = _accessor("table")
parts_in = _accessor("parts")
masks_in = _accessor("masks")
arena_in = _accessor("arena")
bloom_in = _accessor("bloom")
state_in = _accessor("state")
rows_in = _accessor("rows")
identifiers_in = _accessor("identifiers")
sorts_in = _accessor("sorts")
blocks_in = _accessor("blocks")
groups_in = _accessor("groups")
heads_in = _accessor("heads")
