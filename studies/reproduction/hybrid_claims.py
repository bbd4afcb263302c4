"""What the paper on hybrid parallelism says of its figures 6 to 10, put as ratios (verdicts)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from studies.reproduction.engine_claims import Line, against, course, figures, in_the_end
from studies.reproduction.experiment import Claim, Table
from studies.reproduction.verdicts import ABOVE, BELOW, SAME, Asked, Estimate

HYBRID, RIP = "hybrid, simulated [x]", "RIP, simulated [x]"
KLEENE, RIP_KLEENE = "hybrid, Kleene, simulated [x]", "RIP, Kleene, simulated [x]"
WORKERS = "hybrid, workers alone, simulated [x]"
OVER_AIP = "hybrid, simulated, over AIP as published, real [x]"
WITHIN_WORDS = (10**0.5, 1e3)
"""Half an order of magnitude to three."""
ORDERS = {"stocks": (10.0, 1e2), "sensors": (1e2, 1e3)}
"""Up to two orders of magnitude, up to three: the greatest lies within the last of these."""
LIMIT = 16
"""Cores beyond which a sequence over the sensors gains nothing."""


def line(table: Table, column: str) -> Line:
    """A column's figures: exact if they are simulated alone, else timed in one run."""
    make = Estimate.single if " real [" in column else Estimate.exact
    pairs = zip(table.column(table.columns[0]), table.column(column), strict=True)
    return [
        make(float(one), f"{_short(column)} at {place}") for place, one in pairs if one is not None
    ]


def said(published: str, table: Table, columns: Sequence[str], asked: Sequence[Asked]) -> Claim:
    """A sentence on some columns, judged."""
    told = "; ".join(course(_short(one), line(table, one)) for one in columns)
    return Claim.judged(published, told, asked)


def _short(column: str) -> str:
    return column.rpartition(" [")[0] or column


def over_aip(claim: Claim, table: Table, asked: Sequence[Asked]) -> Claim:
    """The same sentence, judged over AIP as published too."""
    return replace(claim, otherwise=said(claim.published, table, [OVER_AIP], asked))


# --- figure 6 ------------------------------------------------------------------------------------


def _gain(table: Table) -> Claim:
    published = "a speed-up of half an order of magnitude to three, in most scenarios"

    def asked(column: str) -> list[Asked]:
        return [(one, WITHIN_WORDS) for one in line(table, column)]

    return over_aip(said(published, table, [HYBRID], asked(HYBRID)), table, asked(OVER_AIP))


def _rises(table: Table, published: str, columns: Sequence[str]) -> Claim:
    asked = [one for column in columns for one in in_the_end(line(table, column), ABOVE)]
    claim = said(published, table, columns, asked)
    return over_aip(claim, table, in_the_end(line(table, OVER_AIP), ABOVE))


def _against_rip(table: Table, data: str, columns: Sequence[tuple[str, str]]) -> tuple[Claim, ...]:
    lines = [(line(table, one), line(table, other)) for one, other in columns]
    names = [name for pair in columns for name in pair]
    ratios = [
        one / other for ours, theirs in lines for one, other in zip(ours, theirs, strict=True)
    ]
    greatest = max(ratios, key=lambda one: one.value)
    orders = {"stocks": "two", "sensors": "three"}[data]
    higher = [one for ours, theirs in lines for one in against(ours, theirs, ABOVE)]
    return (
        said("a higher throughput than RIP in all cases", table, names, higher),
        Claim.judged(
            f"up to {orders} orders of magnitude more than RIP",
            f"{greatest} times RIP's at most",
            [(greatest, ORDERS[data])],
        ),
    )


def _rip_idles(table: Table) -> Claim:
    asked = [(one, SAME) for one in line(table, RIP)]
    return said("RIP's speed-up on the sensors is very close to 1", table, [RIP], asked)


def _both_rise(table: Table) -> Claim:
    ours, theirs = line(table, HYBRID), line(table, RIP)
    asked = [
        *in_the_end(theirs, ABOVE),
        ((ours[-1] / ours[0]) / (theirs[-1] / theirs[0]), ABOVE),
    ]
    return said(
        "RIP's speed-up rises with the pattern's complexity, the hybrid's considerably more",
        table,
        [HYBRID, RIP],
        asked,
    )


def windows(data: str, table: Table) -> tuple[Claim, ...]:
    """Figures 6a and 6d."""
    return (
        _gain(table),
        _rises(table, "the speed-up rises with the window", [HYBRID, KLEENE]),
        *_against_rip(table, data, [(HYBRID, RIP), (KLEENE, RIP_KLEENE)]),
        *([_both_rise(table)] if data == "stocks" else [_rip_idles(table)]),
    )


