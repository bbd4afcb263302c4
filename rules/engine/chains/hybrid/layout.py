"""The words of one rule's pipeline: what its agents and workers share.

A pipeline is one block of words. Its *places* are the states of the rule's sequence, the earliest
event 0 and the terminator last; the agent of a place pairs its events with sequences of the events
before. Each place has words of its own, each worker has, and each worker has for each place; what
is written by several workers stands on a line of the cache by itself.

A sequence is the numbers of its events, one for each place. The number of an event counts the
events of its place, in the order of (time, E4), and names an entry of two arrays, of times and of
rows. Sequences stand in *chunks*.
"""

from __future__ import annotations

LINE = 8
"""Words of a line of the cache."""

# --- the block -----------------------------------------------------------------------------------

PLACES, WORKERS, CAPACITY, BATCH = 0, 1, 2, 3
"""How many places and workers; sequences of a chunk; events that are taken at once, at most."""
WINDOWS, WINDOWS_AT, SEED, TICKETLESS = 4, 5, 6, 7
"""Windows by their later place: how many, and where (see WINDOW). A seed of delays at locks and
queues; 0 for none. Whether tickets decide nothing, as published.
"""
TICKET, LEFT, FAILED, IDLE = 1 * LINE, 2 * LINE, 3 * LINE, 4 * LINE
"""The next ticket; events and chunks that are not worked off; whether a worker has failed; how
many look for work."""
MEMORY_LOCK, MEMORY_NEXT, MEMORY_END, MORE = 5 * LINE, 5 * LINE + 1, 5 * LINE + 2, 5 * LINE + 3
"""Where chunks come from: memory between two addresses, and the host's function that has more."""
RULE, IS_DECIDED = 6 * LINE, 6 * LINE + 1
"""The rule's number, and whether its steps decide which complete sequences are matches
(:mod:`rules.engine.chains.hybrid.matches`).
"""
HEADER = 7 * LINE

WINDOW_LATER, WINDOW_EARLIER, WINDOW_DURATION, WINDOW = 0, 1, 2, 3
"""A window: two places, and how long before the later event the earlier one may be."""

# --- a place -------------------------------------------------------------------------------------

EVENT, TYPE, TEST, IS_REPEATED = 0, 1, 2, 3
"""The number of its event in the rule, and of its type; the program that tests an event with the
sequence before it, or -1; whether another place has the type."""
RING, MASK, WIDTH = 4, 5, 6
"""Where rows of the type stand in the heap."""
TOLD_BY = 7
"""The type by which its events are told from others of a match, or LAST_OF_RUN (X4)."""
TIMES, ROWS, END = LINE, LINE + 1, LINE + 2
"""Where the times and the rows of its events stand, addresses of number 0; the events there are."""
FIRST_WINDOW = LINE + 3
"""Where the windows stand that end at its event, before those that end later."""
NEXT = 2 * LINE
"""The queue of events: the next one."""
QUEUE_LOCK, QUEUE_HEAD, QUEUE_TAIL, FREE = 3 * LINE, 3 * LINE + 1, 3 * LINE + 2, 3 * LINE + 3
"""The queue of sequences that wait for events of the place, in chunks; chunks to be used again."""
PLACE = 4 * LINE

# --- a worker, and a worker at a place -----------------------------------------------------------

INPUTS, INPUTS_AT, LAST, CHANCE, STATE = 0, 1, 2, 3, 4
"""Its inputs (twice the place, and 1 more for sequences), which come in the order in which it looks
for work; the one that it took from last; its random numbers; its own state of the engine."""
WORKER = LINE

STORED = 0
"""Its sequences that wait for events of the place: the first chunk. Of the place after the last,
which has no agent, these are the complete ones."""
RANGES, RANGES_AT = LINE, LINE + 1
"""Its events of the place: how many ranges of them, and where these are."""
OPEN = 2 * LINE
"""The chunk that it fills for the place."""
EVALUATIONS, SUCCESSES, SEQUENCES = 2 * LINE + 1, 2 * LINE + 2, 2 * LINE + 3
"""Counts of its work at the place: pairs evaluated, pairs that fitted, sequences taken."""
SHARE = 3 * LINE

RANGE_FIRST, RANGE_END, RANGE_TICKET, RANGE = 0, 1, 2, 3

# --- a chunk -------------------------------------------------------------------------------------

FOLLOWING, CHUNK_TICKET, COUNT, EARLIEST, LATEST, CHUNK = 0, 1, 2, 3, 4, 5
"""The next chunk's address; the ticket; how many sequences there are; the least and the greatest
time of their last events; behind these the sequences."""

UNKNOWN = -1
"""In place of a ticket that is about to be taken."""
WORKED_OFF, HAS_FAILED = 0, 1
"""How a worker ends."""


def place_at(place: int) -> int:
    """Where the words of a place begin."""
    return HEADER + place * PLACE


def worker_at(places: int, worker: int) -> int:
    """Where the words of a worker begin: behind the places, and one more, of complete sequences."""
    return HEADER + (places + 1) * PLACE + worker * (WORKER + (places + 1) * SHARE)


def share_at(places: int, worker: int, place: int) -> int:
    """Where the words of a worker at a place begin."""
    begin = HEADER + (places + 1) * PLACE + worker * (WORKER + (places + 1) * SHARE)
    return begin + WORKER + place * SHARE


def windows_at(places: int, workers: int) -> int:
    """Where the windows begin, behind the last worker."""
    return worker_at(places, workers)
