"""Maps of many words of bits.

A map is a slice of an array, made before it is walked over: of a slice the compiler knows that
no place in it is counted from the end, and so takes several words at once, five times as fast.
"""

from __future__ import annotations

from matcher.kernels.compiled import inlined


@inlined
def set_to(target, source):
    """Copy a map to another of at least its length."""
    for word in range(len(source)):
        target[word] = source[word]


@inlined
def keep(target, source):
    """Drop the bits of a map that another, of its length, does not have."""
    for word in range(len(source)):
        target[word] &= source[word]


@inlined
def unite(target, source):
    """Add the bits of a map to another of at least its length."""
    for word in range(len(source)):
        target[word] |= source[word]
