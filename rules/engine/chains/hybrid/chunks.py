"""Chunks of sequences: where they come from, the queues in which they wait for an agent, and what
of them is kept between two slices of the events.

A worker fills a chunk for the next agent, and sends it once it is full, or somebody looks for work.
The worker that takes a chunk out of the queue stores it as it is: nothing is copied. So each worker
has sub-buffers to which it alone adds, in front, and which all others may read meanwhile.

Law: between two slices, when no worker runs, ``settle`` deletes the sequences that no later event
can complete. With all events before an instant worked off, that instant is the low watermark: a
later event, and each sequence that it becomes part of, is not before it. For ``C B`` that waits for
A within 5 s from B, with B at 10 s: it is deleted when the watermark has passed 15 s.
"""

from __future__ import annotations

from rules.engine.chains.hybrid import layout
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.layout import (
    CAPACITY,
    CHANCE,
    CHUNK,
    CHUNK_TICKET,
    COUNT,
    EARLIEST,
    FAILED,
    FOLLOWING,
    FREE,
    LATEST,
    LEFT,
    MEMORY_END,
    MEMORY_LOCK,
    MEMORY_NEXT,
    MORE,
    OPEN,
    PLACES,
    QUEUE_HEAD,
    QUEUE_LOCK,
    QUEUE_TAIL,
    ROWS,
    SEED,
    STORED,
    TIMES,
    WINDOW,
    WINDOW_DURATION,
    WINDOW_EARLIER,
    WINDOW_LATER,
    WINDOWS,
    WINDOWS_AT,
    WORKERS,
)
from rules.engine.chains.hybrid.locks import allocated, lock, unlock
from rules.engine.kernels.arrays import words_at
from runtime.instructions.atomics import add, let_others_run, load, store

TIME_LEAST, TIME_GREATEST = -(2**63), 2**63 - 1
SIZE = 2**40
"""More words than a block has: views of blocks are not bounded."""

place_at = kernel(layout.place_at)
worker_at = kernel(layout.worker_at)
share_at = kernel(layout.share_at)


@kernel
def time_of(block: int, place: int, number: int) -> int:
    """The time of an event by its number."""
    times = words_at(words_at(block, SIZE)[place_at(place) + TIMES], SIZE)
    found: int = times[number]
    return found


@kernel
def row_of(block: int, place: int, number: int) -> int:
    """The row of an event by its number."""
    rows = words_at(words_at(block, SIZE)[place_at(place) + ROWS], SIZE)
    found: int = rows[number]
    return found


# --- delays --------------------------------------------------------------------------------------


@kernel
def chance(block: int, worker: int) -> int:
    """A random number of a worker, from 0 to 2**31."""
    words = words_at(block, SIZE)
    at = worker_at(words[PLACES], worker) + CHANCE
    drawn = words[at]
    drawn ^= drawn << 13
    drawn ^= (drawn >> 7) & 0x01FFFFFFFFFFFFFF
    drawn ^= drawn << 17
    words[at] = drawn
    return drawn & 0x7FFFFFFF


