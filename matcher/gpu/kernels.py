"""The kernels that run on a device: CCM as published (thesis 4.4.3, Algorithm 1) and its variants,
and matching of many events at once.

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
LIST, CELL, VALUE, EVENT = 0, 1, 2, 3
"""Columns of CCM's input: the list of the attribute's name, its cell's first word, its value, and
which of the events under way together has it."""
INPUT = 4
"""Columns there are."""
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


@cuda.jit(device=True)
def satisfies(word, operand, cell, value, hit_offsets, hits, ranks, test_ranks):
    """Whether a cell satisfies a constraint; not if it is of the same name and another kind."""
    if word & TERM_MASK != cell & TERM_MASK:
        return False
    is_so = relation(word >> 36, cell, value, operand, hit_offsets, hits, ranks, test_ranks)
    return (word >> 32) & is_so != 0


@cuda.jit(device=True)
def reset(counts, interfaces):
    """Set the other copies to zero, all threads of the grid together, for what comes next."""
    threads = cuda.gridDim.x * cuda.blockDim.x
    first = cuda.blockIdx.y * threads + cuda.grid(1)
    for place in range(first, len(counts), threads * cuda.gridDim.y):
        counts[place] = 0
    for place in range(first, len(interfaces), threads * cuda.gridDim.y):
        interfaces[place] = 0


@cuda.jit(device=True)
def count(slot, base, interface_base, filters, counts, interfaces, room, found):
    """One more constraint of a filter holds; with all of them its interface is selected.

    ``base`` and ``interface_base``: where the counts and the interfaces of the event begin.
    """
    if cuda.atomic.add(counts, base + slot, 1) + 1 == filters[slot, 1]:
        interfaces[interface_base + filters[slot, 2]] = 1
        if room > 0:
            end = cuda.atomic.add(found, 0, 1)
            if end < room:
                found[end + 1] = base + slot


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
    reset(other_counts, other_interfaces)
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
    word, operand = arena[place, WORD], arena[place, OPERAND]
    if satisfies(word, operand, cell, value, hit_offsets, hits, ranks, test_ranks):
        count(arena[place, SLOT], 0, 0, filters, counts, interfaces, room, found)


@cuda.jit
def ccm_together(
    size,
    inputs,
    lists,
    arena,
    filters,
    slots,
    places,
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
    """The same for several events, each with its own Count and Interfaces (thesis 4.5.2).

    Rows of Input are of one event after the other and say of which. ``slots`` and ``places``: how
    many counts and interfaces each event has; what is found is ``event * slots + slot``.
    """
    x, y = cuda.grid(1), cuda.blockIdx.y
    reset(other_counts, other_interfaces)
    if y >= size[0]:
        return
    row, cell, value, event = inputs[y, LIST], inputs[y, CELL], inputs[y, VALUE], inputs[y, EVENT]
    if x >= lists[row, COUNT]:
        return
    place = lists[row, START] + x
    word, operand = arena[place, WORD], arena[place, OPERAND]
    if satisfies(word, operand, cell, value, hit_offsets, hits, ranks, test_ranks):
        slot, base, selected = arena[place, SLOT], event * slots, event * places
        count(slot, base, selected, filters, counts, interfaces, room, found)


@cuda.jit
def ccm_distinct(
    size,
    inputs,
    lists,
    arena,
    filters,
    owners,
    members,
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
    """As ``ccm`` where each constraint stands once: one that holds is counted for all of its
    filters, by the thread that has evaluated it (thesis 4.5.1).
    """
    x, y = cuda.grid(1), cuda.blockIdx.y
    reset(other_counts, other_interfaces)
    if y >= size[0]:
        return
    row, cell, value = inputs[y, LIST], inputs[y, CELL], inputs[y, VALUE]
    if x >= lists[row, COUNT]:
        return
    place = lists[row, START] + x
    word, operand = arena[place, WORD], arena[place, OPERAND]
    if satisfies(word, operand, cell, value, hit_offsets, hits, ranks, test_ranks):
        number = arena[place, SLOT]
        for member in range(owners[number], owners[number + 1]):
            count(members[member], 0, 0, filters, counts, interfaces, room, found)


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
