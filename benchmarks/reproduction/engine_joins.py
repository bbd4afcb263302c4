"""Chapter 6 of the thesis again, section 6.4, its lines of the processor: few rules that join many
events by a value, over long windows, with aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.reproduction.engine_claims import (
    AIP,
    CDP,
    EQUAL,
    ON_GPU,
    below,
    claim,
    falls,
    flat,
    grows,
    us,
)
from benchmarks.reproduction.engine_runs import Making, Span
from benchmarks.reproduction.engine_sweep import PAGE, Case, Sweep
from benchmarks.reproduction.engine_workloads import Joined
from benchmarks.reproduction.experiment import Claim, Experiment, Table

INTRODUCTION = ""
TICKS = 1e6
"""Events a second: one at each tick, a microsecond here."""
EVENTS, QUICK_EVENTS = 100_000, 2_000
QUICK_WINDOW = 2_000
INDEXED = "columns are indexed by what a parameter is equal to: a window is not scanned"
NO_SCAN = "with indexes both look at the few events of one value, and neither is ahead for long"
POLICIES = ("last", "each")
COLUMNS = {policy: us(f"{policy} {CDP}") for policy in POLICIES}
AIPS = {policy: us(f"{policy} {AIP}") for policy in POLICIES}
EVERY = tuple(COLUMNS.values())
"""The thesis measures 100,000 events after as many as the window is long."""


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


def gpu(published: str) -> Claim:
    return Claim(published, ON_GPU, None)


def default(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "CDP is slightly better than AIP, under either policy",
            table,
            (COLUMNS["last"], AIPS["last"], COLUMNS["each"], AIPS["each"]),
            lambda last, last_aip, each, each_aip: below(last, last_aip) and below(each, each_aip),
        ),
        claim(
            "little difference between multiple and single selection",
            table,
            EVERY,
            lambda last, each: bool(
                np.maximum(last, each).max() <= 2 * np.minimum(last, each).min()
            ),
        ),
        gpu("CDP on the GPU is 25 to 30 times faster"),
    )


def lengths(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "the time falls with longer sequences",
            table,
            EVERY,
            lambda *all_: all(map(falls, all_)),
            why=f"{INDEXED}, so that its having fewer events of a type saves nothing",
        ),
        claim(
            "CDP is ahead of AIP by a factor that does not depend on the length",
            table,
            (COLUMNS["each"], AIPS["each"]),
            lambda cdp, aip: below(cdp, aip) and flat(aip / cdp),
            why=NO_SCAN,
        ),
    )


def windows(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "the cost on the processor grows with the window, CDP",
            table,
            EVERY,
            all_grow,
            why=INDEXED,
        ),
        claim("and AIP", table, tuple(AIPS.values()), all_grow),
        claim(
            "CDP is ahead of AIP by a factor that does not depend on the window",
            table,
            (COLUMNS["each"], AIPS["each"]),
            lambda cdp, aip: below(cdp, aip) and flat(aip / cdp),
            why=NO_SCAN,
        ),
        gpu("the GPU is ahead from windows of 4,000 events on"),
    )


def all_grow(*columns: np.ndarray) -> bool:
    return all(map(grows, columns))


def values(table: Table) -> tuple[Claim, ...]:
    return (
        claim("more values, less time under each-within", table, (COLUMNS["each"],), falls),
        claim("constant time under last-within, CDP", table, (COLUMNS["last"],), flat),
        claim("and AIP", table, (AIPS["last"],), flat),
    )


def aggregates(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "aggregates change the time only marginally",
            table,
            EVERY,
            lambda *all_: all(one[-1] <= 2 * one[0] for one in all_),
        ),
    )


def rules(table: Table) -> tuple[Claim, ...]:
    count = np.array(table.column(table.columns[0]), np.float64)

    def linear(*columns: np.ndarray) -> bool:
        return all(one[-1] / one[0] <= EQUAL * count[-1] / count[0] for one in columns)

    return (
        claim("the time grows no more than linearly with the rules, CDP", table, EVERY, linear),
        claim("and AIP", table, tuple(AIPS.values()), linear),
        gpu("beyond 10 rules the GPU's memory is too small, and its advantage drops"),
    )


def accepted(table: Table) -> tuple[Claim, ...]:
    return (
        claim(
            "more accepted, more time",
            table,
            (COLUMNS["each"],),
            grows,
            why="by less than a quarter: finding sequences costs more than writing them",
        ),
        claim("the same for AIP", table, (AIPS["each"],), grows),
        gpu("the GPU is ahead, less so the more is accepted"),
    )


SIMPLE = Joined(window=100_000, values=1_000, groups=100)
FILTERED = Joined(window=30, values=50_000, states=3, aggregates=0, accepted=0.5)
SWEEPS: dict[str, tuple[str, str, Sweep]] = {
    "thesis-6.5": (
        "the default scenario",
        "",
        Sweep("rules", (1,), joined("rules"), after(default_window), default, with_rates=False),
    ),
    "thesis-6.6": (
        "length of sequences",
        "",
        Sweep(
            "states",
            (2, 3, 4, 5, 6),
            joined("states"),
            after(default_window),
            lengths,
            with_rates=False,
        ),
    ),
    "thesis-6.7": (
        "size of windows",
        "",
        Sweep(
            "window [events]",
            (1_000, 4_000, 10_000, 50_000, 100_000, 250_000),
            joined("window"),
            after(lambda window: window),
            windows,
            (True, True),
            with_rates=False,
        ),
    ),
    "thesis-6.8": (
        "number of values",
        "",
        Sweep(
            "values",
            (10_000, 20_000, 50_000, 100_000),
            joined("values"),
            after(default_window),
            values,
            (True, False),
            with_rates=False,
        ),
    ),
    "thesis-6.9": (
        "number of aggregates",
        "",
        Sweep(
            "aggregates",
            (0, 1, 2, 3),
            joined("aggregates"),
            after(default_window),
            aggregates,
            with_rates=False,
        ),
    ),
    "thesis-6.11": (
        "number of rules",
        " Each event is relevant to a tenth of the rules. Events come 4,096 at a time, since there "
        "are 30 types of them, and half as many are measured.",
        Sweep(
            "rules",
            (10, 20, 50, 100),
            joined("rules", Joined(groups=10)),
            of_many_types,
            rules,
            (True, True),
            with_rates=False,
        ),
    ),
    "thesis-6.12": (
        "number of rules, simple ones",
        " Each event is relevant to a hundredth of the rules; 1,000 values. Events come 4,096 at a "
        "time, since there are 300 types of them, and half as many are measured.",
        Sweep(
            "rules",
            (20, 50, 100, 250),
            joined("rules", SIMPLE),
            of_many_types,
            rules,
            with_rates=False,
        ),
    ),
    "thesis-6.13": (
        "share of sequences that an aggregate accepts",
        " No parameter between the states and windows of 30 events; a sequence is accepted when "
        "the greatest value of ten or so events lies below a bound. The thesis does not give its "
        "rule.",
        Sweep(
            "accepted, about",
            (0.1, 0.3, 0.5, 0.7, 0.9),
            joined("accepted", FILTERED, ("each",)),
            after(default_window),
            accepted,
            with_rates=False,
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
    Experiment(name, PAGE, title, SETTING + more, partial(Sweep.run, one))
    for name, (title, more, one) in SWEEPS.items()
)
