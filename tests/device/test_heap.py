"""The heap grows where it stands, while what was recorded before goes on."""

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import run
from eligible_cases import eligible_case
from little_room import in_little_room
from pairs import seeds

import rules
from matcher.gpu.device import device
from matcher.model import EventBatch, EventIds, StringColumn
from rules.engine.cdp import CdpEngine
from rules.engine.gpu.engine import GpuEngine
from rules.engine.gpu.heap import Heap
from rules.engine.oracle.naive import NaiveEngine

SIMULATED = device().simulated
COUNTS = (10, 30, 90, 200) if SIMULATED else (40_000, 120_000, 300_000, 600_000)
"""How many events of B come in each turn."""
RULES = """
event A(v: int)
event B(v: int)
event C(v: int)
rule near: define Near(v: int) from A() as a and last C(v * 2 > a.v) as c within 1 h from a
    where v = c.v
rule far: define Far(v: int) from A() as a and last B(v * 3 = a.v * 3) as b within 1 h from a
    where v = b.v
rule many: define Many(n: int) from A() as a and $n = Count(B(v * 2 > a.v) within 1 h from a)
    where n = $n
rule less: define Less(n: int) from A() as a and $n = Count(B(v < a.v) within 1 h from a)
    where n = $n
"""


def test_the_driver_gives_pages() -> None:
    """Else all works as well, in memory of fixed size; this says why."""
    assert device().without_pages == ""


def test_a_graph_goes_on_while_the_heap_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of B outgrow their places in each turn, and the heap grows; C and A stay."""
    monkeypatch.setattr("matcher.gpu.device.PAGE", 16)
    if SIMULATED:
        monkeypatch.setattr("rules.engine.gpu.memory.CAPACITY_MIN", 16)
    recorded, recordings = device().recorded, Counter[str]()

    def counted(work: Any, lane: Any) -> Callable[[], None]:
        recordings[work.func.__self__.linked.deployed.rule.name] += 1
        return recorded(work, lane)

    monkeypatch.setattr(device(), "recorded", counted)
    ruleset, engines = rules.load(RULES), (GpuEngine(), CdpEngine())
    for engine in engines:
        engine.deploy(ruleset)
    memory, random, begin = engines[0]._memory, np.random.default_rng(3), 0
    heap, sizes = memory._range, [0]
    for events in COUNTS:
        for name, many in (("C", 2), ("B", events), ("A", 2)):
            numbers = np.arange(begin, begin + many)
            begin += many
            ids = EventIds(StringColumn.constant(name, many), numbers)
            values = random.integers(0, 50, many)
            batch = EventBatch(ruleset.schemas[name], numbers, ids, (values,))
            for engine in engines:
                engine.push(batch)
        found, wanted = (engine.advance(begin) for engine in engines)
        assert list(found.events()) == list(wanted.events())
        assert len(found) >= 4
        sizes.append(heap.bytes)
        assert memory.heap is heap.words
    assert sizes == sorted(set(sizes))  # it grew each time
    times = len(COUNTS)
    assert recordings == {"near": 1, "far": times, "many": times, "less": times}
    assert heap.bytes <= engines[0].memory()["device bytes"]


def test_memory_goes_back_to_the_device() -> None:
    on = device()
    lane = on.lane()
    heap = Heap(on, lane)
    heap.extend(1)
    before = free_bytes()
    heap.extend(64 * on.page)
    mark = np.arange(1, 5)
    on.upload(heap.words, on.page - 2, mark, lane)
    heap.turn()
    heap.extend(heap.begin + 2 * on.page)
    on.copy(heap.words, heap.begin + on.page - 2, heap.words, on.page - 2, 4, lane)
    assert heap.bytes == 66 * 8 * on.page
    if not SIMULATED:
        assert before - free_bytes() >= 64 * 8 * on.page
    heap.give_back()
    found = np.empty(on.page + 2, np.int64)
    on.download(found, type(heap.words)(heap.words.array[heap.begin :], None), lane)
    lane.wait()
    assert found[on.page - 2 :].tolist() == mark.tolist()
    assert heap.bytes == 2 * 8 * on.page
    if not SIMULATED:
        assert before - free_bytes() <= 4 * 8 * on.page
    del heap
    gc.collect()
    if not SIMULATED:
        assert free_bytes() >= before


def free_bytes() -> int:
    """Bytes of the device's memory that nobody has."""
    if SIMULATED:
        return 0
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0])


@pytest.mark.skipif(not SIMULATED, reason="a device says so itself")
@pytest.mark.parametrize("part", range(2))
def test_kernels_read_and_write_where_there_is_memory(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing depends on what stands in memory that comes."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeWithinKernelCUDAArray as Array

    in_little_room(monkeypatch)
    heaps: dict[int, Heap] = {}
    get, put, make = Array.__getitem__, Array.__setitem__, Heap.__init__

    def noted(heap: Heap, *arguments: Any) -> None:
        make(heap, *arguments)
        heaps[id(heap.words.array)] = heap

    def see(array: Any, place: Any) -> None:
        heap = heaps.get(id(array._item._ary))
        assert heap is None or heap.begin <= int(place) < heap.end

    def seen_get(array: Any, place: Any) -> Any:
        see(array, place)
        return get(array, place)

    def seen_put(array: Any, place: Any, word: Any) -> None:
        see(array, place)
        put(array, place, word)

    def soiled(words: Any, first: int, end: int) -> None:
        words.array[first:end] = 0x5555_5555_5555_5555

    monkeypatch.setattr(Heap, "__init__", noted)
    monkeypatch.setattr(Array, "__getitem__", seen_get)
    monkeypatch.setattr(Array, "__setitem__", seen_put)
    monkeypatch.setattr(device(), "map", soiled)
    for seed in seeds(4, 8)[part::2]:
        case = eligible_case(seed)
        assert run(case, GpuEngine()) == run(case, NaiveEngine()), case
    assert heaps
