"""Chapter 5 of the thesis again, section 5.8: AIP and CDP under its workloads.

The comparison with Esper (5.8.1) is run with our engines alone. Figures 5.13 to 5.27 have two
parts, the mean time of an event and curves of throughput over the rate of arrival. This is the
first; some of the curves are in :mod:`studies.reproduction.engine_curves`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from studies.reproduction import engine_sentences as sentences
from studies.reproduction.engine_runs import FEW_SEEDS, SEEDS, Making, Span
from studies.reproduction.engine_sweep import PAGE, Case, Offering, Sweep
from studies.reproduction.engine_workloads import (
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
from studies.reproduction.experiment import Claim, Experiment, Table
from studies.reproduction.seeds import told
from studies.reproduction.verdicts import RULE

INTRODUCTION = (
    "# Detection, beside the thesis's chapters 5 and 6\n\n"
    "Made by `rexmq reproduce`; each section is one figure of section 5.8 or 6.4. Times are CPU "
    "time of one thread for an event, as mean and 95 % confidence interval over seeds; composite "
    "events come out as columns with 128-bit ids and provenance.\n\n"
    "**Seeds and turns.** There are ten seeds, as in the thesis, or three to five where one takes "
    "long; the line below each table says which. In figures of CPU time all engines at all values "
    "take turns of 5 ms with each seed, so what disturbs one disturbs all, until each has done its "
    "events or had 0.15 s. Throughput is measured engine by engine. [A folder](seeds) keeps what "
    "each seed gave, and ratios are taken seed by seed. No seed is thrown away. Tables of 30 "
    "November were measured on one core of two, at the highest priority, while the other core had "
    "other work. So ratios are fair; microseconds are those of a busy machine, and of engines that "
    "leave the caches to one another at each turn. Older tables are of three seeds or one, without "
    "turns of 5 ms, and keep no seeds.\n\n"
    "The thesis's machine had six cores of 2.8 GHz from 2010 and its program was C++; ours is "
    "compiled Python, so shapes and ratios can be compared, not microseconds. Its figures are "
    "pictures: only what its text says is set beside what was measured. Esper was not run. What "
    "chapter 6 says of the GPU is judged [on a page of its own](gpu.md).\n\n"
    f"{RULE}\n\n"
    "**AIP is the thesis's** (`--engine aip-published`, "
    "[how](../decisions/0026-aip-as-published.md)): sequences are copied at each transition, as "
    "events come, and joined at the terminator. It stands in the surroundings of CDP, with the "
    "same intake, static index and output, so what differs between the two columns is the "
    "algorithm. A terminator's sequences are looked at one by one, as published; CDP here has an "
    "index by what parameters are equal to. Beside them stand our *links* (`--engine aip`), which "
    "share what the thesis copies and work when a terminator asks "
    "([why](../decisions/0012-sequences.md)); under rules of two states they have nothing to keep, "
    "and are CDP measured a second time: within 6 % of the first, which is what turns leave. No "
    "sentence is judged by them.\n\n"
    "**Windows of chapter 6** are filled by the events of their stream without terminators, until "
    "2,000 events before they are full. No rule keeps what a terminator found, and AIP, which "
    "scans a window for each of its aggregates, would take minutes for each seed.\n\n"
    "**Rates.** Composite events an event are counted at one rate of event time, once windows are "
    "full. The thesis's curves of throughput, its parts (b), are here for 5.13, 5.14, 5.16 and "
    "5.19, with windows full; 5.10 to 5.12 offer each rate for a quarter of a second from empty "
    "windows, which tells what a burst does and no more."
)
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
    seeds: Sequence[int] = SEEDS,
) -> Sweep:
    """A sweep over the default scenario."""
    span = filled(policy, steps)
    cases = of_sequences(change, policy)
    return Sweep(parameter, values, cases, span, claims, (logarithmic, False), seeds)


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
        sweep("states", STATES, "states", "each", sentences.states_each, before_the_last),
    ),
    "thesis-5.14": (
        "states of a sequence, last-within",
        sweep(
            *("states", STATES, "states", "last", sentences.states_last, before_the_last),
            seeds=FEW_SEEDS,
        ),
    ),
    "thesis-5.15": (
        "states of a sequence, first-within",
        Sweep(
            "states",
            STATES,
            {**of_sequences("states", "first"), sentences.LAST: of_sequences("states", "last")[""]},
            filled("first", before_the_last),
            sentences.states_first,
            seeds=FEW_SEEDS,
        ),
    ),
    "thesis-5.16": (
        "sequences of a rule, each-within",
        sweep("sequences", COUNTS, "sequences", "each", sentences.sequences_each),
    ),
    "thesis-5.17": (
        "sequences of a rule, last-within",
        sweep("sequences", COUNTS, "sequences", "last", sentences.sequences_last),
    ),
    "thesis-5.18": (
        "rules deployed, each-within",
        sweep(
            *("rules", RULES, "rules", "each", sentences.rules_each),
            logarithmic=True,
            seeds=FEW_SEEDS,
        ),
    ),
    "thesis-5.19": (
        "rules deployed, last-within",
        sweep(
            *("rules", RULES, "rules", "last", sentences.rules_last),
            logarithmic=True,
            seeds=FEW_SEEDS,
        ),
    ),
    "thesis-5.20": (
        "rules triggered by an event, each-within",
        sweep("rules triggered", TRIGGERED, "triggered", "each", sentences.triggered),
    ),
    "thesis-5.21": (
        "rules triggered by an event, last-within",
        sweep("rules triggered", TRIGGERED, "triggered", "last", sentences.triggered),
    ),
    "thesis-5.22": (
        "size of windows, each-within",
        sweep("windows [15 s]", WINDOWS, "window", "each", sentences.windows_each, of_size),
    ),
    "thesis-5.23": (
        "size of windows, last-within",
        sweep("windows [15 s]", WINDOWS, "window", "last", sentences.windows_last, of_size),
    ),
    "thesis-5.25": (
        "negation, by the share of negated events",
        Sweep(
            "negated events [%]",
            (10, 30, 50, 70, 90),
            {"": lambda share, quick: fires(R8, share / 100, "10 ms", rules=rules_of(quick))},
            fire_span,
            sentences.negation,
        ),
    ),
    "thesis-5.26": (
        "without and with consuming, each-within",
        sweep("consuming", CONSUMING, "consuming", "each", sentences.consuming_each),
    ),
    "thesis-5.27": (
        "without and with consuming, last-within",
        sweep("consuming", CONSUMING, "consuming", "last", sentences.consuming_last),
    ),
}
DEFAULT = (
    "The default scenario: 1,000 rules, each a sequence of two events with a window of 14 to 16 s; "
    "an event is relevant to ten (rule, state) pairs. 100 events a second of event time for "
    "each-within, 1,000 for the others; once the windows are full, 10,000 events, or as many as "
    "the CPU time allows."
)
UP_TO = " Up to 5,000 rules, so that the run stays short."
SETTINGS = {
    "thesis-5.15": DEFAULT + " With `last` beside it.",
    "thesis-5.18": DEFAULT + UP_TO,
    "thesis-5.19": DEFAULT + UP_TO,
    "thesis-5.25": (
        "R8: 1,000 rules, ten kinds of fire by a hundred thresholds, 1,000 events a second of "
        "event time. Windows of 10 ms: with the thesis's second and one area there is always a "
        "negated event at such a rate."
    ),
}

# --- offered rate against events dropped ---------------------------------------------------------


SHARES = sentences.SHARES


def rules_of(quick: bool) -> int:
    return 100 if quick else 1_000


def burning(form: str, share: int, window: str, lowest: int = 0) -> Callable[[bool], Making]:
    """Fires by a form of rule, with a share of Smoke events in percent."""
    return lambda quick: fires(form, share / 100, window, rules=rules_of(quick), lowest=lowest)


OFFERINGS: dict[str, tuple[str, str, Offering]] = {
    "thesis-5.10": (
        "filtering: throughput and loss",
        "1,000 rules that each select by a value and give it; an event is selected by one. Esper "
        "is not run.",
        Offering({"": lambda quick: filtering(rules_of(quick))}, sentences.filtering),
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
            sentences.case_study,
        ),
    ),
    "thesis-5.12": (
        "averages by R7: throughput and loss",
        "1,000 rules, ten kinds by a hundred thresholds, all of which every average passes.",
        Offering(
            {f"{share} % ": burning(R7, share, "5 min", THRESHOLDS) for share in SHARES},
            sentences.averages,
        ),
    ),
}
QUEUED = (
    " Events arrive at a constant rate, at most 100 wait, more are dropped; the clock goes on by "
    "the CPU time that the engine takes for all that wait. A quarter of a second at each rate, "
    "from empty windows."
)

EXPERIMENTS: tuple[Experiment, ...] = (
    *(
        Experiment(
            name,
            PAGE,
            title,
            setting + QUEUED,
            partial(Offering.run, offering),
            judge=offering.outcome,
            seeds=told(offering.seeds),
        )
        for name, (title, setting, offering) in OFFERINGS.items()
    ),
    *(
        Experiment(
            name,
            PAGE,
            title,
            SETTINGS.get(name, DEFAULT),
            partial(Sweep.run, one),
            judge=one.outcome,
            seeds=told(one.seeds),
        )
        for name, (title, one) in SWEEPS.items()
    ),
)
