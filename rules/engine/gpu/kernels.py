"""CDP for many terminators at once: the kernels of one step each (thesis 6.3, turned round).

All partial sequences of a rule grow together, step by step: breadth first where the processor goes
depth first. The candidates of all windows are cut into *units* of neighbours, a thread each:

1. ``look`` finds each partial sequence's window by binary search, and the operands of its terms;
2. ``count`` counts in each unit the candidates that fit, and :mod:`matcher.gpu.scan` sums up;
3. ``extend`` writes the longer partial sequences of a multiple selection, each in its place;
   ``settle`` chooses the one candidate of a single selection, drops what a negation forbids, or
   gives an aggregate its value.

Where a column is sorted by the value that a step bounds (``value < $x``), ``narrow`` comes between,
and takes a partial sequence's window from 2 if the range holds fewer candidates: those of the range
are looked at by ``reduce_range`` or ``mark_range``, in the order of their values. Results do not
depend on that order, and marks stand in the order of time.

Partial sequences stand in the order of their terminators and then of their other events, as the
walk of the processor comes upon them (E4); no atomic operation decides an order. What does not fit
into the room there is is counted and not written: the host makes room and begins again.
"""

from __future__ import annotations

from numba import cuda, int64

from matcher.gpu.scan import greater, lesser
from rules.engine.gpu.machine import DEPTH, WIDE, WIDE_STACK, key_word, run, run_wide, word_at
from rules.engine.gpu.records import (
    ANCHOR,
    ANCHOR_TIMES,
    BOUND,
    CHUNKS_PLACE,
    DURATION,
    EARLIER,
    EARLIER_TIMES,
    EARLY,
    EMPTY,
    EVENT,
    FIRST_TERM,
    FIRST_TERMINATOR,
    INDEX_TERM,
    INDEXED,
    KIND,
    LEVELS,
    LONGEST,
    LONGEST_RANGE,
    LOWER,
    LOWER_KIND,
    LOWER_STRICT,
    NEEDS,
    NEGATE,
    OPERANDS,
    ORDER,
    OWN,
    POLICY,
    POLICY_FIRST,
    PROGRAM,
    RANGE_KEYS,
    RANGE_ORDER,
    RANK,
    REDUCE_COUNT,
    REDUCE_FIRST,
    REDUCE_LAST,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCTION,
    REST,
    SELECT,
    SINCE,
    SIZE,
    SLOT,
    SORTED,
    STRAIGHT,
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
    UPPER,
    UPPER_KIND,
    UPPER_STRICT,
    VALUE_EVENT,
    VALUE_KIND,
    VALUE_PLACE,
    VALUE_WORDS,
    VALUES,
    WORD_GREATEST,
    WORD_LEAST,
    WORDS,
    WORDS_NEEDED,
)
from rules.engine.kernels.pyramid import key_of
from rules.engine.kernels.ranges import lower_key, upper_key
from rules.engine.kernels.spans import TIME_LEAST
from rules.engine.kernels.words import relation

PROBES = 7
"""Places that a search looks at together."""
CHUNKS = 2**16
"""Chunks that words of marks are counted in, about."""
MASK_32 = 2**32 - 1
GATHER = 4
"""Words that stand apart cost as much to read as so many neighbours: memory is read 32 bytes at a
time."""


@cuda.jit(device=True)
def both_not_before(heap, segment, low, high, one, other):
    """The first of ascending words from ``low`` to ``high`` that is not less than ``one``, and that
    which is not less than ``other``; the second no earlier than the first.

    It probes seven places for each at once: a device waits for one word as long as for many.
    """
    first_low, first_high, second_low, second_high = low, high, low, high
    while first_high - first_low > PROBES or second_high - second_low > PROBES:
        part = (first_high - first_low) // (PROBES + 1)
        other_part = (second_high - second_low) // (PROBES + 1)
        less, other_less = int64(0), int64(0)
        for probe in range(1, PROBES + 1):
            if part > 0:
                less += int64(heap[segment + first_low + probe * part] < one)
            if other_part > 0:
                other_less += int64(heap[segment + second_low + probe * other_part] < other)
        if part > 0:
            if less < PROBES:
                first_high = first_low + (less + 1) * part
            if less > 0:
                first_low += less * part + 1
        if other_part > 0:
            if other_less < PROBES:
                second_high = second_low + (other_less + 1) * other_part
            if other_less > 0:
                second_low += other_less * other_part + 1
    less, other_less = int64(0), int64(0)
    for place in range(first_low, first_high):
        less += int64(heap[segment + place] < one)
    for place in range(second_low, second_high):
        other_less += int64(heap[segment + place] < other)
    first = first_low + less
    return first, greater(first, second_low + other_less)


