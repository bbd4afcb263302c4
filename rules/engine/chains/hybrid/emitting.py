"""Complete sequences become composite events, terminator by terminator, in the order of results.

The host has sorted them; nothing here is parallel. What belongs to one terminator is a *group*,
whose words say which rule and which pipeline it is of, and where its sequences begin and end.
"""

from __future__ import annotations

from rules.engine.chains.hybrid.chunks import SIZE
from rules.engine.chains.hybrid.compiled import kernel
from rules.engine.chains.hybrid.layout import IS_DECIDED, PLACES
from rules.engine.chains.hybrid.matches import bind, is_match
from rules.engine.kernels import arrays
from rules.engine.kernels.arrays import words_at
from rules.engine.kernels.emission import emit, may_yield, note_run
from rules.engine.kernels.layout import (
    DONE,
    ENDED_RULE,
    GROW_RUNS,
    INSTANT,
    ROW_TIME,
    RUNS,
    TOO_MANY,
)

GROUP_RULE, GROUP_BLOCK, GROUP_NEXT, GROUP_END, GROUP = 0, 1, 2, 3, 4
"""A group: its rule, its pipeline, the address of its next sequence, and the end of all."""
TIME_GREATEST = 2**63 - 1


@kernel
def emit_groups(state: int, groups: int, first: int, end: int) -> tuple[int, int]:
    """Write the composite events of groups, from one on; GROUP_NEXT tells where to go on. Gives the
    group that is not done yet, and DONE, TOO_MANY or what must grow first.
    """
    words = words_at(groups, SIZE)
    while first < end:
        rule = arrays.rules(state)[words[first * GROUP + GROUP_RULE]]
        if rule.floor != TIME_GREATEST:  # else it has ended at an earlier terminator
            status = emit_group(state, groups + 8 * first * GROUP)
            if status != DONE:
                return first, status
        first += 1
    return first, DONE


@kernel
def emit_group(state: int, group: int) -> int:
    """Write what is left of a group: DONE, TOO_MANY or what must grow first."""
    words, counters = words_at(group, SIZE), arrays.counters(state)
    if counters[RUNS] == len(arrays.runs(state)):
        return GROW_RUNS
    number, block = words[GROUP_RULE], words[GROUP_BLOCK]
    places = words_at(block, SIZE)[PLACES]
    rule = arrays.rules(state)[number]
    outlet = arrays.outlets(state)[rule.type]
    bind(state, block, words[GROUP_NEXT], places)
    time = arrays.heap(state)[arrays.frame(state)[1] + ROW_TIME]
    count = outlet.count
    limit = count + may_yield(state, rule.source, time)
    status = DONE
    while words[GROUP_NEXT] < words[GROUP_END]:
        bind(state, block, words[GROUP_NEXT], places)
        if words_at(block, SIZE)[IS_DECIDED] != 0:
            is_match(state, block)  # it is: for its slots, which values are made of
        status = emit(state, number, limit)
        if status != DONE:
            break
        words[GROUP_NEXT] += 8 * places
    if status == TOO_MANY:
        counters[INSTANT], counters[ENDED_RULE] = time, number
    note_run(state, rule.type, rule.source, time, count)
    return status
