"""Memory of a device apart from its addresses, as the CUDA driver gives both.

A range of addresses is reserved once and stays; memory is put behind parts of it, and taken away,
in whole pages, and no other part of the range is touched by that.

Example: of 256 GiB of addresses the first 2 MiB have memory behind them, which the device can read
and write. Later the next 6 MiB have, too; the range begins where it did.

``cuda.bindings``, which numba-cuda needs, has these calls. Each answers with a status first, and
whatever is not a success is a MemoryError here that names the call. Where they do not do what they
are to, as is tried once, addresses come with their memory (:class:`Fixed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FIXED_SHARE = 32
"""Without pages there is room for one part in so many of the device's memory."""


class Paged:
    """Addresses and memory of the device of a number; ``binding`` is ``cuda.bindings.driver``."""

    why_fixed = ""

    def __init__(self, binding: Any, number: int, total: int) -> None:
        self._binding = binding
        self._kind = binding.CUmemAllocationProp()
        self._kind.type = binding.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._access = binding.CUmemAccessDesc()
        self._access.flags = binding.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        for one in (self._kind, self._access):
            one.location.type = binding.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            one.location.id = number
        least = binding.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self.page = int(self._call("cuMemGetAllocationGranularity", self._kind, least))
        """Bytes of a page."""
        self.room = -(-total // self.page) * self.page
        """Bytes that there may be memory for, in whole pages: all of the device's."""

    def reserve(self, size: int) -> int:
        """Reserve so many bytes of addresses, whole pages: the first of them."""
        return int(self._call("cuMemAddressReserve", size, 0, 0, 0))

    def free(self, address: int, size: int) -> None:
        """Give back addresses, all that were reserved together."""
        self._call("cuMemAddressFree", address, size)

    def map(self, address: int, size: int) -> None:
        """Put memory behind addresses, whole pages."""
        memory = self._call("cuMemCreate", size, self._kind, 0)
        try:
            self._call("cuMemMap", address, size, 0, memory, 0)
        finally:
            self._call("cuMemRelease", memory)  # what is mapped stays until it is no more
        try:
            self._call("cuMemSetAccess", address, size, [self._access], 1)
        except MemoryError:
            self.unmap(address, size)
            raise

    def unmap(self, address: int, size: int) -> None:
        """Take away the memory behind addresses, all that came by one call."""
        self._call("cuMemUnmap", address, size)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call the driver: what it answers behind the status, if there is anything."""
        status, *found = getattr(self._binding, name)(*arguments)
        if status != self._binding.CUresult.CUDA_SUCCESS:
            raise MemoryError(f"{name}: {getattr(status, 'name', status)}")
        return found[0] if found else None


class Fixed:
    """Addresses that have memory from the beginning: all that there is room for is one page."""

    def __init__(self, runtime: Any, total: int, why: str) -> None:
        self._runtime = runtime
        self.why_fixed = why
        self.page = self.room = total // FIXED_SHARE // 8 * 8

    def reserve(self, size: int) -> int:
        """Allocate so many bytes: the first address."""
        return int(self._runtime.malloc(size))

    def free(self, address: int, size: int) -> None:
        """Give them back."""
        self._runtime.free(address)

    def map(self, address: int, size: int) -> None:
        """Do nothing: the memory is there."""

    def unmap(self, address: int, size: int) -> None:
        """Do nothing: the memory stays."""


def addresses_of(runtime: Any, number: int, array: Callable[[int, int], object]) -> Paged | Fixed:
    """Find out what gives addresses of the device of a number. ``runtime`` is CuPy's, and ``array``
    makes an array of addresses, of which the first and the bytes are given.
    """
    total = int(runtime.memGetInfo()[1])  # makes the context that pages are for
    try:
        from cuda.bindings import driver as binding

        pages = Paged(binding, number, total)
        _try(pages, runtime, array)
    except Exception as error:  # whatever it is, there is another way
        return Fixed(runtime, total, f"{type(error).__name__}: {error}")
    return pages


def _try(pages: Paged, runtime: Any, array: Callable[[int, int], object]) -> None:
    """Reserve as much as is reserved later, put a page there and another one, write across their
    border, and read.
    """
    page, written, read = pages.page, np.arange(1, 5), np.zeros(4, np.int64)
    size, mapped = 2 * pages.room, list[int]()
    start = pages.reserve(size)
    place = start + page - written.nbytes // 2
    try:
        array(start, size)  # of addresses with no memory yet
        for address in (start, start + page):
            pages.map(address, page)
            mapped.append(address)
            runtime.memset(address, 0, page)
        runtime.memcpy(place, written.ctypes.data, written.nbytes, runtime.memcpyHostToDevice)
        runtime.memcpy(read.ctypes.data, place, read.nbytes, runtime.memcpyDeviceToHost)
        runtime.deviceSynchronize()
    finally:
        for address in mapped:
            pages.unmap(address, page)
        pages.free(start, size)
    if (read != written).any():
        raise MemoryError("what was written to a page is not what is read")
