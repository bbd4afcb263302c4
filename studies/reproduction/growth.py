"""How the cost of an event grows with the window, with the rules, and with the states of a rule.

Matches stay equal along each line, so that what is seen is the cost of finding them. Costs are in
CPU time on one thread, after a warm-up of a whole window: the median over chunks of events.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import numpy as np

from matcher.model import EventBatch, EventIds, EventType, StringColumn
from rules import load
from rules.engine import make
from studies.reproduction.experiment import Chart, Claim, Experiment, Outcome, Table
from studies.reproduction.verdicts import RULE, Estimate

PAGE = "growth"
ASKED = "this project asks for"
INTRODUCTION = f"""# How the cost of an event grows

These are claims of this project, not of the thesis. What an event costs the engine should depend on
what it matches, and not on what else is stored or deployed: flat, or a logarithm, in the window and
in the number of rules. Each line of a chart keeps the number of matches equal and lets one thing
grow. `rexmq reproduce growth-window growth-rules growth-states` measures anew.

{RULE}"""
SEED = 11
CHUNK = 4_096
"""Events pushed before each advance."""
KEYS = 1_000
"""Values of the attribute by which events are joined."""
_A = EventType.of("A", k="int", v="float")
_B = EventType.of("B", k="int", v="float")
SCHEMAS = "event A(k: int, v: float) event B(k: int, v: float)\n"
REACHES = {"last": 40_000, "each": 13_333}
"""Windows of a chain's states, in microseconds: three candidates a state on average, or one."""
RISING = "last by inequality"
LINES = {
    "last by equality": "last B(k = a.k) as b within {window} us from a where n = b.k",
    "Sum by equality": "$s = Sum(B(k = a.k).k) within {window} us from a where n = $s",
    "Sum of ints": "$s = Sum(B().k) within {window} us from a where n = $s",
    "Avg of floats": "$s = Avg(B().v) within {window} us from a where n = 1, $s > 0",
    "StdDev of floats": "$s = StdDev(B().v) within {window} us from a where n = 1, $s > 0",
    "Max of floats": "$s = Max(B().v) within {window} us from a where n = 1, $s > 0",
    RISING: "last B(v > a.v) as b within {window} us from a where n = b.k",
}
"""What follows the terminator, by what is measured."""


def rule_of(line: str, window: int) -> str:
    """A rule that a quarter of the events end; ``where`` gives one int."""
    body, where = LINES[line].split(" where ")
    value, *tests = where.split(", ")
    clauses = "".join(f" and {test}" for test in tests)
    body = body.format(window=window)
    return f"{SCHEMAS}define X(n: int) from A() as a and {body}{clauses} where {value}"


