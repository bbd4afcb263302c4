"""What chapter 5 says of its figures holds where tables bear it out, and only there."""

import pytest

from studies.reproduction import engine_sentences as sentences
from studies.reproduction.engine_claims import (
    AIP,
    CDP,
    COMPOSITES,
    DROPPED,
    NO_AIP,
    OUT,
    RATE_OFFERED,
    loss_claim,
    us,
)
from studies.reproduction.experiment import Claim, Figure, Table
from studies.reproduction.seeds import half
from studies.reproduction.verdicts import Verdict

Line = tuple[float, ...]
HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
STATES = (2.0, 3.0, 4.0, 5.0)


def table(
    values: Line, aip: Line, cdp: Line, composites: Line | None = None, spread: float = 0.01
) -> Table:
    """Of a sweep; ``composites`` are equal where they are left out."""
    columns: dict[str, tuple[Figure, ...]] = {
        "value": values,
        us(AIP): aip,
        half(us(AIP)): tuple(spread * one for one in aip),
        us(CDP): cdp,
        half(us(CDP)): tuple(spread * one for one in cdp),
        COMPOSITES: composites or (5.0,) * len(values),
    }
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def verdicts(claims: tuple[Claim, ...]) -> list[Verdict]:
    return [claim.verdict for claim in claims]


def test_aip_stands_beside_cdp() -> None:
    ours = table(STATES, (13.0, 30.0, 40.0, 50.0), (12.0, 15.0, 20.0, 30.0))
    assert verdicts(sentences.states_each(ours))[2:] == [HOLDS, HOLDS]
    closer = table(STATES, (30.0, 30.0, 40.0, 40.0), (12.0, 15.0, 20.0, 30.0))
    assert verdicts(sentences.states_each(closer))[2:] == [HOLDS, FAILS]
    behind = table(STATES, (10.0, 30.0, 40.0, 50.0), (12.0, 15.0, 20.0, 30.0))
    assert verdicts(sentences.states_each(behind))[2] is FAILS


def test_without_aip_as_published_nothing_is_said_of_it() -> None:
    """As in a table that was measured before there was one."""
    whole = table(STATES, (13.0, 30.0, 40.0, 50.0), (12.0, 15.0, 20.0, 30.0))
    places = [place for place, name in enumerate(whole.columns) if AIP not in name]
    columns = tuple(whole.columns[place] for place in places)
    rows = tuple(tuple(row[place] for place in places) for row in whole.rows)
    told = sentences.states_each(Table(columns, rows))
    assert verdicts(told) == [HOLDS, *[Verdict.UNMEASURED] * 3]
    assert told[1].measured == NO_AIP


def test_the_figures_of_a_sentence_are_its_bounds() -> None:
    def slightly(*aip: float) -> Verdict:
        return verdicts(sentences.states_last(table(STATES, aip, (9.0,) * 4)))[1]

    assert slightly(70, 75, 80, 86) is HOLDS
    assert slightly(70, 75, 80, 90) is OPEN
    assert slightly(70, 75, 80, 140) is FAILS
    assert slightly(70, 75, 80, 60) is FAILS


def test_to_be_proportional_is_neither_less_nor_more_and_each_is_explained_for_itself() -> None:
    def proportional(*time: float) -> Claim:
        grown = (5.0, 500.0)
        return sentences.triggered(table((10.0, 100.0), time, time, grown))[1]

    assert proportional(12, 120).verdict is HOLDS
    less, more = proportional(6, 24), proportional(6, 120)
    assert (less.verdict, more.verdict) == (FAILS, FAILS)
    assert "by itself" in less.measured
    assert "by itself" not in more.measured
    assert "100 times the composite events" in more.measured


def test_a_sentence_on_both_is_judged_by_each() -> None:
    still = table((1_000.0, 5_000.0), (12.6, 12.5), (10.8, 10.9))
    assert verdicts(sentences.windows_last(still)) == [HOLDS]
    uneven = table((1_000.0, 5_000.0), (12.6, 20.0), (10.8, 10.9))
    assert verdicts(sentences.windows_last(uneven)) == [FAILS]


