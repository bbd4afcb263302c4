import gc
import os
import signal
from pathlib import Path

import pytest

LONGEST = (
    "conformance/test_engines.py",
    "matcher/test_gpu.py",
    "broker/test_demo.py",
    "simulator/test_parting.py",
    "simulator/test_law.py",
    "broker/test_commands.py",
    "broker/cli/test_reproduce.py",
    "broker/test_faults.py",
    "broker/cli/test_network.py",
    "broker/cli/test_files_of_commands.py",
)
"""Files of tests that take half a minute of CPU and more, the longest first."""


def pytest_configure() -> None:
    """A shell that starts tests in the background may have Ctrl-C ignored, by all that they start,
    too: programs whose end by it is tested.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers that take one file after another begin with the longest, so that none begins one of
    these when the others have nothing left to do.
    """
    if hasattr(config, "workerinput"):
        ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
        items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_collection_finish() -> None:
    """Modules have read how many cases they try; the commands that they start take these variables
    for misspelt settings.
    """
    for name in {name for name in os.environ if name.startswith("REXMQ_")} - {"REXMQ_COSTS"}:
        del os.environ[name]
    # A million objects of thousands of tests, which stay: no collection of garbage looks at them.
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the commands of script tests gave into the scripts",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture
def own_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered in this test is known in no other."""
    from routing.network import strategy

    monkeypatch.setattr(strategy, "_STRATEGIES", dict(strategy._STRATEGIES))
