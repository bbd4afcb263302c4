"""Sentences of the dissertation on operators for Siddhi on its evaluation, and project goals.

Its baseline is Siddhi on one thread, ours the same operators compiled by numba, on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from studies.device.streams import GRAPHS
from studies.reproduction.engine_claims import in_the_end
from studies.reproduction.gpu_tables import CPU, Grid, Sentence, Told, listed
from studies.reproduction.verdicts import ABOVE, BELOW, HALF, SAME, Estimate

REAL_TIME = 11_626.0
"""Events a second of the dissertation's data, on average."""
GPU = "gpu end to end [events/s]"
ON_CPU = f"{CPU} [events/s]"
SHARES = {"copy in": 0.6673, "kernels": 0.2975, "copy out": 0.0352}
"""Shares of a filter's time on the dissertation's device."""
PUBLISHED_BATCH = "batches of 2,048"
JOINED = f"windows of 200, {PUBLISHED_BATCH}"
NOT_THREADED = "operators on the processor run on one thread here"
NO_QUEUE = "no queue of a publisher was measured"


def not_measured(published: str, why: str) -> Sentence:
    """A sentence that nothing here could measure, and why."""

    def asks(grid: Grid) -> Told:
        return why, ()

    return Sentence(published, asks)


def advantage(grid: Grid, places: Sequence[str]) -> list[Estimate]:
    """How many times as many events a second the device takes as the processor."""
    return grid.ratio(GPU, ON_CPU, places)


def queries(grid: Grid) -> list[str]:
    """The places of several queries."""
    return list(grid.enough([place for place in grid.places if place.endswith("queries")]))


def told(places: Sequence[str], found: Sequence[Estimate]) -> str:
    """The advantage at some places, in words."""
    pairs = zip(places, found, strict=True)
    return "; ".join(f"{place}: {one.value:.3g} times the processor" for place, one in pairs)


def few_queries(grid: Grid) -> Told:
    place = queries(grid)[:1]
    found = advantage(grid, place)
    return told(place, found), [(found[0], BELOW)]


def many_queries(grid: Grid) -> Told:
    place = queries(grid)[-1:]
    found = advantage(grid, place)
    return told(place, found), [(found[0], ABOVE)]


def better_with_queries(grid: Grid) -> Told:
    places = queries(grid)
    found = advantage(grid, places)
    return told(places, found), in_the_end(found, ABOVE)


def no_gain(grid: Grid) -> Told:
    places = [place for place in grid.places if grid.has(GPU, place) and grid.has(ON_CPU, place)]
    found = advantage(grid, grid.enough(places))
    return told(places, found), [(one, (0.0, HALF)) for one in found]


def larger_batches(grid: Grid) -> Told:
    places = [PUBLISHED_BATCH, "batches of 65,536"]
    found = grid.line(GPU, places)
    return listed("events/s", found), [(found[1] / found[0], SAME)]


def phases(grid: Grid, place: str) -> dict[str, Estimate]:
    """The times of copies and kernels of a batch, in microseconds."""
    return {name: grid.at(name, place) for name in SHARES}


def shares(place: str, published: Mapping[str, float]) -> Callable[[Grid], Told]:
    """Claim that copies and kernels have such shares of a batch's time on the device."""

    def asks(grid: Grid) -> Told:
        found = phases(grid, place)
        whole = sum(one.value for one in found.values())
        mine = {name: found[name].times(1 / whole) for name in published}
        said = ", ".join(f"{name} {100 * one.value:.3g} %" for name, one in mine.items())
        return said, [(mine[name].times(1 / share), SAME) for name, share in published.items()]

    return asks


def tenth_of_all(grid: Grid) -> Told:
    whole_us = 2_048 / grid.at(GPU, PUBLISHED_BATCH).value * 1e6
    device = sum(one.value for one in phases(grid, PUBLISHED_BATCH).values())
    share = Estimate.single(device / whole_us, "share of a batch's time")
    return f"{100 * share.value:.3g} % of what a batch takes", [(share.times(10), SAME)]


FILTER = (
    Sentence("with few queries the processor, on one thread, is ahead of the GPU", few_queries),
    not_measured("and ahead of itself on several threads", NOT_THREADED),
    Sentence("with more queries the GPU overtakes one thread", many_queries),
    not_measured("it is always above several threads, which flatten", NOT_THREADED),
    Sentence("it keeps improving with the number of queries", better_with_queries),
    Sentence("there is no substantial gain overall", no_gain),
    Sentence("batches larger than 2,048 bring no significant improvement", larger_batches),
    Sentence("the GPU takes about 10 % of the total processing time", tenth_of_all),
    Sentence(
        "of the GPU's time copying in takes 66.73 %, the kernel 29.75 %, copying out 3.52 %",
        shares(PUBLISHED_BATCH, SHARES),
    ),
    not_measured("blocks of 128 to 256 threads are best", "blocks of one size were run"),
    not_measured("a tenth of all branches diverge", "no profiler was run"),
)


def almost_twice(grid: Grid) -> Told:
    places = [JOINED, *(place for place in ["1 queries"] if grid.has(GPU, place))]
    found = advantage(grid, places)
    return told(places, found), [(one.times(1 / 2), SAME) for one in found]


def processor_too_slow(grid: Grid) -> Told:
    rate = grid.at(ON_CPU, "10 queries")
    return f"{rate.value:,.0f} events/s with 10", [(rate.times(1 / REAL_TIME), BELOW)]


def device_in_time(grid: Grid) -> Told:
    rate = grid.at(GPU, "10 queries")
    return f"{rate.value:,.0f} events/s with 10", [(rate.times(1 / REAL_TIME), ABOVE)]


