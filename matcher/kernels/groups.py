"""Groups: many filters at once, as bit maps over sorted thresholds.

A group's filters are bits. For each term of theirs there is a bit map of those that any one value
of it leaves in play; the filters that match an event are what is in all of these bit maps. As the
value grows, a bit *flips* where its filter begins or ceases to hold, which is at operands alone:
with ``m`` distinct operands a value is at one of ``2 * m + 1`` *positions*, between two operands
or on one, or, being NaN, at one more. The flips stand in the order of their positions, and every
CHECKPOINT of them a bit map is kept; so the bit map of a value is the nearest one that is kept,
with half a CHECKPOINT of flips at most. What a test of texts decides is flipped by the tests that
the text passes instead (*toggles*).

A block is a run of 64-bit words; offsets are from its begin, those of 16-bit numbers in sixteens
of bits: the filters that live, as bits; the places of their interfaces, in ascending order, and
their slots (32 bits each); for each, where those of its interface end (16 bits); the terms' records
(layout.TERM and following); and for each term ``LACK``, the filters that do not ask for it, the
operands as pairs (:func:`pair_of`; tests of order alone), for each position how many flips are not
beyond it (16 bits), the bit maps, the flips (16 bits), and the toggles as
``test << 32 | bit``, in the order of ``test % slots``, with where each slot begins (16 bits).
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.layout import (
    ALIVE,
    BLOCK,
    CHECKPOINT,
    CHECKS,
    COMBINED,
    EVALUATED,
    FIRSTS,
    FLIPPED,
    FLIPS,
    FLOAT_FLAG,
    LACK,
    RUNS,
    SIZE,
    SORT,
    TERM,
    TERM_MASK,
    TERM_WORDS,
    TERMS,
    TERMS_EVALUATED,
    TEXT_SORT,
    TOGGLE_SLOTS,
    TOGGLES,
    TOGGLES_AT,
    TOLD,
    TYPE_SORT,
    VALUES,
    VALUES_AT,
)
from matcher.kernels.results import hit

_SEQUENCE = 0x03F79D71B4CB0A89
_LOWEST = np.zeros(64, np.int64)
for _bit in range(64):
    _LOWEST[(_SEQUENCE << _bit & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@inlined
def lowest_bit(word):
    """The number of the lowest bit that is set, by a de Bruijn sequence."""
    alone = np.uint64(word & -word)
    return _LOWEST[np.int64((alone * np.uint64(_SEQUENCE)) >> np.uint64(58))]


@inlined
def pair_of(is_float, value):
    """A number that is not NaN as two ints that are ordered as the numbers are, exactly."""
    if not is_float:
        return value, 0
    number = np.int64(value).view(np.float64)
    if number >= 9223372036854775808.0:
        return 9223372036854775807, value
    if number < -9223372036854775808.0:
        # The bits of a negative float, the sign apart, grow with its size.
        return np.int64(-9223372036854775808), -(value & 0x7FFFFFFFFFFFFFFF)
    whole = np.floor(number)
    return np.int64(whole), np.int64(np.float64(number - whole).view(np.int64))


@inlined
def position_of_number(blocks, first, count, is_float, value):
    """The position of a number among ``count`` pairs, found without a branch."""
    if is_float and np.isnan(np.int64(value).view(np.float64)):
        return 2 * count + 1
    high, low = pair_of(is_float, value)
    begin, rest = first, count
    while rest > 1:
        half = rest >> 1
        other = blocks[begin + 2 * half - 2]
        below = (other < high) | ((other == high) & (blocks[begin + 2 * half - 1] < low))
        begin += 2 * half * below
        rest -= half
    other, other_low = blocks[begin], blocks[begin + 1]
    begin += 2 * ((other < high) | ((other == high) & (other_low < low)))
    same = begin < first + 2 * count and blocks[begin] == high and blocks[begin + 1] == low
    return begin - first + same


@inlined
def position_of_rank(blocks, first, count, rank, test_ranks):
    """The position of a text of this rank among ``count`` tests of order."""
    begin, rest = first, count
    while rest > 1:
        half = rest >> 1
        begin += 2 * half * (test_ranks[blocks[begin + 2 * half - 2]] < rank)
        rest -= half
    begin += 2 * (test_ranks[blocks[begin]] < rank)
    same = begin < first + 2 * count and test_ranks[blocks[begin]] == rank
    return begin - first + same


@inlined
def toggle(blocks, small, first, slots, starts, test, own):
    """Flip the bits of the filters that a test decides; how many were looked at."""
    slot = starts + (test & (slots - 1))
    for place in range(first + small[slot], first + small[slot + 1]):
        if blocks[place] >> 32 == test:
            bit = blocks[place] & TERM_MASK
            own[bit >> 6] ^= np.int64(1) << (bit & 63)
    return 1 + np.int64(small[slot + 1]) - np.int64(small[slot])


@inlined
def left_in_play(blocks, small, block, record, words, cell, value, texts, play, own, counts):
    """Take from ``play`` the filters that a value does not leave in play; ``own`` is scratch."""
    hit_offsets, hits, ranks, test_ranks = texts
    count, first = blocks[record + VALUES], block + blocks[record + VALUES_AT]
    if count == 0:
        position = 0
    elif blocks[record + SORT] == TEXT_SORT:
        position = position_of_rank(blocks, first, count, ranks[value], test_ranks)
    else:
        position = position_of_number(blocks, first, count, cell >= FLOAT_FLAG, value)
    done = np.int64(small[4 * block + blocks[record + FIRSTS] + position])
    nearest = (done + CHECKPOINT // 2) // CHECKPOINT
    check = block + blocks[record + CHECKS] + nearest * words
    toggles = blocks[record + TOGGLES]
    begin, end = nearest * CHECKPOINT, done
    if begin == end and toggles == 0:
        for word in range(words):
            play[word] &= blocks[check + word]
        return
    for word in range(words):
        own[word] = blocks[check + word]
    if begin > end:  # back from a bit map that may be the one after all flips
        all_flips = np.int64(small[4 * block + blocks[record + FIRSTS] + 2 * count + 1])
        begin, end = end, min(begin, all_flips)
    counts[FLIPPED] += end - begin
    flips = 4 * block + blocks[record + FLIPS]
    for flip in range(flips + begin, flips + end):
        bit = np.int64(small[flip])
        own[bit >> 6] ^= np.int64(1) << (bit & 63)
    if toggles:
        at, slots = block + blocks[record + TOGGLES_AT], blocks[record + TOGGLE_SLOTS]
        starts = 4 * (at + toggles)
        for place in range(hit_offsets[value], hit_offsets[value + 1]):
            counts[FLIPPED] += toggle(blocks, small, at, slots, starts, hits[place], own)
    for word in range(words):
        play[word] &= own[word]


@inlined
def records_of(block, size):
    """Where the records of a block's terms begin."""
    return block + (size + 63) // 64 + (size + 1) // 2 * 2 + (size + 3) // 4


