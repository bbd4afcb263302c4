"""Events from outside: columns of a batch, or one event alone, into rows that wait.

A *parcel* (layout.PARCEL_HEADER) says where the columns of a batch stand. What is taken in leaves
repeats out (tesla.md E1), and waits behind what came before.

Law: a call that lacks room has taken in what it could, whole events in their order, and says so
in the parcel; called again it goes on from there.
"""

from __future__ import annotations

import numpy as np

from matcher.contents import absorb, finished
from rules.engine.kernels import arrays
from rules.engine.kernels.compiled import kernel, part
from rules.engine.kernels.layout import (
    COLUMN_IS_BYTES,
    COLUMN_IS_CODES,
    COLUMN_IS_FLOATS,
    COLUMN_IS_WORDS,
    DONE,
    DROPPED,
    GREATEST,
    GROW_INBOX,
    GROW_SEEN,
    GROW_WAITING,
    HEADER,
    INBOX_TOP,
    LEAST,
    PARCEL_CODES,
    PARCEL_COLUMN,
    PARCEL_COUNT,
    PARCEL_DIGEST,
    PARCEL_DONE,
    PARCEL_HEADER,
    PARCEL_ID,
    PARCEL_IDS,
    PARCEL_KEYS,
    PARCEL_NUMBERS,
    PARCEL_REPEATS,
    PARCEL_SEEN,
    PARCEL_SEQUENCES,
    PARCEL_SOURCES,
    PARCEL_TIMES,
    PARCEL_TYPE,
    PARCEL_WIDTH,
    ROW_ID,
    ROW_KEY_HIGH,
    ROW_KEY_LOW,
    ROW_SEQUENCE,
    ROW_SOURCE,
    ROW_TIME,
    STAGED,
    STAGED_ROW,
    STAGED_SEEN,
    STAGED_TYPE,
    WAITING_FIRST,
    WAITING_TOP,
)
from rules.engine.kernels.seen import (
    enter_block,
    enter_number,
)


@kernel
def take_in(state: int) -> int:
    """Take in the parcel: DONE, or what must grow before the rest."""
    counters, parcel = arrays.counters(state), arrays.parcel(state)
    count, width = parcel[PARCEL_COUNT] - parcel[PARCEL_DONE], parcel[PARCEL_WIDTH]
    if counters[WAITING_TOP] + count > len(arrays.waiting(state)):
        return GROW_WAITING
    if counters[INBOX_TOP] + count * width > len(arrays.inbox(state)):
        return GROW_INBOX
    first = counters[WAITING_TOP]
    begun = parcel[PARCEL_DONE]
    status = note_new(state)
    if parcel[PARCEL_DIGEST] != 0:
        write_digests(state)
        note_explicit(state, first, begun)
    write_headers(state, first)
    for attribute in range(width - HEADER):
        write_column(state, first, attribute)
    note_rows(state, first)
    return status


@kernel
def note_new(state: int) -> int:
    """Let the events of the parcel that are no repeats wait, each with its place in the parcel."""
    counters, parcel, waiting = arrays.counters(state), arrays.parcel(state), arrays.waiting(state)
    count, type_number = parcel[PARCEL_COUNT], parcel[PARCEL_TYPE]
    times = arrays.words_at(parcel[PARCEL_TIMES], count)
    sequences = arrays.words_at(parcel[PARCEL_SEQUENCES], count)
    codes = arrays.codes_at(parcel[PARCEL_SOURCES], count)
    numbers = arrays.words_at(parcel[PARCEL_SEEN], parcel[PARCEL_CODES])
    blocks = arrays.seen(state)
    is_looked_for, is_one_source = parcel[PARCEL_SEEN] != 0, parcel[PARCEL_SOURCES] == 0
    least, greatest = counters[LEAST], counters[GREATEST]
    top, event = counters[WAITING_TOP], parcel[PARCEL_DONE]
    last_source, last_block, place = np.int64(-1), np.int64(0), np.int64(0)
    status = DONE
    while event < count:
        time, is_new = times[event], True
        if is_looked_for:
            source, number = (
                numbers[0] if is_one_source else numbers[codes[event]],
                sequences[event],
            )
            if source != last_source or number >> 6 != last_block:
                last_source, last_block = source, number >> 6
                place = enter_block(blocks, source, last_block, time)
                if place < 0:
                    status = GROW_SEEN
                    break
            is_new = enter_number(blocks, place, number, time)
        least, greatest = min(least, time), max(greatest, time)
        waiting[top].time = time
        waiting[top].type = type_number
        waiting[top].offset = event
        top += is_new
        event += 1
    counters[LEAST], counters[GREATEST] = least, greatest
    counters[DROPPED] += event - parcel[PARCEL_DONE] - (top - counters[WAITING_TOP])
    counters[WAITING_TOP] = top
    parcel[PARCEL_DONE] = event
    return status


