"""The rest of a rule, once a sequence is complete: its negations, aggregates, runs and values.

Agents test conditions that are about the events of a sequence. What is about other events too, or
about how many there are, is decided by the worker that puts the terminator behind a sequence: it
takes the steps of the rule's plan in their order, as :mod:`rules.engine.chains.published.joining`
does, in memory of its own.

Law: a sequence is a match if every step finds it to be one; all events that a step looks at are
stored by then, since they are not after the terminator. For ``A() and each B() within 5 s from A
and not C() between B and A``, and C at 3 s, ``B A`` of 1 s and 4 s is none.
"""

from __future__ import annotations

from rules.engine.chains.hybrid.chunks import SIZE, place_at, row_of
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.layout import EVENT, MASK, RING, RULE, TOLD_BY, WIDTH
from rules.engine.kernels import arrays
from rules.engine.kernels.arrays import words_at
from rules.engine.kernels.detection import fits, perform
from rules.planning.plan import StepKind

SELECT = int(StepKind.SELECT)


@kernel
def is_match(state: int, block: int) -> bool:
    """Whether the steps of the rule find the bound events to be a match; fills their slots."""
    rule = arrays.rules(state)[words_at(block, SIZE)[RULE]]
    for number in range(rule.first_step, rule.last_step):
        step = arrays.steps(state)[number]
        if step.kind == SELECT:
            if not fits(state, step, arrays.chosen(state)[step.event], rule.since):
                return False
        elif not perform(state, number, rule.since, rule.events):
            return False
    return True


@kernel
def bind(state: int, block: int, sequence: int, places: int) -> None:
    """Let programs and steps see the events of so many places of a sequence, from the first on."""
    events = words_at(sequence, SIZE)
    for place in range(places):
        bind_event(state, block, place, row_of(block, place, events[place]))


@kernel
def bind_event(state: int, block: int, place: int, row: int) -> None:
    """Let them see an event of a place, by its row."""
    words, base = words_at(block, SIZE), place_at(place)
    event = words[base + EVENT]
    arrays.frame(state)[event + 1] = offset_at(block, place, row)
    arrays.chosen(state)[event] = row
    arrays.chosen_types(state)[event] = words[base + TOLD_BY]


@kernel
def offset_at(block: int, place: int, row: int) -> int:
    """Where a row of a place's type stands in the heap."""
    words, base = words_at(block, SIZE), place_at(place)
    offset: int = words[base + RING] + (row & words[base + MASK]) * words[base + WIDTH]
    return offset
