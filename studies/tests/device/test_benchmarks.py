"""The parts of ``studies.bench_gpu`` that need a device, at tiny sizes where it is simulated."""

from collections.abc import Sequence

import pytest

from benchmarks.report import Row
from matcher.gpu.device import device
from studies.device import bandwidth, chapter4, targets
from studies.device.streams import CDP, GRAPHS, LAUNCHED, Stream, filled, take, timings
from studies.reproduction.engine_workloads import Joined
from studies.reproduction.gpu_tables import Kept
from studies.reproduction.methods import BATCHED, CCM
from studies.reproduction.system import SYSTEMS

SMALL = Joined(window=6, values=3)


def found_by(name: str, stream: Stream) -> list[int]:
    """Composite events of some turns, of one terminator and of several."""
    detector = filled(name, stream).detector
    first, found = stream.filling, []
    for at_once, count in ((1, 2), (3, 1)):
        turns = stream.turns(at_once, first, count)
        found += [take(detector, turn) for turn in turns]
        first = turns[-1][1]
    return found


@pytest.mark.parametrize("policy", ["each", "last"])
def test_engines_find_the_same_in_each_turn(policy: str) -> None:
    stream = Stream.joined(Joined(policy, window=6, values=3))
    expected = found_by(CDP, stream)
    assert sum(expected) > 0
    assert found_by(GRAPHS, stream) == expected


def test_no_terminator_comes_before_windows_are_full() -> None:
    stream = Stream.joined(SMALL)
    assert stream.filling == 12
    (turn, *_) = stream.turns(1, stream.filling, 1)
    batches, mark = turn
    assert sum(batch.type.name == "S0_0" for batch in batches) == 1
    assert max(int(batch.time[-1]) for batch in batches) == mark - 1
    assert min(int(batch.time[0]) for batch in batches) >= stream.filling


def test_a_predicate_is_asked_by_a_rule_and_by_a_loop() -> None:
    predicate, window = targets.PREDICATES[1], 8
    label = f"targets/{predicate.name}, window of {window:,}"
    rows = list(targets.scans(predicate, window, (CDP, GRAPHS, LAUNCHED)))
    names = [row.name.removeprefix(f"{label}/") for row in rows]
    alone = [row for row in rows if "kernels alone" in row.name]
    assert len(alone) == 4
    assert all("% of a copy's" in row.note for row in alone)
    assert [
        name for name in names if "alone" not in name and "waited" not in name
    ] == expected_names(names)
    assert all(row.value is not None and row.value > 0 for row in rows)
    assert all(row.baseline_value == rows[0].value for row in rows[1:])


def expected_names(names: Sequence[str]) -> list[str]:
    ways = ("", next(name for name in names if "at once" in name).partition(GRAPHS)[2])
    return ["numba scan", CDP, *(f"{one}{way}" for one in (GRAPHS, LAUNCHED) for way in ways)]


def test_what_a_turn_takes_is_told_for_each_way() -> None:
    stream = Stream.joined(SMALL)
    told = dict(timings(filled(CDP, stream), stream))
    assert next(iter(told)) == 1
    assert all(one.event_us < one.terminator_us for one in told.values())
    assert {one.alone for one in told.values()} == {None}


def test_a_device_is_told_by_what_it_copies() -> None:
    rows = list(bandwidth.run(quick=True))
    assert all(row.value is not None and row.value > 0 for row in rows)
    assert [row.unit for row in rows] == ["GB/s", *["us"] * 10]
    assert bandwidth.share(3e6, 1e-3, 6e9) == ("moves 3 MB at least: 3 GB/s, 50 % of a copy's")


def test_a_device_is_ahead_from_the_least_window_on_of_which_it_stays_so() -> None:
    def rows(window: int, cpu: float, gpu: float) -> list[Row]:
        label = f"targets/a sum, window of {window:,}"
        return [Row(f"{label}/{CDP}", cpu, "us"), Row(f"{label}/{GRAPHS}", gpu, "us")]

    found = {1_000_000: rows(1_000_000, 99.0, 30.0), 1_000: rows(1_000, 9.0, 20.0)}
    found |= {100: rows(100, 30.0, 20.0), 10_000: rows(10_000, 40.0, 25.0)}
    (row,) = targets.crossovers(found)
    assert row.name == f"targets/a sum, crossover/{GRAPHS} ahead of {CDP}"
    assert row.value == 10_000
    assert list(targets.crossovers({1_000: rows(1_000, 9.0, 20.0)})) == []


@pytest.mark.skipif(not device().simulated, reason="on a device it is run for its figures")
def test_chapter_4_has_ccm_and_the_batched_matcher_beside_the_processors() -> None:
    rows = list(chapter4.run(quick=True))
    assert all(row.value is not None and row.value > 0 for row in rows), rows
    system = {row.name.split("/")[2] for row in rows if row.name.startswith("system/")}
    assert system == {*SYSTEMS}
    places = {row.name.split("/")[1] for row in rows if row.name.startswith("chapter 4/")}
    assert {"default", "2 at once", "40 interfaces"} < places
    kept = Kept(rows, ())
    lines = {str(row[0]) for row in kept.table("", "chapter 4/").rows}
    assert {f"{method} [ms]" for method in (CCM, BATCHED, "OCM")} < lines
    assert kept.table("", "system/").columns == ("", "20")
