"""Changing in mid-stream how a rule is evaluated: from columns alone, or with an automaton.

A switch changes no result. The rule is linked anew beside itself, what the new accesses lack is
entered from those that hold the same events for the old ones, and only then the old is given back.
An automaton has taken in nothing at first: it does so, from the columns, when the next terminator
comes; one that is given up is dropped with its instances and links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from matcher.model import Int64s
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.kernels.memory import append_all
from rules.engine.linking.linker import LinkedRule, Linker


def linked_anew(linker: Linker, changes: Mapping[str, bool]) -> list[tuple[LinkedRule, LinkedRule]]:
    """Link rules beside themselves, with an automaton or (False) without; each as it was and as
    it is. Rules that are so already stay: an automaton must not find what it has taken in.
    """
    pairs: list[tuple[LinkedRule, LinkedRule]] = []
    for name, incremental in changes.items():
        variants = linker.linked[name]
        first = variants[0]
        if incremental != (first.automaton is not None):
            linker.link(first.deployed, first.source, incremental=incremental)
            pairs += zip(variants, linker.linked[name], strict=True)
    return pairs


def held_by(arrays: Arrays, access: int) -> Int64s:
    """The entries of an access, int64[n, 2] of (time, row), by time and then row.

    Rows of composite events of one rule ascend as their causes do (E4).
    """
    lists = arrays["lists"][: arrays["counters"][layout.LISTS_TOP]]
    found = lists[(lists["access"] == access) & (lists["capacity"] > 0) & (lists["length"] > 0)]
    words = arrays["heap"]
    starts = found["line"].astype(np.int64) * layout.LINE_WORDS + found["head"] * layout.ENTRY_WORDS
    counts = found["length"].astype(np.int64)
    first = np.cumsum(counts) - counts
    places = np.repeat(starts - layout.ENTRY_WORDS * first, counts)
    places += layout.ENTRY_WORDS * np.arange(int(counts.sum()))
    entries = np.stack([words[places], words[places + 1]], axis=1)
    ordered: Int64s = entries[np.lexsort((entries[:, 1], entries[:, 0]))]
    return ordered


def fill(
    arrays: Arrays, new: LinkedRule, old: LinkedRule, grow: Callable[[Arrays, int], None]
) -> None:
    """Enter what the accesses of a rule, linked anew, lack of the events that the old ones hold."""
    filled: set[int] = set()
    for event, access in new.arrivals.items():
        source = old.arrivals[event]
        if access == source or access in filled:
            continue
        filled.add(access)
        entries = held_by(arrays, source)
        missing = entries[~np.isin(entries[:, 1], held_by(arrays, access)[:, 1])]
        enter_all(arrays, access, missing, grow)


def enter_all(
    arrays: Arrays, access: int, entries: Int64s, grow: Callable[[Arrays, int], None]
) -> None:
    """Enter events, int64[n, 2] of (time, row), into an access."""
    column = int(arrays["accesses"][access]["column"])
    type_number = int(arrays["columns"][column]["type"])
    done = 0
    while done < len(entries):
        done, status = append_all(arrays.state, access, type_number, entries, done)
        if status != layout.DONE:
            grow(arrays, status)


def renumbered(rules: Int64s, numbers: Mapping[int, int]) -> Int64s:
    """Rule numbers with those of rules that were linked anew replaced."""
    changed = rules.copy()
    for old, new in numbers.items():
        changed[rules == old] = new
    return changed
