from collections.abc import Iterator
from pathlib import Path

import pytest
from live_hosts import Hosts

from broker.network import Member


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[str]:
    """Where a single broker with a store is."""
    data = str(tmp_path / "store")
    hosts = Hosts(tmp_path, (Member("b1", ()),), strategy="centralized", engine="naive", data=data)
    try:
        yield hosts.address("b1")
    finally:
        hosts.kill()
