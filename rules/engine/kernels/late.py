"""Kernels that others call by their addresses, each compiled when something first needs it.

What one rule needs is a small part of what all rules may: a rule about one last event has no use
for automata, or for exact sums. So the parts that few rules need are compiled apart, each kept on
disk on its own, and the kernels before them find their addresses in ``late``
(``rules.engine.linking.loading`` puts them there). All take the state and five words, and give one.

Law: straight rules and other rules, automata and aggregates are loaded before a rule that needs
them is evaluated. Summaries and looking ahead only save time: without them the call goes on in
another way, and wishes that they be loaded before the next instant.
"""

from __future__ import annotations

from rules.engine.kernels import arrays
from rules.engine.kernels.aggregates import evaluate, form_of, summarised
from rules.engine.kernels.ahead import look_ahead
from rules.engine.kernels.automata import begin_anew, catch_up, forget_from
from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.coverage import cover
from rules.engine.kernels.detection import detect
from rules.engine.kernels.layout import (
    AUTOMATON_CATCHES_UP,
    AUTOMATON_FORGETS,
    DONE,
    LATE_SUMMARIES,
    LOAD_SUMMARIES,
    SCAN_MAX,
    SUMMARY_AGGREGATES,
    SUMMARY_FINDS_NEXT,
    WISH,
)
from rules.engine.kernels.ranges import last_in_range, next_in_range
from rules.engine.kernels.runs import evaluate_run, write_run
from rules.engine.kernels.straight import detect_straight


@kernel
def late_straight(state: int, place: int, row: int, _3: int, _4: int, _5: int) -> int:
    """A straight rule at a terminator: a status."""
    return detect_straight(state, place, row)


@kernel
def late_detect(state: int, rule: int, row: int, _3: int, _4: int, _5: int) -> int:
    """Any other rule at a terminator: a status."""
    return detect(state, rule, row)


@kernel
def late_automata(state: int, asked: int, number: int, time: int, _4: int, _5: int) -> int:
    """Ask automata; gives a status."""
    if asked == AUTOMATON_CATCHES_UP:
        return catch_up(state, number, time)
    if asked == AUTOMATON_FORGETS:
        forget_from(state, number, time)
    else:
        begin_anew(state, number, time)
    return DONE


@kernel
def late_aggregates(state: int, place: int, number: int, low: int, high: int, _5: int) -> int:
    """Write the aggregate of the step at an address to its slot.

    A window of up to SCAN_MAX entries is scanned, and so is one that no summary answers for.
    """
    step = arrays.step_at(place)
    is_plain = step.residue < 0 and step.program < 0
    if is_plain and high - low > arrays.counters(state)[SCAN_MAX]:
        summaries = arrays.late(state)[LATE_SUMMARIES]
        if summaries == 0:
            arrays.counters(state)[WISH] = LOAD_SUMMARIES
        elif arrays.call(summaries, state, SUMMARY_AGGREGATES, place, number, low, high) != 0:
            return DONE
    value, defined = evaluate(state, step, number, low, high)
    arrays.slots(state)[step.slot] = value
    arrays.slots_defined(state)[step.slot] = defined
    return DONE


@kernel
def late_runs(state: int, place: int, number: int, low: int, high: int, consumer: int) -> int:
    """The same of a step that is of a run; or let the rule before ``consumer``, if that is not 0,
    consume the run.
    """
    step = arrays.step_at(place)
    if consumer:
        write_run(state, step, consumer - 1, number, low, high)
        return DONE
    value, defined = evaluate_run(state, step, number, low, high)
    arrays.slots(state)[step.slot] = value
    arrays.slots_defined(state)[step.slot] = defined
    return DONE


@kernel
def late_summaries(state: int, asked: int, place: int, number: int, low: int, high: int) -> int:
    """Ask the summary of a list, for the step at an address. Gives an entry's place, or
    whether the aggregate was written to its slot.
    """
    step = arrays.step_at(place)
    if asked == SUMMARY_AGGREGATES:
        form, kind = form_of(step.function), step.kind_of_value
        summary = cover(state, number, form, step.type, step.offset, kind, low, high)
        if summary < 0:
            return 0
        value, defined = summarised(state, step, number, summary, low, high)
        arrays.slots(state)[step.slot] = value
        arrays.slots_defined(state)[step.slot] = defined
        return 1
    if asked == SUMMARY_FINDS_NEXT:
        return next_in_range(state, step, number, low, high)
    return last_in_range(state, step, number, low, high)


@kernel
def late_ahead(state: int, _1: int, _2: int, _3: int, _4: int, _5: int) -> int:
    """Ask for what the next of the events that arrive will touch."""
    look_ahead(state)
    return DONE
