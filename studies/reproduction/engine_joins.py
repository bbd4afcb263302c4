"""Chapter 6 of the thesis again, section 6.4, its lines of the processor: few rules that join many
events by a value, over long windows, with aggregates. Its lines of a GPU are on a page of their own
(:mod:`studies.reproduction.gpu`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from studies.reproduction import seeds
from studies.reproduction.engine_claims import (
    AIP,
    CDP,
    NO_AIP,
    Line,
    against,
    claim,
    course,
    figures,
    in_the_end,
    linear,
    throughout,
    times,
    unmeasured,
    us,
)
from studies.reproduction.engine_runs import FEW_SEEDS, Making, Span
from studies.reproduction.engine_sweep import PAGE, Case, Sweep
from studies.reproduction.engine_workloads import Joined
from studies.reproduction.experiment import Claim, Experiment, Table
from studies.reproduction.verdicts import ABOVE, BELOW, HALF, SAME, SLIGHTLY_ABOVE, Asked

INTRODUCTION = ""
TICKS = 1e6
"""Events a second: one at each tick, a microsecond here."""
EVENTS, QUICK_EVENTS = 100_000, 2_000
QUICK_WINDOW = 2_000
"""The thesis measures 100,000 events after as many as the window is long."""
INDEXED = "columns are indexed by what a parameter is equal to: a window is not scanned"
POLICIES = ("last", "each")
LIMITED = (1 / HALF, HALF)
"""A limited difference, in either direction."""


def joined(
    change: str, scenario: Joined | None = None, policies: tuple[str, ...] = POLICIES
) -> Mapping[str, Case]:
    """R10 with one parameter changed, under each policy."""

    def case(policy: str) -> Case:
        def making(value: float, quick: bool) -> Making:
            whole = value if change == "accepted" else int(value)
            changed = replace(scenario or Joined(), policy=policy, **{change: whole})
            return changed.workload

        return making

    return {f"{policy} ": case(policy) for policy in policies}


def after(window: Callable[[float], float]) -> Callable[[float, bool], Span]:
    """A span that begins when the window is full."""

    def span(value: float, quick: bool) -> Span:
        if quick:
            return Span(TICKS, QUICK_WINDOW, QUICK_EVENTS)
        return Span(TICKS, int(window(value)), EVENTS)

    return span


def default_window(_: float) -> float:
    return Joined().window


def of_many_types(value: float, quick: bool) -> Span:
    """The default span in fewer and larger chunks: each is a batch for each type."""
    span = after(default_window)(value, quick)
    return replace(span, events=span.events // 2, chunk=4_096)


def lines(table: Table, engine: str, policies: Sequence[str] = POLICIES) -> dict[str, Line]:
    """An engine's times by what they are called; none of one that was not measured."""
    there = [one for one in policies if us(f"{one} {engine}") in table.columns]
    return {f"{policy} {engine} [us]": times(table, f"{policy} {engine}") for policy in there}


def told(chosen: dict[str, Line]) -> str:
    return "; ".join(course(name, line) for name, line in chosen.items())


def of_both(
    published: str,
    table: Table,
    asking: Callable[[Line], list[Asked]],
    policies: Sequence[str] = POLICIES,
    **why: str,
) -> Claim:
    """A sentence on the times of CDP and of AIP."""
    chosen = lines(table, CDP, policies) | lines(table, AIP, policies)
    asked = [one for line in chosen.values() for one in asking(line)]
    return _if_measured(published, table, chosen, asked, **why)


def _if_measured(
    published: str, table: Table, chosen: dict[str, Line], asked: list[Asked], **why: str
) -> Claim:
    """A sentence that needs AIP's times."""
    if not lines(table, AIP):
        return unmeasured(published, NO_AIP)
    return claim(published, told(chosen), asked, **why)


def ratio(of: dict[str, Line], to: dict[str, Line]) -> list[Line]:
    """AIP's times over CDP's, say, policy by policy."""
    return [
        [one / other for one, other in zip(mine, theirs, strict=True)]
        for mine, theirs in zip(of.values(), to.values(), strict=False)
    ]


def limited(table: Table, published: str) -> Claim:
    """That each and last differ little, with either engine."""
    chosen = lines(table, CDP) | lines(table, AIP)
    pairs = (lines(table, engine).values() for engine in (CDP, AIP))
    asked = [one for last, each in filter(None, pairs) for one in against(each, last, LIMITED)]
    return _if_measured(published, table, chosen, asked)


def steady_ahead(table: Table, published: str) -> Claim:
    """That CDP is ahead of AIP, by a factor that does not depend on what varies."""
    aip, cdp = lines(table, AIP), lines(table, CDP)
    asked = []
    for line in ratio(aip, cdp):
        asked += [(one, ABOVE) for one in line] + throughout(line, SAME)
    return _if_measured(published, table, cdp | aip, asked)


def default(table: Table) -> tuple[Claim, ...]:
    aip, cdp = lines(table, AIP), lines(table, CDP)
    slightly = "CDP is slightly better than AIP, under either policy"
    asked = [(one, SLIGHTLY_ABOVE) for line in ratio(aip, cdp) for one in line]
    return (
        _if_measured(slightly, table, cdp | aip, asked),
        limited(table, "little difference between multiple and single selection"),
    )


def lengths(table: Table) -> tuple[Claim, ...]:
    return (
        of_both(
            "the time falls with longer sequences",
            table,
            lambda line: in_the_end(line, BELOW),
            above=f"{INDEXED}, so that its having fewer events of a type saves nothing",
        ),
        limited(table, "the difference between the policies is limited"),
        steady_ahead(
            table, "CDP performs better than AIP, by a factor that does not depend on the length"
        ),
    )


