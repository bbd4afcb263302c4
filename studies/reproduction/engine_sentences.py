"""What section 5.8 of the thesis says of its figures, sentence by sentence, each in its strength.

AIP is that of the thesis (docs/decisions/0026-aip-as-published.md). Our own automata, the *links*
of decision 12, stand beside it in the tables, and no sentence is about them.

Law: a sentence on both is judged by the figures of both, one on their difference by their ratio.
Where a table was measured without AIP, neither is judged. Nor is what is said of Esper, which is
not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from studies.reproduction.engine_claims import (
    AIP,
    AT_LEAST,
    CDP,
    NO_AIP,
    OUT,
    Line,
    against,
    broken_off,
    claim,
    counts,
    course,
    figures,
    first_loss,
    in_proportion,
    in_the_end,
    linear,
    loss_claim,
    most,
    of_line,
    outs_from,
    spoken,
    sustained,
    throughout,
    times,
    unmeasured,
    us,
)
from studies.reproduction.experiment import Claim, Table
from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_BELOW,
    SAME,
    SLIGHTLY_BELOW,
    Asked,
    Estimate,
    Range,
)

SHARES = (10, 50, 90)
"""Smoke events of the fire cases, in percent."""
NO_ESPER = "Esper was not run"
NOT_AIP = "only CDP was run at these rates"
RATE_OF_THE_THESIS = 12_000
"""Events a second up to which the thesis says that it offered them."""
COMPOSITES = "composite events an event"
US = "CDP [us]"
Asking = Callable[[Line], list[Asked]]


def esper(published: str) -> Claim:
    return unmeasured(published, NO_ESPER)


def composites(published: str, table: Table, range_: tuple[float, float]) -> Claim:
    """A sentence on how many composite events there are in the end."""
    line = counts(table)
    return of_line(published, COMPOSITES, line, in_the_end(line, range_))


def of_both(published: str, table: Table, asking: Asking, **why: str) -> Claim:
    """A sentence on the times of AIP and of CDP."""
    return _compared(published, table, lambda aip, cdp: asking(aip) + asking(cdp), **why)


def of_aip(published: str, table: Table, asking: Asking, **why: str) -> Claim:
    """A sentence on the times of AIP alone."""
    return _compared(published, table, lambda aip, _: asking(aip), **why)


def aip_takes_longer(published: str, table: Table) -> Claim:
    return _compared(published, table, lambda aip, cdp: against(aip, cdp, ABOVE))


def _compared(
    published: str, table: Table, asking: Callable[[Line, Line], list[Asked]], **why: str
) -> Claim:
    """A sentence that needs AIP's times."""
    if us(AIP) not in table.columns:
        return unmeasured(published, NO_AIP)
    aip, cdp = times(table, AIP), times(table, CDP)
    return claim(published, _pair(aip, cdp), asking(aip, cdp), **why)


def _offered(
    published: str, table: Table, lines: Sequence[str], told: Callable[[], tuple[str, list[Asked]]]
) -> Claim:
    """A sentence on lines of throughput, if they were measured."""
    if not all(OUT.format(line) in table.columns for line in lines):
        return unmeasured(published, NO_AIP)
    measured, asked = told()
    return claim(published, measured, asked)


# --- 5.8.1: offered rate against events dropped ---------------------------------------------------


def filtering(table: Table) -> tuple[Claim, ...]:
    """Figure 5.10."""
    return (
        loss_claim(
            "T-Rex drops nothing up to 40,000 events/s",
            table,
            [line for line in (AIP, CDP) if OUT.format(line) in table.columns],
            40_000,
        ),
        esper("Esper drops events from 30,000 events/s on, sooner than T-Rex"),
        _offered(
            "AIP and CDP give the same: filtering is a component of its own",
            table,
            (AIP, CDP),
            lambda: _ahead(table, AIP, CDP, SAME),
        ),
    )


