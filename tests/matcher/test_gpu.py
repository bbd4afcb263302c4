"""The kernels of devices where there is none: run by the simulator, and compiled for a GPU.

The simulator must be on before numba is imported, so the tests of ``tests/device`` run in a
process of their own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numba import types
from pairs import WHOLE
from ptx import kernels_in, ptx_of

from matcher.filters.constraint import Filter
from matcher.filters.encoded import EncodedEvents
from matcher.filters.mixed import MixedEvents
from matcher.gpu import choice
from matcher.gpu.arrangement import arranged
from matcher.gpu.ccm import Variant
from matcher.gpu.choice import Cost, PlacedMatcher, crossover
from matcher.gpu.device import Device
from matcher.methods.choose import AutoMatcher
from matcher.methods.counting import CountingMatcher
from matcher.methods.guarded import FAILED, guarded

ROOT = Path(__file__).parents[2]
DEVICE = ROOT / "tests" / "device"
ENGINES = ROOT / "tests" / "conformance" / "test_engines.py"
COUNTS = re.compile(r"(\d+) passed")


@pytest.mark.timeout(1200)
def test_everything_holds_under_the_simulator() -> None:
    """With all combinations the engines' random cases run on a device, too (tests/engines.py)."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(DEVICE)]
    command += [str(ENGINES)] if WHOLE else []
    variables = {"NUMBA_ENABLE_CUDASIM": "1", **({"REXMQ_COMBINATIONS": "1"} if WHOLE else {})}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert COUNTS.search(done.stdout), done.stdout


