"""How the blocks of groups are built (:mod:`matcher.kernels.groups`)."""

from __future__ import annotations

import numpy as np

from matcher.kernels.buckets import bit_of
from matcher.kernels.compiled import kernel, making
from matcher.kernels.grouping import order_by
from matcher.kernels.groups import pair_of, spacing_log
from matcher.kernels.layout import (
    APART,
    BY_FLOAT,
    BY_PRESENCE,
    BY_RANK,
    BY_TEST,
    CHECKS,
    FIRSTS,
    FLIPS,
    GREATER,
    GROUP_TERM_ROWS_MAX,
    GROUP_TERMS_MAX,
    LACK,
    LESS,
    SAME,
    SORT,
    TERM,
    TERM_MASK,
    TERM_WORDS,
    TOGGLE_SLOTS,
    TOGGLE_SLOTS_MAX,
    TOGGLES,
    TOGGLES_AT,
    VALUES,
    VALUES_AT,
)


@making
def build_group(members, behind, filters, identifiers, rows, sorts, test_ranks, at):
    """The block of a group, and MASK, TERMS, RUNS, LEAST and TOLD_IN of it; no terms, if there are
    too many, or too many rows of one.

    ``members`` as ``arranged`` gives them, those from ``behind`` on being in no layer; ``at``:
    scratch of -1 by term.
    """
    count = len(members)
    words = (count + 63) // 64
    terms, total, mask = np.empty(GROUP_TERMS_MAX, np.int64), 0, np.int64(-1)
    number_of_rows = 0
    least, told_in = identifiers_in_block(members, identifiers)
    for member in range(count):
        if members[member] < 0:
            continue
        start, length = filters[members[member] >> 32, 0], filters[members[member] >> 32, 1]
        own = np.int64(0)
        for row in range(start, start + length):
            term = rows[row, 0] & TERM_MASK
            own |= bit_of(term)
            number_of_rows += 1
            if at[term] < 0:
                if total == GROUP_TERMS_MAX:
                    for known in range(total):
                        at[terms[known]] = -1
                    return np.empty(0, np.int64), mask, 0, 0, least, told_in
                at[term] = total
                terms[total] = term
                total += 1
        mask &= own
    half = (count + 1) // 2
    lists = words + told_in
    head = lists + 2 * half + (count + 3) // 4
    bound = head + total * (TERM_WORDS + 4 * words + 9) + number_of_rows * 10
    bound += 4 * number_of_rows // (1 << spacing_log(words)) * words
    out = np.zeros(bound, np.int64)
    small, wide = out.view(np.uint16), out.view(np.uint32)
    end, runs = count, 0
    for member in range(count - 1, -1, -1):
        if members[member] < 0:
            continue
        out[member >> 6] |= np.int64(1) << (member & 63)
        identifier = identifiers[members[member] >> 32]
        if told_in == half:
            wide[2 * words + member] = identifier - least
        else:
            out[words + member] = identifier
        wide[2 * lists + member] = members[member] & TERM_MASK
        wide[2 * (lists + half) + member] = members[member] >> 32
        if member < behind:
            continue
        if member + 1 == count or (members[member] ^ members[member + 1]) & TERM_MASK:
            end = member + 1
            runs += 1
        small[4 * (lists + 2 * half) + member] = end
    # The rows of each term, in the order of the members.
    sizes = np.zeros(total + 1, np.int64)
    for member in range(count):
        if members[member] < 0:
            continue
        start, length = filters[members[member] >> 32, 0], filters[members[member] >> 32, 1]
        for row in range(start, start + length):
            sizes[at[rows[row, 0] & TERM_MASK] + 1] += 1
    if sizes.max() > GROUP_TERM_ROWS_MAX:
        for known in range(total):
            at[terms[known]] = -1
        return np.empty(0, np.int64), mask, 0, 0, least, told_in
    begins = np.cumsum(sizes)
    filled = begins.copy()
    owners, places = np.empty(number_of_rows, np.int64), np.empty(number_of_rows, np.int64)
    for member in range(count):
        if members[member] < 0:
            continue
        start, length = filters[members[member] >> 32, 0], filters[members[member] >> 32, 1]
        for row in range(start, start + length):
            term = at[rows[row, 0] & TERM_MASK]
            owners[filled[term]], places[filled[term]] = member, row
            filled[term] += 1
    end = head + total * TERM_WORDS
    for number in range(total):
        record = head + number * TERM_WORDS
        out[record + TERM], out[record + SORT] = terms[number], sorts[terms[number]]
        part = slice(begins[number], begins[number + 1])
        end = build_term(
            out, small, record, end, words, owners[part], places[part], rows, test_ranks, count
        )
        at[terms[number]] = -1
    return out[:end].copy(), mask, total, runs, least, told_in