def _ahead(table: Table, one: str, other: str, range_: Range) -> tuple[str, list[Asked]]:
    """How the most that one line gave stands to the most of another."""
    mine, theirs = (most(table, line) for line in (one, other))
    told = f"at most, {one} {mine.value:,.0f}/s, {other} {theirs.value:,.0f}/s"
    return told, [(mine / theirs, range_)]


def _all_ahead(table: Table, pairs: Sequence[tuple[str, str, Range]]) -> tuple[str, list[Asked]]:
    """The same for several pairs of lines together."""
    found = [_ahead(table, *pair) for pair in pairs]
    return "; ".join(told for told, _ in found), [one for _, asked in found for one in asked]


def case_study(table: Table) -> tuple[Claim, ...]:
    """Figure 5.11."""
    lines = [f"{rule} {share} % {CDP}" for rule in ("R1", "R3") for share in SHARES]
    greatest = {line: most(table, line) for line in lines}
    told = "; ".join(f"{line}: {one.value:,.0f}" for line, one in greatest.items())
    asked = [(one.times(1e-5), ABOVE) for one in greatest.values()]
    return (
        claim("hundreds of thousands of composite events a second", f"at most, {told}", asked),
        esper("T-Rex outperforms Esper in all scenarios, with AIP and with CDP"),
        esper("Esper comes nearer to it with R1 than with R3"),
        _against_each_other(
            "R3: CDP is ahead of AIP, whatever the share of Smoke",
            table,
            {f"R3 {share} % ": BELOW for share in SHARES},
        ),
        _against_each_other(
            "R1 with many Smoke events: AIP is ahead, and only there",
            table,
            {f"R1 {share} % ": ABOVE if share == SHARES[-1] else BELOW for share in SHARES},
        ),
    )


def _against_each_other(published: str, table: Table, cases: Mapping[str, Range]) -> Claim:
    """A sentence on AIP's throughput over CDP's, case by case."""
    pairs = [(case + AIP, case + CDP, range_) for case, range_ in cases.items()]
    lines = [line for one, other, _ in pairs for line in (one, other)]
    return _offered(published, table, lines, lambda: _all_ahead(table, pairs))


def averages(table: Table) -> tuple[Claim, ...]:
    """Figure 5.12."""
    ten, fifty, ninety = (f"{share} % {CDP}" for share in SHARES)
    aip = [f"{share} % {AIP}" for share in SHARES]
    return (
        unmeasured(
            "AIP never drops events with 10 % Smoke",
            NO_AIP if OUT.format(aip[0]) not in table.columns else _high(table, aip[:1]),
        ),
        _offered(
            "with more it drops events as their rate rises, and its throughput stays the same then",
            table,
            aip[1:],
            lambda: _levels(table, aip[1:]),
        ),
        unmeasured(
            "CDP drops nothing with 10 % and 50 % Smoke, even at the highest rate",
            _high(table, (ten, fifty)),
        ),
        unmeasured(
            "with 90 % it drops events sooner than with 10 %",
            f"{_high(table, (ten, ninety))}; rates stand too far apart for an interval",
        ),
        claim(
            "but its curve continues to increase",
            course("from the first loss on [1/s]", _lossy(table, ninety)),
            [(after / before, ABOVE) for before, after in pairwise(_lossy(table, ninety))],
        ),
        _against_each_other(
            "the selection for aggregates is simpler in columns",
            table,
            {f"{share} % ": BELOW for share in SHARES},
        ),
        esper("Esper drops events from 1,000 a second on, and gives much less throughput"),
    )


def _levels(table: Table, lines: Sequence[str]) -> tuple[str, list[Asked]]:
    """That lines lose events at some rate, and give about as much at any higher one."""
    told, asked = [], []
    for line in lines:
        lossy = first_loss(table, line)
        told.append(f"{line} drops {spoken(lossy)}")
        outs = _lossy(table, line)
        asked.append((Estimate.exact(len(outs), f"{line}, rates with loss"), (0.0, math.inf)))
        asked += throughout(outs, SAME) if outs else []
    return "; ".join(told), asked


