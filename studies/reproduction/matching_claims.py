"""What section 4.5 of the thesis says of its figures, sentence by sentence, each in its strength.

Law: what is said of an advantage needs one. That it grows, or falls, holds only where the method
that is said to be ahead is so.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from itertools import pairwise

import numpy as np

from studies.reproduction.experiment import Claim, Table
from studies.reproduction.methods import (
    ATOMIC,
    CCM,
    CORES,
    DISTINCT,
    OCM,
    OCM_1,
    ONCE,
    ORDERED,
    SFF,
    ms,
    speedup,
)
from studies.reproduction.seeds import estimates
from studies.reproduction.verdicts import (
    ABOVE,
    BELOW,
    MUCH_ABOVE,
    MUCH_BELOW,
    SAME,
    SLIGHTLY_ABOVE,
    Asked,
    Estimate,
    Range,
)

ON_GPU = "no device here; [the page of the GPU](gpu.md) has what one gave"
ONE_RESET = "OCM here resets its counts as it reads them out; there is no second way to compare"
SHARED_LOCK = "three threads of one process share Python's lock here, however many cores there are"
DEFAULT_MS, ZIPF_MS, DEPLOYED_MS = "default [ms]", "Zipf [ms]", "deployment [ms]"
SIZE_MB = "size [MB]"
"""Columns of table 4.2."""
Line = Sequence[Estimate]


def ocm_in(measured: Container[str], column: Callable[[str], str] = ms) -> str:
    """OCM as published, where it has been measured; else the one that shares out filters."""
    return ATOMIC if column(ATOMIC) in measured else OCM


def of_thesis(ocm: str) -> tuple[str, ...]:
    """The thesis's methods, without ours (``auto``)."""
    return SFF, OCM_1, ocm


def numbers(table: Table, column: str) -> np.ndarray:
    return np.array(table.column(column), np.float64)


def line_of(table: Table, column: str) -> list[Estimate]:
    """Timed figures from top to bottom, with what seeds differ by if there were several."""
    return [
        one.called(f"{column} at {place}")
        for place, one in zip(table.column(table.columns[0]), timed_in(table, column), strict=True)
    ]


def timed_in(table: Table, column: str) -> list[Estimate]:
    """The same without names. A method's speed as a multiple of SFF's follows from both times."""
    method, _, base = column.rpartition(" / ")
    if base == SFF and ms(SFF) in table.columns:
        pairs = zip(timed_in(table, ms(SFF)), timed_in(table, ms(method)), strict=True)
        return [one / other for one, other in pairs]
    return estimates(table, column)


def course(table: Table, *columns: str) -> str:
    """Columns' figures from first to last, in words."""
    return "; ".join(
        f"{column}: {', '.join(f'{one:.3g}' for one in numbers(table, column))}"
        for column in columns
    )


def claim(published: str, told: str, asked: Sequence[Asked]) -> Claim:
    return Claim.judged(published, told, asked)


def rise(table: Table, published: str, methods: Sequence[str], range_: Range = ABOVE) -> Claim:
    """How methods' times compare in the end with those at first."""
    asked = [(line[-1] / line[0], range_) for line in (line_of(table, ms(one)) for one in methods)]
    return claim(published, course(table, *map(ms, methods)), asked)


def ahead(line: Line, range_: Range = ABOVE) -> list[Asked]:
    """That a method is ahead, everywhere."""
    return [(one, range_) for one in line]


def of_ccm(table: Table, published: str, asked: Callable[[Line], list[Asked]]) -> Claim:
    """A sentence on CCM's speed as a multiple of SFF's."""
    if speedup(CCM) not in table.columns:
        return unmeasured(published)
    line = line_of(table, speedup(CCM))
    return claim(published, course(table, speedup(CCM)), asked(line))


def beside_ocm(table: Table, published: str, asked: Callable[[Line], list[Asked]]) -> Claim:
    """A sentence on OCM's times over CCM's."""
    own = ocm_in(table.columns)
    if ms(CCM) not in table.columns:
        return unmeasured(published)
    pairs = zip(line_of(table, ms(own)), line_of(table, ms(CCM)), strict=True)
    return claim(
        published, course(table, ms(own), ms(CCM)), asked([one / two for one, two in pairs])
    )


