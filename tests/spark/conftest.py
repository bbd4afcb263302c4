"""One Spark session for all tests of Spark, on two cores; they are skipped where it cannot run."""

from collections.abc import Iterator

import pytest
from forked import forked_brokers
from quick_java import QUICK

from broker.spark.environment import local_session, missing

REASON = missing()
collect_ignore_glob = ["test_[!e]*.py"] if REASON else []
"""All but test_environment.py, which says why."""
SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": f"-XX:MetaspaceSize=256m {QUICK}",
}


@pytest.fixture(scope="session")
def spark():
    session = local_session(2, "1g", SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="package", autouse=True)
def forks() -> Iterator[None]:
    """Brokers need not import everything anew."""
    with forked_brokers():
        yield


LONG = ("test_pipeline.py", "test_streaming.py")
"""Files of few tests that take minutes: whichever worker began one of them last would be waited for
by the other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark starts slowly on a busy machine, and the first test pays for it."""
    items.sort(key=lambda item: item.path.name not in LONG)
    for item in items:
        if "tests/spark" in item.path.as_posix() and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))