def windows(table: Table) -> tuple[Claim, ...]:
    grows = "the cost on the processor grows with the window, {}"
    cdp = lines(table, CDP)
    return (
        claim(
            grows.format(CDP),
            told(cdp),
            [one for line in cdp.values() for one in in_the_end(line, ABOVE)],
        ),
        _if_measured(
            grows.format(AIP),
            table,
            lines(table, AIP),
            [one for line in lines(table, AIP).values() for one in in_the_end(line, ABOVE)],
        ),
        steady_ahead(
            table, "CDP performs better than AIP, by a factor that does not depend on the window"
        ),
    )


def values(table: Table) -> tuple[Claim, ...]:
    return (
        of_both(
            "more values, less time under each-within",
            table,
            lambda line: in_the_end(line, BELOW),
            ("each",),
        ),
        of_both(
            "constant times under last-within, AIP and CDP",
            table,
            lambda line: throughout(line, SAME),
            ("last",),
        ),
    )


def aggregates(table: Table) -> tuple[Claim, ...]:
    published = "aggregates change the time only marginally"
    return (of_both(published, table, lambda line: throughout(line, SAME)),)


def rules(table: Table) -> tuple[Claim, ...]:
    places = figures(table, table.columns[0])
    return (
        of_both(
            "the time grows linearly with the rules, AIP and CDP",
            table,
            lambda line: linear(line, places),
        ),
        limited(table, "few events for each rule make the policies differ little"),
    )


def simple_rules(_: Table) -> tuple[Claim, ...]:
    return ()  # the thesis speaks of the GPU alone


def accepted(_: Table) -> tuple[Claim, ...]:
    return (
        unmeasured(
            "the time of all algorithms is significantly higher than in the default scenario",
            "between two figures of different rules: see the page of the GPU",
        ),
    )


SEEDS = FEW_SEEDS[:3]
"""AIP fills a window of 100,000 events for some twenty seconds."""
of_joins = partial(Sweep, logarithmic=(False, True), seeds=SEEDS)
SIMPLE = Joined(window=100_000, values=1_000, groups=100)
FILTERED = Joined(window=30, values=50_000, states=3, aggregates=0, accepted=0.5)
SWEEPS: dict[str, tuple[str, str, Sweep]] = {
    "thesis-6.5": (
        "the default scenario",
        "",
        of_joins("rules", (1,), joined("rules"), after(default_window), default),
    ),
    "thesis-6.6": (
        "length of sequences",
        "",
        of_joins(
            "states",
            (2, 3, 4, 5, 6),
            joined("states"),
            after(default_window),
            lengths,
        ),
    ),
    "thesis-6.7": (
        "size of windows",
        "",
        of_joins(
            "window [events]",
            (1_000, 4_000, 10_000, 50_000, 100_000, 250_000),
            joined("window"),
            after(lambda window: window),
            windows,
            logarithmic=(True, True),
        ),
    ),
    "thesis-6.8": (
        "number of values",
        "",
        of_joins(
            "values",
            (10_000, 20_000, 50_000, 100_000),
            joined("values"),
            after(default_window),
            values,
            logarithmic=(True, True),
        ),
    ),
    "thesis-6.9": (
        "number of aggregates",
        "",
        of_joins(
            "aggregates",
            (0, 1, 2, 3),
            joined("aggregates"),
            after(default_window),
            aggregates,
        ),
    ),
    "thesis-6.11": (
        "number of rules",
        " Each event is relevant to a tenth of the rules. Events come 4,096 at a time, since there "
        "are 30 types of them, and half as many are measured. One thread; the thesis uses six, and "
        "goes on beyond 100 rules.",
        of_joins(
            "rules",
            (10, 20, 50, 100),
            joined("rules", Joined(groups=10)),
            of_many_types,
            rules,
            logarithmic=(True, True),
        ),
    ),
    "thesis-6.12": (
        "number of rules, simple ones",
        " Each event is relevant to a hundredth of the rules; 1,000 values. Events come 4,096 at a "
        "time, since there are 300 types of them, and half as many are measured.",
        of_joins(
            "rules",
            (20, 50, 100, 250),
            joined("rules", SIMPLE),
            of_many_types,
            simple_rules,
        ),
    ),
    "thesis-6.13": (
        "share of sequences that an aggregate accepts",
        " No parameter between the states and windows of 30 events; a sequence is accepted when "
        "the greatest value of ten or so events lies below a bound. The thesis does not give its "
        "rule; the journal version goes from 0.0001 to 1.",
        of_joins(
            "accepted, about",
            (0.1, 0.3, 0.5, 0.7, 0.9),
            joined("accepted", FILTERED, ("each",)),
            after(default_window),
            accepted,
        ),
    ),
}
SETTING = (
    "R10: a sequence of three types joined by an attribute of 50,000 values, and a Sum joined too; "
    "one event at each tick, 100,000 events after a full window of 100,000. All windows of the "
    "rule are of that size: the thesis calls it R10's window, though it prints 10,000 for the "
    "sequence."
)
EXPERIMENTS: tuple[Experiment, ...] = tuple(
    Experiment(
        *(name, PAGE, title, SETTING + more, partial(Sweep.run, one)),
        judge=one.outcome,
        seeds=seeds.told(one.seeds),
    )
    for name, (title, more, one) in SWEEPS.items()
)