def unmeasured(published: str, why: str = ON_GPU) -> Claim:
    return Claim.unmeasured(published, why)


def of_attributes(table: Table) -> tuple[Claim, ...]:
    own = ocm_in(table.columns)
    ocm = line_of(table, speedup(own))
    return (
        rise(table, "all algorithms take longer with more attributes", of_thesis(own)),
        claim(
            "SFF's time grows faster, so OCM's advantage grows (4x with 1 to 6x with 9, six cores)",
            course(table, speedup(own)),
            [*ahead(ocm), (ocm[-1] / ocm[0], ABOVE)],
        ),
        of_ccm(
            table,
            "CCM is ten times faster than SFF with 9 attributes",
            lambda line: [(line[-1].times(1 / 10), ABOVE)],
        ),
        beside_ocm(table, "with one attribute CCM is behind OCM", lambda line: [(line[0], BELOW)]),
    )


def of_constraints(table: Table) -> tuple[Claim, ...]:
    own = ocm_in(table.columns)
    ocm, counts = line_of(table, speedup(own)), numbers(table, table.columns[0])
    sff, times = line_of(table, ms(SFF)), line_of(table, ms(own))
    few = [(one, BELOW if count <= 2 else ABOVE) for one, count in zip(ocm, counts, strict=True)]
    return (
        rise(table, "times grow with the constraints of a filter", of_thesis(own)),
        claim(
            "SFF's grow much faster than OCM's",
            course(table, ms(SFF), ms(own)),
            [((sff[-1] / sff[0]) / (times[-1] / times[0]), MUCH_ABOVE)],
        ),
        claim(
            "with 9 constraints a filter OCM is more than 6 times as fast as SFF, on six cores",
            f"{ocm[-1]} times, on {CORES}",
            [(ocm[-1], (CORES, np.inf))],
        ),
        claim(
            "with one or two constraints a filter, and only there, SFF is faster than OCM: its "
            "pruning works best",
            course(table, speedup(own)),
            few,
        ),
        of_ccm(
            table,
            "and than CCM",
            lambda line: [
                (one, BELOW) for one, count in zip(line, counts, strict=True) if count <= 2
            ],
        ),
        of_ccm(
            table,
            "with 9 constraints a filter CCM is more than 10 times as fast as SFF",
            lambda line: [(line[-1].times(1 / 10), ABOVE)],
        ),
    )


def of_filters(table: Table) -> tuple[Claim, ...]:
    own = ocm_in(table.columns)
    ocm, counts = line_of(table, speedup(own)), numbers(table, table.columns[0])
    times = line_of(table, ms(own))
    few = [(one, BELOW if count < 700 else ABOVE) for one, count in zip(ocm, counts, strict=True)]
    late = [one for one, count in zip(ocm, counts, strict=True) if count >= 50_000] or ocm[-1:]
    more = float(counts[0] / counts[-1])
    return (
        rise(table, "all algorithms take longer with more filters", of_thesis(own)),
        claim(
            "OCM's time grows more than linearly",
            course(table, ms(own)),
            [((times[-1] / times[0]).times(more), ABOVE)],
        ),
        claim(
            "OCM's advantage over SFF falls beyond 50,000 filters an interface",
            course(table, speedup(own)),
            [*ahead(late), (late[-1] / late[0], BELOW)],
        ),
        claim(
            "under 700 filters an interface, and only there, SFF is faster than OCM",
            course(table, speedup(own)),
            few,
        ),
        of_ccm(
            table,
            "and up to 1,000 it is faster than CCM",
            lambda line: [
                (one, BELOW) for one, count in zip(line, counts, strict=True) if count <= 1_000
            ],
        ),
        beside_ocm(
            table,
            "up to 10,000 filters OCM is faster than CCM",
            lambda line: [
                (one, BELOW) for one, count in zip(line, counts, strict=True) if count <= 10_000
            ],
        ),
        of_ccm(
            table,
            "CCM's advantage goes on growing, to 13x at 250,000",
            lambda line: [(line[-1] / line[0], ABOVE), (line[-1].times(1 / 13), ABOVE)],
        ),
    )


