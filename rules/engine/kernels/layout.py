"""Where everything stands: the records and words that host and kernels share.

The *heap* is one int64 array. Segments of it, of a power of two words and whole lines of
memory, hold the rows of each event type (a ring) and the entries of each list. Nothing else points
into it but what is kept in ``types`` and ``lists``, so the host may grow it between calls.

A *row* is an event: ``HEADER`` words and then its attributes, a word each (an int; the bits of a
float; 0 or 1; the code of an interned string). An *entry* is two words, time and row number. Row
numbers only grow; row ``n`` of a type stands at ``n & (capacity - 1)`` of its ring.
"""

from __future__ import annotations

import numpy as np

from rules.planning.plan import IDENTITY
from rules.terms import TIME

# --- words of a row --------------------------------------------------------------------------

ROW_TIME = 0
ROW_KEY_HIGH = 1
ROW_KEY_LOW = 2
ROW_SOURCE = 3
ROW_SEQUENCE = 4
ROW_ID = 5
HEADER = 6

LINE_BITS = 3
LINE_WORDS = 1 << LINE_BITS
"""Words of a line of memory."""

ID_IS_SEQUENCE = -1
"""In ``ROW_ID``: the id is the sequence number; otherwise the code of the id's text, or:"""
ID_IS_DIGEST = -2
"""In ``ROW_ID``: the id is the key."""
RANK_ELSEWHERE = -1
"""The rank of the composite events of other engines, whatever their source; those of this engine's
rules have theirs from 0 on, and all others, which primitive events come from, below 0."""

ENTRY_WORDS = 2

CAUSE_IS_SEQUENCE, CAUSE_IS_DIGEST, CAUSE_IS_TEXT = 0, 1, 2
"""How a cause of a composite event is named."""

_I = np.int64
_SHORT = np.int32


def offset_of(attribute: int) -> int:
    """Where in a row an attribute stands, the time of the event (X3), or its identity."""
    return _BESIDE_ATTRIBUTES.get(attribute, HEADER + attribute)


_BESIDE_ATTRIBUTES = {TIME: ROW_TIME, IDENTITY[0]: ROW_KEY_HIGH, IDENTITY[1]: ROW_KEY_LOW}


