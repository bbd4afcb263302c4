"""The words of the reference's tables: what the host writes and the kernels read.

All of a rule's columns stand in one array of int64 words, the *arena*. An event in it is a row:
its serial number, its time, and the attributes that the rule reads on the device, a word each (an
int; the bits of a float; 0 or 1; the code of an interned string). A column is a ring of rows. The
address of an event is the place of its row's first word; the terminator's row is at address 0.

A *partial sequence* is a row too: the addresses of its events by number, a word whose bit k says
whether slot k is defined, the slots, and the values of the composite event.
"""

from __future__ import annotations

SERIAL, TIME, ATTRIBUTES = 0, 1, 2
"""Places in the row of an event; the attributes follow."""

OP, EVENT, OFFSET, VALUE = 0, 1, 2, 3
"""Columns of an instruction. A LOAD has the event's frame place and the place in its row; a SLOT
the bit that says whether it is defined, and the place in the partial sequence."""
INSTRUCTION = 4

BASE, ROW, CAPACITY = 0, 1, 2
"""A step's column: where its ring begins, the words of a row, and the rows that it holds."""
SELECTED, DISTINCT = 3, 4
"""The number of the event that a SELECT or a TIMED is about; from how many events of the sequence
the candidate must differ."""
CANDIDATE = 5
"""The frame place under which programs read the candidate."""
ANCHOR, EARLIER, DURATION, OPENING = 6, 7, 8, 9
"""The window: it ends at event ANCHOR and begins DURATION before or, unless that is -1, at event
EARLIER; OPENING is 1 where the first instant does not count."""
PROGRAM, AGGREGATED = 10, 11
"""The first instructions of what candidates are tested by, -1 for nothing; and of what is
aggregated, -1 where events are counted. A LET computes PROGRAM."""
SLOT, HOW = 12, 13
"""The slot that a LET or an aggregate fills; how values are combined, and then what is told."""
DEFINED = 14
"""The place in a partial sequence of the word that says which slots are defined."""
STEP = 15

COUNTED, SUM_INT, SUM_FLOAT, AVG_INT, AVG_FLOAT, MIN_INT, MIN_FLOAT, MAX_INT, MAX_FLOAT = range(9)
"""Values of HOW."""
PARTIAL = 3
"""Words of a partial aggregate: how many values, and two words of what they come to. A sum of ints
is kept as those of their high and of their low halves, so that it never leaves its words."""

NO_LAST, NO_FIRST = -1, 0x7F7F7F7F7F7F7F7F
"""The indexes of single selection where nothing is chosen, by which they are filled at first,"""
NO_LAST_BYTE, NO_FIRST_BYTE = 0xFF, 0x7F
"""each a byte that is repeated."""

DEPTH = 8
"""Words of the stack: a deeper program is refused."""
SLOTS_MAX = 62
"""Slots whose definedness one word tells."""