@making
def identifiers_in_block(members, identifiers):
    """The least identifier of a group, and how many words the identifiers take: half a word each
    where that tells them apart from the least, else a word.
    """
    least, most = np.int64(9223372036854775807), np.int64(-9223372036854775808)
    for member in members:
        if member >= 0:
            least = min(least, identifiers[member >> 32])
            most = max(most, identifiers[member >> 32])
    apart = np.uint64(most) - np.uint64(least)  # which may be more than an int64 can say
    return least, (len(members) + 1) // 2 if apart <= np.uint64(0xFFFFFFFF) else len(members)


@making
def build_term(out, small, record, end, words, owners, places, rows, test_ranks, count):
    """Build what a block has of one term, from ``end`` on; where that ends.

    ``owners`` and ``places``: the rows that ask for it, and whose they are, in this order.
    """
    out[record + LACK] = end
    for member in range(count):
        out[end + (member >> 6)] |= np.int64(1) << (member & 63)
    for member in owners:
        out[end + (member >> 6)] &= ~(np.int64(1) << (member & 63))
    lack = end
    end += words
    operands, end = build_values(out, record, end, places, rows, test_ranks)
    values = out[record + VALUES]
    # Flips by position: counted, then put where they belong.
    positions, bits = (
        np.empty(4 * len(owners) + 4, np.int64),
        np.empty(4 * len(owners) + 4, np.int64),
    )
    base = out[lack : lack + words].copy()
    flips = flips_of(owners, places, rows, operands, values, base, positions, bits)
    firsts = np.zeros(2 * values + 3, np.int64)
    for flip in range(flips):
        firsts[positions[flip] + 1] += 1
    for position in range(2 * values + 2):
        firsts[position + 1] += firsts[position]
    ordered = np.empty(flips, np.int64)
    filled = firsts.copy()
    for flip in range(flips):
        ordered[filled[positions[flip]]] = bits[flip]
        filled[positions[flip]] += 1
    out[record + FIRSTS] = 4 * end
    for position in range(2 * values + 2):
        small[4 * end + position] = firsts[position + 1]
    end += (2 * values + 5) // 4
    out[record + CHECKS] = end
    spacing = 1 << spacing_log(words)
    for flip in range(flips + 1):
        if flip % spacing == 0:
            out[end : end + words] = base
            end += words
        if flip < flips:
            base[ordered[flip] >> 6] ^= np.int64(1) << (ordered[flip] & 63)
    if flips % spacing >= spacing // 2:
        # The nearest one may lie behind the last flip; it is then that after all of them, and
        # what is undone from it ends there.
        out[end : end + words] = base
        end += words
    out[record + FLIPS] = 4 * end
    for flip in range(flips):
        small[4 * end + flip] = ordered[flip]
    end += (flips + 3) // 4
    return build_toggles(out, small, record, end, owners, places, rows)