@cuda.jit(device=True)
def lanes_of(count, longest, threads):
    """The number of threads that share the candidates of one partial sequence, a power of two: its
    exponent.
    """
    bits = int64(0)
    while (2 << bits) * count <= threads and (1 << bits) < longest:
        bits += 1
    return bits


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
def range_keys(heap, source, target, size, kind):
    """The keys of an index by value: words as ints whose order is theirs."""
    for place in range(cuda.grid(1), size, cuda.gridsize(1)):
        heap[target + place] = key_of(heap[source + place], kind)


@cuda.jit
def begin(frames, alive, sizes):
    """Make a partial sequence of each terminator, and forget what sizes there were. One block."""
    first, count = sizes[FIRST_TERMINATOR], sizes[TERMINATORS]
    for p in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        frames[p] = first + p
        alive[p] = 1
    for place in range(LEVELS + cuda.threadIdx.x, len(sizes), cuda.blockDim.x):
        sizes[place] = count if place == LEVELS or place == NEEDS else 0  # noqa: SIM109


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
def run_known(heap, code, frames, slots, stride, p, stack):
    """Run a program that reads neither a candidate nor operands."""
    return run(heap, code, slots, frames, slots, stride, p, int64(-1), int64(0), stack)


@cuda.jit(device=True)
def operand_of(heap, term, frames, slots, stride, p, stack):
    """A term's operand, and whether it is defined and some word can equal it."""
    if heap[term + TERM_EVENT] >= 0:
        entry = frames[heap[term + TERM_EVENT] * stride + p]
        word, is_known = heap[heap[term + TERM_PLACE] + entry], True
    else:
        word, is_known = run_known(heap, heap[term + TERM_PLACE], frames, slots, stride, p, stack)
    if is_known and heap[term + TERM_CONVERT] != 0:
        word, is_known = key_word(word, heap[term + TERM_CONVERT])
    return word, is_known


@cuda.jit(device=True)
def know_operands(heap, step, frames, slots, operands, stride, p, stack):
    """Compute a step's operands; whether all are defined."""
    for number in range(heap[step + OPERANDS]):
        term = heap[step + FIRST_TERM] + number * TERM_WORDS
        word, is_known = operand_of(heap, term, frames, slots, stride, p, stack)
        operands[number * stride + p] = word
        if not is_known:
            return False
    return True


@cuda.jit(device=True)
def end_of_key(key):
    """The key beyond all equal ones; that of the greatest word is itself."""
    return key + 1 if key < WORD_GREATEST else key


@cuda.jit
def look(
    heap, step, frames, slots, alive, lows, highs, operands, stride, sizes, level, results, seconds
):
    """The candidates of each partial sequence, by entries or by places of an index, and the
    operands of the step's terms; none where one is undefined. What ``reduce`` fills is made empty.
    """
    stack = cuda.local.array(DEPTH, int64)
    size, times = heap[heap[step + SIZE]], heap[step + TIMES]
    keys, order, longest = heap[step + SORTED], heap[step + ORDER], int64(0)
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        low, high = int64(0), int64(0)
        if alive[p] != 0:
            early = earliest(heap, step, frames, stride, p)
            late = end_of(heap, step, frames, stride, p)
            low, high = both_not_before(heap, times, int64(0), size, early, late)
            if not know_operands(heap, step, frames, slots, operands, stride, p, stack):
                high = low
            elif order >= 0:
                key = operands[heap[step + INDEX_TERM] * stride + p]
                first, last = both_not_before(heap, keys, int64(0), size, key, end_of_key(key))
                if key == WORD_GREATEST:
                    last = size
                low, high = both_not_before(heap, order, first, last, low, high)
        lows[p] = low
        highs[p] = high
        results[p] = heap[step + EMPTY]
        seconds[p] = 0
        longest = greater(longest, high - low)
    if longest > 0:
        cuda.atomic.max(sizes, heap[step + LONGEST], longest)