def of_interfaces(table: Table) -> tuple[Claim, ...]:
    own = ocm_in(table.columns)
    counts = numbers(table, table.columns[0])
    times, ocm = line_of(table, ms(own)), line_of(table, speedup(own))
    return (
        rise(
            table, "all times grow with the interfaces, which bring their filters", of_thesis(own)
        ),
        claim(
            "OCM's grows more than linearly",
            course(table, ms(own)),
            [((times[-1] / times[0]).times(float(counts[0] / counts[-1])), ABOVE)],
        ),
        claim(
            "so that its advantage over SFF falls",
            course(table, speedup(own)),
            [*ahead(ocm), (ocm[-1] / ocm[0], BELOW)],
        ),
        of_ccm(
            table,
            "CCM's advantage over SFF grows from 7x to more than 13x",
            lambda line: [(line[-1] / line[0], ABOVE), (line[-1].times(1 / 13), ABOVE)],
        ),
    )


def of_names(table: Table) -> tuple[Claim, ...]:
    own = ocm_in(table.columns)
    counts = numbers(table, table.columns[0]).tolist()
    at_hundred = counts.index(100) if 100 in counts else len(counts) - 1
    times, ocm = line_of(table, ms(own)), line_of(table, speedup(own))
    thirty = min(1, len(counts) - 1)
    early, late = times[0] / times[at_hundred], times[at_hundred] / times[-1]
    return (
        rise(table, "all algorithms are faster with more names", of_thesis(own), BELOW),
        claim(
            "above all from 10 to 100 names; then times tend to be stable",
            f"OCM's time falls {early} times up to 100 names, {late} times after",
            [(early / late, ABOVE)],
        ),
        claim(
            "OCM's advantage over SFF grows from 10 to 30 names, since pruning no longer helps",
            course(table, speedup(own)),
            [(ocm[thirty], ABOVE), (ocm[thirty] / ocm[0], ABOVE)],
        ),
        claim(
            "and falls after that",
            course(table, speedup(own)),
            [(ocm[thirty], ABOVE), (ocm[-1] / ocm[thirty], BELOW)],
        ),
        claim(
            "though even with 1,000 names OCM outperforms SFF",
            course(table, speedup(own)),
            [(ocm[-1], ABOVE)],
        ),
        of_ccm(
            table,
            "and so does CCM",
            lambda line: [(line[thirty] / line[0], ABOVE), (line[-1], ABOVE)],
        ),
        beside_ocm(
            table, "with more than 300 names CCM is behind OCM", lambda line: [(line[-1], BELOW)]
        ),
    )


def of_kinds(table: Table) -> tuple[Claim, ...]:
    own = ocm_in(table.columns)
    times, ocm = line_of(table, ms(own)), line_of(table, speedup(own))
    return (
        rise(table, "SFF's time grows with the share of constraints on numbers", (SFF,)),
        claim(
            "that of OCM is constant or falls",
            course(table, ms(own)),
            [(one / times[0], (0.0, SAME[1])) for one in times[1:]],
        ),
        claim(
            "so that its advantage constantly grows",
            course(table, speedup(own)),
            [*ahead(ocm), *((after / before, ABOVE) for before, after in pairwise(ocm))],
        ),
        of_ccm(table, "and so does CCM's", lambda line: [(line[-1] / line[0], ABOVE)]),
    )