def test_wide_intervals_tell_nothing() -> None:
    wide = table((1.0, 2.0), (10.0, 11.0), (10.0, 11.0), spread=0.6)
    assert verdicts(sentences.windows_last(wide)) == [OPEN]
    assert verdicts(sentences.windows_each(wide))[0] is OPEN


def offered(aip: float, cdp: float) -> Table:
    """Of figures 5.11 and 5.12: what lines gave at two rates; at the second all lose events."""
    lines = [f"{rule} {share} % " for rule in ("R1", "R3") for share in sentences.SHARES]
    lines += [f"{share} % " for share in sentences.SHARES]
    columns: dict[str, tuple[Figure, ...]] = {RATE_OFFERED: (1e4, 5e4)}
    for line in lines:
        for name, most in ((AIP, aip), (CDP, cdp)):
            columns[OUT.format(line + name)] = (most, most)
            columns[half(OUT.format(line + name))] = (most / 100, most / 100)
            columns[DROPPED.format(line + name)] = (0.0, 50.0)
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def test_throughput_of_aip_stands_beside_that_of_cdp() -> None:
    behind, ahead = offered(2e5, 3e5), offered(3e5, 2e5)
    assert verdicts(sentences.case_study(behind))[3:] == [HOLDS, FAILS]  # R3, and R1
    assert verdicts(sentences.case_study(ahead))[3:] == [FAILS, FAILS]  # and only there
    _, level, *_, simpler, esper = verdicts(sentences.averages(behind))
    assert (level, simpler, esper) == (HOLDS, HOLDS, Verdict.UNMEASURED)


def curves(**lines: list[tuple[float, float]]) -> Table:
    """Throughput and loss in percent, by line, at 500, 1,000 and 5,000 events/s."""
    columns: dict[str, list[Figure]] = {RATE_OFFERED: [500, 1_000, 5_000]}
    for line, points in lines.items():
        name = f"{line.replace('_', ' ')[1:]} {CDP}"
        rest = [None] * (3 - len(points))
        columns[OUT.format(name)] = [*(out for out, _ in points), *rest]
        columns[DROPPED.format(name)] = [*(lost for _, lost in points), *rest]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        ([(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)], Verdict.ONCE_WITHIN),
        ([(1.0, 0.0), (2.0, 0.01), (3.0, 0.0)], Verdict.ONCE_OUTSIDE),  # nothing is nothing
        ([(1.0, 0.0), (2.0, 5.0)], Verdict.ONCE_OUTSIDE),
        ([(1.0, 0.0), (2.0, 0.0)], Verdict.UNMEASURED),  # nobody offered it more
    ],
)
def test_a_rate_that_was_not_offered_is_not_known(
    points: list[tuple[float, float]], verdict: Verdict
) -> None:
    told = loss_claim("nothing up to 5,000", curves(_2_states=points), ["2 states CDP"], 5_000)
    assert told.verdict is verdict


def test_a_rate_is_sustained_below_that_of_the_first_loss() -> None:
    held = curves(
        _2_states=[(1e5, 0.0), (4e5, 0.0), (1.5e6, 0.0)],
        _3_states=[(1e6, 0.0), (8e6, 0.0), (1e7, 24.0)],
        _4_states=[(9e5, 0.0), (2e6, 4.0)],
    )
    rises, falls, rate, *_ = sentences.throughput_of_states_each(held)
    assert (rises.verdict, falls.verdict) == (Verdict.ONCE_WITHIN, Verdict.ONCE_WITHIN)
    assert (
        rate.measured == "sustained: 2 states CDP 5,000/s; 3 states CDP 1,000/s; 4 states CDP 500/s"
    )
    assert rate.verdict is Verdict.ONCE_OUTSIDE


def test_a_curve_that_ended_before_a_hundredth_was_lost_has_no_greatest_throughput() -> None:
    held = curves(
        _2_states=[(1e5, 0.0), (4e5, 0.0), (1.5e6, 0.0)],
        _3_states=[(1e6, 0.0), (8e6, 0.0), (1e7, 24.0)],
        _4_states=[(9e5, 0.0), (2e6, 0.9)],
    )
    falls = sentences.throughput_of_states_each(held)[1]
    assert falls.verdict is Verdict.UNMEASURED
    assert "4 states CDP was broken off at 1,000 events/s, where it dropped 0.9 %" in falls.measured
