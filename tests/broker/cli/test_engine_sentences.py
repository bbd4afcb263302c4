"""What chapter 5 says of its figures holds where tables bear it out, and only there."""

import pytest

from benchmarks.reproduction import engine_sentences as sentences
from benchmarks.reproduction.engine_claims import AIP, CDP, COMPOSITES, sustained, us
from benchmarks.reproduction.engine_sweep import DROPPED, OUT, RATE_OFFERED
from benchmarks.reproduction.experiment import Claim, Figure, Table

Line = tuple[float, ...]


def table(
    values: Line, aip: Line, cdp: Line, composites: Line | None = None, rate: float = 50_000
) -> Table:
    """Of a sweep; ``composites`` are equal where they are left out."""
    columns: dict[str, tuple[Figure, ...]] = {
        "value": values,
        us(AIP): aip,
        us(CDP): cdp,
        COMPOSITES: composites or (5.0,) * len(values),
        sustained(AIP): (rate,) * len(values),
        sustained(CDP): (rate,) * len(values),
    }
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def verdicts(claims: tuple[Claim, ...]) -> list[bool | None]:
    return [claim.holds for claim in claims]


STATES = (2.0, 3.0, 4.0, 5.0)


def test_aip_stands_beside_cdp_where_there_are_automata():
    """Two states have none: that AIP is ahead there is chance."""
    ours = table(STATES, (10.0, 30.0, 40.0, 50.0), (12.0, 15.0, 20.0, 30.0))
    assert verdicts(sentences.states_each(ours))[2] is True
    closer = table(STATES, (10.0, 30.0, 40.0, 40.0), (12.0, 15.0, 20.0, 30.0))
    assert verdicts(sentences.states_each(closer))[2] is False
    behind = table(STATES, (10.0, 14.0, 40.0, 50.0), (12.0, 15.0, 20.0, 30.0))
    assert verdicts(sentences.states_each(behind))[2] is False


def test_to_grow_slightly_is_less_than_to_grow_by_half():
    def slightly(*aip: float) -> bool | None:
        return verdicts(sentences.states_last(table(STATES, aip, (9.0,) * 4)))[1]

    assert slightly(70, 75, 80, 90) is True
    assert slightly(70, 75, 80, 140) is False
    assert slightly(70, 75, 80, 60) is False


def test_to_be_proportional_is_neither_less_nor_more():
    def proportional(*time: float) -> bool | None:
        return verdicts(sentences.triggered(table((10.0, 100.0), time, time)))[0]

    assert proportional(12, 120) is True
    assert proportional(6, 24) is False
    assert proportional(6, 120) is False


def test_one_engine_measured_twice_is_judged_by_the_mean():
    """Each column alone would contradict the other."""
    uneven = table((1_000.0, 5_000.0), (12.6, 10.0), (10.8, 12.1))
    assert verdicts(sentences.rules_each(uneven))[1] is True
    assert verdicts(sentences.windows_last(uneven)) == [True]


def test_what_is_uneven_is_not_explained_as_a_rise():
    rising = table(STATES, (9.0,) * 4, (5.0, 6.0, 7.0, 8.0))
    uneven = table(STATES, (9.0,) * 4, (5.0, 6.0, 8.0, 5.0))
    first, second = (sentences.states_last(one)[0] for one in (rising, uneven))
    assert (first.holds, second.holds) == (False, False)
    assert sentences.MORE_TO_SELECT in first.measured
    assert "5, 6, 8, 5" in second.measured
    assert sentences.UNEVEN in second.measured


@pytest.mark.parametrize("loss", [1e4, 5e4])
def test_what_is_one_engine_is_not_told_apart(loss: float):
    """Whatever the figures of the columns are."""
    lines = [f"{rule} {share} % " for rule in ("R1", "R3") for share in sentences.SHARES]
    lines += [f"{share} % " for share in sentences.SHARES]
    columns: dict[str, tuple[Figure, ...]] = {RATE_OFFERED: (1e4, 5e4)}
    for line in lines:
        for name, lossy in ((AIP, 5e4), (CDP, loss)):
            columns[OUT.format(line + name)] = (2e5, 3e5)
            columns[DROPPED.format(line + name)] = (50.0 if lossy == 1e4 else 0.0, 50.0)
    offered = Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))
    assert verdicts(sentences.case_study(offered)) == [True, None, None]
    assert verdicts(sentences.averages(offered)) == [False, False, None, None, True]