@cuda.jit(device=True)
def range_of(heap, step, frames, slots, stride, p, stack):
    """The places of an index by value that a step's bounds leave, from the first to before the
    last; none where a bound is undefined.
    """
    least, greatest = int64(WORD_LEAST), int64(WORD_GREATEST)
    for is_upper in range(2):
        program = heap[step + (UPPER if is_upper else LOWER)]
        if program < 0:
            continue
        word, is_known = run_known(heap, program, frames, slots, stride, p, stack)
        if is_known and is_upper:
            is_strict = heap[step + UPPER_STRICT] != 0
            greatest, is_known = upper_key(word, heap[step + UPPER_KIND], is_strict)
        elif is_known:
            is_strict = heap[step + LOWER_STRICT] != 0
            least, is_known = lower_key(word, heap[step + LOWER_KIND], is_strict)
        if not is_known:
            return int64(0), int64(0)
    if least > greatest:
        return int64(0), int64(0)
    keys, known = heap[step + RANGE_KEYS], heap[heap[step + INDEXED]]
    end = end_of_key(greatest)
    first, last = both_not_before(heap, keys, int64(0), known, least, end)
    return first, known if greatest == WORD_GREATEST else last


@cuda.jit
def narrow(
    heap, step, frames, slots, lows, highs, stride, sizes, level, firsts, counts, tails, ends
):
    """Take the window of each partial sequence of which the step's bounds leave little. Its
    candidates are then ``counts`` places of the index from ``firsts`` on, and the entries that the
    index does not know yet, from ``tails`` on; all are before ``ends``.
    """
    stack = cuda.local.array(DEPTH, int64)
    known, longest = heap[heap[step + INDEXED]], int64(0)
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        low, high = lows[p], highs[p]
        firsts[p], counts[p], tails[p], ends[p] = 0, 0, low, low
        if low >= high:
            continue
        first, last = range_of(heap, step, frames, slots, stride, p, stack)
        tail = lesser(greater(low, known), high)
        if GATHER * (last - first) + high - tail < high - low:
            firsts[p], counts[p], tails[p], ends[p] = first, last - first, tail, high
            highs[p] = low
            longest = greater(longest, last - first + high - tail)
    if longest > 0:
        cuda.atomic.max(sizes, LONGEST_RANGE, longest)


@cuda.jit(device=True)
def fitting(heap, step, frames, slots, operands, stride, p, entries, fit, stack):
    """The candidates of WIDE that satisfy all conditions of a step: a bit each, of those in
    ``fit``.

    ``entries`` int64[WIDE] are theirs; where a bit is not set, some other's.
    """
    term = word_at(heap, step + FIRST_TERM)
    for number in range(word_at(heap, step + TERMS)):
        segment, how = word_at(heap, term + TERM_SEGMENT), word_at(heap, term + TERM_HOW)
        mask, operand = word_at(heap, term + TERM_MASK), word_at(operands, number * stride + p)
        for k in range(WIDE):
            if relation(how, word_at(heap, segment + entries[k]), operand) & mask == 0:
                fit &= ~(int64(1) << k)
        term += TERM_WORDS
    rest, own = word_at(heap, step + REST), word_at(heap, step + OWN)
    if rest < 0 or fit == 0:
        return fit
    if word_at(heap, step + STRAIGHT) != 0:
        return run_wide(heap, rest, operands, stride, p, entries, fit, stack)
    for k in range(WIDE):
        if (fit >> k) & 1 != 0:
            entry = entries[k]
            if not run(heap, rest, operands, frames, slots, stride, p, own, entry, stack)[1]:
                fit &= ~(int64(1) << k)
    return fit


@cuda.jit(device=True)
def entries_of_range(heap, step, firsts, counts, tails, lows, ends, p, turn, lanes, entries):
    """Note the entries of WIDE candidates of a range, ``lanes`` apart: a bit for each that is there
    and in the window.
    """
    fit, length = int64(0), counts[p] + ends[p] - tails[p]
    for k in range(WIDE):
        at = turn + k * lanes
        is_in = at < length
        if not is_in:
            at = turn
        if at >= counts[p]:
            entries[k] = tails[p] + at - counts[p]
        else:
            entries[k] = word_at(heap, heap[step + RANGE_ORDER] + firsts[p] + at)
            is_in = is_in and lows[p] <= entries[k] < ends[p]
        if is_in:
            fit |= int64(1) << k
    return fit


