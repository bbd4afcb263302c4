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
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matcher.kernels.layout import GROUP_COLUMNS
from matcher.model import AnyArray, Int64s

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
_WORD = ir.IntType(64)


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
    place, columns = 2 * list(COLUMNS).index(name), COLUMNS[name]
    kind = types.Array(types.int64, 2 if columns else 1, "C")
    item = ir.Constant(_WORD, 8)

    @intrinsic
    def array(_context, words):
        """The array of this name, by the address of the words."""

        def generate(context, builder, _signature, arguments):
            from numba.np import arrayobj  # with numba's tables: not needed by what is kept

            pointer = builder.inttoptr(arguments[0], _WORD.as_pointer())
            address, rows = (
                builder.load(builder.gep(pointer, [ir.Constant(_WORD, place + word)]))
                for word in range(2)
            )
            view = arrayobj.make_array(kind)(context, builder)
            shape, strides = [rows], [item]
            if columns:
                shape.append(ir.Constant(_WORD, columns))
                strides.insert(0, ir.Constant(_WORD, 8 * columns))
            data = builder.inttoptr(address, view.data.type)
            arrayobj.populate_array(view, data, shape, strides, item, None)
            return view._getvalue()

        return kind(types.int64), generate

    return array


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
