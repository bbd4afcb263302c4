"""Sentences of the thesis and the journal version on CDP on a GPU (6.5 to 6.13; figures 8 to 16),
each in its strength.

"The GPU" is CDP as published, terminators one by one, beside the processor's engines of ours. The
other judgment of a sentence is by our engine on the device, with 64 terminators at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from studies.device.streams import AIP, CDP, GRAPHS, PUBLISHED, PUBLISHED_1G
from studies.reproduction.engine_claims import in_the_end, linear, throughout
from studies.reproduction.gpu_tables import DEFAULT, Grid, Line, Sentence, Told, listed
from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    HALF,
    MUCH_ABOVE,
    MUCH_BELOW,
    SAME,
    Asked,
    Estimate,
    Range,
)

EACH, LAST = "each", "last"
POLICIES = (EACH, LAST)
LIMITED = (1 / HALF, HALF)
OURS, AT_ONCE = GRAPHS, ", 64 at once"
FIXED_US = 17.0
"""Microseconds that a small window takes on the thesis's GPU."""


Asking = Callable[[Grid, str, str], Told]
"""A question of a sentence to a table, for the line of a device's engine and an ending of names."""


def sentence(published: str, asks: Asking) -> Sentence:
    """A sentence judged for what was published, and for ours."""
    return Sentence(
        published,
        lambda grid: asks(grid, PUBLISHED, ""),
        lambda grid: asks(grid, OURS, AT_ONCE),
    )


def line(policy: str, engine: str, way: str = "") -> str:
    """The name of a line."""
    return f"{policy} {engine}{way}"


def faster(policy: str, than: str, least: float, *, places: Sequence[str] | None = None) -> Asking:
    """Claim that the device is at least so many times as fast as an engine, at some places."""

    def asks(grid: Grid, engine: str, way: str) -> Told:
        found = grid.ratio(line(policy, than, way), line(policy, engine, way), places)
        told = listed(f"{policy}, {than} over {engine}{way}", found)
        return told, [(one, (least, math.inf)) for one in found]

    return asks


def near(policy: str, than: str, times: float, place: str) -> Asking:
    """Claim that the device is about so many times as fast as another engine at a place."""

    def asks(grid: Grid, engine: str, way: str) -> Told:
        found = grid.ratio(line(policy, than, way), line(policy, engine, way), [place])
        told = listed(f"{policy}, {than} over {engine}{way}", found)
        return told, [(one.times(1 / times), SAME) for one in found]

    return asks


def policies_differ_little(grid: Grid, engine: str, way: str) -> Told:
    """Claim that each and last differ by less than a half, on the device."""
    each, last = (line(policy, engine, way) for policy in POLICIES)
    found = grid.ratio(each, last)
    return listed(f"each over last, {engine}{way}", found), [(one, LIMITED) for one in found]


def of_lines(
    ask: Callable[[Line], list[Asked]], policies: Sequence[str] = POLICIES
) -> Callable[[Grid, str, str], Told]:
    """Something asked of the device's lines, by policy."""

    def asks(grid: Grid, engine: str, way: str) -> Told:
        told, asked = [], []
        for policy in policies:
            found = grid.line(line(policy, engine, way))
            told.append(listed(line(policy, engine, way), found))
            asked += ask(found)
        return "; ".join(told), asked

    return asks


def of_ratios(
    than: str, ask: Callable[[Line], list[Asked]], policies: Sequence[str] = POLICIES
) -> Asking:
    """Something asked of how many times as fast the device is as another engine, by policy."""

    def asks(grid: Grid, engine: str, way: str) -> Told:
        told, asked = [], []
        for policy in policies:
            names = line(policy, than, way), line(policy, engine, way)
            places = [
                place for place in grid.places if all(grid.has(name, place) for name in names)
            ]
            found = grid.ratio(*names, grid.enough(places))
            told.append(listed(f"{policy}, {than} over {engine}{way}", found))
            asked += ask(found)
        return "; ".join(told), asked

    return asks


def in_end(range_: Range) -> Callable[[Line], list[Asked]]:
    """The last figure over the first."""
    return lambda found: in_the_end(found, range_)


def always(range_: Range) -> Callable[[Line], list[Asked]]:
    """Each figure."""
    return lambda found: [(one, range_) for one in found]


def unchanged(found: Line) -> list[Asked]:
    """Each figure over the first."""
    return throughout(found, SAME)


def more_than_the_processor(range_: Range) -> Asking:
    """Claim that the device's time changes from the first place to the last more than CDP's on the
    processor, or less.
    """

    def asks(grid: Grid, engine: str, way: str) -> Told:
        told, asked = [], []
        for policy in POLICIES:
            mine, theirs = (grid.line(line(policy, one, way)) for one in (engine, CDP))
            both = [mine[-1] / mine[0], theirs[-1] / theirs[0]]
            told.append(f"{policy}: {both[0].value:.3g} times on the device, {both[1].value:.3g}")
            asked.append((both[0] / both[1], range_))
        return "; ".join(told) + " on the processor", asked

    return asks