@cuda.jit(device=True)
def entry_at(heap, step, place):
    """The entry of a candidate, which is a place of the index where there is one."""
    order = heap[step + ORDER]
    return place if order < 0 else heap[order + place]


@cuda.jit(device=True)
def value_of(heap, step, frames, slots, operands, stride, p, entry, stack):
    """The value of an entry that is aggregated, and whether it is defined."""
    if heap[step + VALUES] >= 0:
        return heap[heap[step + VALUES] + entry], True
    own = heap[step + OWN]
    code = heap[step + PROGRAM]
    return run(heap, code, operands, frames, slots, stride, p, own, entry, stack)


@cuda.jit(device=True)
def reduce_plainly(
    heap, segment, how, mask, operand, start, direction, lane, length, lanes, is_count
):
    """Do as ``reduce`` where one term decides: how many of a thread's candidates fit, or the place
    of the first of them, and whether there is one. Four words are asked for at once.
    """
    found, turn = int64(0), lane
    while turn < length:
        first = heap[segment + start + direction * turn]
        second, third, fourth = first, first, first
        left = length - turn
        if left > lanes:
            second = heap[segment + start + direction * (turn + lanes)]
        if left > 2 * lanes:
            third = heap[segment + start + direction * (turn + 2 * lanes)]
        if left > 3 * lanes:
            fourth = heap[segment + start + direction * (turn + 3 * lanes)]
        hits = int64(relation(how, first, operand) & mask != 0)
        if left > lanes and relation(how, second, operand) & mask != 0:
            hits += 2
        if left > 2 * lanes and relation(how, third, operand) & mask != 0:
            hits += 4
        if left > 3 * lanes and relation(how, fourth, operand) & mask != 0:
            hits += 8
        if is_count:
            found += (hits & 1) + ((hits >> 1) & 1) + ((hits >> 2) & 1) + (hits >> 3)
        elif hits != 0:
            return start + direction * (turn + lanes * (cuda.ffs(hits) - 1)), True
        turn += 4 * lanes
    return found, found > 0


@cuda.jit(device=True)
def bring(results, seconds, p, how, best, second):
    """Bring what a thread found of some candidates, of which some fit, into the results."""
    if how in (REDUCE_COUNT, REDUCE_SUM):
        cuda.atomic.add(results, p, best)
        if how == REDUCE_SUM:
            cuda.atomic.add(seconds, p, second)
    elif how in (REDUCE_FIRST, REDUCE_MIN):
        cuda.atomic.min(results, p, best)
    else:
        cuda.atomic.max(results, p, best)
    if how in (REDUCE_MIN, REDUCE_MAX):
        seconds[p] = 1


@cuda.jit(device=True)
def is_better(how, one, other):
    """Whether a result is to be taken in place of another."""
    if how in (REDUCE_FIRST, REDUCE_MIN):
        return one < other
    return one > other


@cuda.jit(device=True)
def gathered(
    heap, step, frames, slots, operands, stride, p, entries, fit, stack, best, second, is_any
):
    """Do what a step asks with the candidates of ``fit``: what it has come to, and whether there is
    something.
    """
    if fit == 0:
        return best, second, is_any
    how, kind = word_at(heap, step + REDUCTION), word_at(heap, step + VALUE_KIND)
    if how == REDUCE_COUNT:
        return best + cuda.popc(fit), second, is_any or fit != 0
    for k in range(WIDE):
        if (fit >> k) & 1 == 0:
            continue
        found, is_known = entries[k], True
        if how not in (REDUCE_FIRST, REDUCE_LAST):
            found, is_known = value_of(
                heap, step, frames, slots, operands, stride, p, entries[k], stack
            )
        if not is_known:
            continue
        if how == REDUCE_SUM:
            best += found >> 32
            second += found & MASK_32
        else:
            if how in (REDUCE_MIN, REDUCE_MAX):
                found = key_of(found, kind)
            if not is_any or is_better(how, found, best):
                best = found
        is_any = True
    return best, second, is_any


