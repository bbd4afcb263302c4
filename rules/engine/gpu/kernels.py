"""CDP for many terminators at once: the kernels of one step each (thesis 6.3, turned round).

All partial sequences of a rule grow together, step by step: breadth first where the processor goes
depth first. The candidates of all windows are cut into *units* of neighbours, a thread each:

1. ``look`` finds each partial sequence's window by binary search, and the operands of its terms;
2. ``count`` counts in each unit the candidates that fit, and :mod:`matcher.gpu.scan` sums up;
3. ``extend`` writes the longer partial sequences of a multiple selection, each in its place;
   ``settle`` chooses the one candidate of a single selection, drops what a negation forbids, or
   gives an aggregate its value.

Law: partial sequences stand in the order of their terminators and then of their other events, as
the walk of the processor comes upon them (E4); no atomic operation decides an order. What does not
fit into the room there is is counted and not written: the host makes room and begins again.
"""

from __future__ import annotations

from numba import cuda, int64

from matcher.gpu.scan import greater, lesser
from rules.engine.gpu.machine import DEPTH, key_word, relation, run
from rules.engine.gpu.records import (
    ANCHOR,
    ANCHOR_TIMES,
    BEGIN,
    BOUND,
    DURATION,
    EARLIER,
    EARLIER_TIMES,
    EARLY,
    END_TIME,
    EVENT,
    FIRST_TERM,
    FIRST_TERMINATOR,
    INDEX_TERM,
    KIND,
    LEVELS,
    LONGEST,
    MOST,
    NEEDS,
    NEGATE,
    ORDER,
    OWN,
    POLICY,
    POLICY_FIRST,
    PROGRAM,
    RANK,
    REST,
    SELECT,
    SINCE,
    SIZE,
    SKIP,
    SLOT,
    SORTED,
    STRICT,
    TERM_CONVERT,
    TERM_EVENT,
    TERM_HOW,
    TERM_MASK,
    TERM_PLACE,
    TERM_SEGMENT,
    TERM_WORDS,
    TERMINATOR_TIMES,
    TERMINATORS,
    TERMS,
    TEST,
    TIMED,
    TIMES,
    VALUE_EVENT,
    VALUE_KIND,
    VALUE_PLACE,
    VALUE_WORDS,
    VALUES,
)
from rules.engine.kernels.pyramid import key_of
from rules.engine.kernels.spans import TIME_LEAST

UNIT_MIN = 32
"""Candidates of a unit, at least."""
MASK_32 = 2**32 - 1


@cuda.jit(device=True)
def first_not_before(heap, segment, low, high, word):
    """The first of ascending words from ``low`` to ``high`` that is not less than another."""
    while low < high:
        middle = (low + high) >> 1
        if heap[segment + middle] < word:
            low = middle + 1
        else:
            high = middle
    return low


