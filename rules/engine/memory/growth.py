"""Memory for kernels: how the arrays of an engine begin, and how they grow."""

from __future__ import annotations

from matcher.model import TIME_MIN
from rules.engine.kernels import layout
from rules.engine.kernels.ahead import WALKED_KINDS, WALKED_MAX
from rules.engine.kernels.arrays import DTYPES, Arrays
from rules.engine.kernels.buckets import rehash
from rules.engine.linking.linker import Linker
from rules.engine.order.last_words import LAST_WORDS
from runtime.memory import filled, first_length, zeros

SCAN_MAX = 32
"""A window of so many entries is scanned for an aggregate; of longer ones summaries are made."""
UNBOUNDED = 2**62
"""More composite events than any rule yields."""
LOOK_MIN = 512
"""With so many lists it pays to look ahead at events; fewer fit the nearest caches."""
GROWING = {
    layout.GROW_HEAP: ("heap",),
    layout.GROW_LISTS: ("lists",),
    layout.GROW_RUNS: ("runs",),
    layout.GROW_SUMMARIES: ("summaries",),
    layout.GROW_TRIGGERS: ("triggers", "queue"),
    layout.GROW_DEFERRED: ("deferred",),
    layout.GROW_CONSUMED: ("consumed",),
    layout.GROW_ACCEPTED: ("accepted",),
}
"""The arrays that a status asks to grow."""
GROWN_WHEN_FULL = (
    *(name for names in GROWING.values() for name in names),
    *("waiting", "inbox", "arrivals", "merging"),
)
"""Arrays that kernels need no first room in."""


def new_arrays(yield_max: int = UNBOUNDED) -> Arrays:
    """Arrays for no events at all; everything in them grows. ``yield_max``: composite events that a
    rule may yield at one instant.
    """
    arrays = Arrays()
    arrays["free"] = filled(layout.SIZE_CLASSES, -1)
    arrays["buckets"] = filled(first_length(128), -1)
    for name in GROWN_WHEN_FULL:
        arrays[name] = zeros((first_length(64),), DTYPES[name])
    counters = arrays["counters"]
    counters[[layout.LISTS_FREE, layout.SUMMARIES_FREE, layout.YIELDED_BY]] = -1
    counters[layout.SCAN_MAX], counters[layout.LOOK_MIN] = SCAN_MAX, LOOK_MIN
    counters[layout.LEVEL], counters[layout.YIELD_MAX] = TIME_MIN, yield_max
    arrays["accesses"]["list"] = -1
    arrays.grow("walked", WALKED_KINDS * WALKED_MAX)
    arrays["evaluating"] = LAST_WORDS.slot()
    arrays["stored"] = zeros((0,), layout.DEFERRED_TRIGGER)
    return arrays


def grow(arrays: Arrays, status: int) -> None:
    """Double what a kernel asked for. Kernels never allocate: one that lacks room says what of, and
    is called again behind this.
    """
    if status == layout.GROW_BUCKETS:
        buckets = filled(2 * len(arrays["buckets"]), -1)
        rehash(arrays.state, buckets)
        arrays["buckets"] = buckets
        return
    for name in GROWING[status]:
        arrays.grow(name, 2 * len(arrays[name]))


def fit_scratch(arrays: Arrays, linker: Linker) -> None:
    """Make the scratch of evaluation large enough for the deployed rules."""
    steps, types = len(linker.steps.array), len(linker.tables.types.array)
    depth = max(linker.depth, linker.tables.depth) + 1
    for name, length in (
        ("frame", linker.events + 2),  # the candidate, and a run's neighbour
        ("chosen", linker.events),
        ("chosen_types", linker.events),
        ("slots", linker.slots),
        ("slots_defined", linker.slots),
        ("stack", depth),
        ("stack_defined", depth),
        ("cursors", steps),
        ("cursor_ends", steps),
        ("cursor_lists", steps),
        ("matched", len(linker.tables.columns.array)),
        ("composite", linker.tables.width),
        ("outlets", types),
        ("touched", types),
    ):
        arrays.grow(name, length)
