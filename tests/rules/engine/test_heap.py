"""The heap's memory, on a device whose driver is a fake: where it stands, and what goes back."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cuda import PAGE, TOTAL, FakeArray, FakeCuda, fake_device

from matcher.gpu.device import Device, Lane
from rules.engine.gpu.heap import Heap

WORDS = PAGE // 8
LANE = Lane(SimpleNamespace(ptr=0, synchronize=lambda: None))
CALLS = ("granularity", "reserve", "create", "map", "access")


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


def words_of(device: Device, heap: Heap, first: int, count: int) -> list[int]:
    found = np.empty(count, np.int64)
    part = heap.words.array[first : first + count]
    device.download(found, SimpleNamespace(array=part), LANE)  # type: ignore[arg-type]
    return found.tolist()


def check_growth(device: Device, most: int) -> None:
    """A heap grows where it stands, and turns to its other half and back: what is there stays."""
    heap = Heap(device, LANE)
    assert (heap.begin, heap.end) == (0, 0)
    place, kernel = heap.words, heap.words.kernel
    heap.extend(3)
    device.upload(heap.words, 0, np.array([7, 8, 9]), LANE)
    for stop in (WORDS, WORDS + 1, 5 * WORDS - 3, most):
        heap.extend(stop)
        assert stop <= heap.end
        device.upload(heap.words, stop - 1, np.array([stop]), LANE)
        assert words_of(device, heap, stop - 1, 1) == [stop]
        assert words_of(device, heap, 0, 3) == [7, 8, 9]
    for _ in range(3):
        before = heap.begin
        heap.turn()
        heap.extend(heap.begin + 2 * WORDS)
        device.copy(heap.words, heap.begin, heap.words, before, 3, LANE)
        heap.give_back()
        assert words_of(device, heap, heap.begin, 3) == [7, 8, 9]
    assert heap.words is place
    assert heap.words.kernel is kernel
    with pytest.raises(MemoryError, match=r"^no room for [0-9]+ bytes of columns and rules"):
        heap.extend(heap.begin + device.room + 1)


def test_the_simulator_has_a_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matcher.gpu.device.PAGE", WORDS)
    monkeypatch.setattr("matcher.gpu.device.ROOM", 8 * WORDS)
    monkeypatch.setattr(Device, "simulated", False)  # numba's own arrays are not needed
    check_growth(Device(), 8 * WORDS)


def test_pages_are_put_behind_addresses_and_go_back(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = fake_device(cuda, monkeypatch)
    assert (device.without_pages, device.page) == ("", WORDS)
    assert device.room == -(-TOTAL // PAGE) * WORDS
    check_growth(device, 31 * WORDS)
    assert cuda.held == 0


def test_memory_is_what_is_behind_addresses(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    heap = Heap(fake_device(cuda, monkeypatch), LANE)
    assert heap.bytes == 0
    for stop, pages in ((1, 1), (WORDS, 1), (WORDS + 1, 2), (9 * WORDS, 9)):
        heap.extend(stop)
        assert heap.bytes == sum(cuda.mapped.values()) == pages * PAGE
    heap.turn()
    heap.extend(heap.begin + 1)
    assert heap.bytes == 10 * PAGE
    heap.give_back()
    assert heap.bytes == sum(cuda.mapped.values()) == PAGE
    del heap
    assert cuda.held == 0


@pytest.mark.parametrize("call", CALLS)
def test_without_pages_there_is_a_heap_of_fixed_size(
    call: str, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that was taken to try them has gone back."""
    monkeypatch.setattr("matcher.gpu.driver.FIXED_SHARE", 4)
    cuda.failing[call] = 1
    device = fake_device(cuda, monkeypatch)
    assert device.without_pages.startswith("MemoryError: cuMem")
    assert cuda.held == 0
    check_growth(device, device.room)
    assert not cuda.reserved
    heap = Heap(device, LANE)
    with pytest.raises(MemoryError, match=r"for the device has no pages .MemoryError: cuMem"):
        heap.extend(device.room + 1)


def test_pages_that_do_not_keep_what_is_written_are_not_used(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "memcpy", lambda *arguments: None)
    device = fake_device(cuda, monkeypatch)
    said = "MemoryError: what was written to a page is not what is read"
    assert device.without_pages == said
    assert cuda.held == 0


def test_pages_that_no_array_can_be_made_of_are_not_used(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older numba asks the driver what stands there."""
    device, made = fake_device(cuda, monkeypatch), FakeArray

    def asked(count: int, dtype: object, place: SimpleNamespace) -> FakeArray:
        if not any(one <= place.ptr < one + size for one, size in cuda.usable.items()):
            raise ValueError("nothing there")
        return made(count, dtype, place)

    monkeypatch.setattr(device._cupy, "ndarray", asked)
    assert device.without_pages == "ValueError: nothing there"
    Heap(device, LANE).extend(1)
    assert cuda.held == 0


def test_a_driver_that_is_not_there_is_done_without(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = fake_device(cuda, monkeypatch)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert device.without_pages.startswith(("ImportError: ", "ModuleNotFoundError: "))
    Heap(device, LANE).extend(1)


@pytest.mark.parametrize("call", CALLS[2:])
def test_where_memory_is_short_what_is_kept_for_later_goes_back_first(
    call: str, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = fake_device(cuda, monkeypatch)
    heap = Heap(device, LANE)
    heap.extend(1)
    cuda.failing[call] = 1
    heap.extend(WORDS + 1)
    assert (cuda.pool_emptied, heap.bytes) == (1, 2 * PAGE)
    cuda.failing[call] = 2
    with pytest.raises(MemoryError, match=r"^cuMem[A-Za-z]+: 2$"):
        heap.extend(2 * WORDS + 1)
    assert heap.bytes == sum(cuda.mapped.values()) == 2 * PAGE
    assert not cuda.memories
    heap.extend(2 * WORDS + 1)
    assert heap.bytes == sum(cuda.mapped.values()) == 3 * PAGE
    del heap
    assert cuda.held == 0


def test_a_device_that_has_failed_ends_without_a_word(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lane says so when it is waited for, and the driver at every call."""

    def failed(*arguments: object) -> None:
        raise RuntimeError("an illegal memory access")

    lane = Lane(SimpleNamespace(ptr=0, synchronize=failed))
    heap = Heap(fake_device(cuda, monkeypatch), lane)
    heap.extend(1)
    monkeypatch.setattr(cuda, "cuMemUnmap", failed)
    del heap
    assert capsys.readouterr() == ("", "")