NUMBER, WORDS, TABLE = types.int64, types.int64[::1], types.int64[:, ::1]
COUNTERS, BITS, HEADS = types.int32[::1], types.uint32[::1], types.int32[:, ::1]
TEXTS = (WORDS,) * 4
CCM_ANSWERS = (*(COUNTERS,) * 4, NUMBER, WORDS, *TEXTS)
SIGNATURES = {
    "ccm": (WORDS, *(TABLE,) * 4, *CCM_ANSWERS),
    "ccm_distinct": (WORDS, *(TABLE,) * 4, WORDS, WORDS, *CCM_ANSWERS),
    "ccm_together": (WORDS, *(TABLE,) * 4, NUMBER, NUMBER, *CCM_ANSWERS),
    "spread": (WORDS, TABLE, NUMBER, NUMBER, BITS, BITS, TABLE),
    "match": (
        *(HEADS, TABLE, NUMBER, NUMBER, NUMBER, BITS, BITS, TABLE),
        *(NUMBER, BITS, NUMBER, TABLE, *TEXTS),
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_kernels_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from matcher.gpu import kernels

    kernel: Any = getattr(kernels, name)
    ptx = ptx_of(kernel, SIGNATURES[name], monkeypatch)
    assert "atom." in ptx or "red." in ptx
    assert ".local" not in ptx  # everything fits into registers
    assert (".shared" in ptx) == (name == "ccm")
    assert ".f64" in ptx or name == "spread"


def test_no_kernel_is_left_out() -> None:
    from matcher.gpu import kernels

    assert kernels_in(kernels) == SIGNATURES.keys()


def test_constraints_are_arranged_by_type_operator_and_value_or_stand_once() -> None:
    """Two lists with room between them; their rows are of a word, an operand and a filter."""
    greater, less = 5 | 4 << 32, 5 | 1 << 32
    arena = np.full((12, 3), -1)
    arena[1:5] = [[greater, 7, 0], [less, 9, 0], [greater, 7, 2], [less, 1, 1]]
    arena[8:10] = [[greater, 7, 1], [3, 0, 2]]
    lists = np.array([[-1, 1, 4, 4], [-1, 0, 0, 0], [-1, 8, 2, 4]])
    made = arranged(lists, arena, distinct=False)
    assert made.lists[:, 1:3].tolist() == [[0, 4], [4, 0], [4, 2]]
    once = [[less, 1], [less, 9], [greater, 7], [greater, 7], [3, 0], [greater, 7]]
    assert made.rows[:, :2].tolist() == once
    assert sorted(made.rows[2:4, 2].tolist()) == [0, 2]
    made = arranged(lists, arena, distinct=True)
    assert made.lists[:, 1:3].tolist() == [[0, 3], [3, 0], [3, 2]]
    assert made.rows.tolist() == [[*one, place] for place, one in enumerate(once[:3] + once[4:])]
    assert made.owners.tolist() == [0, 1, 2, 4, 5, 6]
    assert [1, 0, {0, 2}, 2, 1] == [
        *made.members[:2].tolist(),
        set(made.members[2:4].tolist()),
        *made.members[4:].tolist(),
    ]
    assert len(arranged(lists[:0], arena, distinct=True).rows) == 0


def test_two_variants_of_ccm_exclude_one_another() -> None:
    for wrong in ({"distinct": True, "together": 2}, {"together": 0}):
        with pytest.raises(ValueError, match="CCM takes several events at once, or each"):
            Variant(**wrong)


@pytest.mark.parametrize(
    ("processor", "device", "events"),
    [
        (Cost(0, 2e-6), Cost(100e-6, 1e-7), 53),
        (Cost(0, 2e-6), Cost(0, 1e-6), 1),
        (Cost(1e-6, 1e-7), Cost(100e-6, 2e-7), None),
        (Cost(0, 1e-7), Cost(100e-6, 1e-7), None),
    ],
)
def test_the_device_is_used_from_where_it_costs_less(
    processor: Cost, device: Cost, events: int | None
) -> None:
    assert crossover(processor, device) == events
    for count in range(1, 200):
        wanted = events is not None and count >= events
        assert (device.seconds(count) < processor.seconds(count)) == wanted


def test_a_device_without_memory_for_a_matcher_is_done_without() -> None:
    told: list[tuple[str, str]] = []

    def none() -> CountingMatcher:
        raise MemoryError("out of memory allocating 8,388,608 bytes")

    matcher = guarded(none, lambda *words: told.append(words))
    matcher.add(1, 10, Filter.of(("a", "=", 1)))
    assert matcher.match(MixedEvents.of([{"a": 1}, {"a": 2}])).interface_lists() == [[10], []]
    assert told == [(FAILED, "MemoryError: out of memory allocating 8,388,608 bytes")]


@pytest.mark.parametrize("call", ["_insert", "_delete", "_run"])
def test_a_device_whose_memory_runs_out_costs_no_answer(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    matcher = guarded(CountingMatcher, lambda *words: told.append(words))
    matcher.add(1, 10, Filter.of(("a", "=", 1)))
    matcher.add(2, 20, Filter.of(("a", ">", 0)))

    def none(*_: object) -> None:
        raise MemoryError("out of memory")

    monkeypatch.setattr(CountingMatcher, call, none)
    matcher.add(3, 30, Filter.of(("a", "=", 2)))
    matcher.remove(2)
    found = matcher.match(MixedEvents.of([{"a": 1}, {"a": 2}]), filters=True)
    assert found.filter_lists() == [[1], [3]]
    assert told == [(FAILED, "MemoryError: out of memory")]


class Clock:
    """Seconds that pass where something is computed: of one event by the processor a microsecond,
    on the device a tenth, and 200 for any call of it.
    """

    now = 0.0
    tried: ClassVar[list[int]] = []

    @classmethod
    def seconds(cls) -> float:
        return cls.now

    @classmethod
    def processor(cls, events: EncodedEvents, *rest: object) -> tuple[int, int]:
        cls.now += 1e-6 * len(events)
        cls.tried.append(len(events))
        return len(events), 0

    @classmethod
    def device(cls, events: EncodedEvents, *rest: object) -> tuple[int, int]:
        cls.now += 200e-6 + 1e-7 * len(events)
        return len(events), 0


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> PlacedMatcher:
    """A matcher with a filter whose places take what ``Clock`` says."""
    monkeypatch.setattr(choice, "perf_counter", Clock.seconds)
    monkeypatch.setattr(choice, "TRIES", 1)
    monkeypatch.setattr(AutoMatcher, "_run", Clock.processor)
    Clock.tried = []
    matcher = PlacedMatcher(Device())
    monkeypatch.setattr(matcher._tables, "run", Clock.device)
    matcher.add(1, 1, Filter.of(("a", "=", 1)))
    return matcher


def tried_among(matcher: PlacedMatcher, counts: Iterable[int]) -> list[int]:
    """The sizes, of batches of so many events, that are tried."""
    found = []
    for count in counts:
        Clock.tried = []
        matcher.match(MixedEvents.of([{"a": 1}] * count))
        if len(Clock.tried) > 1:
            found.append(max(Clock.tried))
    return found


def test_places_are_tried_with_events_that_are_many_enough(timed: PlacedMatcher) -> None:
    """A broker has one event at a time now and then, which says little of what many cost."""
    assert tried_among(timed, (1, 15, 16, 300, 300)) == [1, 16]
    for identifier in (2, 3):
        timed.add(identifier, 1, Filter.of(("a", "=", 1)))
    assert tried_among(timed, (1, 1, 40)) == [1, 40]  # nothing was known of so many filters


def test_many_events_are_tried_as_they_come(timed: PlacedMatcher) -> None:
    """Events one by one had it believe for good that no number of them is worth a call."""
    timed.match(MixedEvents.of([{"a": 1}]))
    assert timed.figures["device from events"] == "never"
    timed.match(MixedEvents.of([{"a": 1}] * 4_096))
    assert timed.figures["device from events"] == 223
    assert timed.figures["calls on the device"] == 1


def test_trials_take_a_small_part_of_the_time(timed: PlacedMatcher) -> None:
    begun = Clock.now
    assert tried_among(timed, [4_096] * 600) == [4_096, 4_096]
    a_trial = 4_097e-6 + 400e-6 + 4_097e-7
    assert 2 * a_trial < (Clock.now - begun) / 30


def test_a_cost_is_told_by_two_times() -> None:
    assert Cost.of(5.0, 5.0, 1) == Cost(0.0, 5.0)
    cost = Cost.of(101.0, 200.0, 100)
    assert (cost.call_s, cost.event_s) == (100.0, 1.0)
    assert Cost.of(2.0, 1.0, 10) == Cost(2.0, 0.0)
