"""As tests/device/conftest.py: collected if there is a device, or numba's simulator is on."""

from collections.abc import Iterator

import pytest
from devices import DEVICE, small_blocks

collect_ignore_glob = [] if DEVICE else ["test_*.py"]


@pytest.fixture(autouse=True)
def few_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with small_blocks(monkeypatch):
        if DEVICE is not None and DEVICE.simulated:
            from studies.operators import places

            monkeypatch.setattr(places, "THREADS", 8)
        yield
