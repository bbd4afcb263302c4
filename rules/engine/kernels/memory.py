"""The entries of lists: events by time, of an access and a key (:mod:`.buckets` finds a list).

Law: entries of a list stand in the order of (time, E4) in one contiguous segment of the heap, and
the last stands in the list's record as well, which saves most questions a look at the heap; a
list of a key that a sweep meets without entries is forgotten, its segment, record and bucket
given back. An access without keys has one list, for as long as there is the access.
A step that lacks room changes nothing and says what must grow.
"""

from __future__ import annotations

import numpy as np

from rules.engine.kernels import arrays
from rules.engine.kernels.arena import allocate, first_entry, logarithm, release
from rules.engine.kernels.buckets import FIRST_CAPACITY, find_list, forget_list, make_list
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.layout import (
    DONE,
    ENTRY_WORDS,
    GROW_HEAP,
    ID_IS_DIGEST,
    LINE_WORDS,
    LISTS_TOP,
    RANK_ELSEWHERE,
    ROW_ID,
    ROW_SEQUENCE,
    ROW_SOURCE,
    SWEEP,
)
from rules.engine.kernels.summaries import forget_from, forget_stale
from rules.engine.kernels.words import INT_MIN

SELDOM = 7
"""A row with none of these bits sweeps although it makes no list."""


@part
def row_offset(state: int, type_number: int, row: int) -> int:
    """Where a row stands in the heap."""
    kind = arrays.types(state)[type_number]
    return kind.offset + (row & (kind.capacity - 1)) * kind.width


@kernel
def precedes(state: int, type_number: int, one: int, other: int) -> bool:
    """Whether row ``one`` comes before row ``other`` of the same type and instant (E4)."""
    first = row_offset(state, type_number, one)
    return comes_before(state, first, row_offset(state, type_number, other))


@kernel
def comes_before(state: int, first: int, second: int) -> bool:
    """Whether the row at one offset comes before that at another, of the same instant (E4)."""
    return is_earlier(state, arrays.heap(state), first, second)