def negligible(grid: Grid) -> Told:
    whole_us = 2_048 / grid.at(GPU, JOINED).value * 1e6
    device = sum(one.value for one in phases(grid, JOINED).values())
    share = Estimate.single(device / whole_us, "share of a batch's time")
    return f"copies and kernels are {100 * share.value:.3g} % of a batch's time", [(share, SAME)]


JOIN = (
    Sentence("with one query the GPU is almost 2 times as fast as one thread", almost_twice),
    Sentence("the ratio rises with the number of queries", better_with_queries),
    Sentence(
        "one thread falls below real time (11,626 events/s) beyond 4 concurrent joins",
        processor_too_slow,
    ),
    Sentence("the GPU sustains real time up to 8", device_in_time),
    Sentence("copying out takes 84.87 % of the GPU's time", shares(JOINED, {"copy out": 0.8487})),
    Sentence(
        "its kernels take 14.42 % (6.97, 5.89, 0.89 and 0.67), copying in 0.70 %",
        shares(JOINED, {"kernels": 0.1442, "copy in": 0.0070}),
    ),
    Sentence("bringing events into another form and back is negligible", negligible),
    not_measured("two GPUs are about twice as fast as one nearly everywhere", "one was there"),
    not_measured("with them the latency of publishing is about half", "one was there"),
    not_measured("the latency of publishing rises steeply beyond 4 joins on one thread", NO_QUEUE),
    not_measured("with the GPU it is much lower, and grows more slowly", NO_QUEUE),
    not_measured(
        "memory limits it to 10 concurrent joins, and to 5 with batches of 4,096",
        "output is compacted here, and the device has far more memory",
    ),
)


def ten_times(grid: Grid) -> Told:
    places = grid.enough(grid.places)
    found = advantage(grid, places)
    return told(places, found), [(one, (10.0, math.inf)) for one in found]


def mostly_joins(grid: Grid) -> Told:
    share = grid.line("joins on the processor [%]")[0]
    return f"{share.value:.3g} %", [(share.times(1 / 80), SAME)]


MIX = (
    Sentence(
        "GPUs give at least 10 times the rate of one thread, however many plans there are",
        ten_times,
    ),
    not_measured("with one plan one thread is ahead of several", NOT_THREADED),
    not_measured(
        "with more plans several threads are more than 2 times as fast, until cores saturate",
        NOT_THREADED,
    ),
    not_measured(
        "with GPUs the latency of publishing is nearly constant, on one thread it grows steadily",
        NO_QUEUE,
    ),
    Sentence("the join is about 80 % of what one thread takes", mostly_joins),
)

# --- the project's own ---------------------------------------------------------------------------

A_SUM = "a sum, window of 1,000,000"
SCAN = "numba scan"


def at_most_30(line: str) -> Callable[[Grid], Told]:
    """Claim that a line takes 30 us at most."""

    def asks(grid: Grid) -> Told:
        found = grid.at(line, A_SUM)
        return f"{found.value:.3g} us", [(found.times(1 / 30), BELOW)]

    return asks


ALONE = ", on the device, waited for"
"""By the graph alone, from the question to the answer."""


def beside(baseline: str, said: str, way: str, least: float, *, alone: bool) -> Sentence:
    """Claim that graphs are so many times as fast as a baseline at least, ``alone`` or
    as the engine has them.
    """

    def asks(grid: Grid) -> Told:
        line = f"{GRAPHS}{way}{ALONE if alone else ''}"
        ratio = grid.at(baseline, A_SUM) / grid.at(line, A_SUM)
        return f"{ratio.value:.3g} times", [(ratio, (least, math.inf))]

    how = "with terminators in batches of 64" if way else "one by one"
    whose = "by the graph alone" if alone else "pushed into the engine"
    return Sentence(f"at least {least:g} times as fast as {said}, {how}, {whose}", asks)


BASELINES = (
    ("CPU CDP", "our engine on the processor, which scans the window by numba's kernels"),
    (SCAN, "a loop that numba compiled for this one predicate"),
)
TARGETS = (
    Sentence(
        "a predicate that no index serves, over a window of 10^6 events: at most 30 us a "
        "terminator, pushed into the engine one by one",
        at_most_30(GRAPHS),
    ),
    Sentence(
        "the same by the graph alone, from the question to the answer",
        at_most_30(f"{GRAPHS}{ALONE}"),
    ),
    *(
        beside(baseline, said, way, least, alone=alone)
        for baseline, said in BASELINES
        for way, least in (("", 5), (", 64 at once", 50))
        for alone in (False, True)
    ),
)


def join_target(grid: Grid) -> Told:
    places = [place for place in grid.places if grid.has(GPU, place) and grid.has(ON_CPU, place)]
    if not places:
        raise KeyError(GPU)
    found = advantage(grid, places)
    return told(places, found), [(one, (20.0, math.inf)) for one in found]


JOIN_TARGET = (
    Sentence("the join, at windows of 10^5: at least 20 times the processor's", join_target),
)


def rate_target(scenario: str, least: float) -> Sentence:
    """Claim that batches of 4,096 events are matched at some rate."""

    def asks(grid: Grid) -> Told:
        rate = grid.at("batched, batches of 4,096 [events/s]", scenario)
        return f"{rate.value / 1e6:.3g} M events/s", [(rate.times(1 / least), ABOVE)]

    said = f"{scenario} constraints in batches of 4,096: at least {least / 1e6:g} M events/s"
    return Sentence(said, asks)


MATCHING_TARGETS = (rate_target("1M", 3e6), rate_target("1M, 10 names", 2e6))
