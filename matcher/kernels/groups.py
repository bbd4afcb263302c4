"""Groups: many filters at once, as bit maps over sorted thresholds.

A group's filters are bits. For each term of theirs there is a bit map of those that any one value
of it leaves in play; the filters that match an event are what is in all of these bit maps. As the
value grows, a bit *flips* where its filter begins or ceases to hold, which is at operands alone:
with ``m`` distinct operands a value is at one of ``2 * m + 1`` *positions*, between two operands
or on one, or, being NaN, at one more. The flips stand in the order of their positions, and every
CHECKPOINT of them (as many as it has words, in a larger group) a bit map is kept; so the bit map
of a value is the nearest one that is kept, with half as many flips at most. What a test of texts
decides is flipped by the tests that the text passes instead (*toggles*).

Bits stand in *layers* first, where interfaces are many and have few filters each: the bits of a
layer are interfaces, in the order of their places, each with one of its filters or, if it has no
more, with none. So layers are united word by word, and nothing is done for a single match. Behind
them stand the filters that would have filled too little of another layer, in the order of their
interfaces, of which one match each is looked for.

A block is a run of 64-bit words; offsets are from its begin, those of 16-bit numbers in sixteens
of bits: the filters that live, as bits; their identifiers (32 bits each, what they are more than
the least, where that is enough; else 64); the places of their interfaces and
their slots (32 bits each); for each behind the layers, where those of its interface end (16 bits);
the terms' records
(layout.TERM and following); and for each term ``LACK``, the filters that do not ask for it, the
operands as pairs (:func:`pair_of`; tests of order alone), for each position how many flips are not
beyond it (16 bits), the bit maps, the flips (16 bits), and the toggles as
``test << 32 | bit``, in the order of ``test % slots``, with where each slot begins (16 bits).
"""

from __future__ import annotations

import numpy as np

from matcher.kernels.bits import keep, set_to, unite
from matcher.kernels.compiled import inlined, kernel
from matcher.kernels.layout import (
    ALIVE,
    BASE,
    BLOCK,
    CHECKPOINT_LOG,
    CHECKS,
    COMBINED,
    EVALUATED,
    FIRSTS,
    FLIPPED,
    FLIPS,
    FLOAT_FLAG,
    LACK,
    LAYERS,
    LEAST,
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
    TOGGLED,
    TOGGLES,
    TOGGLES_AT,
    TOLD,
    TOLD_IN,
    TYPE_SORT,
    VALUES,
    VALUES_AT,
    WIDTH,
)
from runtime.instructions.bits import lowest_bit, number_of_bits
from runtime.instructions.prefetch import prefetch


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
def spacing_log(words):
    """How many flips there are from one bit map that is kept to the next, as an exponent."""
    log = CHECKPOINT_LOG
    while 1 << log < words:
        log += 1
    return log


@inlined
def ask_for_operands(blocks, block, record, cell):
    """Ask for what the search for a value begins with, or for the map of those without it."""
    if cell < 0:
        prefetch(blocks, block + blocks[record + LACK])
        return
    count, first = blocks[record + VALUES], block + blocks[record + VALUES_AT]
    for eighth in range(1, 8):
        prefetch(blocks, first + 2 * (count * eighth >> 3))


@inlined
def find_position(blocks, small, block, record, cell, value, texts):
    """Where in ``small`` it says how many flips are not beyond a value; asks for that."""
    hit_offsets, hits, ranks, test_ranks = texts
    count, first = blocks[record + VALUES], block + blocks[record + VALUES_AT]
    if count == 0:
        position = 0
    elif blocks[record + SORT] == TEXT_SORT:
        position = position_of_rank(blocks, first, count, ranks[value], test_ranks)
    else:
        position = position_of_number(blocks, first, count, cell >= FLOAT_FLAG, value)
    place = 4 * block + blocks[record + FIRSTS] + position
    prefetch(small, place)
    if blocks[record + TOGGLES]:
        slots = blocks[record + TOGGLE_SLOTS]
        starts = 4 * (block + blocks[record + TOGGLES_AT] + blocks[record + TOGGLES])
        for test in range(hit_offsets[value], hit_offsets[value + 1]):
            prefetch(small, starts + (hits[test] & (slots - 1)))
    return place


