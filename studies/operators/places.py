"""Places where operators compute: the processor, or a device.

An operator's steps are kernels over flat arrays of words, the same wherever they run
(:mod:`studies.operators.kernels`). A :class:`Turn` is one run of them over one batch: it holds
buffers that only ever grow, so that in the steady state nothing is allocated, and on a device a
lane of its own and page-locked memory to copy from and to. Operators have two turns and use them
alternately: the copies of one overlap the kernels of the other.

Law: whatever is on a turn's lane is done in order. What one turn reads of another's work, it reads
when :meth:`Turn.wait` has come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import prod
from typing import Any, TypeAlias

import numpy as np

from matcher.model import Int64s
from studies.operators.kernels import loops

Words: TypeAlias = Any
"""Words on a place: an array, or a buffer of a device."""
THREADS = 128
"""Threads of a block."""
SLICE = 4_096
"""Events of a window that a processor looks at for one event after another."""
SLICES_MAX = 256
"""Parts of a window on a device: one thread adds up what all of them have found."""
THREADS_OF_LAUNCH = 2**18
"""Threads that keep a device busy."""
WIDE = 8_192
"""Counts that many blocks add up."""
AUTO, CPU, GPU = "auto", "cpu", "gpu"


class Place:
    """The processor."""

    name = CPU
    is_device = False
    simulated = False

    def words(self, size: int) -> Words:
        """Room for words, of any content."""
        return np.empty(size, np.int64)

    def constant(self, array: Int64s) -> Words:
        """Words, or rows of them, that stay as they are."""
        return array

    def turn(self) -> Turn:
        """A turn on this place."""
        return Turn(self)

    def slices(self, count: int, population: int) -> int:
        """The number of parts that a window is cut into for ``count`` events: by size of caches."""
        return max(1, min(64, population // SLICE))

    def array(self, words: Words, begin: int, size: int) -> Int64s:
        """Some of the words, as an array: for what is done seldom."""
        found: Int64s = words[begin : begin + size].copy()
        return found

    def overwrite(self, words: Words, begin: int, array: Int64s) -> None:
        """Write an array over some of the words: for what is done seldom."""
        words[begin : begin + len(array)] = array


class Turn:
    """One batch's work, on the processor."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._held: dict[str, Words] = {}
        self._versions: dict[str, int] = {}

    def words(self, name: str, size: int) -> Words:
        """Room for ``size`` words, of any content, under a name."""
        held = self._held.get(name)
        if held is None or size > len(held):
            held = self._held[name] = self.place.words(max(2 * size, 64))
        return held

    def stage(self, name: str, size: int) -> Int64s:
        """Room of the host to write ``size`` words to, that :meth:`send` takes."""
        room: Int64s = self.words(name, size)[:size]
        return room

    def send(self, name: str, size: int) -> Words:
        """The staged words, where kernels read them."""
        return self.words(name, size)

    def latest(self, name: str, array: Int64s, version: int) -> Words:
        """An array of the host that changes seldom: ``version`` says when."""
        return array

    def run(self, kernel: str, threads: int, *arguments: Words | int) -> None:
        """Run a kernel."""
        if threads:
            getattr(loops, kernel)(threads, *arguments)

    def scan(self, name: str, counts: Words, size: int) -> None:
        """Exclusive sums of ``size`` counts, in place, and their total behind them."""
        loops.scan(size, counts)

    def ask(self, name: str, words: Words, begin: int, size: int) -> None:
        """Have some words brought to the host: :meth:`answer` has them."""
        self._held[f"asked {name}"] = words[begin : begin + size].copy()

    def answer(self, name: str, size: int) -> Int64s:
        """The words that :meth:`ask` asked for, once the turn has been waited for."""
        found: Int64s = self._held[f"asked {name}"]
        return found

    def wait(self) -> None:
        """Return when all of it is done."""


HOST = Place()


