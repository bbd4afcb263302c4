"""The arena: segments of the heap, of 2**n words, with a chain of free ones for each n.

None is smaller than a line of memory, so each begins with one.

Law: whoever holds a segment knows its offset and its size, and gives it back; nobody else does.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.layout import ENTRY_WORDS, HEAP_TOP, LINE_BITS, LINE_WORDS
from runtime.guarded import PATTERN
from runtime.memory import is_guarded

IS_SPOILED = is_guarded()
"""Whether what is given back is filled with a pattern: for tests (:mod:`runtime.guarded`)."""
SPOILED = np.frombuffer(bytes([PATTERN]) * 8, np.int64).item()
"""A word of the pattern."""


@kernel
def logarithm(words: int) -> int:
    """The size class of a segment: the least n with 2**n >= words, and no less than a line."""
    n = LINE_BITS
    while (1 << n) < words:
        n += 1
    return n


@part
def first_entry(entries) -> int:  # type: ignore[no-untyped-def]
    """Where in the heap the first entry of a list stands, given its record."""
    return entries.line * LINE_WORDS + entries.head * ENTRY_WORDS


@kernel
def allocate(state: int, size_class: int) -> int:
    """A segment of 2**size_class words: its offset, or -1 when the heap must grow."""
    offset = arrays.free(state)[size_class]
    if offset >= 0:
        arrays.free(state)[size_class] = arrays.heap(state)[offset]
        return offset
    top = arrays.counters(state)[HEAP_TOP]
    size = np.int64(1) << size_class
    if top + size > len(arrays.heap(state)):
        return -1
    arrays.counters(state)[HEAP_TOP] = top + size
    return top


@kernel
def release(state: int, offset: int, size_class: int) -> None:
    """Give a segment back."""
    if IS_SPOILED:
        heap = arrays.heap(state)
        for place in range(offset, offset + (np.int64(1) << size_class)):
            heap[place] = SPOILED
    arrays.heap(state)[offset] = arrays.free(state)[size_class]
    arrays.free(state)[size_class] = offset
