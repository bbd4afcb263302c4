"""The kernels that run on a device: CCM as published (thesis 4.4.3, Algorithm 1), and matching of
many events at once.

Rows of filters, cells of events and the relations between them are those of the host's kernels
(:mod:`matcher.kernels`): what a number means is said there, once. Words of 32 bits hold one event
a bit; events ``32 * g`` to ``32 * g + 31`` are group g, an event's place in its group its lane.
"""

from __future__ import annotations

from numba import cuda, int64

from matcher.kernels.layout import (
    APART,
    BY_FLOAT,
    BY_INT,
    BY_PRESENCE,
    BY_RANK,
    BY_TEST,
    COUNT,
    FLOAT_FLAG,
    SAME,
    START,
    TERM_MASK,
)
from matcher.kernels.relations import order_of, order_of_numbers

GROUP = 32
"""Events of a group."""
WORD, OPERAND, SLOT = 0, 1, 2
"""Columns of CCM's table of constraints."""
LIST, CELL, VALUE = 0, 1, 2
"""Columns of CCM's input: the list of the attribute's name, its cell's first word, its value."""
FIRST, SECOND, SIZE, PLACE, ROWS = 0, 1, 2, 3, 4
"""Columns of the batched matcher's heads: the filter's two rarest terms (twice the same where it
has one), how many rows it has (0: no filter, or one without rows), its interface's place, and
where its rows begin."""
HEAD = 8
"""Columns there are: a head is 32 bytes, which is what a device reads at a time."""
SHARED_INPUT = 3


@cuda.jit(device=True)
def relation(how, cell, value, operand, hit_offsets, hits, ranks, test_ranks):
    """The relation of a cell's value to an operand, as ``relations.holds`` finds it."""
    if how == BY_INT and cell < FLOAT_FLAG:
        return order_of(value, operand)
    if how <= BY_FLOAT:
        return order_of_numbers(cell >= FLOAT_FLAG, value, how == BY_FLOAT, operand)
    if how == BY_TEST:
        first, last = hit_offsets[value], hit_offsets[value + 1]
        while first < last:
            middle = (first + last) >> 1
            if hits[middle] < operand:
                first = middle + 1
            else:
                last = middle
        return SAME if first < hit_offsets[value + 1] and hits[first] == operand else APART
    if how == BY_RANK:
        return order_of(ranks[value], test_ranks[operand])
    return SAME


@cuda.jit
def ccm(
    size,
    inputs,
    lists,
    arena,
    filters,
    counts,
    interfaces,
    other_counts,
    other_interfaces,
    room,
    found,
    hit_offsets,
    hits,
    ranks,
    test_ranks,
):
    """One event against the constraints on its attributes' names.

    Blocks of x cover the longest list, y the attributes; ``size`` int64[1] says how many there
    are, for blocks beyond have nothing to evaluate. ``found`` int64[1 + room]: how many filters
    matched, and which, as far as there is room; if that is 0 they are not counted. The other
    copies of Count and Interfaces are set to zero meanwhile, for the next event.
    """
    x, y = cuda.grid(1), cuda.blockIdx.y
    threads = cuda.gridDim.x * cuda.blockDim.x
    for place in range(y * threads + x, len(other_counts), threads * cuda.gridDim.y):
        other_counts[place] = 0
    for place in range(y * threads + x, len(other_interfaces), threads * cuda.gridDim.y):
        other_interfaces[place] = 0
    if y >= size[0]:  # of a whole block at once, so that none waits in vain below
        return
    shared = cuda.shared.array(SHARED_INPUT, int64)
    if cuda.threadIdx.x == 0:
        shared[LIST] = inputs[y, LIST]
        shared[CELL] = inputs[y, CELL]
        shared[VALUE] = inputs[y, VALUE]
    cuda.syncthreads()
    row, cell, value = shared[LIST], shared[CELL], shared[VALUE]
    if x >= lists[row, COUNT]:
        return
    place = lists[row, START] + x
    word = arena[place, WORD]
    if word & TERM_MASK != cell & TERM_MASK:
        return  # the same name, another kind
    how, operand = word >> 36, arena[place, OPERAND]
    found_relation = relation(how, cell, value, operand, hit_offsets, hits, ranks, test_ranks)
    if (word >> 32) & found_relation == 0:
        return
    slot = arena[place, SLOT]
    if cuda.atomic.add(counts, slot, 1) + 1 == filters[slot, 1]:
        interfaces[filters[slot, 2]] = 1
        if room > 0:
            end = cuda.atomic.add(found, 0, 1)
            if end < room:
                found[end + 1] = slot


@cuda.jit
def spread(offsets, cells, terms, events, presence, floats, values):
    """Lay events out by group and term; a thread an event.

    ``presence`` and ``floats`` uint32[groups * terms], zero before: which events of a group have
    a term, and whose value is a float; ``values`` int64[groups * terms, 32], by lane.
    """
    event = cuda.grid(1)
    if event >= events:
        return
    group, lane = event // GROUP, event % GROUP
    for cell in range(offsets[event], offsets[event + 1]):
        word = cells[cell, 0]
        place = group * terms + (word & TERM_MASK)
        cuda.atomic.or_(presence, place, 1 << lane)
        if word >= FLOAT_FLAG:
            cuda.atomic.or_(floats, place, 1 << lane)
        values[place, lane] = cells[cell, 1]


@cuda.jit
def match(
    heads,
    rows,
    slots,
    terms,
    groups,
    presence,
    floats,
    values,
    words,
    bits,
    room,
    found,
    hit_offsets,
    hits,
    ranks,
    test_ranks,
):
    """All groups of events against all filters; a thread a filter, and groups by blocks of y.

    Two words dismiss most filters for 32 events at once. ``bits`` uint32[events * words]: by event
    its interfaces, zero before; a bit that is there already is not written again, because many
    filters of one interface would queue for it. ``found`` int64[1 + room, 2]: in its first row how
    many pairs of event and slot there are, then the pairs, as far as there is room; if that is 0
    they are not counted.
    """
    slot = cuda.grid(1)
    if slot >= slots:
        return
    size = heads[slot, SIZE]
    if size <= 0:
        return
    first, second = heads[slot, FIRST], heads[slot, SECOND]
    start, place = heads[slot, ROWS], heads[slot, PLACE]
    for group in range(cuda.blockIdx.y, groups, cuda.gridDim.y):
        base = group * terms
        alive = int64(presence[base + first] & presence[base + second])
        row = start
        while alive != 0 and row < start + size:
            word, operand = rows[row, 0], rows[row, 1]
            row += 1
            term, how, wanted = word & TERM_MASK, word >> 36, (word >> 32) & 15
            alive &= int64(presence[base + term])
            if how == BY_PRESENCE:
                continue
            left, with_floats = alive, int64(floats[base + term])
            while left != 0:
                lane = cuda.ffs(left) - 1
                left &= left - 1
                cell = term + ((with_floats >> lane) & 1) * FLOAT_FLAG
                value = values[base + term, lane]
                is_so = relation(how, cell, value, operand, hit_offsets, hits, ranks, test_ranks)
                if wanted & is_so == 0:
                    alive &= ~(int64(1) << lane)
        while alive != 0:
            event = group * GROUP + cuda.ffs(alive) - 1
            alive &= alive - 1
            where, bit = event * words + (place >> 5), int64(1) << (place & 31)
            if int64(bits[where]) & bit == 0:
                cuda.atomic.or_(bits, where, bit)
            if room > 0:
                end = cuda.atomic.add(found, (0, 0), 1)
                if end < room:
                    found[end + 1, 0] = event
                    found[end + 1, 1] = slot