@kernel
def note_explicit(state: int, first: int, begun: int) -> None:
    """Enter the explicit numbers of events from ``begun`` on that wait, from ``first`` on, into the
    journal, which has room; and note which of the events do not, as they are repeats.
    """
    counters, parcel, waiting = arrays.counters(state), arrays.parcel(state), arrays.waiting(state)
    journal, digests, repeats = arrays.journal(state), arrays.digests(state), arrays.repeats(state)
    count, end = parcel[PARCEL_COUNT], counters[WAITING_TOP]
    sequences = arrays.words_at(parcel[PARCEL_SEQUENCES], count)
    codes = arrays.codes_at(parcel[PARCEL_SOURCES], count)
    numbers = arrays.words_at(parcel[PARCEL_SEEN], parcel[PARCEL_CODES])
    is_one_source, last = parcel[PARCEL_SOURCES] == 0, len(journal) - 1
    top, place, again = journal[last].number, first, parcel[PARCEL_REPEATS]
    for event in range(begun, parcel[PARCEL_DONE]):
        if place < end and waiting[place].offset == event:
            journal[top].source = numbers[0] if is_one_source else numbers[codes[event]]
            journal[top].number = sequences[event]
            journal[top].time = waiting[place].time
            journal[top].contents = digests[event]
            top += 1
            place += 1
        else:
            repeats[again] = event
            again += 1
    journal[last].number = top
    parcel[PARCEL_REPEATS] = again


@kernel
def write_digests(state: int) -> None:
    """Write the digests of what the events of the parcel hold (matcher.contents)."""
    parcel, digests = arrays.parcel(state), arrays.digests(state)
    count, width = parcel[PARCEL_COUNT], parcel[PARCEL_WIDTH]
    times = arrays.words_at(parcel[PARCEL_TIMES], count)
    for event in range(count):
        digests[event] = absorb(np.uint64(parcel[PARCEL_DIGEST]), times[event])
    for attribute in range(width - HEADER):
        column = PARCEL_HEADER + PARCEL_COLUMN * attribute
        form, address = parcel[column], parcel[column + 1]
        if form == COLUMN_IS_BYTES:
            flags = arrays.bytes_at(address, count)
            for event in range(count):
                digests[event] = absorb(digests[event], flags[event])
        elif form == COLUMN_IS_CODES:
            codes = arrays.codes_at(address, count)
            hashes = arrays.words_at(parcel[column + 3], parcel[column + 4])
            for event in range(count):
                digests[event] = absorb(digests[event], hashes[codes[event]])
        else:
            words, zero = arrays.words_at(address, count), np.int64(0)
            if form == COLUMN_IS_FLOATS:
                zero = np.int64(-(2**63))  # the bits of -0.0, which is 0.0
            for event in range(count):
                word = words[event]
                digests[event] = absorb(digests[event], np.int64(0) if word == zero else word)
    for event in range(count):
        digests[event] = finished(digests[event])


@kernel
def write_headers(state: int, first: int) -> None:
    """Write when each event that waits from ``first`` on was, and who it is."""
    counters, parcel = arrays.counters(state), arrays.parcel(state)
    waiting, inbox, hashes = arrays.waiting(state), arrays.inbox(state), arrays.source_hashes(state)
    count, width = parcel[PARCEL_COUNT], parcel[PARCEL_WIDTH]
    sequences = arrays.words_at(parcel[PARCEL_SEQUENCES], count)
    codes = arrays.codes_at(parcel[PARCEL_SOURCES], count)
    numbers = arrays.words_at(parcel[PARCEL_NUMBERS], parcel[PARCEL_CODES])
    ids = arrays.words_at(parcel[PARCEL_IDS], count)
    keys = arrays.words_at(parcel[PARCEL_KEYS], 2 * count)
    has_ids, has_keys = parcel[PARCEL_IDS] != 0, parcel[PARCEL_KEYS] != 0
    is_one_source = parcel[PARCEL_SOURCES] == 0
    start = counters[INBOX_TOP]
    for place in range(first, counters[WAITING_TOP]):
        event = waiting[place].offset
        source = numbers[0] if is_one_source else numbers[codes[event]]
        inbox[start + ROW_TIME] = waiting[place].time
        inbox[start + ROW_KEY_HIGH] = keys[2 * event] if has_keys else hashes[source]
        inbox[start + ROW_KEY_LOW] = keys[2 * event + 1] if has_keys else sequences[event]
        inbox[start + ROW_SOURCE] = source
        inbox[start + ROW_SEQUENCE] = sequences[event]
        inbox[start + ROW_ID] = ids[event] if has_ids else parcel[PARCEL_ID]
        start += width