TYPE = np.dtype(
    [
        ("width", _I),  # words of a row
        ("offset", _I),  # of the ring in the heap
        ("capacity", _I),  # rows of the ring; 0 before the first event
        ("head", _I),  # number of the oldest row kept
        ("tail", _I),  # number of the next row
        ("horizon", _I),  # rows older than this are of no use
        ("first_open", _I),  # columns that every event of the type is tested against
        ("first_dispatch", _I),  # attributes by whose value columns are looked up
        ("ticks", _I),  # whether it is the Timer, whose events are made anew when needed
        ("taken_in", _I),  # no automaton has taken in events of the type from here on
    ]
)
DISPATCH = np.dtype([("attribute", _I), ("next", _I)])
DISPATCHED = np.dtype([("word", _I), ("dispatch", _SHORT), ("head", _SHORT)])
NO_COLUMN, NEVER_USED = -1, -2  # in place of the head, the first column that asks for the word
COLUMN = np.dtype(
    [
        ("type", _I),
        ("code", _I),  # first instruction of its conditions; -1: none left
        ("next", _SHORT),  # in its chain of open or dispatched columns
        ("first_access", _SHORT),
        ("first_rule", _SHORT),  # the rules whose terminator it is
        ("last_rule", _SHORT),
    ]
)
ACCESS = np.dtype(
    [
        ("column", _I),
        ("next", _I),  # of the same column
        ("keys", _I),  # 0, 1 or 2
        ("first_key", _I),  # offsets in the row
        ("second_key", _I),
        ("float_keys", _I),  # bit mask: which keys are floats
        ("horizon", _I),  # entries older than this are of no use
        ("list", _I),  # the only one of an access without keys, or -1
    ]
)
RULE = np.dtype(
    [
        # What a terminator needs before its rule is evaluated, in as few lines of memory as may be.
        ("next", _I),  # of the same terminator column, in the order in which they were linked
        ("group", _I),
        ("floor", _I),  # every instant before it is done with
        ("priority", _I),  # by rank and place: the order within an instant
        ("type", _I),  # defined
        ("straight", _I),  # its words in ``straight``, or -1
        ("stores", _I),  # whether some rule uses the type it defines
        ("evaluated", _I),  # terminators, since it was linked
        ("column", _I),  # of its terminators
        ("first_step", _I),
        ("last_step", _I),  # exclusive
        ("previous", _I),  # the last step that may have another candidate, or -1
        ("first_value", _I),  # in ``values``
        ("value_count", _I),
        ("events", _I),  # numbered events
        ("since", _I),
        ("key_high", _I),
        ("key_low", _I),
        ("source", _I),  # number of "rexmq/rule/<name>"
        ("consumes", _I),  # bit mask over event numbers, without runs
        ("runs", _I),  # how many of the last steps count the events of a run that it consumes
        ("private", _I),  # first of its private accesses, in ``private``
        ("latest", _I),  # the place among the causes of the terminator (X1); 0 but in variants
        ("final_each", _I),  # whether the last step only emits every entry in its span
        ("automaton", _I),  # or -1
        ("ticks", _I),  # of the evaluations that were timed, one of TIMED_OF
        ("timed", _I),  # how many were
        ("name", _I),  # the address of its name, see ``last_words``
    ]
)
TIMED_OF = 64
"""Of so many evaluations of a rule one is timed; the first is not, for which memory is cold."""
# Words of a straight rule: a header, then for each value the event's frame place and the offset of
# the attribute, then the steps.
STRAIGHT_TYPE, STRAIGHT_STEPS, STRAIGHT_VALUES, STRAIGHT_SINCE = 0, 1, 2, 3
STRAIGHT_KEY_HIGH, STRAIGHT_KEY_LOW, STRAIGHT_SOURCE, STRAIGHT_TERMINATOR = 4, 5, 6, 7
STRAIGHT_HEADER = 8
STRAIGHT_VALUE = 2
STRAIGHT_STEP = 6
"""Access, type, frame place of the late end, duration, frame place of the key or -1, its offset."""
AUTOMATON = np.dtype(
    [
        ("first_state", _I),  # a free record has none
        ("last_state", _I),  # exclusive
        ("taken_in", _I),  # every event before it has been
    ]
)
STATE = np.dtype(
    [
        ("event", _I),
        ("type", _I),
        ("told_by", _I),  # the type, or LAST_OF_RUN
        ("arrivals", _I),  # access
        ("reach", _I),
        ("instances", _I),  # access
        ("waits", _I),  # whether an event is an instance only with links of every kind
        ("first_link", _I),
        ("last_link", _I),  # exclusive
    ]
)
LINK = np.dtype(
    [
        ("step", _I),  # that enumerates the candidates
        ("kept", _I),  # how many of them are linked; 0: all
        ("links", _I),  # access
    ]
)
POOL = np.dtype(
    [
        # Sequences of one model that wait in one state, see ``rules.engine.chains.published``.
        ("offset", _I),  # of their segment in the heap
        ("capacity", _I),  # how many it holds; 0 where there is none
        ("width", _I),  # words of each
        ("head", _I),  # of the first
        ("count", _I),
    ]
)
GROUP = np.dtype(
    [
        ("evaluated", _I),  # every instant before it has been evaluated
        ("mark", _I),  # every instant before it is to be
    ]
)
STEP = np.dtype(
    [
        ("kind", _I),
        ("previous", _I),  # the nearest earlier step that may have another candidate, or -1
        ("event", _I),
        ("type", _I),
        ("policy", _I),
        ("rank", _I),
        ("access", _I),
        ("first_probe", _I),  # code; -1: none
        ("second_probe", _I),
        ("first_kind", _I),  # how the probes' values become key words
        ("second_kind", _I),
        ("first_event", _I),  # the frame place of the event whose attribute it is, or -1
        ("second_event", _I),
        ("first_offset", _I),  # of that attribute in the row
        ("second_offset", _I),
        ("residue", _I),  # code; -1: none
        ("ordered", _I),  # offset of an attribute with bounds in the row; -1: none
        ("ordered_kind", _I),
        ("lower", _I),  # code of its bounds; -1: none
        ("upper", _I),
        ("lower_kind", _I),  # how the bounds' values become keys, as for probes
        ("upper_kind", _I),
        ("lower_strict", _I),  # whether the bound itself is left out
        ("upper_strict", _I),
        ("anchor", _I),  # the event at the late end
        ("earlier", _I),  # the event at the early end, or -1
        ("duration", _I),
        ("strict", _I),
        ("slot", _I),
        ("program", _I),
        ("function", _I),
        ("offset", _I),  # of the aggregated attribute in the row; -1: none
        ("kind_of_value", _I),
        ("run", _I),  # the event that ends the run it is of, or that it selects; or 0 (X4)
        ("neighbour", _I),  # the frame place of the event before another in the run
        ("links", _I),  # code of what neighbours are asked; -1: nothing
        ("most", _I),  # how many of its events count; 0: all
        ("inner", _I),  # steps to compute per candidate
        ("inner_end", _I),
        ("rivals", _I),  # selections whose candidates count for the rank too (X2)
        ("rivals_end", _I),
    ]
)
CODE = np.dtype([("op", np.int32), ("event", np.int32), ("offset", np.int64), ("value", _I)])
VALUE = np.dtype(
    [
        ("event", _I),  # the frame place of the event whose attribute it is, or -1
        ("offset", _I),  # of that attribute in the row
        ("program", _I),  # first instruction, for any other value
    ]
)
OUTLET = np.dtype(
    [
        # Composite events of one type, and their causes, since the last advance began and before.
        ("first", _I),
        ("count", _I),
        ("capacity", _I),
        ("first_cause", _I),
        ("causes", _I),
        ("cause_capacity", _I),
        ("advances", _I),  # that wrote here: each begins its offsets anew
        ("kinds", _I),  # bit mask: how causes are named here
        # Addresses of the columns; int64 unless they say otherwise.
        ("time", _I),
        ("digest", _I),  # two words an event
        ("source", _I),  # int32
        ("words", _I),  # ``capacity`` words for each attribute
        ("offsets", _I),
        ("cause_source", _I),  # int32
        ("cause_sequence", _I),
        ("cause_kind", _I),  # uint8
        ("cause_name", _I),  # two words a cause: its digest, or 0 and the code of its text
    ]
)
RUN = np.dtype(
    [
        # Composite events that one rule made of one terminator.
        ("time", _I),
        ("place", _I),  # the rule's, in E4
        ("type", _I),
        ("count", _I),
    ]
)
LIST = np.dtype(  # one line of memory
    [
        ("last_time", _I),  # of the last entry, if there is one,
        ("last_row", _I),  # for most questions are about that one alone
        ("first_key", _I),
        ("second_key", _I),
        ("first", _I),  # number of its first entry, counted from the first that it ever had
        ("line", _SHORT),  # of the heap, where its segment begins
        ("head", _SHORT),  # entries of the segment before the first; if free, the next free record
        ("length", _SHORT),
        ("capacity", _SHORT),  # entries; 0 for a free record
        ("access", _SHORT),
        ("summary", _SHORT),  # the first of its summaries, or -1
    ]
)
SUMMARY = np.dtype(
    [
        ("form", _I),
        ("attribute", _I),  # offset in the row
        ("kind", _I),
        ("begin", _I),  # numbers of entries: what it covers, the second excluded
        ("end", _I),
        ("capacity", _I),  # values in its ring; 0 before the first
        ("values", _I),  # offsets in the heap
        ("blocks", _I),
        ("block_class", _I),
        ("lowest", _I),  # digits of the sums: the place of the first, and how many
        ("digits", _I),
        ("next", _I),  # of the same list, or free
    ]
)
FORM_SUMS, FORM_MOMENTS, FORM_EXTREMES = 0, 1, 2