def beside_default(than: str, range_: Range, policies: Sequence[str] = POLICIES) -> Asking:
    """Claim that the device's advantage over an engine is another at each place than by default."""

    def asks(grid: Grid, engine: str, way: str) -> Told:
        told, asked = [], []
        for policy in policies:
            names = line(policy, than, way), line(policy, engine, way)
            (usual,) = grid.ratio(*names, [DEFAULT])
            places = [one for one in grid.places if all(grid.has(name, one) for name in names)]
            found = grid.ratio(*names, grid.enough(places))
            told.append(f"{policy}: by default {usual.value:.3g}; {listed('here', found)}")
            asked += [(one / usual, range_) for one in found]
        return "; ".join(told), asked

    return asks


# --- the figures ---------------------------------------------------------------------------------

DEFAULT_SCENARIO = (
    sentence(
        "the GPU is more than 30 times as fast as CDP on the processor, each-within",
        faster(EACH, CDP, 30),
    ),
    sentence("more than 25 times, last-within", faster(LAST, CDP, 25)),
    sentence(
        "a relatively small difference between multiple and single selection, on the GPU too",
        policies_differ_little,
    ),
)


def biggest_advantage(grid: Grid, engine: str, way: str) -> Told:
    """Claim that the device is ahead of CDP by more than CDP is of AIP."""
    told, asked = [], []
    for policy in POLICIES:
        aip, cdp, device = (grid.line(line(policy, one, way)) for one in (AIP, CDP, engine))
        told.append(listed(f"{policy}, AIP over CDP", map(Estimate.__truediv__, aip, cdp)))
        told.append(listed("over the device", map(Estimate.__truediv__, aip, device)))
        asked += [(ours / theirs, BELOW) for ours, theirs in zip(device, cdp, strict=True)]
    return "; ".join(told), asked


LENGTHS = (
    sentence("the time falls with longer sequences, on the GPU too", of_lines(in_end(BELOW))),
    sentence("the difference between the policies is limited", policies_differ_little),
    sentence("the usage of the GPU provides the biggest advantages", biggest_advantage),
    sentence(
        "its speedup over AIP does not change significantly with the length",
        of_ratios(AIP, unchanged),
    ),
)


def constant_at_first(grid: Grid, engine: str, way: str) -> Told:
    """Claim that small windows take the same time, the thesis's."""
    told, asked = [], []
    for policy in POLICIES:
        found = grid.line(line(policy, engine, way), ["1000", "4000"])
        told.append(listed(line(policy, engine, way), found))
        asked += [(found[1] / found[0], SAME), (found[0].times(1 / FIXED_US), SAME)]
    return "; ".join(told), asked


def faster_growth(grid: Grid, engine: str, way: str) -> Told:
    """Claim that each grows more than last."""
    each, last = (grid.known(line(policy, engine, way)) for policy in POLICIES)
    count = min(len(each), len(last))
    grown = [one[count - 1] / one[0] for one in (each, last)]
    told = f"each {grown[0].value:.3g} times, last {grown[1].value:.3g} times"
    return told, [(grown[0] / grown[1], ABOVE)]


def ahead_from_4000(grid: Grid, engine: str, way: str) -> Told:
    """Claim that the device is behind CDP at 1,000 events and ahead from 4,000 on."""
    told, asked = [], []
    for policy in POLICIES:
        places = ["1000", "4000", "10000", "100000", "250000"]
        found = grid.ratio(line(policy, CDP, way), line(policy, engine, way), places)
        told.append(listed(f"{policy}, {CDP} over {engine}{way}", found))
        asked += [(found[0], BELOW), *((one, ABOVE) for one in found[1:])]
    return "; ".join(told), asked


def forty_times(grid: Grid, engine: str, way: str) -> Told:
    """Claim that the device is more than 40 times as fast as AIP somewhere."""
    each, last = (
        max(
            _ratios(grid, line(policy, AIP, way), line(policy, engine, way)),
            key=lambda one: one.value,
        )
        for policy in POLICIES
    )
    told = f"at most, each: {each.value:.3g}; last: {last.value:.3g}"
    best = max(each, last, key=lambda one: one.value)
    return told, [(best, (40, math.inf))]


def _ratios(grid: Grid, name: str, to: str) -> Line:
    places = [place for place in grid.places if grid.has(name, place) and grid.has(to, place)]
    return grid.ratio(name, to, grid.enough(places))


