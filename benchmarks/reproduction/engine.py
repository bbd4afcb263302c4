"""Chapter 5 of the thesis again, section 5.8: AIP and CDP under its workloads.

The comparison with Esper (5.8.1) is run with our engines alone. Figures 5.13 to 5.27 have two
parts, the mean time of an event and curves of throughput over the rate of arrival; of the curves
two points are kept for each value: the highest rate at which a queue of 100 loses nothing, and the
composite events that an event brings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.reproduction.engine_claims import (
    AIP,
    CDP,
    COMPOSITES,
    EQUAL,
    below,
    claim,
    falls,
    flat,
    grows,
    sustained,
    us,
)
from benchmarks.reproduction.engine_runs import Making, Span
from benchmarks.reproduction.engine_sweep import PAGE, Case, Offering, Sweep, loss_claim
from benchmarks.reproduction.engine_sweep import RATES as RATES_OFFERED
from benchmarks.reproduction.engine_workloads import (
    R1,
    R3,
    R7,
    R8,
    THRESHOLDS,
    WINDOW_MS,
    Sequences,
    filtering,
    fires,
)
from benchmarks.reproduction.experiment import Claim, Experiment, Table

INTRODUCTION = (
    "# Detection, beside the thesis's chapters 5 and 6\n\n"
    "Made by `rexmq reproduce`; each section is one figure of section 5.8 or 6.4. Times are CPU "
    "time of one thread for an event, as mean and 95 % confidence interval over three seeds, "
    "composite events out as columns with 128-bit ids and provenance. The thesis's machine had six "
    "cores of 2.8 GHz from 2010 and its program was C++; ours is compiled Python, so shapes and "
    "ratios can be compared, not microseconds. Its figures are pictures: only what its text says "
    "is set beside what was measured; two times are called equal that differ by less than a "
    "quarter.\n\n"
    "A rule whose events are all anchored on its terminator has no automaton here "
    "([why](../decisions/0012-sequences.md)). So AIP and CDP are one in the default scenario of "
    "two states, in the fire cases and for negation: where their columns differ there, it is by "
    "what else the machine did."
)
NO_AUTOMATON = "these rules have no automaton here: AIP and CDP are one"
ONE_AND_THE_SAME = "two states have no automaton here: AIP and CDP are one"
MORE_TO_SELECT = (
    "each state is one more selection for ten rules, and one more column that events enter: at a "
    "few microseconds an event that shows"
)
COMPOSITES_COST = "the time goes with the composite events, which are written whole"
NOISE = "the differences lie within the intervals"
RATES = {"each": 100.0, "last": 1_000.0, "first": 1_000.0}
"""Events a second of event time, where the thesis names no rate: a multiple selection at a high one
would give thousands of composite events for each event.
"""
EVENTS, QUICK_EVENTS = 10_000, 300


def of_sequences(change: str, policy: str) -> Mapping[str, Case]:
    """The default scenario with one parameter changed; quick, with a tenth of the rules."""

    def making(value: float, quick: bool) -> Making:
        whole = int(value) if change != "window" else value
        scenario = replace(Sequences(policy), **{change: whole})  # type: ignore[arg-type]
        return (scenario.smaller(10) if quick else scenario).workload

    return {"": making}


def filled(policy: str, steps: Callable[[float], float]) -> Callable[[float, bool], Span]:
    """A span that begins when so many windows, one after the other, are full."""

    def span(value: float, quick: bool) -> Span:
        seconds, rate = steps(value) * WINDOW_MS[1] / 1e3, RATES[policy]
        return Span(rate, int(rate * seconds), QUICK_EVENTS if quick else EVENTS)

    return span


def one_step(_: float) -> float:
    return 1


def sweep(
    parameter: str,
    values: tuple[float, ...],
    change: str,
    policy: str,
    claims: Callable[[Table], tuple[Claim, ...]],
    steps: Callable[[float], float] = one_step,
    *,
    logarithmic: bool = False,
) -> Sweep:
    """A sweep over the default scenario."""
    span = filled(policy, steps)
    cases = of_sequences(change, policy)
    return Sweep(parameter, values, cases, span, claims, (logarithmic, False))


BOTH = (us(AIP), us(CDP))


def states_each(table: Table) -> tuple[Claim, ...]:
    return (
        claim("the time grows with the number of states", table, (us(CDP),), grows),
        claim(
            "AIP takes longer, more so with more states",
            table,
            BOTH,
            wider,
            why=ONE_AND_THE_SAME,
        ),
        claim(
            "throughput grows from 2 states to 3, then the cost of processing lowers it",
            table,
            (COMPOSITES, sustained(CDP)),
            lambda composites, rate: composites[1] > composites[0] and falls(rate),
        ),
    )


def wider(aip: np.ndarray, cdp: np.ndarray) -> bool:
    return below(cdp, aip) and bool(aip[-1] - cdp[-1] > aip[0] - cdp[0])


def states_last(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "CDP is independent of the number of states",
            table,
            (us(CDP),),
            flat,
            why=MORE_TO_SELECT,
        ),
        claim("AIP's time grows slightly (70 to 90 us)", table, (us(AIP),), grows),
        claim("longer sequences give less throughput", table, (COMPOSITES,), falls),
        claim(
            "AIP begins to drop events sooner with longer sequences",
            table,
            (sustained(AIP),),
            falls,
        ),
    )


def states_first(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "CDP behaves as with last-within: low, independent",
            table,
            (us(CDP),),
            flat,
            why=MORE_TO_SELECT,
        ),
        claim("AIP is slower than with last-within", table, BOTH, lambda aip, cdp: below(cdp, aip)),
    )


def sequences_each(table: Table) -> tuple[Claim, ...]:
    return (
        claim("the time grows with the number of sequences, for both", table, (us(CDP),), grows),
        claim("so does AIP's", table, (us(AIP),), grows),
        claim("more sequences give more composite events", table, (COMPOSITES,), grows),
    )


def sequences_last(table: Table) -> tuple[Claim, ...]:
    return (
        claim("CDP remains constant", table, (us(CDP),), flat, why=MORE_TO_SELECT),
        claim(
            "AIP grows moderately (70 to 100 us)",
            table,
            (us(AIP),),
            grows,
            why=ONE_AND_THE_SAME,
        ),
        claim("throughput falls", table, (COMPOSITES,), falls),
    )


def rules_each(table: Table) -> tuple[Claim, ...]:
    return (
        claim("more rules, fewer composite events", table, (COMPOSITES,), falls),
        claim("the time falls slightly, for CDP", table, (us(CDP),), lambda cdp: not grows(cdp)),
        claim("and for AIP", table, (us(AIP),), lambda aip: not grows(aip)),
    )


def rules_last(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "the number of rules affects the time, not the composite events",
            table,
            (us(CDP), COMPOSITES),
            lambda cdp, composites: grows(cdp) and flat(composites),
        ),
        claim(
            "AIP drops events above 10,000 a second, CDP never",
            table,
            (sustained(AIP), sustained(CDP)),
            lambda aip, cdp: bool(aip.min() <= 10_000 and cdp.min() >= RATES_OFFERED[-1]),
            why=NO_AUTOMATON,
        ),
    )


def triggered(table: Table) -> tuple[Claim, ...]:
    def doubles(time: np.ndarray) -> bool:
        return grows(time) and bool(time[-1] <= EQUAL * time[0] * 10)

    return (
        claim("the time is proportional to the rules triggered, CDP", table, (us(CDP),), doubles),
        claim("the same for AIP", table, (us(AIP),), doubles),
        claim("throughput grows with them", table, (COMPOSITES,), grows),
    )


def windows_each(table: Table) -> tuple[Claim, ...]:
    def less_than_linear(time: np.ndarray) -> bool:
        windows = np.array(table.column(table.columns[0]), np.float64)
        return grows(time) and bool(time[-1] / time[0] < windows[-1] / windows[0])

    return (
        claim("time grows, less than linearly, for CDP", table, (us(CDP),), less_than_linear),
        claim("and for AIP", table, (us(AIP),), less_than_linear),
        claim("so do the composite events", table, (COMPOSITES,), grows),
    )


def windows_last(table: Table) -> tuple[Claim, ...]:
    return (
        claim("the window's size has no influence on CDP", table, (us(CDP),), flat, why=NOISE),
        claim("nor on AIP", table, (us(AIP),), flat, why=NOISE),
    )


def negation(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "the share of negated events has no influence on CDP's time",
            table,
            (us(CDP),),
            flat,
            why=COMPOSITES_COST,
        ),
        claim("nor on AIP's", table, (us(AIP),), flat, why=COMPOSITES_COST),
        claim(
            "CDP, which looks columns up, is more efficient",
            table,
            BOTH,
            lambda aip, cdp: below(cdp, aip),
            why=NO_AUTOMATON,
        ),
        claim("fewer composite events with more negated ones", table, (COMPOSITES,), falls),
    )


def consuming_each(table: Table) -> tuple[Claim, ...]:
    return (
        claim("consuming lowers CDP's time", table, (us(CDP),), falls),
        claim("and AIP's", table, (us(AIP),), falls),
        claim("far fewer composite events", table, (COMPOSITES,), falls),
    )


def consuming_last(table: Table) -> tuple[Claim, ...]:
    return (
        claim("the number of composite events hardly changes", table, (COMPOSITES,), flat),
        claim("consuming slows AIP", table, (us(AIP),), grows, why=ONE_AND_THE_SAME),
        claim("and not CDP", table, (us(CDP),), lambda cdp: not grows(cdp)),
    )


def fire_span(value: float, quick: bool) -> Span:
    return Span(1_000.0, 1_000, QUICK_EVENTS if quick else EVENTS)


STATES, RULES, WINDOWS = (2, 3, 4, 5), (1_000, 2_000, 5_000), (0.5, 1, 2, 3)
COUNTS, TRIGGERED, CONSUMING = (1, 2, 3, 4), (10, 20, 50, 100), (0, 1)


def before_the_last(states: float) -> float:
    return states - 1


def of_size(windows: float) -> float:
    return windows


SWEEPS: dict[str, tuple[str, Sweep]] = {
    "thesis-5.13": (
        "states of a sequence, each-within",
        sweep("states", STATES, "states", "each", states_each, before_the_last),
    ),
    "thesis-5.14": (
        "states of a sequence, last-within",
        sweep("states", STATES, "states", "last", states_last, before_the_last),
    ),
    "thesis-5.15": (
        "states of a sequence, first-within",
        sweep("states", STATES, "states", "first", states_first, before_the_last),
    ),
    "thesis-5.16": (
        "sequences of a rule, each-within",
        sweep("sequences", COUNTS, "sequences", "each", sequences_each),
    ),
    "thesis-5.17": (
        "sequences of a rule, last-within",
        sweep("sequences", COUNTS, "sequences", "last", sequences_last),
    ),
    "thesis-5.18": (
        "rules deployed, each-within",
        sweep("rules", RULES, "rules", "each", rules_each, logarithmic=True),
    ),
    "thesis-5.19": (
        "rules deployed, last-within",
        sweep("rules", RULES, "rules", "last", rules_last, logarithmic=True),
    ),
    "thesis-5.20": (
        "rules triggered by an event, each-within",
        sweep("rules triggered", TRIGGERED, "triggered", "each", triggered),
    ),
    "thesis-5.21": (
        "rules triggered by an event, last-within",
        sweep("rules triggered", TRIGGERED, "triggered", "last", triggered),
    ),
    "thesis-5.22": (
        "size of windows, each-within",
        sweep("windows [15 s]", WINDOWS, "window", "each", windows_each, of_size),
    ),
    "thesis-5.23": (
        "size of windows, last-within",
        sweep("windows [15 s]", WINDOWS, "window", "last", windows_last, of_size),
    ),
    "thesis-5.25": (
        "negation, by the share of negated events",
        Sweep(
            "negated events [%]",
            (10, 30, 50, 70, 90),
            {"": lambda share, quick: fires(R8, share / 100, "10 ms", rules=rules_of(quick))},
            fire_span,
            negation,
        ),
    ),
    "thesis-5.26": (
        "without and with consuming, each-within",
        sweep("consuming", CONSUMING, "consuming", "each", consuming_each),
    ),
    "thesis-5.27": (
        "without and with consuming, last-within",
        sweep("consuming", CONSUMING, "consuming", "last", consuming_last),
    ),
}
DEFAULT = (
    "The default scenario: 1,000 rules, each a sequence of two events with a window of 14 to 16 s; "
    "an event is relevant to ten (rule, state) pairs. 100 events a second of event time for "
    "each-within, 1,000 for the others; once the windows are full, 10,000 events or half a second "
    "of CPU time, whichever ends first."
)
UP_TO = " Up to 5,000 rules, so that the run stays short."
SETTINGS = {
    "thesis-5.18": DEFAULT + UP_TO,
    "thesis-5.19": DEFAULT + UP_TO,
    "thesis-5.25": (
        "R8: 1,000 rules, ten kinds of fire by a hundred thresholds, 1,000 events a second of "
        "event time. Windows of 10 ms: with the thesis's second and one area there is always a "
        "negated event at such a rate."
    ),
}

# --- offered rate against events dropped ---------------------------------------------------------


def filter_claims(table: Table) -> tuple[Claim, ...]:
    return (
        loss_claim(
            "T-Rex handles 40,000 events/s without loss, Esper 30,000",
            table,
            CDP,
            holds=lambda loss: loss > 40_000,
        ),
        loss_claim("AIP and CDP give the same", table, AIP, CDP, holds=lambda one, two: one == two),
    )


SHARES = (10, 50, 90)


def rules_of(quick: bool) -> int:
    return 100 if quick else 1_000


def burning(form: str, share: int, window: str, lowest: int = 0) -> Callable[[bool], Making]:
    """Fires by a form of rule, with a share of Smoke events in percent."""
    return lambda quick: fires(form, share / 100, window, rules=rules_of(quick), lowest=lowest)


def case_claims(table: Table) -> tuple[Claim, ...]:
    def of(rule: str, share: int, engine: str) -> str:
        return f"{rule} {share} % {engine}"

    with_last = [
        loss_claim(
            f"R3 with {share} % Smoke: CDP is ahead of AIP",
            table,
            of("R3", share, CDP),
            of("R3", share, AIP),
            holds=lambda cdp, aip: cdp >= aip,
            why=NO_AUTOMATON,
        )
        for share in SHARES
    ]
    return (
        *with_last,
        loss_claim(
            "AIP is ahead only for R1 with many Smoke events (90 %)",
            table,
            of("R1", 90, AIP),
            of("R1", 90, CDP),
            holds=lambda aip, cdp: aip > cdp,
            why=NO_AUTOMATON,
        ),
        loss_claim(
            "and not with 10 %",
            table,
            of("R1", 10, AIP),
            of("R1", 10, CDP),
            holds=lambda aip, cdp: aip <= cdp,
        ),
    )


def average_claims(table: Table) -> tuple[Claim, ...]:
    return (
        loss_claim(
            "CDP drops nothing with 10 % and 50 % Smoke, and later than AIP with 90 %",
            table,
            f"10 % {CDP}",
            f"50 % {CDP}",
            f"90 % {CDP}",
            holds=lambda ten, fifty, ninety: fifty >= ninety and ten == fifty == float("inf"),
            why="the order is the same; the thesis does not say which rates it offered",
        ),
        loss_claim(
            "CDP's columns make the selection for aggregates simpler than AIP's automata",
            table,
            f"90 % {AIP}",
            f"90 % {CDP}",
            holds=lambda aip, cdp: cdp >= aip,
        ),
        loss_claim(
            "Esper drops from 1,000 events/s on",
            table,
            f"90 % {CDP}",
            holds=lambda loss: loss > 1_000,
        ),
    )


OFFERINGS: dict[str, tuple[str, str, Offering]] = {
    "thesis-5.10": (
        "filtering: throughput and loss",
        "1,000 rules that each select by a value and give it; an event is selected by one. Esper "
        "is not run.",
        Offering({"": lambda quick: filtering(rules_of(quick))}, filter_claims),
    ),
    "thesis-5.11": (
        "fire by R1 and R3: throughput and loss",
        "1,000 rules, ten kinds of fire by a hundred thresholds, one area. R3 with windows of 5 "
        "minutes. R1 with windows of 50 ms: with 5 minutes one Smoke event at 10,000 events/s "
        "would bring millions of composite events, and the thesis does not say for how long it "
        "ran.",
        Offering(
            {
                f"{rule} {share} % ": burning(form, share, window)
                for rule, form, window in (("R1", R1, "50 ms"), ("R3", R3, "5 min"))
                for share in SHARES
            },
            case_claims,
        ),
    ),
    "thesis-5.12": (
        "averages by R7: throughput and loss",
        "1,000 rules, ten kinds by a hundred thresholds, all of which every average passes.",
        Offering(
            {f"{share} % ": burning(R7, share, "5 min", THRESHOLDS) for share in SHARES},
            average_claims,
        ),
    ),
}
QUEUED = (
    " Events arrive at a constant rate, at most 100 wait, more are dropped; the clock goes on by "
    "the CPU time that the engine takes for all that wait. A quarter of a second at each rate."
)

EXPERIMENTS: tuple[Experiment, ...] = (
    *(
        Experiment(name, PAGE, title, setting + QUEUED, partial(Offering.run, offering))
        for name, (title, setting, offering) in OFFERINGS.items()
    ),
    *(
        Experiment(name, PAGE, title, SETTINGS.get(name, DEFAULT), partial(Sweep.run, one))
        for name, (title, one) in SWEEPS.items()
    ),
)