# How a probe's value becomes a key word: the kinds of value and attribute.
PROBE_SAME = 0
PROBE_FLOAT = 1  # both floats: -0.0 is 0.0
PROBE_FLOAT_TO_INT = 2  # found only where the float is integral
PROBE_INT_TO_FLOAT = 3  # found only where the int is a float exactly

KIND_INT, KIND_FLOAT, KIND_BOOL, KIND_STRING = 0, 1, 2, 3
POLICY_EACH, POLICY_FIRST, POLICY_LAST = 0, 1, 2
LAST_OF_RUN = -1
"""In place of the type of an event of a match: it is that of no other clause's event (X4)."""

ARRIVING = np.dtype([("time", _I), ("type", _I), ("offset", _I)])
"""An event that waits or enters, and where in the inbox its words begin."""
WALKED = np.dtype([("number", _I), ("offset", _I), ("more", _I)])  # see ``ahead``
BLOCK = np.dtype(
    [
        # 64 numbers of a source that have come or not, see ``seen``.
        ("source", _I),
        ("block", _I),  # its numbers by 64
        ("bits", np.uint64),
        ("newest", _I),  # the greatest time of its events
    ]
)
HELD = np.dtype([*BLOCK.descr, ("place", _I)])
"""A block of eight explicit numbers, and where what is known of them stands, see ``seen``."""
KNOWN = np.dtype([("time", _I), ("contents", np.uint64)])
"""When the event of an explicit id was, and the digest of its contents; 0 where it is not known."""
JOURNALED = np.dtype([("source", _I), ("number", _I), *KNOWN.descr])
"""An explicit number of a source, and its event."""
# Words of a parcel: a batch that is to be taken in. Its columns are given by their addresses.
PARCEL_TYPE, PARCEL_COUNT, PARCEL_WIDTH = 0, 1, 2
PARCEL_DONE = 3  # events that are taken in
PARCEL_TIMES, PARCEL_SEQUENCES = 4, 5  # int64 each
PARCEL_SOURCES = 6  # int32: codes; 0 where all are 0
PARCEL_NUMBERS = 7  # int64 by code: the numbers of sources
PARCEL_SEEN = 8  # int64 by code: those in the table of what was seen; 0 to look for no repeats
PARCEL_ID, PARCEL_IDS = 9, 10  # ROW_ID of all; or, if not 0, int64 of each
PARCEL_KEYS = 11  # two words each; 0 where they follow from source and sequence number
PARCEL_DIGEST = 12  # where digests start, if ids are explicit numbers; else 0
PARCEL_REPEATS = 13  # of these, how many events are repeats so far
PARCEL_CODES = 14  # codes of sources
PARCEL_HEADER = 15
# Then for each attribute how it stands there, where, and of codes where their words are, and the
# hashes of their texts, and how many codes there are.
PARCEL_COLUMN = 5
COLUMN_IS_WORDS, COLUMN_IS_BYTES, COLUMN_IS_CODES, COLUMN_IS_FLOATS = 0, 1, 2, 3
# Words of an event that is to be taken in alone: its type, its source in the table of what was
# seen or -1, and its row.
STAGED_TYPE, STAGED_SEEN, STAGED_ROW = 0, 1, 2
TRIGGER = np.dtype([("priority", _I), ("serial", _I), ("rule", _I), ("row", _I)])
DEFERRED_TRIGGER = np.dtype([("time", _I), ("rule", _I), ("row", _I)])
CONSUMED_EVENT = np.dtype([("rule", _I), ("type", _I), ("row", _I)])

