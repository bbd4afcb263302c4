from collections.abc import Iterator

import pytest
from forked import forked_brokers


@pytest.fixture(scope="package", autouse=True)
def forks() -> Iterator[None]:
    """Brokers need not import everything anew."""
    with forked_brokers():
        yield
