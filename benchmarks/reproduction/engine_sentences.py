"""What section 5.8 of the thesis says of its figures, sentence by sentence, and when our tables
bear it out.

Law: a sentence that sets AIP against CDP is judged only where the two differ here. A rule whose
events are all anchored on its terminator has no automaton (docs/decisions/0012-sequences.md), so
under such rules the two columns are one engine measured twice: what is said of both is judged by
the mean of the two, and what is said of their difference is not judged at all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.reproduction.engine_claims import (
    AIP,
    CDP,
    COMPOSITES,
    below,
    claim,
    falls,
    figures,
    flat,
    grows,
    sustained,
    us,
)
from benchmarks.reproduction.engine_sweep import OUT, loss_claim
from benchmarks.reproduction.experiment import Claim, Table

BOTH = (us(AIP), us(CDP))
SHARES = (10, 50, 90)
"""Smoke events of the fire cases, in percent."""
NO_AUTOMATON = "these rules have no automaton here: AIP and CDP are one"
TWO_STATES = "two states have no automaton here: AIP and CDP are one"
RATE_OF_THE_THESIS = 12_000
"""Events a second up to which the thesis says that it offered them."""
MORE_TO_SELECT = (
    "each state is one more selection for ten rules, and one more column that events enter: at a "
    "few microseconds an event that shows"
)
MORE_TO_LINK = (
    "the longer the sequences, the more of an event's ten places are states of an automaton, which "
    "take it in and link it"
)
FIXED_PART = "less: what an event costs by itself is a part of so short a time"
FARTHER_MEMORY = "fewer composite events are written, but more rules lie farther apart in memory"
UNEVEN = "up and down, by what else the machine did"
COMPOSITES_COST = "the time goes with the composite events, which are written whole"

Judge = Callable[[np.ndarray], bool]


def mean(judge: Judge) -> Callable[[np.ndarray, np.ndarray], bool]:
    """The judgement of the mean of two columns that are one engine measured twice."""
    return lambda first, second: judge((first + second) / 2)


def constant(published: str, table: Table, *columns: str, why: str) -> Claim:
    """A sentence that the mean of some columns stays the same; ``why``, if it rises or falls."""
    time = np.mean([figures(table, column) for column in columns], axis=0)
    explained = why if grows(time) or falls(time) else UNEVEN
    return claim(published, table, columns, lambda *_: flat(time), why=explained)


def indistinct(published: str, why: str = TWO_STATES) -> Claim:
    """A sentence on the difference of AIP and CDP where there is none."""
    return Claim(published, why, None)


# --- 5.8.1: offered rate against events dropped --------------------------------------------------


def filtering(table: Table) -> tuple[Claim, ...]:
    """Figure 5.10."""
    return (
        loss_claim(
            "T-Rex handles 40,000 events/s without loss, Esper 30,000",
            table,
            CDP,
            holds=lambda loss: loss > 40_000,
        ),
        loss_claim("AIP and CDP give the same", table, AIP, CDP, holds=lambda one, two: one == two),
    )


def case_study(table: Table) -> tuple[Claim, ...]:
    """Figure 5.11."""
    lines = [f"{rule} {share} % {CDP}" for rule in ("R1", "R3") for share in SHARES]
    return (
        _most(table, "hundreds of thousands of composite events a second", lines, 1e5),
        indistinct("R3: CDP is ahead of AIP, whatever the share of Smoke", NO_AUTOMATON),
        indistinct("AIP is ahead only for R1 with many Smoke events", NO_AUTOMATON),
    )


def _most(table: Table, published: str, lines: list[str], goal: float) -> Claim:
    """That every line reaches so many composite events a second."""
    most = [figures(table, OUT.format(line)).max() for line in lines]
    told = "; ".join(f"{line}: {one:,.0f}" for line, one in zip(lines, most, strict=True))
    return Claim(published, f"at most, {told}", bool(min(most) >= goal))


def averages(table: Table) -> tuple[Claim, ...]:
    """Figure 5.12."""
    ten, fifty, ninety = (f"{share} % {CDP}" for share in SHARES)
    return (
        loss_claim(
            "CDP drops nothing with 10 % and 50 % Smoke",
            table,
            ten,
            fifty,
            holds=lambda *losses: all(loss == float("inf") for loss in losses),
            why="the thesis does not say up to which rate it went",
        ),
        loss_claim(
            "and drops events sooner with 90 % than with 10 %",
            table,
            ten,
            ninety,
            holds=lambda few, many: many < few,
        ),
        indistinct("CDP drops events later than AIP with 90 %", NO_AUTOMATON),
        indistinct("the selection for aggregates is simpler in columns", NO_AUTOMATON),
        loss_claim(
            "Esper drops events from 1,000 a second on, T-Rex does not",
            table,
            ninety,
            holds=lambda loss: loss > 1_000,
        ),
    )


# --- 5.8.2: sequences ----------------------------------------------------------------------------


def states_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.13."""
    return (
        claim("the time grows with the number of states, CDP", table, (us(CDP),), grows),
        claim("and AIP", table, (us(AIP),), grows),
        claim(
            "AIP takes longer than CDP, more so with more states (judged from 3 states on)",
            table,
            BOTH,
            lambda aip, cdp: _is_wider(aip[1:], cdp[1:]),
        ),
        claim(
            "throughput grows from 2 states to 3, then the cost of processing lowers it",
            table,
            (COMPOSITES, sustained(CDP)),
            lambda composites, rate: composites[1] > composites[0] and falls(rate),
        ),
        _throughput(table, 700_000),
    )