def _lossy(table: Table, line: str) -> list[Estimate]:
    """What a line gave from the first rate on at which it dropped a hundredth."""
    return outs_from(table, line, first_loss(table, line))


def _high(table: Table, lines: Sequence[str]) -> str:
    """Why a sentence on all rates is not judged."""
    ours = "; ".join(f"{line} drops {spoken(first_loss(table, line))}" for line in lines)
    return f"{ours}; the thesis does not say how high it went"


# --- 5.8.2: sequences -----------------------------------------------------------------------------


def states_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.13 (a)."""
    cdp = times(table, CDP)
    return (
        of_line(
            "the time grows with the number of states, CDP (100 to less than 400 us)",
            US,
            cdp,
            in_the_end(cdp, ABOVE),
        ),
        of_aip("and AIP (200 to 800 us)", table, lambda aip: in_the_end(aip, ABOVE)),
        aip_takes_longer("AIP takes longer than CDP", table),
        _compared(
            "and the more so, the more states there are",
            table,
            lambda aip, cdp: in_the_end(_apart(aip, cdp), ABOVE),
        ),
    )


def _pair(aip: Line, cdp: Line) -> str:
    return f"{course('AIP [us]', aip)}; {course(US, cdp)}"


def _apart(aip: Line, cdp: Line) -> list[Estimate]:
    """AIP's time less CDP's."""
    return [
        one.minus(other).called(f"difference {one.name}")
        for one, other in zip(aip, cdp, strict=True)
    ]


def throughput_of_states_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.13 (b)."""
    lines = lines_of(table)
    greatest = [most(table, line) for line in lines]
    told = "at most: " + "; ".join(f"{one.name} {one.value:,.0f}/s" for one in greatest)
    falls = "and falls from there on"
    why = broken_off(table, lines[1:])
    return (
        claim("throughput grows from 2 states to 3", told, in_the_end(greatest[:2], ABOVE)),
        unmeasured(falls, why) if why else claim(falls, told, throughout(greatest[1:], BELOW)),
        rate_and_output(table, lines, "even then over 1,000 events/s, CDP", 1_000, 0),
        claim(
            "and over 700,000 composite events/s, CDP",
            told,
            [(one.times(1 / 700_000), ABOVE) for one in greatest],
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
    rates = {line: sustained(table, line) for line in lines}
    told = "sustained: " + "; ".join(f"{line} {one:,.0f}/s" for line, one in rates.items())
    asked: list[Asked] = [
        (Estimate.single(one / rate, f"{line}, sustained / {rate:,.0f}"), AT_LEAST)
        for line, one in rates.items()
    ]
    if output:
        greatest = max((most(table, line) for line in lines), key=lambda one: one.value)
        told += f"; at most {greatest.value:,.0f} composite events/s"
        asked.append((greatest.times(1 / output), ABOVE))
    return claim(published, told, asked)


def states_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.14 (a)."""
    cdp = times(table, CDP)
    return (
        of_line("CDP is independent of the number of states", US, cdp, throughout(cdp, SAME)),
        of_aip(
            "AIP grows slightly (from 70 us to less than 90)",
            table,
            lambda aip: in_the_end(aip, (1.0, 90 / 70)),
        ),
        aip_takes_longer("CDP performs better", table),
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
    longer = "AIP takes longer than with last-within"
    return (
        claim(
            "CDP resembles the case of last-within",
            f"{course('first [us]', cdp)}; {course('last [us]', last)}",
            against(cdp, last, SAME),
            above="rules that choose only last events are evaluated in one walk, others clause by "
            "clause",
        ),
        unmeasured(longer, NO_AIP)
        if us(AIP) not in table.columns
        else _aip_of_policies(longer, times(table, AIP), times(table, LAST + AIP)),
        unmeasured(
            "AIP takes less than with each-within", "each-within is at a tenth of the rate here"
        ),
    )


def _aip_of_policies(published: str, first: Line, last: Line) -> Claim:
    told = f"{course('first [us]', first)}; {course('last [us]', last)}"
    return claim(published, told, against(first, last, ABOVE))


def sequences_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.16 (a)."""
    places = figures(table, table.columns[0])
    return (
        of_both(
            "the time grows linearly with the sequences, AIP and CDP",
            table,
            lambda time: linear(time, places),
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
    cdp = times(table, CDP)
    return (
        of_line("CDP remains constant", US, cdp, throughout(cdp, SAME)),
        of_aip(
            "AIP grows moderately (70 to 100 us)",
            table,
            lambda aip: in_the_end(aip, (1.0, 100 / 70)),
        ),
        composites("throughput falls", table, BELOW),
    )


# --- 5.8.2: rules and windows ---------------------------------------------------------------------


def rules_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.18."""
    return (
        composites("more rules, fewer composite events", table, BELOW),
        of_both(
            "the time falls slightly, AIP and CDP",
            table,
            lambda time: in_the_end(time, SLIGHTLY_BELOW),
            above="fewer composite events are written, but more rules lie farther apart in memory",
        ),
    )


def rules_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.19 (a)."""
    return (
        of_both(
            "the time grows with the rules, AIP and CDP",
            table,
            lambda time: in_the_end(time, ABOVE),
        ),
        composites("the composite events stay the same", table, SAME),
        aip_takes_longer("AIP takes longer than CDP", table),
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
        unmeasured("AIP drops events above 10,000 a second", NOT_AIP),
    )


def triggered(table: Table) -> tuple[Claim, ...]:
    """Figures 5.20 and 5.21."""
    places = figures(table, table.columns[0])
    grown = counts(table)
    more = f"{grown[-1].value / grown[0].value:.3g} times the composite events at the end"
    return (
        of_both(
            "the time grows with the rules triggered", table, lambda time: in_the_end(time, ABOVE)
        ),
        of_both(
            "twice the rules triggered, twice the time",
            table,
            lambda time: in_proportion(time, places),
            below="what an event costs by itself is a part of so short a time",
            above=more,
        ),
        composites("throughput grows with them", table, ABOVE),
    )


def windows_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.22."""
    places = figures(table, table.columns[0])
    share = places[0] / places[-1]
    return (
        of_both("the time grows, AIP and CDP", table, lambda time: in_the_end(time, ABOVE)),
        of_both(
            "less than linearly",
            table,
            lambda time: [((time[-1] / time[0]).times(share), BELOW)],
        ),
        composites("so does throughput", table, ABOVE),
    )


def windows_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.23."""
    return (
        of_both(
            "the window's size has no influence, AIP and CDP",
            table,
            lambda time: throughout(time, SAME),
        ),
    )


# --- 5.8.2: negation and consumption --------------------------------------------------------------


def negation(table: Table) -> tuple[Claim, ...]:
    """Figure 5.25."""
    found = counts(table)
    share = found[-1].value / found[0].value
    return (
        of_both(
            "the share of negated events does not influence the time, AIP and CDP",
            table,
            lambda time: throughout(time, SAME),
            below=f"{share:.2g} times the composite events, which are written whole",
        ),
        aip_takes_longer("CDP, which looks columns up, is more efficient", table),
        composites("fewer composite events with more negated ones", table, MUCH_BELOW),
        unmeasured(
            "negation widens the confidence intervals", "ours are those of times, not of throughput"
        ),
    )


def consuming_each(table: Table) -> tuple[Claim, ...]:
    """Figure 5.26."""
    return (
        of_both(
            "consuming lowers the time, AIP and CDP", table, lambda time: in_the_end(time, BELOW)
        ),
        composites("and greatly the composite events", table, MUCH_BELOW),
    )


def consuming_last(table: Table) -> tuple[Claim, ...]:
    """Figure 5.27."""
    cdp = times(table, CDP)
    return (
        composites("the number of composite events is not seriously affected", table, SAME),
        of_aip("consuming adds some overhead to AIP", table, lambda aip: in_the_end(aip, ABOVE)),
        unmeasured("which drops events earlier then", "with consuming no rates were offered"),
        of_line("CDP is not affected", US, cdp, in_the_end(cdp, SAME)),
    )
