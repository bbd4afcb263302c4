"""Lists that grow, as *segments* of an arena: of a power of two of rows each. A segment that is
left goes to a list of free ones of its size, linked through the first number of each.
"""

from __future__ import annotations

from matcher.kernels.compiled import kernel
from matcher.kernels.layout import COUNT, FREE, ROOM, START, TOP
from matcher.kernels.rows import copy_row


@kernel
def segment(arena, state, log_room):
    """The start of a free segment of ``2**log_room`` rows, or -1 when the arena is too small."""
    start = state[FREE + log_room]
    if start >= 0:
        state[FREE + log_room] = arena[start, 0]
        return start
    start = state[TOP]
    if start + (1 << log_room) > len(arena):
        return -1
    state[TOP] += 1 << log_room
    return start


@kernel
def log_of(room):
    """The exponent of a power of two."""
    log = 0
    while 1 << log < room:
        log += 1
    return log


@kernel
def append(table, place, arena, state):
    """Room for one more row in a list; its place in the arena, or -1 when that is too small."""
    count, room = table[place, COUNT], table[place, ROOM]
    if count == room or table[place, START] < 0:
        log = 0 if table[place, START] < 0 else log_of(room) + 1
        start = segment(arena, state, log)
        if start < 0:
            return -1
        if table[place, START] >= 0:
            old = table[place, START]
            for row in range(count):
                copy_row(arena, old + row, arena, start + row)
            arena[old, 0] = state[FREE + log - 1]
            state[FREE + log - 1] = old
        table[place, START] = start
        table[place, ROOM] = 1 << log
    table[place, COUNT] = count + 1
    return table[place, START] + count


@kernel
def take_out(table, place, arena, column, slot):
    """Remove from a list the row that has ``slot`` in a column; the last row takes its place.

    Gives that place, or -1 where there is no such row.
    """
    start, last = table[place, START], table[place, COUNT] - 1
    for row in range(start, start + last + 1):
        if arena[row, column] == slot:
            copy_row(arena, start + last, arena, row)
            table[place, COUNT] = last
            return row
    return -1
