"""An agent pairs events with the sequences before them: each pair once, whoever comes first.

What comes is stored, and then tried with all of the other kind that is stored already. When an
event and a sequence come at the same time, both may be stored before either is tried; so each takes
a *ticket* once it is stored, and is tried only with those whose tickets are less.

Law: each pair is evaluated exactly once. Of two tickets one is less: its owner was stored before
it took it, so the other, which took its own later, finds it; and passes over nothing else. Example:
B#7 is stored and takes 12, ``C#1`` is stored and takes 13; then ``C#1`` is tried with B#7, and B#7
not with ``C#1``, in whatever order both threads go on. (Without tickets, as published, both may
find the other.)

A ticket stands for all that a worker takes at once: some events of one place, or a chunk. Events
are stored as ranges of numbers, which are in the order of time: those that a sequence's windows
allow are found by bisection (the paper's scoping). Of chunks, the least and the greatest time say
which to pass over.
"""

from __future__ import annotations

from rules.engine.chains.hybrid.chunks import (
    SIZE,
    TIME_GREATEST,
    delay,
    last_of,
    place_at,
    put,
    row_of,
    share_at,
    time_of,
)
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.layout import (
    CHUNK,
    CHUNK_TICKET,
    COUNT,
    EARLIEST,
    EVALUATIONS,
    EVENT,
    FIRST_WINDOW,
    FOLLOWING,
    IS_DECIDED,
    IS_REPEATED,
    LATEST,
    PLACES,
    RANGE,
    RANGE_END,
    RANGE_FIRST,
    RANGE_TICKET,
    RANGES,
    RANGES_AT,
    ROWS,
    SEQUENCES,
    STORED,
    SUCCESSES,
    TEST,
    TICKET,
    TICKETLESS,
    TIMES,
    TOLD_BY,
    UNKNOWN,
    WINDOW,
    WINDOW_DURATION,
    WINDOW_EARLIER,
    WINDOWS,
    WINDOWS_AT,
    WORKERS,
)
from rules.engine.chains.hybrid.locks import written
from rules.engine.chains.hybrid.matches import bind, bind_event, is_match, offset_at
from rules.engine.kernels import arrays
from rules.engine.kernels.arrays import words_at
from rules.engine.kernels.expressions import run
from runtime.instructions.atomics import add, load, store


@kernel
def take_events(block: int, state: int, worker: int, place: int, first: int, end: int) -> bool:
    """The event worker: store some events of a place, and try all sequences with them. False where
    there is no memory.
    """
    words = words_at(block, SIZE)
    share = share_at(words[PLACES], worker, place)
    ranges, count = words_at(words[share + RANGES_AT], SIZE), words[share + RANGES]
    at = count * RANGE
    ranges[at + RANGE_FIRST], ranges[at + RANGE_END] = first, end
    ranges[at + RANGE_TICKET] = UNKNOWN
    store(block + 8 * (share + RANGES), count + 1)
    delay(block, worker)
    ticket = add(block + 8 * TICKET, 1)
    delay(block, worker)
    store(words[share + RANGES_AT] + 8 * (at + RANGE_TICKET), ticket)
    for other in range(words[WORKERS]):
        chunk = load(block + 8 * (share_at(words[PLACES], other, place) + STORED))
        while chunk != 0:
            delay(block, worker)
            is_before = written(chunk + 8 * CHUNK_TICKET, UNKNOWN) < ticket
            if (is_before or words[TICKETLESS] != 0) and not pair(
                block, state, worker, place, chunk, first, end
            ):
                return False
            chunk = words_at(chunk, CHUNK)[FOLLOWING]
    return True


@kernel
def take_chunk(block: int, state: int, worker: int, place: int, chunk: int) -> bool:
    """The match worker: store a chunk of sequences, and try all events of a place with them. False
    where there is no memory.
    """
    words, head = words_at(block, SIZE), words_at(chunk, CHUNK)
    share = share_at(words[PLACES], worker, place)
    words[share + SEQUENCES] += head[COUNT]
    head[CHUNK_TICKET] = UNKNOWN
    head[FOLLOWING] = words[share + STORED]
    store(block + 8 * (share + STORED), chunk)
    delay(block, worker)
    ticket = add(block + 8 * TICKET, 1)
    delay(block, worker)
    store(chunk + 8 * CHUNK_TICKET, ticket)
    for other in range(words[WORKERS]):
        at = share_at(words[PLACES], other, place)
        ranges = words_at(words[at + RANGES_AT], SIZE)
        first, end = 0, 0  # ranges that lie side by side are tried as one
        for number in range(load(block + 8 * (at + RANGES))):
            entry = number * RANGE
            delay(block, worker)
            address = words[at + RANGES_AT] + 8 * (entry + RANGE_TICKET)
            if written(address, UNKNOWN) > ticket and words[TICKETLESS] == 0:
                break  # so are those behind it
            if ranges[entry + RANGE_FIRST] != end:
                if first < end and not pair(block, state, worker, place, chunk, first, end):
                    return False
                first = ranges[entry + RANGE_FIRST]
            end = ranges[entry + RANGE_END]
        if first < end and not pair(block, state, worker, place, chunk, first, end):
            return False
    return True


