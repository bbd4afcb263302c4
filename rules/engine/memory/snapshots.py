"""The state of an engine by its events, as a value that can be kept and given to another engine.

Rules are data, and deploying the same rules into a new engine fills the same tables in the same
way; so a snapshot holds what events have changed since, and nothing of the rules themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matcher.model import AnyArray
from rules.engine.kernels import layout
from rules.engine.kernels.arrays import DTYPES, Arrays
from runtime.memory import sheltered

if TYPE_CHECKING:
    from rules.engine.intake.duplicates import Remembered

_TOPS = {
    "heap": layout.HEAP_TOP,
    "lists": layout.LISTS_TOP,
    "summaries": layout.SUMMARIES_TOP,
}
"""Arrays that are in use up to a counter."""
_WHOLE = ("free", "buckets", "counters")
_RECORDS = ("types", "accesses", "rules", "groups")
"""Tables of rules in whose records events leave something."""
_RULES = ("columns", "steps", "code", "values", "private", "dispatch", "dispatched")
"""Tables that follow from the rules alone, and tell engines apart,"""
_FIXED = ("column", "type", "priority", "source", "key_high", "key_low")
"""as do these fields of the rules' records."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Plain data: arrays, texts and numbers. ``mark`` is how far the engine has come, in
    microseconds; ``form`` tells its tables.

    An engine that is given it finds what the engine that it was taken of would have found. A
    snapshot is taken between two advances, when nothing waits, and shares no memory with its
    engine.
    """

    form: str
    mark: int
    arrays: Mapping[str, AnyArray]
    strings: tuple[str | None, ...]
    texts: tuple[str | None, ...]
    sources: tuple[str, ...]
    repeats: Remembered


def taken_from(arrays: Arrays) -> dict[str, AnyArray]:
    """Copies of the arrays that events change."""
    counters = arrays["counters"]
    found = {name: arrays[name][: counters[top]].copy() for name, top in _TOPS.items()}
    return found | {name: arrays[name].copy() for name in (*_WHOLE, *_RECORDS)}


def put_into(arrays: Arrays, kept: Mapping[str, AnyArray]) -> None:
    """Give a new engine's arrays what was taken from another's. The engine must be new, with the
    same rules deployed in the same way, by the same version of the kernels: what tells tables apart
    is compared, and another engine is refused.
    """
    for name in _TOPS:
        arrays.grow(name, len(kept[name]))
        arrays[name][: len(kept[name])] = kept[name]
    for name in ("free", "buckets"):
        arrays[name] = sheltered(kept[name].copy())
    rule_names = arrays["rules"]["name"].copy()  # addresses of this process
    for name in ("counters", *_RECORDS):  # which others hold: the tables, above all
        arrays[name][:] = kept[name]
    arrays["rules"]["name"] = rule_names


def form_of(arrays: Arrays) -> str:
    """The form that two engines share when one can go on where the other was."""
    digest = hashlib.blake2b(digest_size=16)
    for name in (*_TOPS, *_WHOLE, *_RECORDS, *_RULES):
        digest.update(f"{name} {np.dtype(DTYPES[name]).descr};".encode())
    for name in _RECORDS:
        digest.update(f"{len(arrays[name])};".encode())
    for name in _RULES:
        digest.update(arrays[name].tobytes())
    for field in _FIXED:
        digest.update(arrays["rules"][field].tobytes())
    return digest.hexdigest()