@inlined
def group_match(
    blocks, small, wide, groups, group, event, cells, at, texts, play, own, bits, found,
    size, wanted, left, counts,
):  # fmt: skip
    """Note the filters of a group that match an event, or the interfaces alone.

    Gives the numbers in ``found`` wanted so far, and how many interfaces are left.
    """
    block, filters = groups[group, BLOCK], groups[group, SIZE]
    words = (filters + 63) // 64
    for word in range(words):
        play[word] = blocks[block + word]
    record = records_of(block, filters)
    counts[EVALUATED] += 1
    for _ in range(groups[group, TERMS]):
        cell = at[blocks[record + TERM]]
        if cell < 0:
            lack = block + blocks[record + LACK]
            for word in range(words):
                play[word] &= blocks[lack + word]
        elif blocks[record + SORT] != TYPE_SORT:
            counts[TERMS_EVALUATED] += 1
            counts[COMBINED] += filters
            left_in_play(
                blocks, small, block, record, words, cells[cell, 0], cells[cell, 1], texts,
                play, own, counts,
            )  # fmt: skip
        record += TERM_WORDS
    half = (filters + 1) // 2
    places, slots = 2 * (block + words), 2 * (block + words + half)
    ends = 4 * (block + words + 2 * half)
    # Where interfaces have many filters, one of them is enough.
    leaps = not wanted and filters > 4 * groups[group, RUNS]
    word = 0
    rest = play[0]
    while word < words:
        if rest == 0:
            word += 1
            if word < words:
                rest = play[word]
            continue
        bit = word * 64 + lowest_bit(rest)
        rest &= rest - 1
        place = np.int64(wide[places + bit])
        left -= 1 - (bits[event, place >> 6] >> (place & 63) & 1)
        slot = np.int64(wide[slots + bit]) if wanted else 0
        counts[TOLD] += 1
        size = hit(event, slot, place, bits, found, size, wanted)
        if leaps:
            end = np.int64(small[ends + bit])
            if end >> 6 != word:
                word = end >> 6
                if word == words:
                    break
                rest = play[word]
            rest &= np.int64(-1) << (end & 63)
    return size, left


@kernel
def bury(blocks, groups, group, bit):
    """Let a filter of a group be no more; how many are left."""
    blocks[groups[group, BLOCK] + (bit >> 6)] &= ~(np.int64(1) << (bit & 63))
    groups[group, ALIVE] -= 1
    return groups[group, ALIVE]
