"""The one place that knows whether arrays live on a GPU or, under the simulator, in plain memory.

Addresses may be *reserved* with no memory behind them, which is put there page by page
(:mod:`matcher.gpu.driver`): what grows so stays where it is. The simulator's memory comes when it
is touched, so nothing is to be done there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from matcher.gpu.driver import Fixed, Paged, addresses_of
from matcher.model import AnyArray

Result = TypeVar("Result")
INSTALL = "pip install 'rexmq[gpu]'"
WORD = 8
PAGE, ROOM = 2**18, 2**26
"""Words of a page, and of all that there is room for, on the simulator."""


class NoDevice(RuntimeError):
    """There is no GPU to compute on; the message says what is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array on the device: as its library sees it, and as kernels take it. Code above this
    module holds it and :class:`Lane` alone: an array of CuPy is bound once to the form that kernels
    take, since making that form anew costs more than a small kernel runs.
    """

    array: Any
    kernel: Any

    def __len__(self) -> int:
        return len(self.array)

    @property
    def bytes(self) -> int:
        """Its size."""
        return int(self.array.nbytes)


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A queue of work on the device, done in order: a stream, and the same for kernels."""

    stream: Any = None
    kernel: Any = 0

    def wait(self) -> None:
        """Return when all of it is done."""
        if self.stream is not None:
            self.stream.synchronize()