@cuda.jit
def reduce(
    heap, step, frames, slots, lows, highs, operands, stride, sizes, level, results, seconds
):
    """Find what a step asks of all candidates of each partial sequence: the place of the first
    or last that fits, how many there are, their sum, their least or greatest key.

    Each thread looks at some and then brings what it found into ``results`` (and, of sums, the
    lower 32 bits into ``seconds``), which stood at none before: see ``look``.
    """
    stack = cuda.local.array(WIDE_STACK, int64)
    entries = cuda.local.array(WIDE, int64)
    partials, longest = sizes[LEVELS + level], sizes[heap[step + LONGEST]]
    bits = lanes_of(partials, longest, int64(cuda.gridsize(1)))
    lane, lanes = int64(cuda.grid(1)) & ((1 << bits) - 1), int64(1) << bits
    how_reduced, order = heap[step + REDUCTION], heap[step + ORDER]
    terms, is_plain = heap[step + TERMS], heap[step + TERMS] <= 1 and heap[step + REST] < 0
    term = heap[step + FIRST_TERM]
    segment, how, mask = int64(0), int64(0), int64(7)
    if terms > 0:
        segment, how = heap[term + TERM_SEGMENT], heap[term + TERM_HOW]
        mask = heap[term + TERM_MASK]
    for p in range(int64(cuda.grid(1)) >> bits, partials, int64(cuda.gridsize(1)) >> bits):
        low, high = lows[p], highs[p]
        if low >= high:
            continue
        best, second, is_any = int64(0), int64(0), False
        if terms == 0 and is_plain and how_reduced == REDUCE_COUNT:
            if lane == 0:
                results[p] = high - low
            continue
        operand = operands[p] if terms > 0 else int64(0)
        is_quick = is_plain and terms == 1 and order < 0 and how_reduced <= REDUCE_LAST
        if is_quick:
            is_last = how_reduced == REDUCE_LAST
            start, direction = (high - 1, int64(-1)) if is_last else (low, int64(1))
            best, is_any = reduce_plainly(
                heap,
                segment,
                how,
                mask,
                operand,
                start,
                direction,
                lane,
                high - low,
                lanes,
                how_reduced == REDUCE_COUNT,
            )
        turn = high - low if is_quick else lane
        while turn < high - low:
            fit = int64(0)
            for k in range(WIDE):
                at = turn + k * lanes
                if at < high - low:
                    fit |= int64(1) << k
                else:
                    at = turn
                place = low + at if how_reduced != REDUCE_LAST else high - 1 - at
                entries[k] = place if order < 0 else word_at(heap, order + place)
            fit = fitting(heap, step, frames, slots, operands, stride, p, entries, fit, stack)
            if fit != 0 and how_reduced in (REDUCE_FIRST, REDUCE_LAST):
                at = turn + lanes * (cuda.ffs(fit) - 1)
                best = low + at if how_reduced == REDUCE_FIRST else high - 1 - at
                is_any = True
                break
            best, second, is_any = gathered(
                heap,
                step,
                frames,
                slots,
                operands,
                stride,
                p,
                entries,
                fit,
                stack,
                best,
                second,
                is_any,
            )
            turn += WIDE * lanes
        if is_any:
            bring(results, seconds, p, how_reduced, best, second)


@cuda.jit
def reduce_range(
    heap,
    step,
    frames,
    slots,
    lows,
    operands,
    stride,
    sizes,
    level,
    results,
    seconds,
    firsts,
    counts,
    tails,
    ends,
):
    """Do as ``reduce`` for the candidates of the ranges that ``narrow`` chose."""
    stack = cuda.local.array(WIDE_STACK, int64)
    entries = cuda.local.array(WIDE, int64)
    partials = sizes[LEVELS + level]
    bits = lanes_of(partials, sizes[LONGEST_RANGE], int64(cuda.gridsize(1)))
    lane, lanes = int64(cuda.grid(1)) & ((1 << bits) - 1), int64(1) << bits
    how = heap[step + REDUCTION]
    for p in range(int64(cuda.grid(1)) >> bits, partials, int64(cuda.gridsize(1)) >> bits):
        best, second, is_any = int64(0), int64(0), False
        for turn in range(lane, counts[p] + ends[p] - tails[p], WIDE * lanes):
            fit = entries_of_range(
                heap, step, firsts, counts, tails, lows, ends, p, turn, lanes, entries
            )
            fit = fitting(heap, step, frames, slots, operands, stride, p, entries, fit, stack)
            best, second, is_any = gathered(
                heap,
                step,
                frames,
                slots,
                operands,
                stride,
                p,
                entries,
                fit,
                stack,
                best,
                second,
                is_any,
            )
        if is_any:
            bring(results, seconds, p, how, best, second)


