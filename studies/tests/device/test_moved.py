"""Bytes that are counted for launches, beside the words that simulated kernels ask for."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest
from operating import check_aggregate, check_filter, check_join, check_window

from matcher.gpu.device import Device, device
from matcher.model import EventType
from rules.engine.gpu import kernels, memory, records
from studies.bench_operators import SCAN, TimedPlace
from studies.device import apart, targets
from studies.device.moved import WORD
from studies.device.streams import (
    GRAPHS,
    Engine,
    Recordings,
    Stream,
    filled,
    take,
    timings,
)
from studies.reproduction.engine_workloads import Events, Joined, Workload

WINDOW = 12
BODIES = {
    "keys": "last B(v = $x) as b within {w} us from a",
    "a second rank": "2-last B(w != $x) as b within {w} us from a",
    "a first one, by a program": "first B(v + w > 4) as b within {w} us from a",
    "each, by two terms": "each B(v != $x, w > a.w) as b within {w} us from a",
    "each of a range": "each B(v < $x) as b within {w} us from a",
    "the last of a range": "last B(v < $x) as b within {w} us from a",
    "a sum of all": "last B() as b within {w} us from a and $s = Sum(B().w within {w} us from a)",
    "a negation": "last B() as b within {w} us from a and not B(v > $x + 2) within {w} us from a",
}


def stream_of(body: str) -> Stream:
    """A window full of B with small values, then A and B in turn."""
    rules = (
        "event A(v: int, w: int)\nevent B(v: int, w: int)\nrule r: define Found(v: int) from "
        f"A(v = $x) as a and {body.format(w=WINDOW)} where v = b.v"
    )
    types = tuple(EventType.of(name, v="int", w="int") for name in "AB")

    def events(size: int, chance: np.random.Generator) -> Events:
        kinds = np.arange(size) % 2
        kinds[:WINDOW] = 1
        drawn = [chance.integers(1, 9, size) for _ in range(2)]
        return Events(types, kinds, lambda _, at: tuple(column[at] for column in drawn))

    return Stream.of(Workload(rules, events), WINDOW, 4, [0])


def asked(stream: Stream, terminators: int) -> tuple[Engine, Recordings]:
    """An engine on the device that has taken one turn."""
    engine = filled(GRAPHS, stream)
    assert engine.recordings is not None
    (turn,) = stream.turns(terminators, stream.filling, 1)
    take(engine.detector, turn)
    return engine, engine.recordings


@contextmanager
def accesses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Words that simulated kernels read and write: how many since one asked last."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeWithinKernelCUDAArray as Array

    calls, last = count(), -1
    get, put = Array.__getitem__, Array.__setitem__

    def counted_get(self: Any, place: Any) -> Any:
        next(calls)
        return get(self, place)

    def counted_put(self: Any, place: Any, word: Any) -> None:
        next(calls)
        put(self, place, word)

    def since() -> int:
        nonlocal last
        before, last = last, next(calls)
        return last - before - 1

    with monkeypatch.context() as patch:
        patch.setattr(Array, "__getitem__", counted_get)
        patch.setattr(Array, "__setitem__", counted_put)
        yield since


@pytest.mark.parametrize("window", [8, 20])
def test_an_event_that_is_not_found_is_looked_for_in_the_whole_window(window: int) -> None:
    workload = targets.workload(targets.PREDICATES[0], window)
    stream = Stream.of(workload, window, targets.terminators_wanted(), [0])
    _, recordings = asked(stream, 1)
    ((_, mark),) = stream.turns(1, window, 1)
    candidates = int((stream.events.kinds[mark - 1 - window : mark - 1] == 1).sum())
    moved = recordings.moved()
    assert moved[kernels.reduce] == WORD * (2 * candidates + 2)
    assert moved.total() > moved[kernels.reduce]


def test_the_last_event_is_found_by_looking_at_those_behind_it_alone() -> None:
    _, recordings = asked(stream_of("last B(v < $x + 9) as b within {w} us from a"), 1)
    assert recordings.moved()[kernels.reduce] == WORD * (1 + 2)


def test_a_count_is_the_same_again_and_what_is_found_stays_the_same() -> None:
    stream = Stream.joined(Joined("each", window=6, values=3))
    engine, recordings = asked(stream, 1)
    other, _ = asked(stream, 1)
    assert recordings.moved() == recordings.moved()
    turns = stream.turns(1, stream.turns(1, stream.filling, 1)[0][1], 2)
    assert [take(engine.detector, turn) for turn in turns] == [
        take(other.detector, turn) for turn in turns
    ]


def test_a_turn_is_the_evaluations_of_all_rules_that_it_asks() -> None:
    """Of four rules over two groups of types a terminator asks two."""
    stream = Stream.joined(Joined("each", window=6, values=3, rules=4, groups=2))
    _, recordings = asked(stream, 1)
    of_a_rule = WORD * (2 + records.SIZES - records.LEVELS)
    assert recordings.moved()[kernels.begin] == 2 * of_a_rule
    timing = dict(timings(filled(GRAPHS, stream), stream))[1]
    assert timing.alone is not None
    assert timing.alone.moved > 2 * of_a_rule


def test_kernels_are_told_each_by_itself() -> None:
    stream = Stream.joined(Joined("each", window=6, values=3))
    engine, recordings = asked(stream, 1)
    other, _ = asked(stream, 1)
    rows = {row.name: row for row in apart.kernels("R10", recordings)}
    moved = recordings.moved()
    assert set(apart.seconds_of_kernels(recordings)) == {
        apart.COPIES,
        *(kernel.__name__ for kernel in moved),
    }
    told = [row.value or 0.0 for row in rows.values() if row.unit == "MB"]
    assert sum(told) == pytest.approx(moved.total() / 1e6)
    assert rows["kernels/R10/begin"].unit == "us"
    turns = stream.turns(1, stream.turns(1, stream.filling, 1)[0][1], 2)
    assert [take(engine.detector, turn) for turn in turns] == [
        take(other.detector, turn) for turn in turns
    ]


@pytest.mark.skipif(not device().simulated, reason="only the simulator counts accesses")
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("indexed", [False, True])
def test_no_more_is_counted_than_kernels_ask_for(
    body: str, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if indexed:
        monkeypatch.setattr(memory, "INDEX_MIN", 1)
        monkeypatch.setattr(memory, "TAIL_MIN", 1)
    _, recordings = asked(stream_of(BODIES[body]), 3)
    launch, found = Device.launch, Counter[Any]()
    with accesses(monkeypatch) as since:

        def watched(self: Device, kernel: Any, *rest: Any, **named: Any) -> None:
            since()
            launch(self, kernel, *rest, **named)
            found[kernel] += WORD * since()

        monkeypatch.setattr(Device, "launch", watched)
        moved = recordings.moved()
    assert moved.keys() == found.keys()
    assert [kernel for kernel, size in found.items() if moved[kernel] > size] == []
    assert 4 * moved.total() > found.total()
    if indexed and "range" in body:
        kernel = kernels.mark_range if body.startswith("each") else kernels.reduce_range
        assert moved[kernel] > WORD * 3 * 3  # there are ranges, and not partial sequences alone


SIZES, PAIRS = (5, 0, 9, 7), ((4, 5), (0, 2), (7, 6))
SUMS = {"exclusive_sums", "part_sums", "wide_sums"}


@pytest.mark.skipif(not device().simulated, reason="only the simulator counts accesses")
@pytest.mark.parametrize(
    ("check", "sizes", "kernels"),
    [
        (check_filter, SIZES, {"flag", "gather", SCAN}),
        (check_window, SIZES, {"append", "oldest", "arrange"}),
        (check_join, PAIRS, {"append", "span", "pair", "total", "select", SCAN}),
        (check_aggregate, SIZES, {"append_values", "oldest", "aggregate", "combine"}),
    ],
)
def test_of_operators_no_more_is_counted_than_kernels_ask_for(
    check: Any, sizes: Any, kernels: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, launch, asked = TimedPlace(device()), Device.launch, Counter[str]()
    with accesses(monkeypatch) as since:

        def watched(self: Device, kernel: Any, *rest: Any, **named: Any) -> None:
            since()
            launch(self, kernel, *rest, **named)
            name = kernel.__name__
            asked[SCAN if name in SUMS else name] += WORD * since()

        monkeypatch.setattr(Device, "launch", watched)
        for seed in range(3):
            check(place, seed, sizes)
    assert kernels <= place.moved.keys() <= asked.keys()
    assert [name for name, size in asked.items() if place.moved[name] > size] == []
    assert 4 * sum(place.moved.values()) > asked.total()
