"""The kernels of a rule's evaluation, each by itself: its time, the bytes that it moves at least,
and its share of the memory's bandwidth.

Law: the times of kernels and copies come to that of the whole evaluation. Kernels cannot be
repeated by themselves, since each goes on from what those before it left; so the first launches are
repeated together, by one graph, and a kernel's time is what it adds to those before it.

Example: the copies and ``begin`` take 9 us, these and ``look`` 12 us, so ``look`` takes 3 us.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.report import Row
from matcher.gpu.device import Device, device
from studies.device.bandwidth import bytes_a_second, of_kernel
from studies.device.moved import counting
from studies.device.streams import Recordings

COPIES = "copies"
"""The line of what an evaluation brings to the device and back."""


class First:
    """The first launches of some work, ``most`` of them; whoever calls it makes these alone, and
    finds their kernels in ``kernels``.
    """

    def __init__(self, on: Device, work: Callable[[], None], most: int) -> None:
        self._on, self._work, self._most = on, work, most
        self.kernels: list[str] = []

    def __call__(self) -> None:
        launch, self.kernels = self._on.launch, []

        def first(kernel: Any, *rest: Any, **named: Any) -> None:
            if len(self.kernels) < self._most:
                self.kernels.append(kernel.__name__)
                launch(kernel, *rest, **named)

        self._on.launch = first  # type: ignore[method-assign]
        try:
            self._work()
        finally:
            del self._on.launch


def seconds_of_kernels(recordings: Recordings) -> dict[str, float]:
    """The seconds of the last evaluation that was launched, by kernel, and those of its copies."""
    work, lane = recordings.last
    whole = First(recordings.device, work, sys.maxsize)
    whole()
    lane.wait()
    spent, before = defaultdict[str, float](float), 0.0
    for count, name in enumerate([COPIES, *whole.kernels]):
        first = First(recordings.device, work, count)
        seconds = recordings.repeated([recordings.repeatable(first, lane)], lane, waits=False)
        spent[name] += max(seconds - before, 0.0)
        before = max(seconds, before)
    whole()  # or marks are left that the next evaluation would take for its own
    lane.wait()
    return dict(spent)


def kernels(place: str, recordings: Recordings) -> Iterator[Row]:
    """The rows of each kernel of the last evaluation, for a turn; ``place`` says which it was."""
    seconds, bandwidth = seconds_of_kernels(recordings), bytes_a_second(device())
    work, lane = recordings.last
    with counting(recordings.device) as counted:
        work()
        lane.wait()
    moved = {kernel.__name__: size for kernel, size in counted.items()}
    for name, spent in seconds.items():
        yield from of_kernel(f"kernels/{place}/{name}", spent, moved.get(name, 0), bandwidth)
