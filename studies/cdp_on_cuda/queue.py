"""The device's work for one engine: copies and launches, done in the order in which they are asked.

Copies are asynchronous, from and to page-locked memory; the host waits where it reads what came
back. With a clock each piece of work is waited for, and the time that it took is added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from matcher.gpu.device import Buffer, Device
from matcher.model import AnyArray

COPIES, KERNELS = "copies", "kernels"


@dataclass(slots=True)
class Queue:
    """A lane of a device, the ``seconds`` of its copies and kernels if there is a ``clock``, and
    how many launches and copied ``bytes`` there were.
    """

    device: Device
    clock: Callable[[], float] | None = None
    seconds: dict[str, float] = field(default_factory=lambda: {COPIES: 0.0, KERNELS: 0.0})
    launches: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        self.lane = self.device.lane()

    lane: Any = field(init=False)

    def now(self) -> float:
        """The time; 0 without a clock."""
        return 0.0 if self.clock is None else self.clock()

    def upload(self, target: Buffer, start: int, rows: AnyArray) -> None:
        """Copy page-locked rows into a buffer, from a place on."""
        begun = self.now()
        self.device.upload(target, start, rows, self.lane)
        self.bytes += rows.nbytes
        self._done(COPIES, begun)

    def download(self, target: AnyArray, source: Buffer) -> None:
        """Copy the first rows of a buffer into page-locked memory, and wait for them."""
        begun = self.now()
        self.device.download(target, source, self.lane)
        self.lane.wait()
        self.bytes += target.nbytes
        self._done(COPIES, begun)

    def clear(self, target: Buffer, rows: int, byte: int = 0) -> None:
        """Set every byte of the first rows of a buffer."""
        begun = self.now()
        self.device.clear(target, rows, self.lane, byte)
        self._done(KERNELS, begun)

    def launch(
        self,
        kernel: Any,
        blocks: tuple[int, int],
        threads: int,
        *arguments: Buffer | int,
        shared: int = 0,
    ) -> None:
        """Run a kernel."""
        begun = self.now()
        self.device.launch(kernel, blocks, threads, self.lane, *arguments, shared=shared)
        self.launches += 1
        self._done(KERNELS, begun)

    def table(self, rows: AnyArray) -> Buffer:
        """A buffer that holds these rows from now on; at least one, whatever it is."""
        kept = self.device.empty((max(1, len(rows)), *rows.shape[1:]), rows.dtype)
        self.device.upload(kept, 0, rows, self.lane)
        self.lane.wait()
        return kept

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Buffer:
        """A buffer of any content."""
        return self.device.empty(shape, dtype)

    def _done(self, what: str, begun: float) -> None:
        if self.clock is not None:
            self.lane.wait()
            self.seconds[what] += self.clock() - begun

    @property
    def profile(self) -> Mapping[str, float]:
        """Seconds of copies and of kernels; zeros without a clock."""
        return dict(self.seconds)
