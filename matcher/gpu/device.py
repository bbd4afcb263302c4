"""The one place that knows whether arrays live on a GPU or, under the simulator, in plain memory.

Law: code above this module holds :class:`Buffer` and :class:`Lane` alone. On a device they are
CuPy arrays and streams, bound once to the form that kernels take, because making that form anew
costs more than a small kernel runs; under the simulator they are numpy arrays and nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from matcher.model import AnyArray

INSTALL = "pip install 'rexmq[gpu]'"


class NoDevice(RuntimeError):
    """There is no GPU to compute on; the message says what is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array on the device: as its library sees it, and as kernels take it."""

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

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of any content."""
        array = np.empty(shape, dtype)
        return Buffer(array, array)

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of zeros."""
        buffer = self.empty(shape, dtype)
        buffer.array.fill(0)
        return buffer

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
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
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
