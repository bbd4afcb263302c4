"""Footprints of rules: the bytes that each takes in an engine, worked out when somebody asks."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matcher.model import AnyArray, Int64s
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import Arrays
from rules.engine.linking.linker import Linker

Float64s: TypeAlias = npt.NDArray[np.float64]

WORD = 8
"""Bytes of a word."""


def footprints(arrays: Arrays, linker: Linker) -> dict[str, int]:
    """The bytes of each rule in the arrays of an engine, by name. Nothing is counted as events
    come; what is there is read off the tables: the entries of a rule's columns, its partial
    sequences, and the events that are stored for it, as large as the segments are that they stand
    in. Of what the arrays have in reserve, and of what serves evaluation alone, no rule has any.
    """
    tables, holds = linker.tables, linker.holds
    type_of = tables.columns.array["type"]
    owners = np.zeros(len(linker.rules), np.int64)
    for place, variants in enumerate(linker.linked.values()):
        owners[[one.number for one in variants]] = place
    alive = np.array([*linker.by_number], np.int64)
    rules = np.concatenate([owners[holds["rule"]], owners[alive]])
    looked_at = type_of[tables.accesses.array["column"][holds["access"]]]
    terminators = type_of[linker.rules.array["column"][alive]]
    reaches = np.concatenate([holds["reach"], np.zeros(len(alive), np.int64)])
    types = np.concatenate([looked_at, terminators])
    first, count = len(holds), len(linker.linked)
    words = split(_in_lists(arrays), holds["access"], rules[:first], reaches[:first], count)
    words += split(_in_rings(arrays), types, rules, reaches, count)
    return dict(zip(linker.linked, in_bytes(words), strict=True))


def split(words: Int64s, things: Int64s, rules: Int64s, reaches: Int64s, count: int) -> Float64s:
    """The words of each thing, split among the rules that use it: float64[count].

    ``things``, ``rules`` and ``reaches`` int64[n] say which rule looks how far back in which thing;
    where one does so several times, the farthest counts. A thing is split in proportion to how far
    back each rule looks there: of a column that ``fire`` looks through for five minutes and
    ``flood`` for one, fire has five sixths.
    """
    pairs, which = np.unique(things * count + rules, return_inverse=True)
    weights = np.zeros(len(pairs))
    np.maximum.at(weights, which, reaches + 1.0)
    used, users = np.divmod(pairs, max(1, count))
    totals = np.bincount(used, weights, minlength=len(words))
    shares = words[used] * weights / totals[used]
    return np.bincount(users, shares, minlength=count).astype(np.float64)


def in_bytes(words: Float64s) -> list[int]:
    """Words as whole bytes."""
    whole: list[int] = np.rint(WORD * words).astype(np.int64).tolist()
    return whole


def segments(words: Int64s) -> Int64s:
    """The words of the segments that hold so many (rules.engine.kernels.arena); 0 for none."""
    _, classes = np.frexp(np.maximum(words, layout.LINE_WORDS) - 1)
    found: Int64s = np.where(words > 0, np.left_shift(1, classes.astype(np.int64)), 0)
    return found


def _in_rings(arrays: Arrays) -> Int64s:
    """The words of the stored events of each type."""
    types = arrays["types"]
    return segments(types["capacity"] * types["width"])


def _in_lists(arrays: Arrays) -> Int64s:
    """The words of the lists of each access, with their records and summaries.

    There may be a million, so each field is read once. Capacities are powers of two, and so a
    segment is as large as the entries that it has room for.
    """
    lists = arrays["lists"][: arrays.counters[layout.LISTS_TOP]]
    capacities, accesses = lists["capacity"], lists["access"].astype(np.int64)
    words = capacities * float(layout.ENTRY_WORDS)
    words[capacities > 0] += layout.LIST.itemsize // WORD
    summarised = np.flatnonzero(lists["summary"] >= 0)
    words[summarised] += _in_summaries(arrays, lists["summary"][summarised])
    found = np.bincount(accesses, words, minlength=len(arrays["accesses"]))
    return found.astype(np.int64)


def _in_summaries(arrays: Arrays, firsts: AnyArray) -> Int64s:
    """The words of chains of summaries, each from its first on."""
    summaries = arrays["summaries"]
    each = np.full(len(summaries), layout.SUMMARY.itemsize // WORD)
    filled = summaries["capacity"] > 0
    each[filled] += segments(summaries["capacity"][filled])
    each[filled] += np.left_shift(1, summaries["block_class"][filled])
    words, at = np.zeros(len(firsts), np.int64), firsts.astype(np.int64)
    while (has := np.flatnonzero(at >= 0)).size:
        words[has] += each[at[has]]
        at[has] = summaries["next"][at[has]]
    return words
