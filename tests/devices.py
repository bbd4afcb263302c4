"""The device that tests compute on: a GPU if there is one, else numba's simulator if it is on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import pytest
from numba.np.numpy_support import as_dtype

from matcher.gpu.device import Device, NoDevice, device

DEVICE: Device | None = None
REASON = ""
try:
    DEVICE = device()
except NoDevice as error:
    REASON = str(error)

SWITCH_S = 5e-5
"""How long a simulated thread runs before another may: a barrier waits for all of them."""
SHARING = Lock()


def shared_array(self: Any, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that a block's threads share: the simulator itself gives each thread another one
    where several ask at once.
    """
    if shape == 0:  # dynamic: of the bytes that the launch gives, and one for all
        size = self._dynshared_size // as_dtype(dtype).itemsize
        return np.frombuffer(self._dynshared.data, as_dtype(dtype), size)
    frame = sys._getframe(1)
    with SHARING:
        place = (frame.f_code.co_filename, frame.f_lineno)
        if place not in self._allocations:
            self._allocations[place] = np.empty(shape, as_dtype(dtype))
        return self._allocations[place]


@contextmanager
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A simulated thread is a real one of the operating system: have few."""
    interval = sys.getswitchinterval()
    if DEVICE is not None and DEVICE.simulated:
        from matcher.gpu import batched, ccm

        monkeypatch.setattr(ccm, "THREADS", 4)
        monkeypatch.setattr(batched, "THREADS", 16)
        monkeypatch.setattr(batched, "EVENT_THREADS", 16)
        monkeypatch.setattr("numba.cuda.simulator.kernelapi.FakeCUDAShared.array", shared_array)
        sys.setswitchinterval(SWITCH_S)
    yield
    sys.setswitchinterval(interval)