def over_windows(quick: bool) -> Outcome:
    """Windows of 10**3 to 10**7 events, one event a microsecond."""
    windows = (100, 1_000) if quick else (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    rows = []
    for window in windows:
        costs = [
            cost(rule_of(line, window), events_of(window, line == RISING), window, quick)
            for line in LINES
        ]
        rows.append((window, *costs))
    return outcome("window [events]", tuple(LINES), rows)


def over_rules(quick: bool) -> Outcome:
    """10 to 100,000 rules, of which each event concerns one.

    A value comes again after as many events as there are rules, so windows are ten times as long:
    each terminator finds its event.
    """
    rows = []
    for count in (10, 100) if quick else (10, 100, 1_000, 10_000, 100_000):
        window = max(10_000, 10 * count)
        text = SCHEMAS + "\n".join(
            f"define X(n: int) from A(k = {number}) as a"
            f" and last B(k = {number}) as b within {window} us from a where n = b.k"
            for number in range(count)
        )
        rows.append((count, cost(text, events_of(1, False, count), 2 * window, quick)))
    return outcome("rules", ("2 states, last",), rows)


def over_states(quick: bool) -> Outcome:
    """A rule of 2 to 10 states, each joined with the terminator."""
    rows = []
    for states in (2, 3) if quick else range(2, 11):
        costs = [
            cost(chain(states, policy), events_of(1, False), REACHES[policy] * states, quick)
            for policy in REACHES
        ]
        rows.append((states, *costs))
    return outcome("states", tuple(REACHES), rows, (False, False), is_linear)


def chain(states: int, policy: str) -> str:
    """A rule of so many states, each from the one before and with values of its own."""
    body = "".join(
        f" and {policy} B(k = a.k, v < {place / 10}, v >= {(place - 1) / 10}) as b{place}"
        f" within {REACHES[policy]} us from {'a' if place == 1 else f'b{place - 1}'}"
        for place in range(1, states)
    )
    return f"{SCHEMAS}define X(n: int) from A() as a{body} where n = a.k"


def outcome(
    first: str,
    lines: tuple[str, ...],
    rows: list[tuple[float, ...]],
    logarithmic: tuple[bool, bool] = (True, True),
    claim: Callable[[Table, str], Claim] | None = None,
) -> Outcome:
    """A table of costs in microseconds an event, and its chart."""
    columns = tuple(f"{line} [us]" for line in lines)
    return told(Table((first, *columns), tuple(rows)), logarithmic, claim or is_slow)


def told(
    table: Table, logarithmic: tuple[bool, bool], claim: Callable[[Table, str], Claim]
) -> Outcome:
    """What is drawn and said of such a table."""
    columns = table.columns[1:]
    chart = Chart(columns, "CPU time an event [us]", logarithmic)
    return Outcome(table, (chart,), tuple(claim(table, line) for line in columns))


def is_slow(table: Table, line: str) -> Claim:
    """That a cost grows as a logarithm at most: with each ten times more, by no more than it was
    at first.
    """
    sizes, costs = table.column(table.columns[0]), table.column(line)
    decades = math.log10(sizes[-1] / sizes[0])
    factor = costs[-1] / costs[0]
    return Claim.judged(
        f"{line.removesuffix(' [us]')}: flat, or a logarithm",
        f"{factor:.2f} times the cost at {sizes[-1] / sizes[0]:,.0f} times the size",
        [(Estimate.single(factor, "last over first"), (0.0, 1 + decades))],
    )


def is_linear(table: Table, line: str) -> Claim:
    """That a cost grows no faster than what has to be done, a selection more for each state."""
    sizes, costs = table.column(table.columns[0]), table.column(line)
    factor, times = costs[-1] / costs[0], sizes[-1] / sizes[0]
    return Claim.judged(
        f"{line.removesuffix(' [us]')}: no more than linear in the states",
        f"{factor:.2f} times the cost at {times:,.0f} times the size",
        [(Estimate.single(factor, "last over first"), (0.0, times))],
    )


def cost(
    text: str, events: Callable[[int, int], list[EventBatch]], warm_up: int, quick: bool
) -> float:
    """The CPU time of an event, in microseconds, once ``warm_up`` events have come."""
    engine = make("cdp")
    engine.deploy(load(text))
    measured = []
    for first, is_warm in starts(warm_up, 4 if quick else 50):
        batches = events(first, first + CHUNK)
        begun = time.process_time()
        for batch in batches:
            engine.push(batch)
        engine.advance(first + CHUNK)
        if is_warm:
            measured.append((time.process_time() - begun) / CHUNK * 1e6)
    return median(measured)


def starts(warm_up: int, chunks: int) -> Iterator[tuple[int, bool]]:
    """Where chunks begin, and whether the engine is warm then."""
    cold = -(-warm_up // CHUNK)
    for chunk in range(cold + chunks):
        yield chunk * CHUNK, chunk >= cold


def events_of(
    window: int, is_rare: bool, keys: int = KEYS
) -> Callable[[int, int], list[EventBatch]]:
    """A source of events, one a microsecond, a quarter of them A.

    Where ``is_rare``, an A has a value that three B of four windows are above; the others' values
    are random.
    """

    def batches(low: int, high: int) -> list[EventBatch]:
        rng = np.random.default_rng((SEED, low))
        times = np.arange(low, high)
        is_a = rng.random(high - low) < 0.25
        k = rng.integers(0, keys, high - low)
        v = rng.random(high - low)
        v = np.where(is_a & is_rare, 1 - 1 / window, v)
        return [
            batch(type_, times[chosen], k[chosen], v[chosen])
            for type_, chosen in ((_B, ~is_a), (_A, is_a))
        ]

    return batches


def batch(type_: EventType, times, k, v) -> EventBatch:  # type: ignore[no-untyped-def]
    """Events of one source."""
    ids = EventIds(StringColumn.constant("generator", len(times)), times)
    return EventBatch(type_, times, ids, (k, v))


EXPERIMENTS = (
    Experiment(
        "growth-window",
        PAGE,
        "Cost of an event against the window",
        "One rule, a quarter of the events its terminators, one event a microsecond. By equality"
        f" means joined by {KEYS} values; by inequality, less than one event of a window fits.",
        over_windows,
        says=ASKED,
        seeds=str(SEED),
        judge=partial(told, logarithmic=(True, True), claim=is_slow),
    ),
    Experiment(
        "growth-rules",
        PAGE,
        "Cost of an event against the number of rules",
        "Rules of two states that differ in a value; every event concerns one of them, and each"
        " terminator finds its event, in windows of ten events a rule and 10,000 at least.",
        over_rules,
        says=ASKED,
        seeds=str(SEED),
        judge=partial(told, logarithmic=(True, True), claim=is_slow),
    ),
    Experiment(
        "growth-states",
        PAGE,
        "Cost of an event against the states of a rule",
        f"One rule, each state joined with the terminator by {KEYS} values: three candidates a"
        " state for `last`, one on average for `each`, so that there is one match on average.",
        over_states,
        says=ASKED,
        seeds=str(SEED),
        judge=partial(told, logarithmic=(False, False), claim=is_linear),
    ),
)