@making
def build_values(out, record, end, places, rows, test_ranks):
    """The distinct operands of a term that values are ordered among; the place of each row's."""
    count = len(places)
    high, low = np.empty(count, np.int64), np.zeros(count, np.int64)
    known = np.empty(count, np.int64)
    size = 0
    for number in range(count):
        word, operand = rows[places[number], 0], rows[places[number], 1]
        how = word >> 36
        if how in (BY_TEST, BY_PRESENCE):
            continue
        if how == BY_RANK:
            high[size], low[size] = test_ranks[operand], 0
        else:
            high[size], low[size] = pair_of(how == BY_FLOAT, operand)
        known[size] = number
        size += 1
    order = order_by(high[:size], low[:size])
    operands = np.full(count, -1, np.int64)
    values = 0
    out[record + VALUES_AT] = end
    for number in range(size):
        one = order[number]
        if number:
            last = order[number - 1]
            values += high[one] != high[last] or low[one] != low[last]
        operands[known[one]] = values
        row = places[known[one]]
        by_rank = rows[row, 0] >> 36 == BY_RANK
        out[end + 2 * values] = rows[row, 1] if by_rank else high[one]
        out[end + 2 * values + 1] = low[one]
    values += size > 0
    out[record + VALUES] = values
    return operands, end + 2 * values


@kernel
def flips_of(owners, places, rows, operands, values, base, positions, bits):
    """Where bits flip as the value grows, and ``base``, those set before all operands."""
    last = 2 * values + 1  # NaN's
    flips = number = 0
    while number < len(owners):
        member, begin = owners[number], number
        low, high, apart, tested = 0, last, True, False
        while number < len(owners) and owners[number] == member:
            word = rows[places[number], 0]
            relations = (word >> 32) & 15
            if operands[number] < 0:
                tested |= relations == SAME and word >> 36 == BY_TEST
            else:
                at = 2 * operands[number] + 1
                if not relations & LESS:
                    low = max(low, at)
                if not relations & GREATER:
                    high = min(high, at + 1)
                apart &= relations & APART != 0
            number += 1
        if tested:
            continue  # set by the text that passes
        while low < high and excluded(low, begin, number, places, rows, operands):
            low += 1
        while low < high and excluded(high - 1, begin, number, places, rows, operands):
            high -= 1
        bit = np.int64(1) << (member & 63)
        if low < high:
            if low == 0:
                base[member >> 6] |= bit
            else:
                positions[flips], bits[flips] = low, member
                flips += 1
            for place in range(begin, number):
                at = 2 * operands[place] + 1
                if not low < at < high or not excluded(
                    at, place, place + 1, places, rows, operands
                ):
                    continue
                if excluded(at, begin, place, places, rows, operands):
                    continue  # said before
                positions[flips], bits[flips] = at, member
                positions[flips + 1], bits[flips + 1] = at + 1, member
                flips += 2
        if (low < high == last) != apart:
            positions[flips], bits[flips] = last, member
            flips += 1
        if low < high < last:
            positions[flips], bits[flips] = high, member
            flips += 1
    return flips


@kernel
def excluded(position, begin, end, places, rows, operands):
    """Whether a row says that the value is not that of a position."""
    for number in range(begin, end):
        here = operands[number] >= 0 and 2 * operands[number] + 1 == position
        if here and not (rows[places[number], 0] >> 32) & SAME:
            return True
    return False


@making
def build_toggles(out, small, record, end, owners, places, rows):
    """The bits that tests decide, by test, each once."""
    count = len(owners)
    tests, members = np.empty(count, np.int64), np.empty(count, np.int64)
    size = 0
    for number in range(count):
        if rows[places[number], 0] >> 36 == BY_TEST:
            tests[size], members[size] = rows[places[number], 1], owners[number]
            size += 1
    slots = 1
    while slots < size and slots < TOGGLE_SLOTS_MAX:
        slots *= 2
    packed = tests[:size] << 32 | members[:size]
    order = order_by(tests[:size] & (slots - 1), packed)
    out[record + TOGGLES_AT], out[record + TOGGLE_SLOTS] = end, slots
    starts = np.zeros(slots + 1, np.int64)
    kept = 0
    for number in order:
        if kept == 0 or out[end + kept - 1] != packed[number]:
            out[end + kept] = packed[number]
            kept += 1
            starts[(tests[number] & (slots - 1)) + 1] += 1
    out[record + TOGGLES] = kept
    end += kept
    start = 0
    for slot in range(slots + 1):
        start += starts[slot]
        small[4 * end + slot] = start
    return end + slots // 4 + 1