@inlined
def ask_for_map(blocks, small, block, record, value, done, spacing, words, texts):
    """Ask for the bit map nearest to a value, for the flips between and for the toggles."""
    hit_offsets, hits = texts[0], texts[1]
    nearest = (done + (1 << spacing >> 1)) >> spacing
    check = block + blocks[record + CHECKS] + nearest * words
    for word in range(0, words, 8):
        prefetch(blocks, check + word)
    prefetch(small, 4 * block + blocks[record + FLIPS] + min(done, nearest << spacing))
    if blocks[record + TOGGLES]:
        at, slots = block + blocks[record + TOGGLES_AT], blocks[record + TOGGLE_SLOTS]
        starts = 4 * (at + blocks[record + TOGGLES])
        for test in range(hit_offsets[value], hit_offsets[value + 1]):
            prefetch(blocks, at + np.int64(small[starts + (hits[test] & (slots - 1))]))


@inlined
def left_in_play(
    blocks, small, block, record, done, value, texts, play, own, spacing, counts
):  # fmt: skip
    """Take from ``play`` the filters that a value does not leave in play, ``done`` flips being
    not beyond it; ``own`` is scratch of its length.
    """
    hit_offsets, hits = texts[0], texts[1]
    nearest = (done + (1 << spacing >> 1)) >> spacing
    check = block + blocks[record + CHECKS] + nearest * len(play)
    kept = blocks[check : check + len(play)]
    toggles = blocks[record + TOGGLES]
    begin, end = nearest << spacing, done
    if begin == end and toggles == 0:
        keep(play, kept)
        return
    set_to(own, kept)
    if begin > end:  # back from a bit map that may be the one after all flips
        last = 4 * block + blocks[record + FIRSTS] + 2 * blocks[record + VALUES] + 1
        begin, end = end, min(begin, np.int64(small[last]))
    counts[FLIPPED] += end - begin
    flips = 4 * block + blocks[record + FLIPS]
    for flip in range(flips + begin, flips + end):
        bit = np.int64(small[flip])
        own[bit >> 6] ^= np.int64(1) << (bit & 63)
    if toggles:
        at, slots = block + blocks[record + TOGGLES_AT], blocks[record + TOGGLE_SLOTS]
        starts = 4 * (at + toggles)
        for place in range(hit_offsets[value], hit_offsets[value + 1]):
            counts[TOGGLED] += toggle(blocks, small, at, slots, starts, hits[place], own)
    keep(play, own)


@inlined
def records_of(lists, size):
    """Where the records of a block's terms begin; ``lists``: where the places of interfaces do."""
    return lists + (size + 1) // 2 * 2 + (size + 3) // 4


@inlined
def in_layers(play, own, layers, width, selected):
    """Select the interfaces of the filters in layers; how many were not selected before."""
    union = own[:width]
    set_to(union, play[:width])
    for layer in range(1, layers):
        unite(union, play[layer * width : (layer + 1) * width])
    new = 0
    for word in range(width):
        new += number_of_bits(union[word] & ~selected[word])
    unite(selected, union)
    return new


@inlined
def behind_layers(play, first, wide, small, places, ends, leaps, selected, counts):
    """Select the interfaces of the filters from word ``first`` on; how many were not before.

    ``leaps``: interfaces have many filters, so that one of them is looked for alone.
    """
    new, word = 0, first
    rest = play[word] if word < len(play) else np.int64(0)
    while word < len(play):
        if rest == 0:
            word += 1
            if word < len(play):
                rest = play[word]
            continue
        bit = word * 64 + lowest_bit(rest)
        rest &= rest - 1
        place = np.int64(wide[places + bit])
        new += 1 - (selected[place >> 6] >> (place & 63) & 1)
        selected[place >> 6] |= np.int64(1) << (place & 63)
        counts[TOLD] += 1
        if leaps:
            end = np.int64(small[ends + bit])
            if end >> 6 != word:
                word = end >> 6
                if word == len(play):
                    break
                rest = play[word]
            rest &= np.int64(-1) << (end & 63)
    return new


