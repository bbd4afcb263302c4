"""A worker: it looks for work at its inputs, one after another, until nothing is left of a slice.

An *input* is one of the two queues of an agent, of events or of sequences; taking from the one a
worker is an event worker, from the other a match worker. The inputs that it has, and their order,
are its roles (:mod:`rules.engine.chains.hybrid.roles`). Having taken from one, it looks there first
the next time.

Law: LEFT counts the events and chunks that wait, are being filled or are tried; what an item brings
is counted before the item is counted off. So it is 0 only when all is done, and workers end then.
For ``A`` tried with ``C B``, of which ``C B A`` comes: the chunk that this goes to counts from its
first sequence on.
"""

from __future__ import annotations

from rules.engine.chains.hybrid.chunks import (
    SIZE,
    chance,
    delay,
    new_chunk,
    place_at,
    receive,
    send_all,
    time_of,
    worker_at,
)
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.layout import (
    BATCH,
    CAPACITY,
    CHUNK,
    COUNT,
    EARLIEST,
    END,
    EVENT,
    FAILED,
    HAS_FAILED,
    IDLE,
    INPUTS,
    INPUTS_AT,
    LAST,
    LATEST,
    LEFT,
    NEXT,
    PLACES,
    STATE,
    TEST,
    WORKED_OFF,
    WORKERS,
)
from rules.engine.chains.hybrid.locks import TURNS
from rules.engine.chains.hybrid.pairing import offset_of, take_chunk, take_events
from rules.engine.kernels import arrays
from rules.engine.kernels.arrays import words_at
from rules.engine.kernels.expressions import run
from runtime.instructions.atomics import add, let_others_run, load, replace, store

NOTHING, DONE, NO_MEMORY = 0, 1, 2
"""Outcomes of looking for work."""


@kernel
def work(block: int, worker: int) -> int:
    """Work until nothing is left, or a worker has failed: WORKED_OFF or HAS_FAILED."""
    words = words_at(block, SIZE)
    state = words[worker_at(words[PLACES], worker) + STATE]
    turns, is_idle = 0, False
    while load(block + 8 * FAILED) == 0:
        found = work_once(block, state, worker)
        if found == NO_MEMORY:
            break
        if found == DONE:
            turns = 0
            if is_idle:
                add(block + 8 * IDLE, -1)
                is_idle = False
            if load(block + 8 * IDLE) > 0:
                send_all(block, worker)
            continue
        send_all(block, worker)
        if load(block + 8 * LEFT) == 0:
            return WORKED_OFF
        if not is_idle:
            add(block + 8 * IDLE, 1)
            is_idle = True
        turns += 1
        if turns % TURNS == 0:
            let_others_run()
    store(block + 8 * FAILED, 1)
    return HAS_FAILED


@kernel
def work_once(block: int, state: int, worker: int) -> int:
    """Take something from the first input that has some: what became of it."""
    words = words_at(block, SIZE)
    base = worker_at(words[PLACES], worker)
    inputs, count = words_at(words[base + INPUTS_AT], SIZE), words[base + INPUTS]
    last = words[base + LAST]
    if last >= 0:
        found = take_from(block, state, worker, last)
        if found != NOTHING:
            return found
    shift = chance(block, worker) % count
    for number in range(count):
        # Its first two are those of its own agent; of the others none is to be starved.
        one = number if number < 2 else 2 + (number - 2 + shift) % (count - 2)
        found = take_from(block, state, worker, inputs[one])
        if found != NOTHING:
            words[base + LAST] = inputs[one]
            return found
    words[base + LAST] = -1
    return NOTHING


@kernel
def take_from(block: int, state: int, worker: int, source: int) -> int:
    """Take from an input, if there is something: what became of it."""
    place = source >> 1
    if source & 1 == 0:
        return take_from_events(block, state, worker, place)
    if place == 1:
        return take_from_first(block, state, worker)
    chunk = receive(block, worker, place)
    if chunk == 0:
        return NOTHING
    if not take_chunk(block, state, worker, place, chunk):
        return NO_MEMORY
    add(block + 8 * LEFT, -1)
    return DONE


@kernel
def take_numbers(block: int, worker: int, place: int, most: int) -> tuple[int, int]:
    """Take events of a place out of their queue, fewer the fewer are left: the first, and the one
    behind the last.
    """
    words, base = words_at(block, SIZE), place_at(place)
    end = words[base + END]
    while True:
        first = load(block + 8 * (base + NEXT))
        if first >= end:
            return end, end
        share = (end - first) // (2 * words[WORKERS])
        count = max(1, min(share, most))
        delay(block, worker)
        if replace(block + 8 * (base + NEXT), first, first + count):
            return first, first + count


@kernel
def take_from_events(block: int, state: int, worker: int, place: int) -> int:
    """Take events of a place, and try them."""
    first, end = take_numbers(block, worker, place, words_at(block, SIZE)[BATCH])
    if first == end:
        return NOTHING
    if not take_events(block, state, worker, place, first, end):
        return NO_MEMORY
    add(block + 8 * LEFT, first - end)
    return DONE


@kernel
def take_from_first(block: int, state: int, worker: int) -> int:
    """Take events of the first place, which has no agent: they are sequences of one event."""
    first, end = take_numbers(block, worker, 0, words_at(block, SIZE)[CAPACITY])
    if first == end:
        return NOTHING
    chunk = new_chunk(block, worker, 1)
    if chunk == 0:
        return NO_MEMORY
    head = words_at(chunk, SIZE)
    head[EARLIEST], head[LATEST] = time_of(block, 0, first), time_of(block, 0, end - 1)
    for number in range(first, end):
        if fits_alone(block, state, number):
            head[CHUNK + head[COUNT]] = number
            head[COUNT] += 1
    if not take_chunk(block, state, worker, 1, chunk):
        return NO_MEMORY
    add(block + 8 * LEFT, first - end)
    return DONE


@kernel
def fits_alone(block: int, state: int, number: int) -> bool:
    """Whether an event of the first place passes the test that is about it alone."""
    words, base = words_at(block, SIZE), place_at(0)
    if words[base + TEST] < 0:
        return True
    arrays.frame(state)[words[base + EVENT] + 1] = offset_of(block, 0, number)
    return run(state, words[base + TEST])