@cuda.jit
def settle(heap, step, frames, slots, alive, stride, sizes, level, results, seconds):
    """Go on with each partial sequence, or drop it, by what ``reduce`` found."""
    kind, how = heap[step + KIND], heap[step + REDUCTION]
    slot = 2 * heap[step + SLOT]
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        if alive[p] == 0:
            continue
        found, second = results[p], seconds[p]
        if kind == NEGATE:
            alive[p] = 0 if found > 0 else 1
        elif kind == SELECT:
            if found in (WORD_LEAST, WORD_GREATEST):
                alive[p] = 0
            else:
                frames[heap[step + EVENT] * stride + p] = entry_at(heap, step, found)
        elif how == REDUCE_COUNT:
            slots[slot * stride + p] = found
            slots[(slot + 1) * stride + p] = 1
        elif how == REDUCE_SUM:
            above = found + (second >> 32)
            slots[slot * stride + p] = (above << 32) | (second & MASK_32)
            slots[(slot + 1) * stride + p] = 1 if -(2**31) <= above < 2**31 else 0  # S9
        else:
            slots[slot * stride + p] = key_of(found, heap[step + VALUE_KIND])
            slots[(slot + 1) * stride + p] = second


@cuda.jit(device=True)
def words_of(longest):
    """Words that a window takes: a bit each candidate, 32 in each word."""
    return greater(int64(1), (longest + 31) >> 5)


@cuda.jit(device=True)
def chunk_of(words):
    """The number of neighbouring words that are counted together, a power of two: its exponent."""
    bits = int64(0)
    while words > CHUNKS << bits:
        bits += 1
    return bits


@cuda.jit(device=True)
def set_mark(marks, first, place):
    """Set the bit of a candidate of the window whose words begin at ``first``."""
    cuda.atomic.or_(marks, first + (place >> 5), int64(1) << (place & 31))


@cuda.jit
def mark(heap, step, frames, slots, lows, highs, operands, stride, sizes, level, marks):
    """Set a bit for each candidate that fits; ``marks`` are all zero before. ``sizes`` then says
    how many words there are, and chunks of them; if they are more than there is room for, nothing
    is set.
    """
    stack = cuda.local.array(WIDE_STACK, int64)
    entries = cuda.local.array(WIDE, int64)
    partials, longest = sizes[LEVELS + level], sizes[heap[step + LONGEST]]
    pieces = words_of(longest)
    words = partials * pieces
    is_too_long = words > len(marks)
    if cuda.grid(1) == 0:
        sizes[WORDS_NEEDED] = greater(sizes[WORDS_NEEDED], words)
        bits = chunk_of(words)
        sizes[WORDS] = 0 if is_too_long else words
        sizes[CHUNKS_PLACE] = 0 if is_too_long else (words + (1 << bits) - 1) >> bits
    if is_too_long:
        return
    bits = lanes_of(partials, longest, int64(cuda.gridsize(1)))
    lane, lanes = int64(cuda.grid(1)) & ((1 << bits) - 1), int64(1) << bits
    order = heap[step + ORDER]
    terms, is_plain = heap[step + TERMS], heap[step + TERMS] <= 1 and heap[step + REST] < 0
    term = heap[step + FIRST_TERM]
    segment, how, mask = int64(0), int64(0), int64(7)
    if terms > 0:
        segment, how = heap[term + TERM_SEGMENT], heap[term + TERM_HOW]
        mask = heap[term + TERM_MASK]
    for p in range(int64(cuda.grid(1)) >> bits, partials, int64(cuda.gridsize(1)) >> bits):
        low, length = lows[p], highs[p] - lows[p]
        if terms == 0 and is_plain:  # all fit: a word at a time
            for piece in range(lane, (length + 31) >> 5, lanes):
                left = lesser(length - (piece << 5), int64(32))
                marks[p * pieces + piece] = (int64(1) << left) - 1
            continue
        operand = operands[p] if terms > 0 and length > 0 else int64(0)
        is_quick = is_plain and terms == 1 and order < 0
        if is_quick:
            place = lane
            while place < length:
                left, first = length - place, heap[segment + low + place]
                second, third, fourth = first, first, first
                if left > lanes:
                    second = heap[segment + low + place + lanes]
                if left > 2 * lanes:
                    third = heap[segment + low + place + 2 * lanes]
                if left > 3 * lanes:
                    fourth = heap[segment + low + place + 3 * lanes]
                if relation(how, first, operand) & mask != 0:
                    set_mark(marks, p * pieces, place)
                if left > lanes and relation(how, second, operand) & mask != 0:
                    set_mark(marks, p * pieces, place + lanes)
                if left > 2 * lanes and relation(how, third, operand) & mask != 0:
                    set_mark(marks, p * pieces, place + 2 * lanes)
                if left > 3 * lanes and relation(how, fourth, operand) & mask != 0:
                    set_mark(marks, p * pieces, place + 3 * lanes)
                place += 4 * lanes
        for place in range(lane, int64(0) if is_quick else length, WIDE * lanes):
            fit = int64(0)
            for k in range(WIDE):
                at = place + k * lanes
                if at < length:
                    fit |= int64(1) << k
                else:
                    at = place
                entries[k] = low + at if order < 0 else word_at(heap, order + low + at)
            fit = fitting(heap, step, frames, slots, operands, stride, p, entries, fit, stack)
            for k in range(WIDE):
                if (fit >> k) & 1 != 0:
                    set_mark(marks, p * pieces, place + k * lanes)