WINDOWS = (
    sentence("the GPU's cost is initially constant, at 0.017 ms", constant_at_first),
    sentence(
        "it starts growing when the cores are not enough",
        lambda grid, engine, way: _grown(grid, engine, way),
    ),
    sentence("this growing is faster under a multiple selection policy", faster_growth),
    sentence(
        "the smallest window that determines an advantage of the GPU is 4,000", ahead_from_4000
    ),
    sentence(
        "the GPU performs better and better as the window grows", of_ratios(AIP, in_end(ABOVE))
    ),
    sentence(
        "with 250,000 events, each-within, close to 100 times as fast as AIP",
        near(EACH, AIP, 100, "250000"),
    ),
    sentence("and close to 35 times as fast as CDP", near(EACH, CDP, 35, "250000")),
    sentence("similar values hold for last-within, AIP", near(LAST, AIP, 100, "250000")),
    sentence("and CDP", near(LAST, CDP, 35, "250000")),
    sentence(
        "speedups of more than 40 for complex rules (conclusions; taken to be over AIP)",
        forty_times,
    ),
)


def _grown(grid: Grid, engine: str, way: str) -> Told:
    told, asked = [], []
    for policy in POLICIES:
        found = grid.known(line(policy, engine, way))
        told.append(listed(line(policy, engine, way), found))
        asked += in_the_end(found, ABOVE)
    return "; ".join(told), asked


VALUES = (
    sentence("more values, lower times under each-within", of_lines(in_end(BELOW), (EACH,))),
    sentence("on the GPU the same under last-within", of_lines(in_end(BELOW), (LAST,))),
    sentence(
        "the GPU benefits most, and is more influenced than the processor",
        more_than_the_processor(BELOW),
    ),
)
AGGREGATES = (
    sentence(
        "more aggregates only marginally impact performance, on the GPU too", of_lines(unchanged)
    ),
    sentence("the GPU is more affected by them", more_than_the_processor(ABOVE)),
)


def linear_in_rules(grid: Grid, engine: str, way: str) -> Told:
    """Claim that the time grows with the rules along a straight line."""
    told, asked = [], []
    for policy in POLICIES:
        name = line(policy, engine, way)
        places = [place for place in grid.places if grid.has(name, place)]
        found = grid.line(name, grid.enough(places))
        told.append(listed(name, found))
        asked += linear(found, list(map(float, places)))
    return "; ".join(told), asked


def drops_beyond_10(grid: Grid) -> Told:
    """Claim that the advantage falls from 10 rules to 20 with the memory of the thesis's GPU."""
    told, asked = [], []
    for policy in POLICIES:
        names = line(policy, AIP), line(policy, PUBLISHED_1G)
        found = grid.ratio(*names, ["10", "20"])
        told.append(listed(f"{policy}, {AIP} over {PUBLISHED_1G}", found))
        asked.append((found[1] / found[0], MUCH_BELOW))
    return "; ".join(told), asked


RULES = (
    sentence("the time grows linearly with the rules, on the GPU too", linear_in_rules),
    sentence(
        "the GPU's speedup over AIP is lower than in the default scenario, even with few rules",
        beside_default(AIP, BELOW),
    ),
    sentence(
        "few events for each rule reduce the difference of the policies", policies_differ_little
    ),
    Sentence(
        "beyond 10 rules its memory of 1 GB is too small: the speedup drops significantly from 10 "
        "to 20, under both policies",
        drops_beyond_10,
    ),
)


def processor_ahead(grid: Grid, engine: str, way: str) -> Told:
    """Claim that CDP is ahead of the device from 50 rules on."""
    told, asked = [], []
    for policy in POLICIES:
        names = line(policy, CDP, way), line(policy, engine, way)
        found = grid.ratio(*names, ["50", "100", "250"])
        told.append(listed(f"{policy}, {CDP} over {engine}{way}", found))
        asked += always(BELOW)(found)
    return "; ".join(told), asked


SIMPLE_RULES = (
    sentence(
        "from 50 rules on CDP on the processor outperforms CDP on the GPU, under both policies",
        processor_ahead,
    ),
    sentence(
        "the more rules, the better the processor performs beside the GPU (and both abstracts)",
        of_ratios(CDP, in_end(BELOW)),
    ),
)


def much_slower_than_default(grid: Grid, engine: str, way: str) -> Told:
    """Claim that all engines take more time for an event than by default."""
    told, asked = [], []
    for one in (AIP, CDP, engine):
        name = line(EACH, one, way)
        usual, found = grid.at(name, DEFAULT), grid.line(name)
        told.append(f"{listed(name, found)} (by default {usual.value:.3g})")
        asked += [(value / usual, MUCH_ABOVE) for value in found]
    return "; ".join(told), asked


ACCEPTED = (
    sentence(
        "the time of all algorithms is significantly higher than in the default scenario",
        much_slower_than_default,
    ),
    sentence(
        "the GPU still performs better than CDP on the processor",
        of_ratios(CDP, always(ABOVE), (EACH,)),
    ),
    sentence("and than AIP", of_ratios(AIP, always(ABOVE), (EACH,))),
    sentence(
        "but with a smaller speedup over CDP than in the default scenario",
        beside_default(CDP, BELOW, (EACH,)),
    ),
    sentence(
        "the more composite events are accepted, the lower is its advantage",
        of_ratios(CDP, in_end(BELOW), (EACH,)),
    ),
)
