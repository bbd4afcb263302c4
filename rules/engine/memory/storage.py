"""Events that an engine holds, as the host reads it off the kernels' arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matcher.model import Int64s, Kind
from rules.engine.intake.pending import Pending
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.columns import ColumnTables


def stored_rows(arrays: Arrays, record: np.void) -> Int64s:
    """The rows in the ring of a type, int64[n, words], from the oldest on; layout.TYPE."""
    width, capacity = int(record["width"]), int(record["capacity"])
    offset = int(record["offset"])
    ring = arrays["heap"][offset : offset + width * capacity].reshape(capacity, width)
    kept: Int64s = ring[np.arange(int(record["head"]), int(record["tail"])) & max(0, capacity - 1)]
    return kept


def held_in(arrays: Arrays, tables: ColumnTables) -> Mapping[str, int]:
    """How many words of the heap, lists, entries in them, and rows of each type there are."""
    lists = arrays["lists"][: arrays.counters[layout.LISTS_TOP]]
    held = {
        "heap": arrays.counters[layout.HEAP_TOP],
        "lists": int(np.count_nonzero(lists["capacity"])),
        "entries": int(lists["length"].sum()),
    }
    for name, number in sorted(tables.type_numbers.items()):
        record = tables.types.array[number]
        held[f"rows/{name}"] = int(record["tail"] - record["head"])
    return held


def codes_in(arrays: Arrays, tables: ColumnTables, pending: Pending, kind: Kind | None) -> set[int]:
    """The codes of strings in stored and waiting events; of the texts of ids where ``kind`` is
    None.
    """
    found: set[int] = set()
    for number, type_ in enumerate(tables.event_types):
        places = [
            layout.HEADER + place
            for place, attribute in enumerate(type_.attributes)
            if attribute.kind is kind
        ]
        stored, waiting = stored_rows(arrays, tables.types.array[number]), pending.rows(number)
        for place in places if kind is not None else [layout.ROW_ID]:
            for rows in (stored, waiting):
                found.update(np.unique(rows[:, place]).tolist())
    return found