@cuda.jit
def mark_range(
    heap,
    step,
    frames,
    slots,
    lows,
    operands,
    stride,
    sizes,
    level,
    marks,
    firsts,
    counts,
    tails,
    ends,
):
    """Do as ``mark``, which has been before, for the candidates of the ranges that ``narrow``
    chose; nothing where there was no room.
    """
    stack = cuda.local.array(WIDE_STACK, int64)
    entries = cuda.local.array(WIDE, int64)
    if sizes[WORDS] == 0:
        return
    partials, pieces = sizes[LEVELS + level], words_of(sizes[heap[step + LONGEST]])
    bits = lanes_of(partials, sizes[LONGEST_RANGE], int64(cuda.gridsize(1)))
    lane, lanes = int64(cuda.grid(1)) & ((1 << bits) - 1), int64(1) << bits
    for p in range(int64(cuda.grid(1)) >> bits, partials, int64(cuda.gridsize(1)) >> bits):
        for turn in range(lane, counts[p] + ends[p] - tails[p], WIDE * lanes):
            fit = entries_of_range(
                heap, step, firsts, counts, tails, lows, ends, p, turn, lanes, entries
            )
            fit = fitting(heap, step, frames, slots, operands, stride, p, entries, fit, stack)
            for k in range(WIDE):
                if (fit >> k) & 1 != 0:
                    set_mark(marks, p * pieces, entries[k] - lows[p])


@cuda.jit
def tally(marks, counts, sizes):
    """Count the bits that are set in each chunk of words."""
    words = sizes[WORDS]
    bits = chunk_of(words)
    for chunk in range(cuda.grid(1), sizes[CHUNKS_PLACE], cuda.gridsize(1)):
        found = int64(0)
        for word in range(chunk << bits, lesser((chunk + 1) << bits, words)):
            found += cuda.popc(marks[word])
        counts[chunk] = found


@cuda.jit
def extend(
    heap,
    step,
    frames,
    slots,
    lows,
    stride,
    sizes,
    level,
    marks,
    sums,
    longer,
    longer_slots,
    alive,
    slot_words,
):
    """Write the partial sequences that a multiple selection makes, a level further; marks are
    cleared.
    """
    words = sizes[WORDS]
    pieces, bits = words_of(sizes[heap[step + LONGEST]]), chunk_of(words)
    if cuda.grid(1) == 0:
        found = sums[sizes[CHUNKS_PLACE]]
        sizes[LEVELS + level + 1] = lesser(found, int64(stride))
        sizes[NEEDS + level + 1] = found
    event, bound, order = heap[step + EVENT], heap[step + BOUND], heap[step + ORDER]
    for chunk in range(cuda.grid(1), sizes[CHUNKS_PLACE], cuda.gridsize(1)):
        at = sums[chunk]
        for word in range(chunk << bits, lesser((chunk + 1) << bits, words)):
            left = marks[word]
            if left == 0:
                continue
            marks[word] = 0
            p = word // pieces
            base = lows[p] + ((word - p * pieces) << 5)
            while left != 0 and at < stride:
                place = base + cuda.ffs(left) - 1
                left &= left - 1
                for other in range(bound):
                    longer[other * stride + at] = frames[other * stride + p]
                for other in range(slot_words):
                    longer_slots[other * stride + at] = slots[other * stride + p]
                longer[event * stride + at] = place if order < 0 else heap[order + place]
                alive[at] = 1
                at += 1