@part
def is_earlier(state: int, words, first: int, second: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether the row that begins at one of ``words`` comes before that at another, of the same
    instant and no tick (E4).
    """
    is_composite = words[first + ROW_ID] == ID_IS_DIGEST
    if is_composite != (words[second + ROW_ID] == ID_IS_DIGEST):
        return not is_composite
    first_rank = arrays.source_ranks(state)[words[first + ROW_SOURCE]]
    second_rank = arrays.source_ranks(state)[words[second + ROW_SOURCE]]
    if is_composite:  # those of other engines are alike, and before those of this one's rules
        first_rank, second_rank = max(first_rank, RANK_ELSEWHERE), max(second_rank, RANK_ELSEWHERE)
    if first_rank != second_rank:
        return first_rank < second_rank
    # Composite events of one rule come in the order of their causes and bear no numbers; those of
    # other engines come as they like, and bear their places.
    if words[first + ROW_SEQUENCE] == words[second + ROW_SEQUENCE] and not is_composite:
        return has_lesser_id(state, words, first, second)
    return words[first + ROW_SEQUENCE] < words[second + ROW_SEQUENCE]


@kernel
def has_lesser_id(state: int, words, first: int, second: int) -> bool:  # type: ignore[no-untyped-def]
    """Whether an event's id comes before another's, when both have one source and one number.

    Texts of ids are not where kernels can read them, and this is rare: the host is asked.
    """
    one, other, number = words[first + ROW_ID], words[second + ROW_ID], words[first + ROW_SEQUENCE]
    return one != other and arrays.ask(arrays.asked(state)[0], one, other, number) != 0


@kernel
def insert_entry(state: int, number: int, type_number: int, time: int, row: int) -> int:
    """Put an entry into its place in a list. GROW_HEAP, and no change, when there is no room."""
    lists, heap = arrays.lists(state), arrays.heap(state)
    record = lists[number]
    if record.head + record.length == record.capacity:
        prune(state, number, arrays.accesses(state)[record.access].horizon)
        record = lists[number]
        if record.head > 0 and 2 * record.head >= record.capacity:
            start = record.line * LINE_WORDS
            shift = record.head * ENTRY_WORDS
            for word in range(record.length * ENTRY_WORDS):
                heap[start + word] = heap[start + shift + word]
            lists[number].head = 0
        else:
            if not resize(state, number, 2 * record.capacity):
                return GROW_HEAP
        record = lists[number]
    start = first_entry(record)
    end = start + record.length * ENTRY_WORDS
    place = end
    while place > start:
        before = heap[place - ENTRY_WORDS]
        if before < time:
            break
        if before == time and not precedes(state, type_number, row, heap[place - 1]):
            break
        place -= ENTRY_WORDS
    if place < end:
        forget_from(state, number, record.first + (place - start) // ENTRY_WORDS)
    for word in range(end - 1, place - 1, -1):
        heap[word + ENTRY_WORDS] = heap[word]
    heap[place] = time
    heap[place + 1] = row
    lists[number].length += 1
    note_last(state, number)
    return DONE


@kernel
def note_last(state: int, number: int) -> None:
    """Write down the last entry of a list, if there is one."""
    heap, record = arrays.heap(state), arrays.lists(state)[number]
    if record.length > 0:
        place = first_entry(record) + (record.length - 1) * ENTRY_WORDS
        record.last_time = heap[place]
        record.last_row = heap[place + 1]


@kernel
def resize(state: int, number: int, capacity: int) -> bool:
    """Move a list into a segment of ``capacity`` entries; False when the heap has none."""
    lists, heap = arrays.lists(state), arrays.heap(state)
    record = lists[number]
    offset = allocate(state, logarithm(capacity * ENTRY_WORDS))
    if offset < 0:
        return False
    old, size_class = record.line * LINE_WORDS, logarithm(record.capacity * ENTRY_WORDS)
    start = first_entry(record)
    for word in range(record.length * ENTRY_WORDS):
        heap[offset + word] = heap[start + word]
    release(state, old, size_class)
    lists[number].line = offset // LINE_WORDS
    lists[number].capacity = capacity
    lists[number].head = 0
    return True


@kernel
def remove_entry(state: int, number: int, time: int, row: int) -> None:
    """Take an entry out of a list, if it is there (a consumed event, S11)."""
    lists, heap = arrays.lists(state), arrays.heap(state)
    record = lists[number]
    start = first_entry(record)
    for place in range(find_time(state, number, time), record.length):
        word = start + place * ENTRY_WORDS
        if heap[word] != time:
            return
        if heap[word + 1] == row:
            forget_from(state, number, record.first + place)
            for later in range(word, start + (record.length - 1) * ENTRY_WORDS):
                heap[later] = heap[later + ENTRY_WORDS]
            lists[number].length -= 1
            note_last(state, number)
            return


@kernel
def find_time(state: int, number: int, time: int) -> int:
    """The number of entries of a list that are earlier than ``time``.

    A few steps from the late end come first: most questions are about what came last.
    """
    heap = arrays.heap(state)
    record = arrays.lists(state)[number]
    high = record.length
    if high == 0 or record.last_time < time:
        return high
    start = first_entry(record)
    steps = 0
    while high > 0 and heap[start + (high - 1) * ENTRY_WORDS] >= time:
        high -= 1
        steps += 1
        if steps == 4:
            low = 0
            while low < high:
                middle = (low + high) >> 1
                if heap[start + middle * ENTRY_WORDS] < time:
                    low = middle + 1
                else:
                    high = middle
            return low
    return high


@kernel
def prune(state: int, number: int, horizon: int) -> None:
    """Drop the entries of a list that are earlier than ``horizon``."""
    lists, heap = arrays.lists(state), arrays.heap(state)
    record = lists[number]
    start = record.line * LINE_WORDS
    head, length = record.head, record.length
    while length > 0 and heap[start + head * ENTRY_WORDS] < horizon:
        head += 1
        length -= 1
    lists[number].first += head - lists[number].head
    lists[number].head = head
    lists[number].length = length


@kernel
def sweep(state: int, count: int) -> None:
    """Prune the next ``count`` lists in turn; forget the empty ones, shrink the hollow ones.

    What the list after them needs is asked for.
    """
    counters, lists = arrays.counters(state), arrays.lists(state)
    for _ in range(min(count, counters[LISTS_TOP])):
        number = counters[SWEEP]
        if number >= counters[LISTS_TOP]:
            number = 0
        counters[SWEEP] = number + 1
        if lists[number].capacity == 0:
            continue
        prune(state, number, arrays.accesses(state)[lists[number].access].horizon)
        capacity = lists[number].capacity
        if lists[number].length == 0 and arrays.accesses(state)[lists[number].access].keys > 0:
            forget_list(state, number)
            continue
        forget_stale(state, number)
        if capacity > FIRST_CAPACITY and 8 * lists[number].length < capacity:
            resize(state, number, capacity // 2)
    if counters[SWEEP] < counters[LISTS_TOP]:
        following = lists[counters[SWEEP]]
        arrays.prefetch_access(state, following.access)
        arrays.prefetch_heap(state, first_entry(following))
        arrays.prefetch_list(state, counters[SWEEP] + 1)


@kernel
def row_key(heap, access, start: int) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """A row's key words for an access; -0.0 counts as 0.0."""
    first, second = np.int64(0), np.int64(0)
    if access.keys > 0:
        first = heap[start + access.first_key]
        if access.float_keys & 1 and first == INT_MIN:
            first = np.int64(0)
    if access.keys > 1:
        second = heap[start + access.second_key]
        if access.float_keys & 2 and second == INT_MIN:
            second = np.int64(0)
    return first, second


@part
def extend(state: int, number: int, time: int, row: int) -> bool:
    """Put an entry behind the others of a list; False, and no change, where it is not so simple."""
    heap, record = arrays.heap(state), arrays.lists(state)[number]
    if record.head + record.length == record.capacity:
        return False
    if record.length > 0 and record.last_time >= time:
        return False
    place = first_entry(record) + record.length * ENTRY_WORDS
    heap[place] = time
    heap[place + 1] = row
    record.length += 1
    record.last_time = time
    record.last_row = row
    return True


@kernel
def append(state: int, access: int, type_number: int, time: int, row: int) -> int:
    """Enter a row into its list of an access; sweep other lists in passing.

    Two for each new one: were it one, then as long as every event makes a list, the sweep would
    follow the newest lists and never come back to the oldest. Where none is made, few rows are
    enough to come round. The list itself is pruned when it is full: to look at the oldest entry
    each time would fetch memory that nothing else needs.
    """
    record = arrays.accesses(state)[access]
    if time < record.horizon:
        return DONE
    first, second, number = np.int64(0), np.int64(0), record.list
    if record.keys > 0:
        first, second = row_key(arrays.heap(state), record, row_offset(state, type_number, row))
        number = find_list(state, access, first, second)
    count = 1
    if number < 0:
        number = make_list(state, access, first, second)
        count = 2
        if number < 0:
            return -number
    if not extend(state, number, time, row):
        status = insert_entry(state, number, type_number, time, row)
        if status != DONE:
            return status
    if count > 1 or row & SELDOM == 0:
        sweep(state, count)
    return DONE


@kernel
def append_all(state: int, access: int, type_number: int, entries, done: int):  # type: ignore[no-untyped-def]
    """Enter rows, int64[n, 2] of (time, row), into an access, from number ``done`` on.

    Gives how many are done, and DONE or what must grow before the rest.
    """
    while done < len(entries):
        status = append(state, access, type_number, entries[done, 0], entries[done, 1])
        if status != DONE:
            return done, status
        done += 1
    return done, DONE
