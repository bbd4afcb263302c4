"""The hash table that finds a list of entries by access and key.

Law: a list that has a key has a bucket, and a record while there is the access or the key; an
access without keys has one list, which needs no bucket. What is forgotten gives its segment,
record and bucket back at once: no place is marked as having been used.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import IS_SPOILED, SPOILED, allocate, logarithm, release
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.layout import (
    BUCKETS_USED,
    ENTRY_WORDS,
    GROW_BUCKETS,
    GROW_HEAP,
    GROW_LISTS,
    LINE_WORDS,
    LISTS_FREE,
    LISTS_TOP,
)
from rules.engine.kernels.summaries import forget_summaries

FIRST_CAPACITY = 4
"""Entries of a new list."""


@part
def bucket_of(buckets, access: int, first: int, second: int) -> int:  # type: ignore[no-untyped-def]
    """The first bucket to try for an access and a key."""
    mixed = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed + np.uint64(second)) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed = (mixed + np.uint64(access)) * np.uint64(0x165667B19E3779F9)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(len(buckets) - 1))


@kernel
def find_list(state: int, access: int, first: int, second: int) -> int:
    """The list of an access and a key, or -1."""
    if arrays.accesses(state)[access].keys == 0:
        return arrays.accesses(state)[access].list
    buckets, lists = arrays.buckets(state), arrays.lists(state)
    place = bucket_of(buckets, access, first, second)
    mask = len(buckets) - 1
    while True:
        number = buckets[place]
        if number < 0:
            return -1
        record = lists[number]
        if record.access == access and record.first_key == first and record.second_key == second:
            return number
        place = (place + 1) & mask


@kernel
def make_list(state: int, access: int, first: int, second: int) -> int:
    """A new, empty list for an access and a key that have none: its number, or minus a status."""
    counters, lists, buckets = arrays.counters(state), arrays.lists(state), arrays.buckets(state)
    if counters[LISTS_FREE] < 0 and counters[LISTS_TOP] == len(lists):
        return -GROW_LISTS
    if 2 * (counters[BUCKETS_USED] + 1) > len(buckets):
        return -GROW_BUCKETS
    size_class = logarithm(FIRST_CAPACITY * ENTRY_WORDS)
    offset = allocate(state, size_class)
    if offset < 0:
        return -GROW_HEAP
    number = counters[LISTS_FREE]
    if number >= 0:
        counters[LISTS_FREE] = np.int64(lists[number].head)
    else:
        number = counters[LISTS_TOP]
        counters[LISTS_TOP] += 1
    lists[number].line = offset // LINE_WORDS
    lists[number].capacity = FIRST_CAPACITY
    lists[number].head = 0
    lists[number].length = 0
    lists[number].first = 0
    lists[number].summary = -1
    lists[number].access = access
    lists[number].first_key = first
    lists[number].second_key = second
    if arrays.accesses(state)[access].keys == 0:
        arrays.accesses(state)[access].list = number
    else:
        put_bucket(buckets, lists, number)
        counters[BUCKETS_USED] += 1
    return number


@kernel
def put_bucket(buckets, lists, number: int) -> None:  # type: ignore[no-untyped-def]
    """Enter a list into the hash table, which has room."""
    record = lists[number]
    place = bucket_of(buckets, record.access, record.first_key, record.second_key)
    while buckets[place] >= 0:
        place = (place + 1) & (len(buckets) - 1)
    buckets[place] = number


@kernel
def rehash(state: int, buckets) -> None:  # type: ignore[no-untyped-def]
    """Fill an empty, larger hash table with the lists that are found by a key."""
    lists = arrays.lists(state)
    for number in range(arrays.counters(state)[LISTS_TOP]):
        record = lists[number]
        if record.capacity > 0 and arrays.accesses(state)[record.access].keys > 0:
            put_bucket(buckets, lists, number)


@kernel
def empty_bucket(state: int, number: int) -> None:
    """Take a list out of the hash table, shifting back what probed past it."""
    buckets, lists = arrays.buckets(state), arrays.lists(state)
    mask = len(buckets) - 1
    record = lists[number]
    place = bucket_of(buckets, record.access, record.first_key, record.second_key)
    while buckets[place] != number:
        place = (place + 1) & mask
    hole = place
    while True:
        place = (place + 1) & mask
        other = buckets[place]
        if other < 0:
            break
        home = bucket_of(
            buckets, lists[other].access, lists[other].first_key, lists[other].second_key
        )
        if ((place - home) & mask) >= ((place - hole) & mask):
            buckets[hole] = other
            hole = place
    buckets[hole] = -1
    arrays.counters(state)[BUCKETS_USED] -= 1


@kernel
def spoil(record) -> None:  # type: ignore[no-untyped-def]
    """Fill what a list says of itself with the pattern."""
    record.last_time = record.last_row = record.first_key = record.second_key = SPOILED
    record.first = SPOILED
    record.line = record.access = record.summary = np.int32(SPOILED & 0x7FFFFFFF)


@kernel
def forget_list(state: int, number: int) -> None:
    """Give back a list's bucket, segment and record."""
    lists, counters = arrays.lists(state), arrays.counters(state)
    record = lists[number]
    if arrays.accesses(state)[record.access].keys == 0:
        arrays.accesses(state)[record.access].list = -1
    else:
        empty_bucket(state, number)
    forget_summaries(state, number)
    release(state, record.line * LINE_WORDS, logarithm(record.capacity * ENTRY_WORDS))
    if IS_SPOILED:
        spoil(lists[number])
    lists[number].capacity = 0
    lists[number].length = 0
    lists[number].head = counters[LISTS_FREE]
    counters[LISTS_FREE] = number