def _is_wider(aip: np.ndarray, cdp: np.ndarray) -> bool:
    return below(cdp, aip) and bool(aip[-1] - cdp[-1] >= aip[0] - cdp[0])


def _throughput(table: Table, goal: float) -> Claim:
    """That more than 1,000 events a second are handled, which bring so many composite events."""
    rates, brought = figures(table, sustained(CDP)), figures(table, COMPOSITES)
    most = float(np.nanmax(rates * brought))
    return Claim(
        f"over 1,000 events/s while giving {goal:,.0f} composite events/s, CDP",
        f"{np.nanmin(rates):,.0f} events/s or more without loss; up to {most:,.0f} composite "
        "events/s so",
        bool(np.nanmin(rates) > 1_000 and most >= goal),
    )


def states_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.14."""
    return (
        constant("CDP is independent of the number of states", table, us(CDP), why=MORE_TO_SELECT),
        claim(
            "AIP's time grows slightly (from 70 us to less than 90)",
            table,
            (us(AIP),),
            _grows_moderately,
            why=MORE_TO_LINK,
        ),
        claim("CDP performs better", table, BOTH, lambda aip, cdp: below(cdp[1:], aip[1:])),
        claim("longer sequences give less throughput", table, (COMPOSITES,), falls),
        claim(
            f"nothing is dropped up to {RATE_OF_THE_THESIS:,} events/s, CDP",
            table,
            (sustained(CDP),),
            lambda rate: bool(rate.min() >= RATE_OF_THE_THESIS),
        ),
        claim(
            "AIP begins to drop events sooner with longer sequences",
            table,
            (sustained(AIP),),
            falls,
        ),
    )


def _grows_moderately(values: np.ndarray) -> bool:
    return bool(values[0] < values[-1] <= 1.5 * values[0])


LAST = "last "
"""How columns begin that stand beside those of ``first``."""


def states_first(table: Table) -> tuple[Claim, ...]:
    """Figure 5.15, with ``last`` measured beside it."""
    return (
        claim(
            "CDP behaves as with last-within",
            table,
            (us(CDP), us(LAST + CDP)),
            lambda first, last: flat(np.append(first / last, 1.0)),
            why="rules that choose only last events are evaluated in one walk, others clause by "
            "clause",
        ),
        constant("CDP is independent of the states", table, us(CDP), why=MORE_TO_SELECT),
        claim(
            "AIP is slower than with last-within (judged from 3 states on)",
            table,
            (us(AIP), us(LAST + AIP)),
            lambda first, last: below(last[1:], first[1:]),
        ),
        Claim("AIP is faster than with each-within", "that is at a tenth of the rate here", None),
    )


def sequences_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.16."""
    return (
        claim("the time grows with the sequences, AIP and CDP", table, BOTH, mean(grows)),
        claim("more sequences give more composite events", table, (COMPOSITES,), grows),
        _throughput(table, 1_000_000),
    )


