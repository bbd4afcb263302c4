"""Tests that compute on a device: a GPU if there is one, else numba's simulator if it is on.

Where neither is there they are not collected; ``tests/matcher/test_gpu.py`` runs them under the
simulator, which must be on before numba is imported, in a process of its own.
"""

from collections.abc import Iterator

import pytest
from devices import DEVICE, REASON, small_blocks

collect_ignore_glob = [] if DEVICE else ["test_*.py"]


def pytest_report_header() -> str:
    return f"device: {DEVICE.name if DEVICE else REASON}"


@pytest.fixture(autouse=True)
def few_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with small_blocks(monkeypatch):
        yield