@kernel
def pair(block: int, state: int, worker: int, place: int, chunk: int, first: int, end: int) -> bool:
    """Try the sequences of a chunk with some events of a place. False where there is no memory."""
    words, head = words_at(block, SIZE), words_at(chunk, SIZE)
    times = words_at(words[place_at(place) + TIMES], SIZE)
    if head[EARLIEST] > times[end - 1]:
        return True
    if end_of(block, place, head[LATEST]) < times[first]:
        return True
    for number in range(head[COUNT]):
        sequence = chunk + 8 * (CHUNK + number * place)
        if not extend(block, state, worker, place, sequence, first, end):
            return False
    return True


@kernel
def end_of(block: int, place: int, time: int) -> int:
    """The last instant at which a place's event may come to a sequence whose last event has a time:
    by windows from that one. Those that end later bind it too, as later events come no sooner.
    """
    words, end = words_at(block, SIZE), TIME_GREATEST
    stop = words[WINDOWS_AT] + words[WINDOWS] * WINDOW
    for at in range(words[place_at(place) + FIRST_WINDOW], stop, WINDOW):
        if words[at + WINDOW_EARLIER] == place - 1:
            end = min(end, last_of(time, words[at + WINDOW_DURATION]))
    return end


@kernel
def end_of_sequence(block: int, place: int, sequence: int) -> int:
    """The last instant at which an event may come to a sequence: by windows from all its events."""
    words, events, end = words_at(block, SIZE), words_at(sequence, SIZE), TIME_GREATEST
    stop = words[WINDOWS_AT] + words[WINDOWS] * WINDOW
    for at in range(words[place_at(place) + FIRST_WINDOW], stop, WINDOW):
        earlier = words[at + WINDOW_EARLIER]
        if earlier < place:
            time = time_of(block, earlier, events[earlier])
            end = min(end, last_of(time, words[at + WINDOW_DURATION]))
    return end


@kernel
def extend(
    block: int, state: int, worker: int, place: int, sequence: int, first: int, end: int
) -> bool:
    """Try one sequence with some events of a place. False where there is no memory."""
    words, events = words_at(block, SIZE), words_at(sequence, SIZE)
    base, share = place_at(place), share_at(words[PLACES], worker, place)
    times = words_at(words[base + TIMES], SIZE)
    number = first_from(times, first, end, time_of(block, place - 1, events[place - 1]))
    if number == end:
        return True
    until = end_of_sequence(block, place, sequence)
    if times[number] > until:
        return True
    frame, test = arrays.frame(state), words[base + TEST]
    rows = words_at(words[base + ROWS], SIZE)
    is_decided = words[IS_DECIDED] != 0 and place + 1 == words[PLACES]
    if is_decided:
        bind(state, block, sequence, place)
    elif test >= 0:
        for one in range(place):
            frame[words[place_at(one) + EVENT] + 1] = offset_of(block, one, events[one])
    own = words[base + EVENT] + 1
    while number < end and times[number] <= until:
        row = rows[number]
        if words[base + IS_REPEATED] == 0 or not holds(block, place, sequence, row):
            frame[own] = offset_at(block, place, row)
            words[share + EVALUATIONS] += 1
            is_fit = test < 0 or run(state, test)
            if is_fit and is_decided:
                bind_event(state, block, place, row)
                is_fit = is_match(state, block)
            if is_fit:
                words[share + SUCCESSES] += 1
                if not put(block, worker, place + 1, sequence, number):
                    return False
        number += 1
    return True


@kernel
def first_from(times, first: int, end: int, time: int) -> int:  # type: ignore[no-untyped-def]
    """The first of some events that is not before a time; ``end`` where all are."""
    if times[first] >= time:
        return first
    if times[end - 1] < time:
        return end
    low, high = first + 1, end
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def offset_of(block: int, place: int, number: int) -> int:
    """Where the row of an event stands in the heap."""
    return offset_at(block, place, row_of(block, place, number))


@kernel
def holds(block: int, place: int, sequence: int, row: int) -> bool:
    """Whether a row of a place's type is one of a sequence: events of a match are distinct (S1),
    those of runs excepted (X4).
    """
    words, events = words_at(block, SIZE), words_at(sequence, SIZE)
    kind = words[place_at(place) + TOLD_BY]
    for one in range(place):
        is_same = words[place_at(one) + TOLD_BY] == kind
        if is_same and row_of(block, one, events[one]) == row:
            return True
    return False
