"""Consumption by what a rule has found elsewhere, before this engine had it."""

from __future__ import annotations

import numpy as np

from matcher.model import Int64s, UInt64s
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.instants import CONSUME
from rules.engine.linking.columns import ColumnTables
from rules.engine.linking.linker import LinkedRule
from rules.engine.memory.storage import stored_rows


def have_consumed(arrays: Arrays, tables: ColumnTables, linked: LinkedRule, keys: UInt64s) -> None:
    """Have the kernels take the events of these keys, uint64[n, 2], out of a rule's own columns
    when they run next; no instant is under way. The rule's automaton forgets the instants that they
    were taken in with. Temp 7 was consumed by a Fire of another engine: once that is told here, no
    Fire finds it any more.
    """
    gone, found = set(map(tuple, keys.view(np.int64).tolist())), list[tuple[int, int, int]]()
    for type_ in linked.deployed.rule.used_types:
        number = tables.type_numbers[type_.name]
        record = tables.types.array[number]
        first = int(record["head"])
        rows = _rows_with(gone, stored_rows(arrays, record))
        found += [(linked.number, number, first + row) for row in rows]
    if found:
        arrays.grow("consumed", len(found))
        arrays["consumed"][: len(found)] = found
        arrays.counters[layout.CONSUMED] = len(found)
        arrays.counters[layout.PHASE] = CONSUME
        arrays.counters[layout.TAKING] = False


def _rows_with(keys: set[tuple[int, ...]], rows: Int64s) -> list[int]:
    """The places of the rows whose events have these keys."""
    own = rows[:, layout.ROW_KEY_HIGH : layout.ROW_KEY_LOW + 1].tolist()
    return [place for place, key in enumerate(own) if tuple(key) in keys]
