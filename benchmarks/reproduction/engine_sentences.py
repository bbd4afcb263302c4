"""What section 5.8 of the thesis says of its figures, sentence by sentence, each in its strength.

Law: a sentence that sets AIP against CDP is judged only where the two differ here. A rule whose
events are all anchored on its terminator has no automaton (docs/decisions/0012-sequences.md), so
under such rules the two columns are one engine measured twice: what is said of both is judged by
the mean of the two, and what is said of their difference is not judged at all. Nor is what is said
of Esper, which is not run.
"""

from __future__ import annotations

import math

from benchmarks.reproduction.engine_claims import (
    AIP,
    CDP,
    OUT,
    Line,
    against,
    claim,
    counts,
    course,
    figures,
    first_loss,
    in_proportion,
    in_the_end,
    linear,
    loss_claim,
    most_out,
    of_line,
    spoken,
    sustained,
    throughout,
    times,
    twice,
    unmeasured,
)
from benchmarks.reproduction.experiment import Claim, Table
from benchmarks.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_BELOW,
    SAME,
    SLIGHTLY_BELOW,
    Estimate,
    judge,
)

SHARES = (10, 50, 90)
"""Smoke events of the fire cases, in percent."""
NO_AUTOMATON = "these rules have no automaton here: AIP is CDP measured twice"
NO_ESPER = "Esper was not run"
NOT_AIP = "only CDP was run at these rates"
RATE_OF_THE_THESIS = 12_000
"""Events a second up to which the thesis says that it offered them."""
COMPOSITES = "composite events an event"
BOTH = "AIP and CDP, their mean [us]"
US = "CDP [us]"


def indistinct(published: str) -> Claim:
    """A sentence on the difference of AIP and CDP where there is none."""
    return unmeasured(published, NO_AUTOMATON)


def esper(published: str) -> Claim:
    return unmeasured(published, NO_ESPER)


def composites(published: str, table: Table, range_: tuple[float, float]) -> Claim:
    """A sentence on how many composite events there are in the end."""
    line = counts(table)
    return of_line(published, COMPOSITES, line, in_the_end(line, range_))


def both(table: Table) -> Line:
    return twice(table, AIP, CDP)


# --- 5.8.1: offered rate against events dropped ---------------------------------------------------


def filtering(table: Table) -> tuple[Claim, ...]:
    """Figure 5.10."""
    return (
        loss_claim("T-Rex drops nothing up to 40,000 events/s", table, [CDP], 40_000),
        esper("Esper drops events from 30,000 events/s on, sooner than T-Rex"),
        indistinct("AIP and CDP give the same: filtering is a component of its own"),
    )


def case_study(table: Table) -> tuple[Claim, ...]:
    """Figure 5.11."""
    lines = [f"{rule} {share} % {CDP}" for rule in ("R1", "R3") for share in SHARES]
    most = {line: most_out(table, line) for line in lines}
    told = "; ".join(f"{line}: {one:,.0f}" for line, one in most.items())
    asked = [(Estimate(one / 1e5), ABOVE) for one in most.values()]
    return (
        claim("hundreds of thousands of composite events a second", f"at most, {told}", asked),
        esper("T-Rex outperforms Esper in all scenarios, with AIP and with CDP"),
        esper("Esper comes nearer to it with R1 than with R3"),
        indistinct("R3: CDP is ahead of AIP, whatever the share of Smoke"),
        indistinct("R1 with many Smoke events: AIP is ahead, and only there"),
    )


def averages(table: Table) -> tuple[Claim, ...]:
    """Figure 5.12."""
    ten, fifty, ninety = (f"{share} % {CDP}" for share in SHARES)
    ours = "; ".join(f"{line} drops {spoken(first_loss(table, line))}" for line in (ten, fifty))
    return (
        unmeasured(
            "CDP drops nothing with 10 % and 50 % Smoke, even at the highest rate",
            f"{ours}; the thesis does not say how high it went",
        ),
        claim(
            "with 90 % it drops events sooner than with 10 %",
            f"10 %: {spoken(first_loss(table, ten))}; 90 %: {spoken(first_loss(table, ninety))}",
            [(Estimate(_known(table, ninety) / _known(table, ten)), BELOW)],
        ),
        indistinct("AIP drops events as their rate rises, and its throughput stays the same then"),
        indistinct("the selection for aggregates is simpler in columns"),
        esper("Esper drops events from 1,000 a second on, and gives much less throughput"),
    )


def _known(table: Table, line: str) -> float:
    """The rate of the first loss; beyond all that were measured, where there is none."""
    return min(first_loss(table, line), 1e9)


# --- 5.8.2: sequences -----------------------------------------------------------------------------


