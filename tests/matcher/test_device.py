"""A device that is not there says what is missing (NoDevice), and how to come by it."""

import sys
from types import SimpleNamespace

import pytest
from numba import config

from matcher.gpu.device import NoDevice, device

NONE, OLD_DRIVER = "cudaErrorNoDevice", "cudaErrorInsufficientDriver: CUDA driver is insufficient"


class CUDARuntimeError(RuntimeError):
    pass


def cupy(count: int, error: str = "") -> SimpleNamespace:
    def count_devices() -> int:
        if error:
            raise CUDARuntimeError(error)
        return count

    runtime = SimpleNamespace(getDeviceCount=count_devices, CUDARuntimeError=CUDARuntimeError)
    return SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (None, r"CuPy cannot be imported \(.*\); pip install 'rexmq\[gpu\]'"),
        (cupy(0), "CUDA finds no GPU on this machine"),
        (cupy(0, NONE), f"CUDA finds no GPU on this machine: {NONE}"),
        (cupy(0, OLD_DRIVER), f"CUDA finds no GPU on this machine: {OLD_DRIVER}"),
    ],
)
def test_what_is_missing_is_said(
    library: SimpleNamespace | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "ENABLE_CUDASIM", False)
    monkeypatch.setitem(sys.modules, "cupy", library)
    with pytest.raises(NoDevice, match=f"^{message}$"):
        device.__wrapped__()