# --- last words ---------------------------------------------------------------------------------

# Words of a process that a signal may end: the signal, how many names are written, how long the
# text before each is, and a slot for each engine, which holds the address of the name of the rule
# that it evaluates. Then come the text, the names, and those of the end before this one, for hosts.
SIGNAL, NAMES_COUNT, PREFIX_LENGTH = 0, 1, 2
SLOTS = range(8, 64)
PREFIX_AT, NAMES_AT, BEFORE_AT, WORDS_BYTES = 512, 1024, 3072, 5120
NAME_BYTES = 256
SIGNALS = 128
"""Numbers of signals are below it."""

# --- counters ----------------------------------------------------------------------------------

HEAP_TOP = 0  # words in use
LISTS_TOP = 1
LISTS_FREE = 2  # first free list record, or -1
BUCKETS_USED = 3
SWEEP = 4  # the next list to sweep
RUNS = 5
TOUCHED = 6  # types with composite events since the advance began
TRIGGERS = 7  # in the heap of triggers
QUEUE_HEAD = 30  # triggers that came in order: the next,
QUEUE_TAIL = 31  # and the end
TRIGGER_SERIAL = 8
DEFERRED = 9
CONSUMED = 10
# Where an interrupted call goes on.
PHASE = 11
ARRIVAL = 12  # next arrival
STORED = 13  # next stored trigger
INSTANT = 14
APPENDED = 15  # lists that the present event already entered
ROW_WRITTEN = 16  # whether the present event has its row
PRESENT_ROW = 17
COMPOSITE = 18  # next composite event to insert, counted from the outlet's first
COMPOSITE_END = 19
EVALUATED = 20  # terminators evaluated, ever
COMPOSITE_RULE = 21  # whose composite events are being inserted
OUT_TYPE = 22  # the type that asks for room in GROW_OUT,
OUT_NEED = 23  # for so many composite events,
OUT_CAUSES = 24  # with so many causes
DISORDER = 25  # whether rules ran in another order than that of their places
SUMMARIES_TOP = 26
SUMMARIES_FREE = 27  # first free summary, or -1
WISH = 28  # what a summary lacked: grown before the next instant
LEVEL = 32  # every group's mark is to be this at least
TAKING = 33  # whether what was written is to be taken once all is done
TAKEN_OUTLETS = 34  # what the advance left in ``taken``: outlets,
TAKEN_RUNS = 35  # runs behind them,
TAKEN_EVENTS = 36  # of so many events in all,
TAKEN_FULL = 37  # whether some outlet lacks room for a quarter more than that again,
TAKEN_DISORDER = 38  # and DISORDER
FLOOR = 39  # every type's mark is this at least
UNTIL = 40  # what is from here on stays, whatever the marks say
LOOK_MIN = 54  # with fewer lists nothing is gained by looking ahead
ARRIVALS = 41  # how many there are
WAITING_FIRST = 42  # of the events that wait: the first, which are in order of time
WAITING_LATE = 43  # up to here,
WAITING_TOP = 44  # and the end of those that came since
INBOX_TOP = 45  # words in use
STAGED = 46  # whether an event is to be taken in alone
ORDERING = 47  # whether what marks have passed is to leave the events that wait
DROPPED = 48  # repeats, ever
LEAST = 49  # times of all that came: TIME_MAX and TIME_MIN before the first
GREATEST = 50
ENTERED = 51  # events that arrived, ever
TAKEN_TOP = 52  # words of ``taken`` that advances have written
LOOKED = 53  # arrivals that have been looked ahead at
HALTED = 56  # one more than the step at which an evaluation has halted, or 0,
PASSED = 57  # and how many candidates of a final ``each`` it has written by then
YIELD_MAX = 58  # composite events that a rule may yield at one instant
YIELDED = 59  # how many the rule that was evaluated last has yielded,
YIELDED_BY = 60  # which is that of this source,
YIELDED_AT = 61  # at this instant
SEARCHES_LEFT = 55  # see ``search``
ENDED_RULE = 62  # which would have yielded more, or searched more, than it may
PIECE = 63  # whether what was written so far is to be taken at once
SCAN_MAX = 29  # a window of so many entries is scanned rather than summarised
COUNTERS = 64