def states_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.13 (a)."""
    aip, cdp = times(table, AIP), times(table, CDP)
    return (
        of_line(
            "the time grows with the number of states, CDP (100 to less than 400 us)",
            US,
            cdp,
            in_the_end(cdp, ABOVE),
        ),
        of_line("and AIP (200 to 800 us)", "AIP [us]", aip, in_the_end(aip, ABOVE)),
        claim(
            "AIP takes longer than CDP (judged from 3 states on: two have no automaton here)",
            _pair(aip, cdp),
            against(aip[1:], cdp[1:], ABOVE),
        ),
        claim(
            "and the more so, the more states there are",
            f"AIP less CDP [us]: {', '.join(f'{one.value:.3g}' for one in _apart(aip, cdp)[1:])}",
            in_the_end(_apart(aip, cdp)[1:], ABOVE),
        ),
    )


def _pair(aip: Line, cdp: Line) -> str:
    return f"{course('AIP [us]', aip)}; {course(US, cdp)}"


def _apart(aip: Line, cdp: Line) -> list[Estimate]:
    """AIP's time less CDP's, where it is more; nothing known of it where it is not."""
    found = []
    for one, other in zip(aip, cdp, strict=True):
        less = max(one.value - other.value, 1e-3)
        sure = math.hypot(one.value * one.spread, other.value * other.spread)
        found.append(Estimate(less, sure / less))
    return found


def throughput_of_states_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.13 (b)."""
    lines = lines_of(table)
    most = [Estimate.measured(most_out(table, line), None) for line in lines]
    told = "at most: " + "; ".join(
        f"{line} {one.value:,.0f}/s" for line, one in zip(lines, most, strict=True)
    )
    return (
        claim("throughput grows from 2 states to 3", told, in_the_end(most[:2], ABOVE)),
        claim("and falls from there on", told, throughout(most[1:], BELOW)),
        rate_and_output(table, lines, "even then over 1,000 events/s, CDP", 1_000, 0),
        claim(
            "and over 700,000 composite events/s, CDP",
            told,
            [(one.times(1 / 700_000), ABOVE) for one in most],
        ),
        unmeasured("AIP gives up to 600,000", NOT_AIP),
    )


def lines_of(table: Table) -> list[str]:
    """The lines of a figure (b)."""
    return [name.removesuffix(OUT.format("")) for name in table.columns[1::2]]


def rate_and_output(
    table: Table, lines: list[str], published: str, rate: float, output: float
) -> Claim:
    """That each line sustains a rate and, at some rate, gives so many composite events a second."""
    told = "sustained: " + "; ".join(f"{line} {sustained(table, line):,.0f}/s" for line in lines)
    asked = [
        (Estimate(max(sustained(table, line), 1.0) / rate), (0.999, math.inf)) for line in lines
    ]
    if output:
        most = max(most_out(table, line) for line in lines)
        told += f"; at most {most:,.0f} composite events/s"
        asked.append((Estimate.measured(most / output, None), ABOVE))
    return Claim(published, told, judge(asked))


def states_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.14 (a)."""
    aip, cdp = times(table, AIP), times(table, CDP)
    return (
        of_line("CDP is independent of the number of states", US, cdp, throughout(cdp, SAME)),
        of_line(
            "AIP grows slightly (from 70 us to less than 90)",
            "AIP [us]",
            aip,
            in_the_end(aip, (1.0, 90 / 70)),
            above="two states have no automaton here, more have one",
        ),
        claim(
            "CDP performs better (judged from 3 states on)",
            _pair(aip, cdp),
            against(aip[1:], cdp[1:], ABOVE),
        ),
        composites("longer sequences give less throughput", table, BELOW),
    )


def throughput_of_states_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.14 (b)."""
    return (
        loss_claim(
            f"CDP drops nothing, with any length, up to {RATE_OF_THE_THESIS:,} events/s",
            table,
            lines_of(table),
            RATE_OF_THE_THESIS,
        ),
        unmeasured("AIP begins to sooner with longer sequences", NOT_AIP),
    )


LAST = "last "
"""How columns begin that stand beside those of ``first``."""


def states_first(table: Table) -> tuple[Claim, ...]:
    """Figure 5.15, with ``last`` measured beside it."""
    cdp, last = times(table, CDP), times(table, LAST + CDP)
    aip, last_aip = times(table, AIP), times(table, LAST + AIP)
    return (
        claim(
            "CDP resembles the case of last-within",
            f"{course('first [us]', cdp)}; {course('last [us]', last)}",
            against(cdp, last, SAME),
            above="rules that choose only last events are evaluated in one walk, others clause by "
            "clause",
        ),
        claim(
            "AIP takes longer than with last-within (judged from 3 states on)",
            f"{course('first [us]', aip)}; {course('last [us]', last_aip)}",
            against(aip[1:], last_aip[1:], ABOVE),
        ),
        unmeasured(
            "AIP takes less than with each-within", "each-within is at a tenth of the rate here"
        ),
    )