def sequences_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.17."""
    return (
        constant("CDP remains constant", table, *BOTH, why=MORE_TO_SELECT),
        indistinct("AIP grows moderately (70 to 100 us)"),
        claim("throughput falls", table, (COMPOSITES,), falls),
    )


# --- 5.8.2: rules and windows --------------------------------------------------------------------


def rules_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.18."""
    return (
        claim("more rules, fewer composite events", table, (COMPOSITES,), falls),
        claim(
            "the time falls slightly, AIP and CDP",
            table,
            BOTH,
            mean(lambda time: bool(time[-1] < time[0])),
            why=FARTHER_MEMORY,
        ),
    )


def rules_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.19."""
    return (
        claim("the time grows with the rules, AIP and CDP", table, BOTH, mean(grows)),
        claim("the composite events stay the same", table, (COMPOSITES,), flat),
        claim(
            f"CDP drops nothing (the thesis speaks of some {RATE_OF_THE_THESIS:,} events/s)",
            table,
            (sustained(CDP),),
            lambda rate: bool(rate.min() >= RATE_OF_THE_THESIS),
        ),
        indistinct("AIP drops events above 10,000 a second"),
    )


def triggered(table: Table) -> tuple[Claim, ...]:
    """Figures 5.20 and 5.21."""
    counts = figures(table, table.columns[0])

    def is_proportional(time: np.ndarray) -> bool:
        return flat(np.array([time[-1] / time[0], counts[-1] / counts[0]]))

    return (
        claim(
            "the time is proportional to the rules triggered, AIP and CDP",
            table,
            BOTH,
            mean(is_proportional),
            why=FIXED_PART,
        ),
        claim("throughput grows with them", table, (COMPOSITES,), grows),
    )


def windows_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.22."""
    windows = figures(table, table.columns[0])

    def is_less_than_linear(time: np.ndarray) -> bool:
        return grows(time) and bool(time[-1] / time[0] < windows[-1] / windows[0])

    return (
        claim(
            "time grows, less than linearly, AIP and CDP", table, BOTH, mean(is_less_than_linear)
        ),
        claim("so do the composite events", table, (COMPOSITES,), grows),
    )


def windows_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.23."""
    return (constant("the window's size has no influence, AIP and CDP", table, *BOTH, why=""),)


# --- 5.8.2: negation and consumption -------------------------------------------------------------


def negation(table: Table) -> tuple[Claim, ...]:
    """Figure 5.25."""
    return (
        constant(
            "the share of negated events has no influence on the time, AIP and CDP",
            table,
            *BOTH,
            why=COMPOSITES_COST,
        ),
        indistinct("CDP, which looks columns up, is more efficient", NO_AUTOMATON),
        claim("fewer composite events with more negated ones", table, (COMPOSITES,), falls),
        Claim(
            "negation widens the confidence intervals",
            "they show what else the machine did",
            None,
        ),
    )


def consuming_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.26."""
    return (
        claim("consuming lowers the time, AIP and CDP", table, BOTH, mean(falls)),
        claim("far fewer composite events", table, (COMPOSITES,), falls),
    )


def consuming_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.27."""
    return (
        claim("the number of composite events hardly changes", table, (COMPOSITES,), flat),
        indistinct("consuming slows AIP"),
        claim("and not CDP", table, BOTH, mean(lambda time: not grows(time))),
    )