def cores(data: str, table: Table) -> tuple[Claim, ...]:
    """Figures 6b and 6e."""
    ours, kleene = line(table, HYBRID), line(table, KLEENE)
    places = figures(table, table.columns[0])
    scaling = [(HYBRID, ours)] if data == "stocks" else []
    scaling.append((KLEENE, kleene))
    asked = [(after / before, ABOVE) for _, one in scaling for before, after in pairwise(one)]
    names = [name for name, _ in scaling]
    claims = [said("it scales well when adding more cores", table, names, asked)]
    if data == "sensors" and LIMIT in places:
        at = places.index(LIMIT)
        limit = [(ours[at] / ours[0], ABOVE), *((one / ours[at], SAME) for one in ours[at + 1 :])]
        published = f"a sequence over the sensors hits a limit at about {LIMIT} cores"
        claims.append(said(published, table, [HYBRID, WORKERS], limit))
    return (*claims, *_against_rip(table, data, [(HYBRID, RIP), (KLEENE, RIP_KLEENE)]))


def lengths(data: str, table: Table) -> tuple[Claim, ...]:
    """Figures 6c and 6f."""
    return (
        _rises(table, "the speed-up rises with the pattern's length", [HYBRID]),
        *_against_rip(table, data, [(HYBRID, RIP)]),
        *([_both_rise(table)] if data == "stocks" else [_rip_idles(table)]),
    )


# --- figures 7 and 8 -----------------------------------------------------------------------------


def columns_of(unit: str) -> tuple[str, str, str]:
    """The columns of the three systems, in a unit."""
    return (
        f"hybrid, simulated [{unit}]",
        f"RIP, simulated [{unit}]",
        f"one core, simulated [{unit}]",
    )


def latencies(table: Table) -> tuple[Claim, ...]:
    """Figure 7."""
    ours, rip, alone = columns_of("ms")
    return tuple(
        said(published, table, [ours, other], against(line(table, ours), line(table, other), BELOW))
        for published, other in (
            ("matches are detected with less latency than by RIP", rip),
            ("and with less than by the sequential engine", alone),
        )
    )


def memories(table: Table) -> tuple[Claim, ...]:
    """Figure 8."""
    ours, _, alone = columns_of("MB")
    asked = against(line(table, ours), line(table, alone), BELOW)
    return (
        said("the hybrid uses less memory than the sequential engine", table, [ours, alone], asked),
    )


# --- figures 9 and 10 ----------------------------------------------------------------------------

FULL, STATE = "fully dynamic, simulated [events/s]", "state-dynamic, simulated [events/s]"
PRINTED = "fully dynamic, the other agent as printed, simulated [events/s]"
STATE_CAPPED = "state-dynamic, capped, simulated [events/s]"
STATIC, CAPPED = "static, simulated [events/s]", "static, capped, simulated [events/s]"
ROLES = (FULL, PRINTED, STATE, STATE_CAPPED, STATIC, CAPPED)
IDLE = "idle threads, static, capped"
FUSED, APART = "two agents fused, simulated [events/s]", "none fused, simulated [events/s]"


def dynamic(by_cores: bool, table: Table) -> tuple[Claim, ...]:
    """Figure 9."""
    gains = against(line(table, FULL), line(table, STATE), ABOVE)
    claims = [
        said(
            "fully dynamic allocation improves the throughput at every value",
            table,
            [FULL, STATE],
            gains,
        )
    ]
    if by_cores:
        claims.append(_most_with_few(table, "few cores benefit the most", gains))
    return tuple(claims)


def roles(table: Table) -> tuple[Claim, ...]:
    """What the text says of roles without a figure: sections IV-A and V."""
    return (
        said(
            "state-dynamic allocation outweighs its synchronization: nobody in an agent idles (V)",
            table,
            [STATE, STATIC],
            against(line(table, STATE), line(table, STATIC), ABOVE),
        ),
        said(
            "more workers than the caps allow are wasteful (IV-A)",
            table,
            [CAPPED, STATIC, IDLE],
            against(line(table, CAPPED), line(table, STATIC), ABOVE),
        ),
    )


def fused(by_cores: bool, table: Table) -> tuple[Claim, ...]:
    """Figure 10."""
    gains = against(line(table, FUSED), line(table, APART), ABOVE)
    better = sum(one.value > 1 for one, _ in gains)
    claims = [
        Claim.judged(
            "fusion gains throughput in most cases",
            f"in {better} of {len(gains)}: "
            + ", ".join(f"{one.value:.3g}" for one, _ in gains)
            + " times",
            [(Estimate.exact(better / len(gains), "share of the cases"), (0.5, 1.01))],
        )
    ]
    if by_cores:
        least = int(figures(table, table.columns[0])[0])
        published = f"the gain is most at {least} threads, the fewest without fusion"
        claims.append(_most_with_few(table, published, gains))
    return tuple(claims)


def _most_with_few(table: Table, published: str, gains: Sequence[Asked]) -> Claim:
    """That a gain is greatest in the first row."""
    ratios = [one for one, _ in gains]
    told = ", ".join(f"{one.value:.3g}" for one in ratios)
    asked = [(ratios[0] / one, ABOVE) for one in ratios[1:]]
    return Claim.judged(published, f"gains from few cores to many: {told}", asked)