class DevicePlace(Place):
    """A device."""

    is_device = True

    def __init__(self, on: Any) -> None:
        from studies.operators.gpu import kernels

        self.on, self.kernels = on, kernels
        self.name = on.name
        self.simulated = on.simulated
        self._lane = on.lane()

    def words(self, size: int) -> Words:
        """Memory of the device; MemoryError where it has too little."""
        return self._empty((size,))

    def _empty(self, shape: tuple[int, ...]) -> Words:
        try:
            return self.on.empty(shape, np.int64)
        except Exception as error:
            if type(error).__name__ != "OutOfMemoryError":  # CuPy's
                raise
            raise MemoryError(
                f"{8 * prod(shape):,} bytes more than {self.name} has left: "
                f"shorten the window, or take device='cpu'"
            ) from None

    def constant(self, array: Int64s) -> Words:
        """A copy on the device."""
        buffer = self._empty(array.shape)
        self.on.upload(buffer, 0, array, self._lane)
        self._lane.wait()
        return buffer

    def turn(self) -> Turn:
        """A turn with a lane of its own."""
        return DeviceTurn(self)

    def slices(self, count: int, population: int) -> int:
        """As many as keep the device busy, of 32 events at least."""
        wanted = -(-(8 if self.simulated else THREADS_OF_LAUNCH) // max(count, 1))
        return max(1, min(wanted, -(-population // 32), SLICES_MAX))

    def array(self, words: Words, begin: int, size: int) -> Int64s:
        """A copy on the host."""
        found = np.empty(size, np.int64)
        self.on.download(found, _part(words, begin, size), self._lane)
        self._lane.wait()
        return found

    def overwrite(self, words: Words, begin: int, array: Int64s) -> None:
        """A copy to the device."""
        self.on.upload(words, begin, array, self._lane)
        self._lane.wait()


class DeviceTurn(Turn):
    """One batch's work on a device: all of it on one lane, and nothing but ``wait`` waits."""

    place: DevicePlace

    def __init__(self, place: DevicePlace) -> None:
        super().__init__(place)
        self.lane = place.on.lane()
        self._pinned: dict[str, Int64s] = {}

    def _host(self, name: str, size: int) -> Int64s:
        held = self._pinned.get(name)
        if held is None or size > len(held):
            held = self._pinned[name] = self.place.on.pinned(max(2 * size, 64), np.int64)
        return held[:size]

    def stage(self, name: str, size: int) -> Int64s:
        """Page-locked memory."""
        return self._host(name, size)

    def send(self, name: str, size: int) -> Words:
        """Begin to copy it to the device."""
        buffer = self.words(name, size)
        self.place.on.upload(buffer, 0, self._host(name, size), self.lane)
        return buffer

    def latest(self, name: str, array: Int64s, version: int) -> Words:
        """A copy on the device, made anew when the version is another."""
        if self._versions.get(name) != version:
            self.stage(name, len(array))[:] = array
            self.send(name, len(array))
            self._versions[name] = version
        return self._held[name]

    def run(self, kernel: str, threads: int, *arguments: Words | int) -> None:
        """Launch a kernel."""
        if threads:
            block = min(THREADS, threads)
            shape = (-(-threads // block), 1)
            body = getattr(self.place.kernels, kernel)
            self.place.on.launch(body, shape, block, self.lane, threads, *arguments)

    def scan(self, name: str, counts: Words, size: int) -> None:
        """One block, or many for many counts."""
        from matcher.gpu import scan

        length = self.latest(f"length of {name}", np.array([size]), size)
        if size < WIDE:
            scan.sum_up(self.place.on, counts, length, 0, self.lane)
        else:
            parts = self.words("parts", scan.PARTS)
            scan.sum_up_wide(self.place.on, counts, parts, length, 0, self.lane)

    def ask(self, name: str, words: Words, begin: int, size: int) -> None:
        """Begin to copy them to page-locked memory."""
        self.place.on.download(
            self._host(f"asked {name}", size), _part(words, begin, size), self.lane
        )

    def answer(self, name: str, size: int) -> Int64s:
        """A copy of what has come."""
        return self._host(f"asked {name}", size).copy()

    def wait(self) -> None:
        """Wait for the lane."""
        self.lane.wait()


def _part(words: Words, begin: int, size: int) -> Any:
    """Some words of a buffer, to be copied."""
    return type(words)(words.array[begin : begin + size], None)


def place_of(device: str | Place | None) -> Place:
    """The place that ``cpu`` or ``gpu`` means, or where ``auto`` begins; a place itself is that.

    Raises NoDevice, which says what is missing, for ``gpu`` without one; ValueError for another
    word.
    """
    if isinstance(device, Place):
        return device
    if device not in (AUTO, CPU, GPU):
        raise ValueError(f"device {device!r}: it is cpu, gpu or auto")
    if device != GPU:
        return HOST
    from matcher.gpu.device import device as found

    return _on(found())


@cache
def may_be_there() -> bool:
    """Whether there is what a device needs; nothing is imported to find out."""
    return find_spec("cupy") is not None


def device_there() -> Place | None:
    """The device of this process, if there is one."""
    from matcher.gpu.device import device as found, is_there

    return _on(found()) if is_there() else None


@cache
def _on(device: Any) -> DevicePlace:
    """A device's place: one, so that operators on it know that they are in the same."""
    return DevicePlace(device)


@dataclass(slots=True)
class Load:
    """A device, and what has been given to it so far."""

    place: Place
    weight: float = 0.0


def share_out(weights: Sequence[float], places: Sequence[Place]) -> list[Place]:
    """A place for each of some operators, by their weights: each operator is whole on one.

    The heaviest first, each to where least is so far; equal ones in their order.
    """
    loads = [Load(place) for place in places]
    chosen: list[Place] = [places[0]] * len(weights)
    for number in sorted(range(len(weights)), key=lambda one: -weights[one]):
        least = min(loads, key=lambda load: load.weight)
        least.weight += weights[number]
        chosen[number] = least.place
    return chosen
