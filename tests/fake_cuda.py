"""CUDA's calls for memory where there is no device: its addresses and memory are the processor's.

What is read or written where no memory has been put, or may not be used, fails a test.
"""

import ctypes
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from matcher.gpu.device import CudaDevice

PAGE = 4_096
TOTAL = 64 * PAGE - 100
"""Bytes of the device's memory, not quite whole pages."""


class FakeCuda:
    """The driver, as ``cuda.bindings`` has it, and CuPy's runtime; a call whose name is in
    ``failing`` fails, as often as is said there.
    """

    memcpyHostToDevice = "up"  # noqa: N815
    memcpyDeviceToHost = "down"  # noqa: N815
    memcpyDeviceToDevice = "within"  # noqa: N815
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUmemAllocationType = SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED="pinned")
    CUmemLocationType = SimpleNamespace(CU_MEM_LOCATION_TYPE_DEVICE="device")
    CUmemAccess_flags = SimpleNamespace(CU_MEM_ACCESS_FLAGS_PROT_READWRITE="both")
    CUmemAllocationGranularity_flags = SimpleNamespace(CU_MEM_ALLOC_GRANULARITY_MINIMUM="least")

    def __init__(self) -> None:
        self.failing: dict[str, int] = {}
        self.reserved: dict[int, Any] = {}
        """Arrays in which ranges of addresses lie, by the first of these."""
        self.mapped: dict[int, int] = {}
        """Bytes of the memory behind a first address."""
        self.usable: dict[int, int] = {}
        self.memories: dict[int, int] = {}
        """Bytes of each memory that a handle is held of."""
        self.pool_emptied = 0

    @property
    def held(self) -> int:
        """Ranges, pages and memories that have not been given back."""
        return len(self.reserved) + len(self.mapped) + len(self.memories)

    def _status(self, name: str) -> int:
        left = self.failing.get(name, 0)
        self.failing[name] = max(0, left - 1)
        return 2 if left else 0

    def _room(self, size: int) -> int:
        array = np.empty(size + PAGE, np.uint8)
        start = -(-array.ctypes.data // PAGE) * PAGE
        self.reserved[start] = array
        return start

    # --- the driver ------------------------------------------------------------------------------

    def CUmemAllocationProp(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(location=SimpleNamespace())

    def CUmemAccessDesc(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(location=SimpleNamespace())

    def cuMemGetAllocationGranularity(self, kind: Any, what: str) -> Any:  # noqa: N802
        assert (kind.type, kind.location.type, kind.location.id) == ("pinned", "device", 0)
        assert what == "least"
        return self._status("granularity"), PAGE

    def cuMemAddressReserve(self, size: int, *rest: int) -> Any:  # noqa: N802
        assert (size % PAGE, rest) == (0, (0, 0, 0))
        status = self._status("reserve")
        return status, 0 if status else self._room(size)

    def cuMemAddressFree(self, start: int, size: int) -> Any:  # noqa: N802
        assert not any(start <= one < start + size for one in self.mapped)
        assert len(self.reserved.pop(start)) == size + PAGE
        return (0,)

    def cuMemCreate(self, size: int, kind: Any, flags: int) -> Any:  # noqa: N802
        assert (size % PAGE, kind.type, flags) == (0, "pinned", 0)
        if sum(self.mapped.values()) + size > TOTAL or self._status("create"):
            return 2, 0
        handle = 1 + len(self.memories)
        self.memories[handle] = size
        return 0, handle

    def cuMemRelease(self, handle: int) -> Any:  # noqa: N802
        del self.memories[handle]
        return (0,)

    def cuMemMap(self, start: int, size: int, *rest: int) -> Any:  # noqa: N802
        assert (start % PAGE, rest) == (0, (0, max(self.memories), 0))
        assert self.memories[max(self.memories)] == size
        assert not any(
            one < start + size and start < one + other for one, other in self.mapped.items()
        )
        if status := self._status("map"):
            return (status,)
        self.mapped[start] = size
        return (0,)

    def cuMemSetAccess(self, start: int, size: int, access: Any, count: int) -> Any:  # noqa: N802
        assert [one.flags for one in access] == ["both"] * count
        assert self.mapped[start] == size
        if status := self._status("access"):
            return (status,)
        self.usable[start] = size
        return (0,)

    def cuMemUnmap(self, start: int, size: int) -> Any:  # noqa: N802
        assert self.mapped.pop(start) == size
        self.usable.pop(start, None)
        return (0,)

    # --- the runtime -----------------------------------------------------------------------------

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        return 0, TOTAL

    def getDeviceProperties(self, number: int) -> dict[str, bytes]:  # noqa: N802
        return {"name": b"fake"}

    def deviceSynchronize(self) -> None:  # noqa: N802
        pass

    def malloc(self, size: int) -> int:
        start = self._room(size)
        self.usable[start] = size
        return start

    def free(self, start: int) -> None:
        del self.usable[start], self.reserved[start]

    def memset(self, start: int, byte: int, size: int) -> None:
        self._see(start, size)
        ctypes.memset(start, byte, size)

    def memcpy(self, target: int, source: int, size: int, kind: str) -> None:
        if kind != self.memcpyDeviceToHost:
            self._see(target, size)
        if kind != self.memcpyHostToDevice:
            self._see(source, size)
        ctypes.memmove(target, source, size)

    def memcpyAsync(  # noqa: N802
        self, target: int, source: int, size: int, kind: str, stream: int
    ) -> None:
        self.memcpy(target, source, size, kind)

    def _see(self, start: int, size: int) -> None:
        """See that there is memory that may be used behind all of these bytes."""
        for place in range(start, start + size):
            assert any(one <= place < one + part for one, part in self.usable.items())

    def empty_pool(self) -> None:
        self.pool_emptied += 1


@dataclass
class FakeArray:
    """As much of CuPy's array as addresses need."""

    count: int
    dtype: Any
    data: SimpleNamespace

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        return 8 * self.count

    def __getitem__(self, part: slice) -> "FakeArray":
        first, end, _ = part.indices(self.count)
        return FakeArray(end - first, self.dtype, SimpleNamespace(ptr=self.data.ptr + 8 * first))


def fake_device(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    """A device whose driver and runtime are fakes."""
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=fake))

    def pointer(start: int, offset: int) -> SimpleNamespace:
        return SimpleNamespace(ptr=start + offset)

    cuda = SimpleNamespace(
        runtime=fake,
        Device=lambda: SimpleNamespace(id=0),
        UnownedMemory=lambda start, size, owner, number: start,
        MemoryPointer=pointer,
    )
    pool = SimpleNamespace(free_all_blocks=fake.empty_pool)
    cupy = SimpleNamespace(cuda=cuda, ndarray=FakeArray, get_default_memory_pool=lambda: pool)
    return CudaDevice(cupy, SimpleNamespace(as_cuda_array=lambda array, sync: array))