@cuda.jit(device=True)
def marked_before(marks, sums, bits, word):
    """The number of bits that are set in the words before one."""
    found = sums[word >> bits]
    for other in range((word >> bits) << bits, word):
        found += cuda.popc(marks[other])
    return found


@cuda.jit
def pick(heap, step, frames, alive, lows, stride, sizes, level, marks, sums):
    """Choose the k-th candidate that fits of each partial sequence, from either end."""
    words = sizes[WORDS]
    pieces, bits = words_of(sizes[heap[step + LONGEST]]), chunk_of(words)
    rank, is_first = heap[step + RANK], heap[step + POLICY] == POLICY_FIRST
    for p in range(cuda.grid(1), sizes[LEVELS + level], cuda.gridsize(1)):
        if words == 0:  # there was no room: nothing is chosen, and all is asked anew
            alive[p] = 0
        if alive[p] == 0:
            continue
        before = marked_before(marks, sums, bits, p * pieces)
        behind = marked_before(marks, sums, bits, (p + 1) * pieces)
        if behind - before < rank:
            alive[p] = 0
            continue
        left = rank - 1 if is_first else behind - before - rank
        word = p * pieces
        while cuda.popc(marks[word]) <= left:
            left -= cuda.popc(marks[word])
            word += 1
        rest = marks[word]
        for _ in range(left):
            rest &= rest - 1
        place = lows[p] + ((word - p * pieces) << 5) + cuda.ffs(rest) - 1
        frames[heap[step + EVENT] * stride + p] = entry_at(heap, step, place)


@cuda.jit
def clear(marks, sizes):
    """Clear the marks that were set."""
    for word in range(cuda.grid(1), sizes[WORDS], cuda.gridsize(1)):
        marks[word] = 0


@cuda.jit
def check(heap, step, frames, slots, alive, stride, sizes, level):
    """Do the steps that look at no column: a time, a condition, a value."""
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
            word, is_known = run_known(heap, program, frames, slots, stride, p, stack)
            if not is_known:
                alive[p] = 0
            elif kind != TEST:
                slots[2 * heap[step + SLOT] * stride + p] = word
                slots[(2 * heap[step + SLOT] + 1) * stride + p] = 1


@cuda.jit
def conclude(
    heap, numbers, events, values, first_value, frames, slots, alive, stride, sizes, level, results
):
    """Write the results of each partial sequence that is complete: whether it is a match, the
    rows of its events, the values of its composite event, and whether each is defined; a thread an
    item. ``numbers`` is where the events' segments of row numbers are listed. ``results``
    int64[SIZES + stride * (1 + events + 2 * values)]: the sizes, then an item a word.
    """
    stack = cuda.local.array(DEPTH, int64)
    items = 1 + events + values
    for place in range(cuda.grid(1), len(sizes), cuda.gridsize(1)):
        results[place] = sizes[place]
    for number in range(cuda.grid(1), sizes[LEVELS + level] * items, cuda.gridsize(1)):
        p = number // items
        item = number - p * items
        at = len(sizes) + p * (items + values)
        if item == 0:
            results[at] = alive[p]
        elif alive[p] == 0:  # what is not bound is no entry
            continue
        elif item <= events:
            entry = frames[(item - 1) * stride + p]
            results[at + item] = heap[heap[numbers + item - 1] + entry]
        else:
            value = first_value + (item - 1 - events) * VALUE_WORDS
            word, is_known = int64(0), True
            if heap[value + VALUE_EVENT] >= 0:
                entry = frames[heap[value + VALUE_EVENT] * stride + p]
                word = heap[heap[value + VALUE_PLACE] + entry]
            else:
                program = heap[value + VALUE_PLACE]
                word, is_known = run_known(heap, program, frames, slots, stride, p, stack)
            results[at + item] = word
            results[at + item + values] = 1 if is_known else 0
