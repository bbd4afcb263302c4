"""Arithmetic and comparisons of words (:mod:`rules.engine.kernels.words`) on a device.

A device function is the code of the processor's, in which the names of others may stand for their
device functions; functions of numbers alone are taken as they are. ``of_two`` is the processor's,
but for the remainder of floats, which a device has from ``math`` and numba's processor from numpy.
"""

from __future__ import annotations

import math
from types import FunctionType
from typing import Any

from numba import cuda

from matcher.gpu.scan import greater, lesser
from rules.engine.kernels import words


def on_device(function: Any, **called: Any) -> Any:
    """A kernel of the processor as a device function that calls ``called`` by these names."""
    plain = function.py_func
    own = {**plain.__globals__, "min": lesser, "max": greater, **called}
    return cuda.jit(device=True)(FunctionType(plain.__code__, own, plain.__name__))


_compute_float = on_device(words.compute_float, fmod=math.fmod)
of_one = on_device(words.of_one)
of_two = on_device(words.of_two, compute_float=_compute_float)
_connect = on_device(words.connect)
step = on_device(words.step, of_two=of_two, connect=_connect)