@kernel
def write_column(state: int, first: int, attribute: int) -> None:
    """Write an attribute of each event that waits from ``first`` on."""
    counters, parcel = arrays.counters(state), arrays.parcel(state)
    waiting, inbox = arrays.waiting(state), arrays.inbox(state)
    count, width = parcel[PARCEL_COUNT], parcel[PARCEL_WIDTH]
    column = PARCEL_HEADER + PARCEL_COLUMN * attribute
    form, address = parcel[column], parcel[column + 1]
    start, end = counters[INBOX_TOP] + HEADER + attribute, counters[WAITING_TOP]
    if form in (COLUMN_IS_WORDS, COLUMN_IS_FLOATS):
        words = arrays.words_at(address, count)
        for place in range(first, end):
            inbox[start] = words[waiting[place].offset]
            start += width
    elif form == COLUMN_IS_BYTES:
        flags = arrays.bytes_at(address, count)
        for place in range(first, end):
            inbox[start] = flags[waiting[place].offset]
            start += width
    else:
        codes = arrays.codes_at(address, count)
        strings = arrays.words_at(parcel[column + 2], parcel[column + 4])
        for place in range(first, end):
            inbox[start] = strings[codes[waiting[place].offset]]
            start += width


@part
def note_rows(state: int, first: int) -> None:
    """Write where the rows of what waits from ``first`` on begin, now that they are there."""
    counters, waiting = arrays.counters(state), arrays.waiting(state)
    width = arrays.parcel(state)[PARCEL_WIDTH]
    for place in range(first, counters[WAITING_TOP]):
        waiting[place].offset = counters[INBOX_TOP]
        counters[INBOX_TOP] += width


@kernel
def take_in_staged(state: int) -> int:
    """Take in the event that comes alone: DONE, or what must grow first."""
    counters, staged = arrays.counters(state), arrays.staged(state)
    type_number, source = staged[STAGED_TYPE], staged[STAGED_SEEN]
    width, top = arrays.types(state)[type_number].width, counters[WAITING_TOP]
    if top == len(arrays.waiting(state)):
        return GROW_WAITING
    if counters[INBOX_TOP] + width > len(arrays.inbox(state)):
        return GROW_INBOX
    time, is_new = staged[STAGED_ROW + ROW_TIME], True
    if source >= 0:
        number, blocks = staged[STAGED_ROW + ROW_SEQUENCE], arrays.seen(state)
        place = enter_block(blocks, source, number >> 6, time)
        if place < 0:
            return GROW_SEEN
        is_new = enter_number(blocks, place, number, time)
    counters[LEAST] = min(counters[LEAST], time)
    counters[GREATEST] = max(counters[GREATEST], time)
    counters[STAGED] = 0
    if not is_new:
        counters[DROPPED] += 1
        return DONE
    waiting, start = arrays.waiting(state)[top], counters[INBOX_TOP]
    waiting.time, waiting.type, waiting.offset = time, type_number, start
    for word in range(width):
        arrays.inbox(state)[start + word] = staged[STAGED_ROW + word]
    counters[INBOX_TOP] = start + width
    counters[WAITING_TOP] = top + 1
    return DONE


@kernel
def repack(state: int, target) -> int:  # type: ignore[no-untyped-def]
    """Copy the rows of all that waits into another inbox, one behind the other; gives the words
    that they take.
    """
    counters, waiting, inbox = arrays.counters(state), arrays.waiting(state), arrays.inbox(state)
    top = 0
    for place in range(counters[WAITING_FIRST], counters[WAITING_TOP]):
        start = waiting[place].offset
        waiting[place].offset = top
        for word in range(arrays.types(state)[waiting[place].type].width):
            target[top] = inbox[start + word]
            top += 1
    return top
