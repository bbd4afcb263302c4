"""Rows of arrays, moved number by number: numba makes an array for a row that is assigned whole."""

from __future__ import annotations

from matcher.kernels.compiled import inlined


@inlined
def copy_row(source, row, target, place):
    """Copy a row of one array to a place of another."""
    for column in range(source.shape[1]):
        target[place, column] = source[row, column]