class Device:
    """Memory, copies and launches, on the simulator."""

    name = "simulator"
    simulated = True

    @property
    def page(self) -> int:
        """Words that memory is put behind together, at least."""
        return PAGE

    @property
    def room(self) -> int:
        """Words, whole pages, that there may be memory for."""
        return ROOM

    @property
    def without_pages(self) -> str:
        """Why memory is not put behind addresses page by page; empty where it is."""
        return ""

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of any content."""
        array = np.empty(shape, dtype)
        return Buffer(array, array)

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of zeros."""
        buffer = self.empty(shape, dtype)
        buffer.array.fill(0)
        return buffer

    def reserve(self, words: int) -> Buffer:
        """A buffer of so many words, whole pages, with no memory behind them."""
        array = np.empty(words, np.int64)
        if not self.simulated:
            return Buffer(array, array)
        from numba.cuda.simulator.cudadrv import devicearray

        wrapped: Any = devicearray.FakeCUDAArray
        return Buffer(array, wrapped(array))  # or each launch would copy all of it

    def map(self, words: Buffer, first: int, end: int) -> None:
        """Put memory, of any content, behind pages of a buffer that was reserved; MemoryError
        where there is none.
        """

    def unmap(self, words: Buffer, first: int, end: int) -> None:
        """Take away the memory behind pages of a buffer, all that came by one call."""

    def free(self, words: Buffer) -> None:
        """Give back the addresses of a buffer that was reserved, with no memory behind them."""

    def pinned(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> AnyArray:
        """Memory of the host that the device copies from and to by itself."""
        return np.zeros(shape, dtype)

    def lane(self) -> Lane:
        """A new queue of work."""
        return Lane()

    def upload(self, target: Buffer, start: int, rows: AnyArray, lane: Lane) -> None:
        """Copy rows into a buffer, from a place on."""
        target.array[start : start + len(rows)] = rows

    def download(self, target: AnyArray, source: Buffer, lane: Lane) -> None:
        """Copy the first rows of a buffer into an array, which is filled when the lane is done."""
        target[:] = source.array[: len(target)]

    def copy(
        self, target: Buffer, start: int, source: Buffer, first: int, rows: int, lane: Lane
    ) -> None:
        """Copy rows of a buffer, from ``first`` on, into one, from ``start`` on."""
        target.array[start : start + rows] = source.array[first : first + rows]

    def clear(self, target: Buffer, rows: int, lane: Lane, byte: int = 0) -> None:
        """Set every byte of the first rows to 0, or to another one."""
        target.array[:rows].view(np.uint8).fill(byte)

    def sort_places(self, words: Buffer, source: int, target: int, count: int, lane: Lane) -> None:
        """Write, from ``target`` on, the places of ``count`` words from ``source`` on in their
        ascending order; of equal ones the earlier place comes first.
        """
        part = words.array[source : source + count]
        words.array[target : target + count] = np.argsort(part, kind="stable")

    def launch(
        self,
        kernel: Any,
        blocks: tuple[int, int],
        threads: int,
        lane: Lane,
        *arguments: Buffer | int,
        shared: int = 0,
    ) -> None:
        """Run a kernel over a grid of blocks, each of so many threads, which share so many bytes
        of the kernel's dynamic array.
        """
        taken = [one.kernel if isinstance(one, Buffer) else one for one in arguments]
        kernel[blocks, threads, lane.kernel, shared](*taken)

    def recorded(self, work: Callable[[], None], lane: Lane) -> Callable[[], None]:
        """Work on a lane in a form that is cheap to do again: here, itself."""
        return work


class CudaDevice(Device):
    """Memory, copies and launches on a GPU, through CuPy and numba."""

    simulated = False

    def __init__(self, cupy: Any, cuda: Any) -> None:
        self._cupy = cupy
        self._cuda = cuda
        self._runtime = cupy.cuda.runtime
        self._number = cupy.cuda.Device().id
        properties = cupy.cuda.runtime.getDeviceProperties(self._number)
        self.name = properties["name"].decode()

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of any content."""
        array = self._cupy.empty(shape, dtype)
        return Buffer(array, self._cuda.as_cuda_array(array, sync=False))

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of zeros, whatever lane uses it first."""
        buffer = self.empty(shape, dtype)
        buffer.array.fill(0)
        self._cupy.cuda.get_current_stream().synchronize()
        return buffer

    @cached_property
    def _addresses(self) -> Paged | Fixed:
        return addresses_of(self._runtime, self._number, self._buffer)

    @property
    def page(self) -> int:
        """Words of a page of the driver."""
        return self._addresses.page // WORD

    @property
    def room(self) -> int:
        """Words of all of the device's memory; of a part of it where there are no pages."""
        return self._addresses.room // WORD

    @property
    def without_pages(self) -> str:
        """Why the driver gives no pages; empty where it does."""
        return self._addresses.why_fixed

    def reserve(self, words: int) -> Buffer:
        """Addresses, which CuPy does not own."""
        size = WORD * words
        return self._buffer(self._with_all_memory(self._addresses.reserve, size), size)

    def _buffer(self, start: int, size: int) -> Buffer:
        """Words at addresses, of which the first and the bytes are given."""
        memory = self._cupy.cuda.UnownedMemory(start, size, None, self._number)
        place = self._cupy.cuda.MemoryPointer(memory, 0)
        array = self._cupy.ndarray(size // WORD, np.int64, place)
        return Buffer(array, self._cuda.as_cuda_array(array, sync=False))

    def map(self, words: Buffer, first: int, end: int) -> None:
        """Put memory of the device there."""
        place, size = words.array.data.ptr + WORD * first, WORD * (end - first)
        self._with_all_memory(self._addresses.map, place, size)

    def unmap(self, words: Buffer, first: int, end: int) -> None:
        """Give memory back to the device, which has no work left that uses it."""
        self._addresses.unmap(words.array.data.ptr + WORD * first, WORD * (end - first))

    def free(self, words: Buffer) -> None:
        """Give addresses back."""
        self._addresses.free(words.array.data.ptr, words.bytes)

    def _with_all_memory(self, take: Callable[..., Result], *arguments: int) -> Result:
        """Take memory; where there is too little, what CuPy has kept for later goes back first."""
        try:
            return take(*arguments)
        except failures():
            self._cupy.get_default_memory_pool().free_all_blocks()
            return take(*arguments)

    def pinned(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> AnyArray:
        """Page-locked memory."""
        count = int(np.prod(shape))
        memory = self._cupy.cuda.alloc_pinned_memory(max(count, 1) * np.dtype(dtype).itemsize)
        array: AnyArray = np.frombuffer(memory, dtype, count).reshape(shape)
        array.fill(0)
        return array

    def lane(self) -> Lane:
        """A stream of its own."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        return Lane(stream, self._cuda.external_stream(stream.ptr))

    def upload(self, target: Buffer, start: int, rows: AnyArray, lane: Lane) -> None:
        """Copy rows, without waiting where they are page-locked."""
        if len(rows):
            whole = np.ascontiguousarray(rows, target.array.dtype)
            place = target.array[start : start + len(rows)].data.ptr
            self._copy(
                place, whole.ctypes.data, whole.nbytes, self._runtime.memcpyHostToDevice, lane
            )

    def download(self, target: AnyArray, source: Buffer, lane: Lane) -> None:
        """Copy back, without waiting."""
        if len(target):
            place = source.array.data.ptr
            kind = self._runtime.memcpyDeviceToHost
            self._copy(target.ctypes.data, place, target.nbytes, kind, lane)

    def copy(
        self, target: Buffer, start: int, source: Buffer, first: int, rows: int, lane: Lane
    ) -> None:
        """Copy rows within the device's memory."""
        if rows:
            part, to = source.array[first : first + rows], target.array[start : start + rows]
            kind = self._runtime.memcpyDeviceToDevice
            self._copy(to.data.ptr, part.data.ptr, part.nbytes, kind, lane)

    def _copy(self, target: int, source: int, size: int, kind: int, lane: Lane) -> None:
        """Copy bytes between addresses. Arrays of CuPy refuse to be copied while a lane is
        recorded; the runtime does it.
        """
        self._runtime.memcpyAsync(target, source, size, kind, lane.stream.ptr)

    def clear(self, target: Buffer, rows: int, lane: Lane, byte: int = 0) -> None:
        """Set the bytes, on the lane."""
        if rows:
            part = target.array[:rows]
            self._runtime.memsetAsync(part.data.ptr, byte, part.nbytes, lane.stream.ptr)

    def sort_places(self, words: Buffer, source: int, target: int, count: int, lane: Lane) -> None:
        """The same, on the lane."""
        with lane.stream:
            places = self._cupy.argsort(words.array[source : source + count])
            words.array[target : target + count] = places

    def recorded(self, work: Callable[[], None], lane: Lane) -> Callable[[], None]:
        """Work as a CUDA graph; ``work`` is done once before, which compiles its kernels."""
        work()
        lane.wait()
        lane.stream.begin_capture()
        try:
            work()
        finally:
            graph = lane.stream.end_capture()

        def again() -> None:
            graph.launch(stream=lane.stream)

        return again


@cache
def device() -> Device:
    """The device of this process: the simulator if it is on, else the GPU; NoDevice without."""
    try:
        from numba import config, cuda
    except ImportError as error:  # a numba without CUDA
        raise NoDevice(f"numba has no CUDA target here ({error}); {INSTALL}") from None
    if getattr(config, "ENABLE_CUDASIM", False):
        return Device()
    try:
        import cupy
    except ImportError as error:  # or what it needs is not
        said = str(error).strip().splitlines() or ["ImportError"]
        raise NoDevice(f"CuPy cannot be imported ({said[0]}); {INSTALL}") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise NoDevice(f"CUDA finds no GPU on this machine: {error}") from None
    if count == 0:
        raise NoDevice("CUDA finds no GPU on this machine")
    settings: Any = config
    settings.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # or each small grid is warned of
    return CudaDevice(cupy, cuda)


def is_there() -> bool:
    """Whether ``device`` gives one. Where CuPy is not installed nothing is imported to find out,
    but for the simulator's sake numba's settings.
    """
    if find_spec("cupy") is None:
        from numba import config

        if not getattr(config, "ENABLE_CUDASIM", False):
            return False
    try:
        device()
    except NoDevice:
        return False
    return True


_FAILURES = {
    "cupy.cuda.runtime": ("CUDARuntimeError",),
    "cupy.cuda.driver": ("CUDADriverError",),
    "cupy.cuda.memory": ("OutOfMemoryError",),
    "numba.core.errors": ("NumbaError",),
    "numba.cuda.core.errors": ("NumbaError",),
    "numba.cuda.cudadrv.driver": ("CudaAPIError", "LinkerError"),
    "numba.cuda.cudadrv.error": (
        "CudaDriverError",
        "CudaRuntimeError",
        "CudaSupportError",
        "NvrtcError",
        "NvvmError",
    ),
    "cuda.core._utils.cuda_utils": ("CUDAError", "NVRTCError"),
}
"""Where libraries have the errors that a device, or what compiles for it, raises."""


def failures() -> tuple[type[Exception], ...]:
    """The errors by which a device fails, or has no memory left: those of the libraries that are
    in use.
    """
    found: list[type[Exception]] = [MemoryError, NoDevice]
    for place, names in _FAILURES.items():
        module = sys.modules.get(place)
        known = (getattr(module, name, None) for name in names)
        found += [one for one in known if isinstance(one, type) and issubclass(one, Exception)]
    return tuple(found)