@inlined
def tell(play, identifiers, least, found, size):
    """Note the filters in play; the numbers in ``found`` wanted so far.

    ``identifiers``: by bit, what each is more than ``least``.
    """
    for word in range(len(play)):
        rest = play[word]
        if size + number_of_bits(rest) > len(found):
            size += number_of_bits(rest)
            continue  # it is told again, with more room
        while rest:
            found[size] = least + np.int64(identifiers[word * 64 + lowest_bit(rest)])
            size += 1
            rest &= rest - 1
    return size


@inlined
def in_play(blocks, small, block, record, terms, cells, at, texts, play, own, reached, counts):
    """Leave in ``play`` the filters that an event matches; ``own`` and ``reached`` are scratch.

    It takes four walks over the terms, each of which asks for what the next one reads: so the
    misses of all terms overlap.
    """
    words = len(play)
    spacing = spacing_log(words)
    for term in range(terms):
        one = record + term * TERM_WORDS
        ask_for_operands(blocks, block, one, at[blocks[one + TERM]])
    for term in range(terms):
        one = record + term * TERM_WORDS
        cell = at[blocks[one + TERM]]
        if cell >= 0 and blocks[one + SORT] != TYPE_SORT:
            reached[term] = find_position(
                blocks, small, block, one, cells[cell, 0], cells[cell, 1], texts
            )
    for term in range(terms):
        one = record + term * TERM_WORDS
        cell = at[blocks[one + TERM]]
        if cell >= 0 and blocks[one + SORT] != TYPE_SORT:
            reached[term] = done = np.int64(small[reached[term]])
            ask_for_map(blocks, small, block, one, cells[cell, 1], done, spacing, words, texts)
    for term in range(terms):
        one = record + term * TERM_WORDS
        cell = at[blocks[one + TERM]]
        if cell < 0:
            lack = block + blocks[one + LACK]
            keep(play, blocks[lack : lack + words])
        elif blocks[one + SORT] != TYPE_SORT:
            counts[TERMS_EVALUATED] += 1
            left_in_play(
                blocks, small, block, one, reached[term], cells[cell, 1], texts, play, own,
                spacing, counts,
            )  # fmt: skip


@inlined
def group_match(
    blocks, small, wide, groups, group, event, cells, at, texts, work, own, reached, bits, found,
    size, wanted, left, counts,
):  # fmt: skip
    """Note the filters of a group that match an event, or the interfaces alone.

    ``work``, ``own`` and ``reached`` are scratch. Gives the numbers in ``found`` wanted so far, and
    how many interfaces are left.
    """
    block, filters = groups[group, BLOCK], groups[group, SIZE]
    words = (filters + 63) // 64
    play = work[:words]
    set_to(play, blocks[block : block + words])
    identifiers, told_in = block + words, groups[group, TOLD_IN]
    lists = identifiers + told_in
    terms, record = groups[group, TERMS], records_of(lists, filters)
    counts[EVALUATED] += 1
    counts[COMBINED] += terms * filters
    in_play(
        blocks, small, block, record, terms, cells, at, texts, play, own[:words], reached, counts
    )
    half = (filters + 1) // 2
    places, ends = 2 * lists, 4 * (lists + 2 * half)
    layers, width = groups[group, LAYERS], groups[group, WIDTH]
    aligned = layers * width
    if layers:
        base = groups[group, BASE]
        left -= in_layers(play, own, layers, width, bits[event, base : base + width])
    leaps = filters - 64 * aligned > 4 * groups[group, RUNS]
    left -= behind_layers(play, aligned, wide, small, places, ends, leaps, bits[event], counts)
    if wanted and told_in == half:
        narrow = wide[2 * identifiers : 2 * identifiers + filters]
        size = tell(play, narrow, groups[group, LEAST], found, size)
    elif wanted:
        size = tell(play, blocks[identifiers : identifiers + filters], 0, found, size)
    return size, left


@kernel
def bury(blocks, groups, group, bit):
    """Let a filter of a group be no more; how many are left."""
    blocks[groups[group, BLOCK] + (bit >> 6)] &= ~(np.int64(1) << (bit & 63))
    groups[group, ALIVE] -= 1
    return groups[group, ALIVE]
