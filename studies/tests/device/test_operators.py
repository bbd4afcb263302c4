"""Operators on a device give what their sequential definitions give."""

import random
from typing import Any

import pytest
from operating import (
    A,
    B,
    check_aggregate,
    check_filter,
    check_join,
    check_window,
    events,
    stream_of,
)
from pairs import some_of

from matcher.gpu.device import device
from studies import bench_operators as benchmark
from studies.operators import (
    Aggregate,
    Chain,
    Filter,
    Join,
    Length,
    Stream,
    Window,
    operator,
    pairing,
    places,
)
from studies.operators.naive import rows_of
from studies.operators.places import HOST, DevicePlace

PLACE = DevicePlace(device())
SIMULATED = PLACE.simulated
SEEDS = range(3) if SIMULATED else range(34)
SIZES = (5, 0, 9, 7) if SIMULATED else (7, 0, 1, 130, 2, 300)
PAIRS = ((4, 5), (0, 2), (7, 6)) if SIMULATED else ((7, 9), (0, 3), (4, 0), (200, 250), (120, 9))


@pytest.mark.parametrize("seed", [4, 7, 8, 13] if SIMULATED else SEEDS)
def test_random_filters(seed: int) -> None:
    check_filter(PLACE, seed, SIZES)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_windows(seed: int) -> None:
    check_window(PLACE, seed, SIZES)


@pytest.mark.parametrize("seed", [1, 3, 5, 7] if SIMULATED else SEEDS)
def test_random_joins(seed: int) -> None:
    check_join(PLACE, seed, PAIRS)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_aggregates(seed: int) -> None:
    check_aggregate(PLACE, seed, SIZES)


def test_a_filter_ahead_of_a_window_stays_on_the_device() -> None:
    chain = Chain(Filter(A, "x > 0", device=PLACE), Window(A, Length(3), device=PLACE))
    assert len(chain.operators) == 1
    apart = Chain(Filter(A, "x > 0", device="cpu"), Window(A, Length(3), device="cpu"))
    batches = stream_of(random.Random(5), A, SIZES)
    for one, other in zip(chain.stream(batches), apart.stream(batches), strict=True):
        assert rows_of(one.events) == rows_of(other.events)
        assert one.expired.tolist() == other.expired.tolist()


def test_more_pairs_than_there_is_room_for_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "ROOM_MAX", 4)
    check_join(PLACE, 0, PAIRS)


def test_counts_that_many_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "WIDE", 1)
    check_filter(PLACE, 7, SIZES)
    check_join(PLACE, 1, PAIRS)


def test_texts_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "TEXTS_MAX", 2)
    check_join(PLACE, 2, PAIRS)
    check_aggregate(PLACE, 2, SIZES)


def test_the_published_join_finds_and_loses_what_it_does_on_the_processor() -> None:
    rng, made = random.Random(6), []
    for place in (PLACE, HOST):
        streams = Stream(A, "a", Length(3)), Stream(B, "b", Length(4))
        made.append(Join(*streams, "a.x > b.y", {"x": "a.x"}, exact=False, device=place))
    for begin in range(0, 60, 20):
        batch = (
            events(rng, A, sorted(begin + rng.randrange(20) for _ in range(6))),
            events(rng, B, sorted(begin + rng.randrange(20) for _ in range(7))),
        )
        found, expected = (rows_of(join.push(batch)) for join in made)
        assert found == expected
    assert made[0].loss == made[1].loss
    assert made[0].loss.lost > 0


def test_an_exact_sum_of_floats_is_the_processors() -> None:
    made = Aggregate(A, Length(3), {"sum": "Sum(A().v)"}, device=PLACE)
    assert made.on_processor
    assert made.device == "cpu"


@pytest.mark.skipif(not SIMULATED, reason="on a device it is run for its figures")
def test_the_benchmark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "TIMES", 1)
    rows = list(benchmark.run(quick=True))
    assert all(row.value for row in rows), rows
    parts = {row.name.split("/")[1].split(",")[0] for row in rows}
    assert parts == {"filter", "join", "join by distance", "mix", "aggregate"}


@pytest.mark.parametrize("launches", some_of([3, 6, 9, 12, 15, 18, 21, 30, 40], 0, 2, 5, 8))
@pytest.mark.parametrize("check", [check_filter, check_window, check_join, check_aggregate])
def test_a_device_that_fails_in_mid_stream(
    check: Any, launches: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = iter(range(launches))
    launch = PLACE.on.launch

    def failing(*arguments: Any) -> None:
        if next(left, None) is None:
            raise RuntimeError("an illegal address")
        launch(*arguments)

    monkeypatch.setattr(PLACE.on, "launch", failing)
    check(PLACE, launches, PAIRS if check is check_join else SIZES)
    if launches < 10:
        assert "failed, the processor goes on: RuntimeError: an illegal address" in caplog.text


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfMemoryError(Exception):
        pass

    def none(*_: Any) -> None:
        raise OutOfMemoryError

    monkeypatch.setattr(PLACE.on, "empty", none)
    with pytest.raises(MemoryError, match=r"bytes more than .* has left: shorten the window"):
        Window(A, Length(3), device=PLACE)


def test_a_device_that_fails_while_events_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise RuntimeError("an illegal address")

    join = Join(Stream(A, "a", Length(9)), Stream(B, "b", Length(9)), "", {}, device=PLACE)
    rng = random.Random(2)
    join.enter((events(rng, A, [1]), events(rng, B, [1, 2])))
    monkeypatch.setattr(PLACE.on, "launch", none)
    join.enter((events(rng, A, [3]), events(rng, B, [3, 4])))
    assert join.failure == "RuntimeError: an illegal address"
    found = join.push((events(rng, A, [9]), None))
    assert len(found) == 4
    assert found.ids.sequence.tolist() == [1, 2, 3, 4]