def of_table_4_2(table: Table) -> tuple[Claim, ...]:
    """Table 4.2, and what the text says of variants."""
    methods = [str(row[0]) for row in table.rows]
    plain, skewed, deployed = (
        {
            method: one.called(method)
            for method, one in zip(methods, timed_in(table, column), strict=True)
        }
        for column in (DEFAULT_MS, ZIPF_MS, DEPLOYED_MS)
    )
    own = ocm_in(plain, str)
    sizes = zip(methods, numbers(table, SIZE_MB).tolist(), strict=True)
    size = {method: Estimate.exact(one, method) for method, one in sizes}
    by_default, by_zipf = plain[SFF] / plain[own], skewed[SFF] / skewed[own]
    alone, distinct = plain[SFF] / plain[OCM_1], plain[DISTINCT] / plain[OCM_1]
    scaling, sooner = plain[OCM_1] / plain[own], deployed[SFF] / deployed[OCM_1]
    told = f"{by_default} times by default, {by_zipf} with Zipf names, on {CORES} cores"
    return (
        claim(
            "OCM on all cores is much faster than SFF (4.92x, on six)",
            told,
            [(by_default, MUCH_ABOVE)],
        ),
        claim(
            "OCM on one thread is about as fast as SFF (1.21 ms, 1.04 ms)",
            f"{alone} times as fast",
            [(alone, (1.04 / 1.21, 1.21 / 1.04))],
        ),
        claim(
            "OCM scales very well with the cores: almost 6x with 6",
            f"{scaling} times with {CORES}",
            [(scaling, (0.9 * CORES, np.inf))],
        ),
        claim(
            "OCM scales linearly with the number of available cores (conclusions)",
            f"{scaling} times with {CORES}",
            [(scaling, (0.9 * CORES, np.inf))],
        ),
        unmeasured(
            "resetting counts by the parallel loop is much faster than by memset (4.4.2)", ONE_RESET
        ),
        claim(
            "OCM is deployed at least twice as fast as SFF (483 ms, 992 ms)",
            f"{sooner} times as fast",
            [(sooner, (2.0, np.inf))],
        ),
        claim(
            "OCM takes less memory than SFF (33.9 MB, 42.4 MB)",
            f"{size[OCM_1]} MB, {size[SFF]} MB",
            [(size[OCM_1] / size[SFF], BELOW)],
        ),
        claim(
            "removing duplicates does not pay: OCM takes longer then (0.27 ms instead of 0.21 ms)",
            f"on one thread {distinct} times as long",
            [(distinct, ABOVE)],
        ),
        claim(
            "Zipf names significantly slow all algorithms",
            "; ".join(f"{one} {skewed[one] / plain[one]} times" for one in of_thesis(own)),
            [(skewed[one] / plain[one], MUCH_ABOVE) for one in of_thesis(own)],
        ),
        claim(
            "and lower OCM's advantage over SFF (4.92x to 2.85x)",
            told,
            [(by_default, ABOVE), (by_zipf, ABOVE), (by_zipf / by_default, BELOW)],
        ),
        *by_ccm(plain, skewed, deployed),
        *by_variants(plain, skewed, deployed),
    )


Times = dict[str, Estimate]


def by_ccm(plain: Times, skewed: Times, deployed: Times) -> tuple[Claim, ...]:
    """What table 4.2 has of CCM."""
    sayings = (
        "CCM is 7.45 times as fast as SFF (0.139 ms)",
        "with Zipf names its speedup is the same (2.06 ms)",
        "CCM is deployed less than 50 ms later than OCM",
    )
    if CCM not in plain:
        return tuple(map(unmeasured, sayings))
    usual, zipf = plain[SFF] / plain[CCM], skewed[SFF] / skewed[CCM]
    later = deployed[CCM].value - deployed[OCM_1].value
    share = Estimate.single(max(later, 0.1) / 50, "ms later / 50")
    return (
        claim(sayings[0], f"{usual} times", [(usual, (7.45, np.inf))]),
        claim(sayings[1], f"{zipf} times, {usual} by default", [(zipf / usual, SAME)]),
        claim(sayings[2], f"{later:.3g} ms later", [(share, BELOW)]),
    )


def by_variants(plain: Times, skewed: Times, deployed: Times) -> tuple[Claim, ...]:
    """What the text has of CCM's tables arranged otherwise."""
    sayings = (
        "ordering constraints does not significantly decrease CCM's time in the default scenario",
        "with Zipf names it does (2.06 ms to 1.92 ms)",
        "and it slows deployment much",
        "removing duplicates slows CCM (0.139 ms to 0.31 ms)",
    )
    if not {CCM, ORDERED, ONCE} <= plain.keys():
        return tuple(map(unmeasured, sayings))
    usual, zipf = plain[ORDERED] / plain[CCM], skewed[ORDERED] / skewed[CCM]
    later, once = deployed[ORDERED] / deployed[CCM], plain[ONCE] / plain[CCM]
    return (
        claim(sayings[0], f"{usual} times as long", [(usual, (MUCH_BELOW[1], np.inf))]),
        claim(sayings[1], f"{zipf} times as long", [(zipf, BELOW)]),
        claim(sayings[2], f"{later} times as long", [(later, MUCH_ABOVE)]),
        claim(sayings[3], f"{once} times as long", [(once, ABOVE)]),
    )