# --- what a call says ----------------------------------------------------------------------------

DONE = 0
GROW_HEAP = 1
GROW_LISTS = 2
GROW_BUCKETS = 3
GROW_OUT = 4
GROW_TRIGGERS = 5
GROW_DEFERRED = 6
GROW_CONSUMED = 7
GROW_RUNS = 8
GROW_SUMMARIES = 9
GROW_TAKEN = 10
GROW_SEEN = 11
GROW_WAITING = 12
GROW_INBOX = 13
GROW_ARRIVALS = 14
LOAD_AHEAD = 15
LOAD_SUMMARIES = 16
TOO_MANY = 17
GROW_ACCEPTED = 18

# --- kernels that are called by their addresses, see ``late`` -------------------------------------

LATE_STRAIGHT = 0
LATE_DETECT = 1
LATE_AUTOMATA = 2
AUTOMATON_CATCHES_UP, AUTOMATON_FORGETS, AUTOMATON_BEGINS_ANEW = 0, 1, 2
"""Questions to automata."""
LATE_AGGREGATES = 3
LATE_SUMMARIES = 4
SUMMARY_AGGREGATES, SUMMARY_FINDS_NEXT, SUMMARY_FINDS_LAST = 0, 1, 2
"""Questions to summaries."""
LATE_AHEAD = 5
LATE_RUNS = 6

DIGITS = 640
"""Words of scratch for the digits of sums."""
SIZE_CLASSES = 48
"""Free segments are chained by the logarithm of their size."""