def sequences_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.16 (a)."""
    time = both(table)
    return (
        of_line(
            "the time grows linearly with the sequences, AIP and CDP",
            BOTH,
            time,
            linear(time, figures(table, table.columns[0])),
        ),
        composites("more sequences give more composite events", table, ABOVE),
    )


def throughput_of_sequences_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.16 (b)."""
    return (
        rate_and_output(
            table,
            lines_of(table),
            "about 1,000 events/s, and over a million composite events/s",
            1_000,
            1e6,
        ),
    )


def sequences_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.17."""
    time = both(table)
    return (
        of_line("CDP remains constant", BOTH, time, throughout(time, SAME)),
        indistinct("AIP grows moderately (70 to 100 us)"),
        composites("throughput falls", table, BELOW),
    )


# --- 5.8.2: rules and windows ---------------------------------------------------------------------


def rules_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.18."""
    time = both(table)
    return (
        composites("more rules, fewer composite events", table, BELOW),
        of_line(
            "the time falls slightly, AIP and CDP",
            BOTH,
            time,
            in_the_end(time, SLIGHTLY_BELOW),
            above="fewer composite events are written, but more rules lie farther apart in memory",
        ),
    )


def rules_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.19 (a)."""
    time = both(table)
    return (
        of_line("the time grows with the rules, AIP and CDP", BOTH, time, in_the_end(time, ABOVE)),
        composites("the composite events stay the same", table, SAME),
        indistinct("AIP takes longer than CDP"),
    )


def throughput_of_rules_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.19 (b)."""
    return (
        loss_claim(
            f"CDP never drops events (the thesis speaks of some {RATE_OF_THE_THESIS:,} a second)",
            table,
            lines_of(table),
            RATE_OF_THE_THESIS,
        ),
        indistinct("AIP drops events above 10,000 a second"),
    )


def triggered(table: Table) -> tuple[Claim, ...]:
    """Figures 5.20 and 5.21."""
    time, places = both(table), figures(table, table.columns[0])
    grown = counts(table)
    more = f"{grown[-1].value / grown[0].value:.3g} times the composite events at the end"
    return (
        of_line("the time grows with the rules triggered", BOTH, time, in_the_end(time, ABOVE)),
        of_line(
            "twice the rules triggered, twice the time",
            BOTH,
            time,
            in_proportion(time, places),
            below="what an event costs by itself is a part of so short a time",
            above=more,
        ),
        composites("throughput grows with them", table, ABOVE),
    )


def windows_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.22."""
    time, places = both(table), figures(table, table.columns[0])
    return (
        of_line("the time grows, AIP and CDP", BOTH, time, in_the_end(time, ABOVE)),
        of_line(
            "less than linearly",
            BOTH,
            time,
            [((time[-1] / time[0]).times(places[0] / places[-1]), BELOW)],
        ),
        composites("so does throughput", table, ABOVE),
    )


def windows_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.23."""
    time = both(table)
    return (
        of_line(
            "the window's size has no influence, AIP and CDP", BOTH, time, throughout(time, SAME)
        ),
    )


# --- 5.8.2: negation and consumption --------------------------------------------------------------


def negation(table: Table) -> tuple[Claim, ...]:
    """Figure 5.25."""
    time, found = both(table), counts(table)
    share = found[-1].value / found[0].value
    return (
        of_line(
            "the share of negated events does not influence the time, AIP and CDP",
            BOTH,
            time,
            throughout(time, SAME),
            below=f"{share:.2g} times the composite events, which are written whole",
        ),
        indistinct("CDP, which looks columns up, is more efficient"),
        composites("fewer composite events with more negated ones", table, MUCH_BELOW),
        unmeasured(
            "negation widens the confidence intervals", "ours are those of times, not of throughput"
        ),
    )


def consuming_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.26."""
    time = both(table)
    return (
        of_line("consuming lowers the time, AIP and CDP", BOTH, time, in_the_end(time, BELOW)),
        composites("and greatly the composite events", table, MUCH_BELOW),
    )


def consuming_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.27."""
    time = both(table)
    return (
        composites("the number of composite events is not seriously affected", table, SAME),
        indistinct("consuming adds some overhead to AIP, which drops events earlier then"),
        of_line("CDP is not affected", BOTH, time, in_the_end(time, SAME)),
    )
