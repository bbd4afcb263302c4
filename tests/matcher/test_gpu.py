"""The kernels of devices where there is none: run by the simulator, and compiled for a GPU.

The simulator must be on before numba is imported, so the tests of ``tests/device`` run in a
process of their own.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from numba import types

from matcher.gpu.choice import Cost, crossover

ROOT = Path(__file__).parents[2]
COUNTS = re.compile(r"(\d+) passed")


def test_everything_holds_under_the_simulator() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/device"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = COUNTS.search(done.stdout)
    assert passed, done.stdout
    assert int(passed[1]) >= 15, done.stdout


NUMBER, WORDS, TABLE = types.int64, types.int64[::1], types.int64[:, ::1]
COUNTERS, BITS, HEADS = types.int32[::1], types.uint32[::1], types.int32[:, ::1]
TEXTS = (WORDS,) * 4
SIGNATURES = {
    "ccm": (WORDS, *(TABLE,) * 4, *(COUNTERS,) * 4, NUMBER, WORDS, *TEXTS),
    "spread": (WORDS, TABLE, NUMBER, NUMBER, BITS, BITS, TABLE),
    "match": (
        *(HEADS, TABLE, NUMBER, NUMBER, NUMBER, BITS, BITS, TABLE),
        *(NUMBER, BITS, NUMBER, TABLE, *TEXTS),
    ),
}
HOPPER = (9, 0)


@pytest.mark.parametrize("name", SIGNATURES)
def test_kernels_compile_to_ptx_without_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import cuda

    from matcher.gpu import kernels

    kernel: Any = getattr(kernels, name)
    # Functions called by kernels are compiled for the current device; there need not be one.
    dispatcher = importlib.import_module(type(kernel).__module__)
    current = SimpleNamespace(compute_capability=HOPPER)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    ptx, _ = cuda.compile_ptx(kernel.py_func, SIGNATURES[name], cc=HOPPER)
    assert ".target sm_90" in ptx
    assert "atom." in ptx or "red." in ptx
    assert ".local" not in ptx  # everything fits into registers
    assert (".shared" in ptx) == (name == "ccm")
    assert ".f64" in ptx or name == "spread"


@pytest.mark.parametrize(
    ("processor", "device", "events"),
    [
        (Cost(0, 2e-6), Cost(100e-6, 1e-7), 53),
        (Cost(0, 2e-6), Cost(0, 1e-6), 1),
        (Cost(1e-6, 1e-7), Cost(100e-6, 2e-7), None),
        (Cost(0, 1e-7), Cost(100e-6, 1e-7), None),
    ],
)
def test_the_device_is_used_from_where_it_costs_less(
    processor: Cost, device: Cost, events: int | None
) -> None:
    assert crossover(processor, device) == events
    for count in range(1, 200):
        wanted = events is not None and count >= events
        assert (device.seconds(count) < processor.seconds(count)) == wanted


def test_a_cost_is_told_by_two_times() -> None:
    assert Cost.of(5.0, 5.0, 1) == Cost(0.0, 5.0)
    cost = Cost.of(101.0, 200.0, 100)
    assert (cost.call_s, cost.event_s) == (100.0, 1.0)
    assert Cost.of(2.0, 1.0, 10) == Cost(2.0, 0.0)
