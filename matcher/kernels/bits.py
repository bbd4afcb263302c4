"""Words of bits: single instructions for what numba has no name for, and maps of many words.

A map is a slice of an array, made before it is walked over: of a slice the compiler knows that
no place in it is counted from the end, and so takes several words at once, five times as fast.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matcher.kernels.compiled import inlined


@intrinsic
def lowest_bit(_context, word):
    """The number of the lowest bit that is set, of a word that has one."""

    def generate(_target, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), generate


@intrinsic
def number_of_bits(_context, word):
    """How many bits are set."""

    def generate(_target, builder, _signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


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