@cuda.jit(device=True)
def unit_of(count, longest, units):
    """How many candidates a unit has, and how many units the longest window."""
    size = greater(int64(UNIT_MIN), (count * longest + units - 1) // units)
    return size, greater(int64(1), (longest + size - 1) // size)


@cuda.jit
def spread(heap, staged, runs):
    """Bring words to their places: ``staged`` has three words for each run (where to, where from,
    how many), and then the words; blocks of y share out the runs.
    """
    run_ = cuda.blockIdx.y
    while run_ < runs:
        target, source, length = staged[3 * run_], staged[3 * run_ + 1], staged[3 * run_ + 2]
        for place in range(cuda.grid(1), length, cuda.gridsize(1)):
            heap[target + place] = staged[source + place]
        run_ += cuda.gridDim.y


@cuda.jit
def index_keys(heap, source, target, size, is_float):
    """The keys of an index: words, -0.0 being 0.0."""
    for place in range(cuda.grid(1), size, cuda.gridsize(1)):
        word = heap[source + place]
        heap[target + place] = 0 if is_float and word == -(2**63) else word


@cuda.jit
def index_sorted(heap, keys, order, target, size):
    """The keys in the order that was found for them."""
    for place in range(cuda.grid(1), size, cuda.gridsize(1)):
        heap[target + place] = heap[keys + heap[order + place]]


@cuda.jit
def begin(heap, step, frames, alive, capacity, sizes):
    """Make a partial sequence of each terminator; ``step`` describes their column.

    One block: the first thread finds them, the others fill in.
    """
    if cuda.threadIdx.x == 0:
        size = heap[heap[step + SIZE]]
        since = greater(sizes[BEGIN], heap[step + SINCE])
        first = first_not_before(heap, heap[step + TIMES], int64(0), size, since)
        end = first_not_before(heap, heap[step + TIMES], first, size, sizes[END_TIME])
        sizes[TERMINATORS] = end - first
        first = lesser(end, first + sizes[SKIP])
        sizes[FIRST_TERMINATOR] = first
        count = lesser(lesser(end - first, sizes[MOST]), int64(capacity))
        sizes[LEVELS] = count
        sizes[NEEDS] = count
        for level in range(LEVELS + 1, NEEDS):
            sizes[level] = 0
        for place in range(NEEDS + 1, len(sizes)):
            sizes[place] = 0
    cuda.syncthreads()
    for p in range(cuda.threadIdx.x, sizes[LEVELS], cuda.blockDim.x):
        frames[p] = sizes[FIRST_TERMINATOR] + p
        alive[p] = 1


@cuda.jit(device=True)
def time_at(heap, segment, frames, stride, event, p):
    """The time of an event of a partial sequence."""
    return heap[segment + frames[event * stride + p]]


@cuda.jit(device=True)
def earliest(heap, step, frames, stride, p):
    """The early end of a step's span, included (:func:`rules.engine.kernels.spans.earliest`)."""
    if heap[step + EARLIER] >= 0:
        segment = heap[step + EARLIER_TIMES]
        early = time_at(heap, segment, frames, stride, heap[step + EARLIER], p)
        early += heap[step + EARLY]
    else:
        segment = heap[step + ANCHOR_TIMES]
        late = time_at(heap, segment, frames, stride, heap[step + ANCHOR], p)
        early = greater(late, TIME_LEAST + heap[step + DURATION]) - heap[step + DURATION]
    return greater(early, heap[step + SINCE])


@cuda.jit(device=True)
def end_of(heap, step, frames, stride, p):
    """The late end of a step's span, excluded (:func:`rules.engine.kernels.spans.end_of`)."""
    segment = heap[step + ANCHOR_TIMES]
    time = time_at(heap, segment, frames, stride, heap[step + ANCHOR], p) + 1
    if heap[step + STRICT] != 0:
        terminator = time_at(heap, heap[step + TERMINATOR_TIMES], frames, stride, int64(0), p)
        time = lesser(time, terminator)
    return time


@cuda.jit(device=True)
def operand_of(heap, term, frames, slots, stride, p, stack):
    """A term's operand, and whether it is defined and some word can equal it."""
    if heap[term + TERM_EVENT] >= 0:
        entry = frames[heap[term + TERM_EVENT] * stride + p]
        word, is_known = heap[heap[term + TERM_PLACE] + entry], True
    else:
        word, is_known = run(
            heap, heap[term + TERM_PLACE], frames, slots, stride, p, int64(-1), int64(0), stack
        )
    if is_known and heap[term + TERM_CONVERT] != 0:
        word, is_known = key_word(word, heap[term + TERM_CONVERT])
    return word, is_known


@cuda.jit
def look(heap, step, frames, slots, alive, lows, highs, operands, stride, sizes, level):
    """The candidates of each partial sequence, by entries or by places of an index, and the
    operands of the step's terms; none where one is undefined.
    """
    stack = cuda.local.array(DEPTH, int64)
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        low, high = int64(0), int64(0)
        if alive[p] != 0:
            size = heap[heap[step + SIZE]]
            times = heap[step + TIMES]
            early = earliest(heap, step, frames, stride, p)
            late = end_of(heap, step, frames, stride, p)
            low = first_not_before(heap, times, int64(0), size, early)
            high = greater(low, first_not_before(heap, times, low, size, late))
            for number in range(heap[step + TERMS]):
                if low < high:
                    term = heap[step + FIRST_TERM] + number * TERM_WORDS
                    word, is_known = operand_of(heap, term, frames, slots, stride, p, stack)
                    operands[number * stride + p] = word
                    if not is_known:
                        high = low
            if low < high and heap[step + ORDER] >= 0:
                key = operands[heap[step + INDEX_TERM] * stride + p]
                keys, order = heap[step + SORTED], heap[step + ORDER]
                first = first_not_before(heap, keys, int64(0), size, key)
                last = size
                if key < 2**63 - 1:
                    last = first_not_before(heap, keys, first, size, key + 1)
                low, high = (
                    first_not_before(heap, order, first, last, low),
                    first_not_before(heap, order, first, last, high),
                )
        lows[p] = low
        highs[p] = high
        if high > low:
            cuda.atomic.max(sizes, heap[step + LONGEST], high - low)


@cuda.jit(device=True)
def fits(heap, step, frames, slots, operands, stride, p, entry, stack):
    """Whether a candidate satisfies all conditions of a step."""
    term = heap[step + FIRST_TERM]
    for number in range(heap[step + TERMS]):
        word = heap[heap[term + TERM_SEGMENT] + entry]
        found = relation(heap[term + TERM_HOW], word, operands[number * stride + p])
        if found & heap[term + TERM_MASK] == 0:
            return False
        term += TERM_WORDS
    if heap[step + REST] >= 0:
        own = heap[step + OWN]
        _, is_true = run(heap, heap[step + REST], frames, slots, stride, p, own, entry, stack)
        return is_true
    return True


@cuda.jit(device=True)
def entry_at(heap, step, place):
    """The entry of a candidate, which is a place of the index where there is one."""
    order = heap[step + ORDER]
    return place if order < 0 else heap[order + place]


@cuda.jit
def count(
    heap, step, frames, slots, lows, highs, operands, stride, sizes, level, counts, units, where
):
    """How many candidates of each unit fit; ``sizes`` at ``where``: how many units there are."""
    stack = cuda.local.array(DEPTH, int64)
    partials = sizes[LEVELS + level]
    size, pieces = unit_of(partials, sizes[heap[step + LONGEST]], units)
    if cuda.grid(1) == 0:
        sizes[where] = partials * pieces
    for unit in range(cuda.grid(1), partials * pieces, cuda.gridsize(1)):
        p = unit // pieces
        low = lows[p] + (unit % pieces) * size
        high = lesser(low + size, highs[p])
        found = int64(0)
        if heap[step + TERMS] == 0 and heap[step + REST] < 0:
            found = greater(found, high - low)
        else:
            for place in range(low, high):
                entry = entry_at(heap, step, place)
                if fits(heap, step, frames, slots, operands, stride, p, entry, stack):
                    found += 1
        counts[unit] = found


@cuda.jit
def extend(
    heap,
    step,
    frames,
    slots,
    lows,
    highs,
    operands,
    stride,
    sizes,
    level,
    sums,
    units,
    longer,
    longer_slots,
    alive,
    slot_words,
):
    """Write the partial sequences that a multiple selection makes, a level further."""
    stack = cuda.local.array(DEPTH, int64)
    partials = sizes[LEVELS + level]
    size, pieces = unit_of(partials, sizes[heap[step + LONGEST]], units)
    if cuda.grid(1) == 0:
        total = sums[partials * pieces]
        sizes[LEVELS + level + 1] = lesser(total, int64(stride))
        sizes[NEEDS + level + 1] = total
    event, bound = heap[step + EVENT], heap[step + BOUND]
    for unit in range(cuda.grid(1), partials * pieces, cuda.gridsize(1)):
        at, end = sums[unit], lesser(sums[unit + 1], int64(stride))
        if at >= end:
            continue
        p = unit // pieces
        place = lows[p] + (unit % pieces) * size
        while at < end:
            entry = entry_at(heap, step, place)
            place += 1
            if fits(heap, step, frames, slots, operands, stride, p, entry, stack):
                for other in range(bound):
                    longer[other * stride + at] = frames[other * stride + p]
                for word in range(slot_words):
                    longer_slots[word * stride + at] = slots[word * stride + p]
                longer[event * stride + at] = entry
                alive[at] = 1
                at += 1


@cuda.jit
def settle(
    heap, step, frames, slots, alive, lows, highs, operands, stride, sizes, level, sums, units
):
    """What a single selection, a negation or a count makes of each partial sequence."""
    stack = cuda.local.array(DEPTH, int64)
    partials = sizes[LEVELS + level]
    size, pieces = unit_of(partials, sizes[heap[step + LONGEST]], units)
    kind = heap[step + KIND]
    for p in range(cuda.grid(1), partials, cuda.gridsize(1)):
        if alive[p] == 0:
            continue
        first, last = sums[p * pieces], sums[(p + 1) * pieces]
        if kind == NEGATE:
            alive[p] = 0 if last > first else 1
        elif kind != SELECT:
            slots[2 * heap[step + SLOT] * stride + p] = last - first
            slots[(2 * heap[step + SLOT] + 1) * stride + p] = 1
        elif last - first < heap[step + RANK]:
            alive[p] = 0
        else:
            rank = heap[step + RANK]
            wanted = first + rank - 1 if heap[step + POLICY] == POLICY_FIRST else last - rank
            low, high = p * pieces, (p + 1) * pieces
            while low + 1 < high:  # the unit in which it is: the last that begins no later
                middle = (low + high) >> 1
                if sums[middle] <= wanted:
                    low = middle
                else:
                    high = middle
            place = lows[p] + (low - p * pieces) * size
            left = wanted - sums[low]
            while left >= 0:
                entry = entry_at(heap, step, place)
                place += 1
                if fits(heap, step, frames, slots, operands, stride, p, entry, stack):
                    left -= 1
                    frames[heap[step + EVENT] * stride + p] = entry


@cuda.jit(device=True)
def value_of(heap, step, frames, slots, stride, p, entry, stack):
    """What is aggregated of an entry, and whether it is defined."""
    if heap[step + VALUES] >= 0:
        return heap[heap[step + VALUES] + entry], True
    own = heap[step + OWN]
    return run(heap, heap[step + PROGRAM], frames, slots, stride, p, own, entry, stack)


@cuda.jit
def add(
    heap,
    step,
    frames,
    slots,
    lows,
    highs,
    operands,
    stride,
    sizes,
    level,
    upper,
    lower,
    units,
    where,
):
    """The sum of each unit in two parts, of 32 bits and of what is above, which are both exact."""
    stack = cuda.local.array(DEPTH, int64)
    partials = sizes[LEVELS + level]
    size, pieces = unit_of(partials, sizes[heap[step + LONGEST]], units)
    if cuda.grid(1) == 0:
        sizes[where] = partials * pieces
    for unit in range(cuda.grid(1), partials * pieces, cuda.gridsize(1)):
        p = unit // pieces
        low = lows[p] + (unit % pieces) * size
        high = lesser(low + size, highs[p])
        above, below = int64(0), int64(0)
        for place in range(low, high):
            entry = entry_at(heap, step, place)
            if fits(heap, step, frames, slots, operands, stride, p, entry, stack):
                word, is_known = value_of(heap, step, frames, slots, stride, p, entry, stack)
                if is_known:
                    above += word >> 32
                    below += word & MASK_32
        upper[unit] = above
        lower[unit] = below


@cuda.jit
def total(heap, step, slots, alive, stride, sizes, level, upper, lower, units):
    """The sums of partial sequences; undefined beyond 64 bits (S9)."""
    partials = sizes[LEVELS + level]
    _, pieces = unit_of(partials, sizes[heap[step + LONGEST]], units)
    slot = heap[step + SLOT]
    for p in range(cuda.grid(1), partials, cuda.gridsize(1)):
        if alive[p] == 0:
            continue
        below = lower[(p + 1) * pieces] - lower[p * pieces]
        above = upper[(p + 1) * pieces] - upper[p * pieces] + (below >> 32)
        slots[2 * slot * stride + p] = (above << 32) | (below & MASK_32)
        is_known = -(2**31) <= above < 2**31
        slots[(2 * slot + 1) * stride + p] = 1 if is_known else 0


@cuda.jit
def extreme_begin(heap, step, slots, stride, sizes, level, greatest):
    """Begin least or greatest values with none."""
    slot = heap[step + SLOT]
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        slots[2 * slot * stride + p] = -(2**63) if greatest != 0 else 2**63 - 1
        slots[(2 * slot + 1) * stride + p] = 0


@cuda.jit
def extreme(
    heap,
    step,
    frames,
    slots,
    lows,
    highs,
    operands,
    stride,
    sizes,
    level,
    units,
    greatest,
):
    """The least or greatest key of each unit into that of its partial sequence."""
    stack = cuda.local.array(DEPTH, int64)
    partials = sizes[LEVELS + level]
    size, pieces = unit_of(partials, sizes[heap[step + LONGEST]], units)
    slot, kind = heap[step + SLOT], heap[step + VALUE_KIND]
    for unit in range(cuda.grid(1), partials * pieces, cuda.gridsize(1)):
        p = unit // pieces
        low = lows[p] + (unit % pieces) * size
        high = lesser(low + size, highs[p])
        best, is_any = int64(0), False
        for place in range(low, high):
            entry = entry_at(heap, step, place)
            if fits(heap, step, frames, slots, operands, stride, p, entry, stack):
                word, is_known = value_of(heap, step, frames, slots, stride, p, entry, stack)
                if is_known:
                    key = key_of(word, kind)
                    if not is_any or (key > best if greatest != 0 else key < best):
                        best = key
                    is_any = True
        if is_any:
            if greatest != 0:
                cuda.atomic.max(slots, 2 * slot * stride + p, best)
            else:
                cuda.atomic.min(slots, 2 * slot * stride + p, best)
            slots[(2 * slot + 1) * stride + p] = 1


@cuda.jit
def extreme_end(heap, step, slots, stride, sizes, level):
    """Keys back into words."""
    slot, kind = heap[step + SLOT], heap[step + VALUE_KIND]
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        slots[2 * slot * stride + p] = key_of(slots[2 * slot * stride + p], kind)


@cuda.jit
def check(heap, step, frames, slots, alive, stride, sizes, level):
    """Steps that look at no column: a time, a condition, a value."""
    stack = cuda.local.array(DEPTH, int64)
    kind = heap[step + KIND]
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        if alive[p] == 0:
            continue
        if kind == TIMED:
            time = time_at(heap, heap[step + TIMES], frames, stride, heap[step + EVENT], p)
            early = earliest(heap, step, frames, stride, p)
            if not early <= time < end_of(heap, step, frames, stride, p):
                alive[p] = 0
        else:
            program = heap[step + REST] if kind == TEST else heap[step + PROGRAM]
            word, is_known = run(
                heap, program, frames, slots, stride, p, int64(-1), int64(0), stack
            )
            if not is_known:
                alive[p] = 0
            elif kind != TEST:
                slots[2 * heap[step + SLOT] * stride + p] = word
                slots[(2 * heap[step + SLOT] + 1) * stride + p] = 1


@cuda.jit
def conclude(
    heap, numbers, events, values, first_value, frames, slots, alive, stride, sizes, level, results
):
    """What is to be known of each complete match: whether it is one, the rows of its events, and
    the values of its composite event. ``numbers`` is where the events' segments of row numbers
    are listed. ``results`` int64[SIZES + stride * (1 + events + values)]: the sizes, then matches.
    """
    stack = cuda.local.array(DEPTH, int64)
    width = 1 + events + values
    for place in range(cuda.grid(1), len(sizes), cuda.gridsize(1)):
        results[place] = sizes[place]
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        at = len(sizes) + p * width
        is_match = alive[p]
        if is_match != 0:
            for event in range(events):
                entry = frames[event * stride + p]
                results[at + 1 + event] = heap[heap[numbers + event] + entry]
            for number in range(values):
                value = first_value + number * VALUE_WORDS
                if heap[value + VALUE_EVENT] >= 0:
                    entry = frames[heap[value + VALUE_EVENT] * stride + p]
                    word = heap[heap[value + VALUE_PLACE] + entry]
                else:
                    word, is_known = run(
                        heap,
                        heap[value + VALUE_PLACE],
                        frames,
                        slots,
                        stride,
                        p,
                        int64(-1),
                        int64(0),
                        stack,
                    )
                    if not is_known:
                        is_match = 0
                results[at + 1 + events + number] = word
        results[at] = is_match