def of_parts(table: Table, ccm: str, memset: str) -> tuple[Claim, ...]:
    """Figure 4.6."""
    rows = {str(row[0]): [float(one) for one in row[1:]] for row in table.rows}  # type: ignore[arg-type]
    into, matching, out = rows[OCM_1]
    here = f"OCM on one thread: {100 * (into + out) / (into + matching + out):.2g} % around it"
    sayings = (
        "the kernel's cost dominates that of copies to and from the GPU (12 %)",
        "resetting inside the kernel makes CCM about 30 % faster",
    )
    if ccm not in rows:
        return unmeasured(sayings[0], f"{ON_GPU}; {here}"), unmeasured(sayings[1])
    to, kernel, back = rows[ccm]
    share = Estimate.single((to + back) / kernel, "copies over kernel")
    asked = [] if memset not in rows else [(gain_of(rows, ccm, memset), (1.2, np.inf))]
    return (
        claim(sayings[0], f"copies are {share} of the kernel's time; {here}", [(share, BELOW)]),
        claim(sayings[1], f"{asked[0][0]} times as fast" if asked else ON_GPU, asked),
    )


def gain_of(rows: dict[str, list[float]], ccm: str, memset: str) -> Estimate:
    """What CCM gains over itself with memsets."""
    return Estimate.single(sum(rows[memset]) / sum(rows[ccm]), "with memsets over without")


def of_parallel(table: Table) -> tuple[Claim, ...]:
    """Figure 4.13."""
    own = ocm_in(table.columns)
    sff, ocm = line_of(table, ms(SFF)), line_of(table, ms(own))
    gains = [line[0] / min(line, key=lambda one: one.value) for line in (sff, ocm)]
    return (
        claim(
            "SFF gains significantly from events in parallel (1,035 ms to 240 ms, six cores)",
            course(table, ms(SFF)),
            [(gains[0], MUCH_ABOVE)],
        ),
        claim(
            "OCM does not gain: it has all cores already",
            course(table, ms(own)),
            [(gains[1], (0.0, SAME[1]))],
        ),
        by_kernels_of_several(table, "CCM has a small benefit (141 ms to 114 ms)"),
    )


def by_kernels_of_several(table: Table, published: str) -> Claim:
    """What figure 4.13 has of CCM."""
    if ms(CCM) not in table.columns:
        return unmeasured(published)
    line = line_of(table, ms(CCM))
    gain = line[0] / min(line, key=lambda one: one.value)
    return claim(published, course(table, ms(CCM)), [(gain, SLIGHTLY_ABOVE)])


def of_system(table: Table) -> tuple[Claim, ...]:
    """Figure 4.14."""
    offered = numbers(table, table.columns[0]).tolist()
    atomic = "OCM, atomic counts"
    own = atomic if f"{atomic} [1/s]" in table.columns else "OCM"
    lines = {name: timed_in(table, f"{name} [1/s]") for name in ("SFF", own)}
    peaks = {
        name: max(rates, key=lambda one: one.value).called(name) for name, rates in lines.items()
    }
    told = ", ".join(f"{name} up to {one.value:,.0f}/s" for name, one in peaks.items())
    return (
        claim(
            "the processing rate follows the input rate until the engine cannot follow",
            told,
            [
                (rates[at].times(1 / offered[at]).called(f"{name} at {told}"), range_)
                for name, rates in lines.items()
                for at, told, range_ in ((0, "first", SAME), (-1, "last", BELOW))
            ],
        ),
        unmeasured(
            "OCM is slower in the system than alone (4,000/s of 4,700): others need its cores",
            SHARED_LOCK,
        ),
        claim(
            "OCM's peak is above SFF's (4,000/s; 2,600/s with events in parallel)",
            f"{told} (one by one)",
            [(peaks[own] / peaks["SFF"], ABOVE)],
        ),
        unmeasured(
            "CCM leaves the processor to the others, and loses nothing so",
            SHARED_LOCK if "CCM [1/s]" in table.columns else ON_GPU,
        ),
    )
