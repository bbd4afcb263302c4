"""The kernels that the host calls, or that others call by their addresses (``kernels.late``)."""

from __future__ import annotations

from rules.engine.chains.published import advancing, joining
from rules.engine.chains.published.compiled import kernel
from rules.engine.chains.published.layout import (
    GUARD_ACCESS,
    GUARDS,
    NODE_ACCESS,
    NODES,
    RULE,
)
from rules.engine.kernels import arrays
from rules.engine.kernels.layout import (
    AUTOMATON_CATCHES_UP,
    AUTOMATON_FORGETS,
    DONE,
)


@kernel
def late_detect(state: int, rule: int, row: int, _3: int, _4: int, _5: int) -> int:
    """Evaluate a rule at a terminator: a status."""
    return joining.detect(state, rule, row)


@kernel
def late_automata(state: int, asked: int, number: int, time: int, _4: int, _5: int) -> int:
    """Ask automata; gives a status. What is forgotten is the event that the frame begins with."""
    if asked == AUTOMATON_CATCHES_UP:
        return advancing.take_in(state, arrays.rules(state)[number].automaton, time)
    if asked == AUTOMATON_FORGETS:
        advancing.delete_with(state, number, arrays.frame(state)[0])
    else:
        advancing.begin_anew(state, number, time)
    return DONE


@kernel
def take_in_all(state: int) -> int:
    """Let every automaton take in the instants that its rule has been evaluated at: a status."""
    automata, words = arrays.automata(state), arrays.published(state)
    for number in range(len(automata)):
        record = automata[number]
        if record.last_state == record.first_state:
            continue
        rule = arrays.rules(state)[words[record.first_state + RULE]]
        mark = arrays.groups(state)[rule.group].mark
        if mark == advancing.TIME_LEAST or rule.floor == advancing.TIME_GREATEST:
            continue
        if is_behind(state, record.first_state, record.taken_in):
            status = advancing.take_in(state, number, mark - 1)
            if status != DONE:
                return status
    return DONE


@kernel
def is_behind(state: int, base: int, time: int) -> bool:
    """Whether an automaton has not taken in all events, of which some are from a time on."""
    words = arrays.published(state)
    for place in range(words[base + NODES]):
        node = advancing.node_at(state, base, place)
        if is_newer(state, words[node + NODE_ACCESS], time):
            return True
    for place in range(words[base + GUARDS]):
        guard = advancing.guard_at(state, base, place)
        if is_newer(state, words[guard + GUARD_ACCESS], time):
            return True
    return False


@kernel
def is_newer(state: int, access: int, time: int) -> bool:
    """Whether an access has events from a time on."""
    number = arrays.accesses(state)[access].list
    if number < 0:
        return False
    events = arrays.lists(state)[number]
    found: bool = events.length > 0 and events.last_time >= time
    return found


@kernel
def forget(state: int, automaton: int) -> None:
    """Delete all sequences of an automaton."""
    advancing.forget(state, automaton)