@kernel
def delay(block: int, worker: int) -> None:
    """Let others run for a while, at random, where a test wants schedules to differ."""
    if words_at(block, SIZE)[SEED] == 0:
        return
    drawn = chance(block, worker)
    if drawn % 4 == 0:
        for _ in range(1 + drawn // 4 % 32):
            let_others_run()


# --- memory --------------------------------------------------------------------------------------


@kernel
def new_chunk(block: int, worker: int, place: int) -> int:
    """An empty chunk for sequences that wait for events of a place; 0, and the workers end, where
    there is no memory.
    """
    words, base = words_at(block, SIZE), place_at(place)
    delay(block, worker)
    lock(block + 8 * (base + QUEUE_LOCK))
    chunk = words[base + FREE]
    if chunk != 0:
        words[base + FREE] = words_at(chunk, CHUNK)[FOLLOWING]
    unlock(block + 8 * (base + QUEUE_LOCK))
    if chunk == 0:
        chunk = from_memory(block, CHUNK + words[CAPACITY] * place)
    if chunk == 0:
        store(block + 8 * FAILED, 1)
        return 0
    empty(chunk)
    return chunk


@kernel
def from_memory(block: int, size: int) -> int:
    """So many words that nobody has used, or 0."""
    words = words_at(block, SIZE)
    lock(block + 8 * MEMORY_LOCK)
    if words[MEMORY_NEXT] + 8 * size > words[MEMORY_END]:
        begin = allocated(words[MORE], size)
        words[MEMORY_NEXT] = begin
        words[MEMORY_END] = begin
        if begin != 0:  # the host says behind the words how many bytes they are
            words[MEMORY_END] = begin + words_at(begin, 1)[0]
    chunk = words[MEMORY_NEXT]
    if chunk != 0:
        words[MEMORY_NEXT] = chunk + 8 * size
    unlock(block + 8 * MEMORY_LOCK)
    return chunk


@kernel
def empty(chunk: int) -> None:
    """Have a chunk hold no sequence, and nothing follow it."""
    words = words_at(chunk, CHUNK)
    words[FOLLOWING], words[COUNT], words[CHUNK_TICKET] = 0, 0, 0
    words[EARLIEST], words[LATEST] = TIME_GREATEST, TIME_LEAST


# --- queues --------------------------------------------------------------------------------------


@kernel
def send(block: int, worker: int, place: int) -> None:
    """Let the agent of a place have the chunk that a worker fills for it; complete sequences stay
    with the worker.
    """
    words = words_at(block, SIZE)
    share = share_at(words[PLACES], worker, place)
    chunk = words[share + OPEN]
    words[share + OPEN] = 0
    if place == words[PLACES]:
        words_at(chunk, CHUNK)[FOLLOWING] = words[share + STORED]
        words[share + STORED] = chunk
        return
    base = place_at(place)
    delay(block, worker)
    lock(block + 8 * (base + QUEUE_LOCK))
    if words[base + QUEUE_TAIL] != 0:
        words_at(words[base + QUEUE_TAIL], CHUNK)[FOLLOWING] = chunk
    else:
        store(block + 8 * (base + QUEUE_HEAD), chunk)
    words[base + QUEUE_TAIL] = chunk
    unlock(block + 8 * (base + QUEUE_LOCK))
    delay(block, worker)


@kernel
def send_all(block: int, worker: int) -> None:
    """Send every chunk that a worker fills, however few sequences it holds."""
    words = words_at(block, SIZE)
    for place in range(2, words[PLACES] + 1):
        if words[share_at(words[PLACES], worker, place) + OPEN] != 0:
            send(block, worker, place)


@kernel
def receive(block: int, worker: int, place: int) -> int:
    """Take the next chunk out of the queue of a place; 0 where there is none."""
    words, base = words_at(block, SIZE), place_at(place)
    if load(block + 8 * (base + QUEUE_HEAD)) == 0:
        return 0
    delay(block, worker)
    lock(block + 8 * (base + QUEUE_LOCK))
    chunk = words[base + QUEUE_HEAD]
    if chunk != 0:
        following = words_at(chunk, CHUNK)[FOLLOWING]
        store(block + 8 * (base + QUEUE_HEAD), following)
        if following == 0:
            words[base + QUEUE_TAIL] = 0
    unlock(block + 8 * (base + QUEUE_LOCK))
    delay(block, worker)
    return chunk


@kernel
def put(block: int, worker: int, place: int, source: int, number: int) -> bool:
    """Put a sequence, whose words begin at an address, with one more event behind it, into the
    chunk that a worker fills for a place. False where there is no memory.
    """
    words = words_at(block, SIZE)
    share = share_at(words[PLACES], worker, place)
    chunk = words[share + OPEN]
    if chunk == 0:
        chunk = new_chunk(block, worker, place)
        if chunk == 0:
            return False
        words[share + OPEN] = chunk
        if place < words[PLACES]:
            add(block + 8 * LEFT, 1)
    head = words_at(chunk, SIZE)
    at = CHUNK + head[COUNT] * place
    before = words_at(source, SIZE)
    for one in range(place - 1):
        head[at + one] = before[one]
    head[at + place - 1] = number
    time = time_of(block, place - 1, number)
    head[EARLIEST] = min(head[EARLIEST], time)
    head[LATEST] = max(head[LATEST], time)
    head[COUNT] += 1
    if head[COUNT] == words[CAPACITY]:
        send(block, worker, place)
    return True


# --- between slices ------------------------------------------------------------------------------


@kernel
def settle(block: int, watermark: int) -> int:
    """Delete the sequences that no event from the watermark on can complete, and close the gaps:
    how many are left. No worker runs.
    """
    words, left = words_at(block, SIZE), 0
    for place in range(1, words[PLACES]):
        chain = chained(block, place)
        left += settle_chain(block, place, chain, watermark)
    return left


@kernel
def chained(block: int, place: int) -> int:
    """The chunks of all workers at a place as one chain, which none of them has any more."""
    words, chain = words_at(block, SIZE), 0
    for worker in range(words[WORKERS]):
        stored = share_at(words[PLACES], words[WORKERS] - 1 - worker, place) + STORED
        chunk = words[stored]
        words[stored] = 0
        if chunk == 0:
            continue
        last = chunk
        while words_at(last, CHUNK)[FOLLOWING] != 0:
            last = words_at(last, CHUNK)[FOLLOWING]
        words_at(last, CHUNK)[FOLLOWING] = chain
        chain = chunk
    return chain


@kernel
def settle_chain(block: int, place: int, chain: int, watermark: int) -> int:
    """Write what is left of a chain's sequences into its first chunks, have the first worker store
    these, and free the others: how many sequences are left.
    """
    words, total = words_at(block, SIZE), 0
    target, filled, chunk = chain, 0, chain
    while chunk != 0:
        head = words_at(chunk, SIZE)
        count = head[COUNT]  # before it is written to: the target is never ahead of what is read
        for number in range(count):
            at = CHUNK + number * place
            if not may_go_on(block, place, chunk + 8 * at, watermark):
                continue
            if filled == words[CAPACITY]:
                target = words_at(target, CHUNK)[FOLLOWING]
                filled = 0
            copied = words_at(target, SIZE)
            if filled == 0:
                copied[EARLIEST], copied[LATEST], copied[CHUNK_TICKET] = (
                    TIME_GREATEST,
                    TIME_LEAST,
                    0,
                )
            to = CHUNK + filled * place
            for one in range(place):
                copied[to + one] = head[at + one]
            time = time_of(block, place - 1, copied[to + place - 1])
            copied[EARLIEST] = min(copied[EARLIEST], time)
            copied[LATEST] = max(copied[LATEST], time)
            filled += 1
            copied[COUNT] = filled
            total += 1
        chunk = head[FOLLOWING]
    free_behind(block, place, chain, target if total > 0 else 0)
    words[share_at(words[PLACES], 0, place) + STORED] = chain if total > 0 else 0
    return total


@kernel
def free_behind(block: int, place: int, chain: int, last: int) -> None:
    """Free the chunks of a chain behind one of them; all where that is 0."""
    words, base = words_at(block, SIZE), place_at(place)
    chunk = chain
    if last != 0:
        chunk = words_at(last, CHUNK)[FOLLOWING]
        words_at(last, CHUNK)[FOLLOWING] = 0
    while chunk != 0:
        head = words_at(chunk, CHUNK)
        following = head[FOLLOWING]
        head[FOLLOWING] = words[base + FREE]
        words[base + FREE] = chunk
        chunk = following


@kernel
def may_go_on(block: int, place: int, source: int, watermark: int) -> bool:
    """Whether an event from the watermark on may complete a sequence, whose words begin there: no
    window between its events and later ones has passed.
    """
    words, sequence = words_at(block, SIZE), words_at(source, SIZE)
    for window in range(words[WINDOWS]):
        at = words[WINDOWS_AT] + window * WINDOW
        earlier = words[at + WINDOW_EARLIER]
        if earlier < place <= words[at + WINDOW_LATER]:
            end = last_of(time_of(block, earlier, sequence[earlier]), words[at + WINDOW_DURATION])
            if end < watermark:
                return False
    return True


@kernel
def last_of(time: int, duration: int) -> int:
    """The last instant of a window that begins at a time; as in ``spans.back_from``, no sum leaves
    its 64 bits.
    """
    return min(time, TIME_GREATEST - duration) + duration
