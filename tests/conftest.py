import gc
import os
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from pairs import WHOLE

from runtime.guarded import Side
from runtime.memory import guard

LONGEST = (
    "matcher/test_gpu.py",
    "docs/test_commands.py",
    "faults/test_faults.py",
    "docs/test_strategies.py",
    "simulator/test_processing.py",
    "broker/test_demo.py",
    "broker/test_draining.py",
    "broker/test_commands.py",
    "broker/test_page_in_browser.py",
    "simulator/test_fuzzing.py",
    "broker/cli/test_network.py",
    "broker/test_endings.py",
    "simulator/test_parting.py",
    "history/test_start.py",
    "broker/test_page_log.py",
    "runtime/test_compiling.py",
    "conformance/test_hosts.py",
    "faults/test_kills.py",
    "broker/test_page_keys.py",
    "broker/test_monitoring.py",
    "conformance/test_hybrid.py",
    "rules/engine/test_hybrid.py",
    "broker/test_faults.py",
    "conformance/test_engines.py",
    "broker/cli/test_files_of_commands.py",
)
"""Files of tests that take ten seconds and more, of CPU or of waiting: those with one test that
does so by itself, which cannot be shared out, then the others, the longest first.
"""


def pytest_configure(config: pytest.Config) -> None:
    """With ``--guarded`` arrays stand in guarded memory, before any kernel is compiled.

    A shell that starts tests in the background may have Ctrl-C ignored, by all that they start,
    too: programs whose end by it is tested.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if side := config.getoption("--guarded"):
        guard(Side(side))


TURNS = (
    ("centralized", "push-pull-mt"),
    ("distributed-mt", "adaptive"),
    ("distributed-st", "push-pull-mt"),
    ("push-pull-st", "distributed-mt"),
)
"""Strategies of which a test of a network has one of these pairs; each has trees of sinks in it."""
NETWORKS = tuple(Path(__file__).parent / name for name in ("simulator", "routing", "conformance"))


@cache
def is_of_networks(file: Path) -> bool:
    return any(folder in file.parents for folder in NETWORKS)


def is_in_turn(item: pytest.Item) -> bool:
    """Whether a test is run with its strategy by default, which only its name decides."""
    if not is_of_networks(item.path):
        return True
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return True
    from routing.network.strategy import names

    every = {*names()}
    columns: list[Sequence[object]] = [
        fixture.params
        for fixtures in item._fixtureinfo.name2fixturedefs.values()
        for fixture in fixtures
        if fixture.params
    ]
    for mark in item.iter_markers("parametrize"):
        words, rows = mark.args[0], [*mark.args[1]]
        is_one = isinstance(words, str) and "," not in words
        columns += [rows] if is_one else zip(*rows, strict=True)
    if not any(every == {one for one in column if isinstance(one, str)} for column in columns):
        return True
    test = f"{item.path.stem} {item.name.partition('[')[0]}"
    turn = TURNS[crc32(test.encode()) % len(TURNS)]
    return any(one in turn for one in item.callspec.params.values() if isinstance(one, str))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have tests that every strategy has to pass run with two of them, unless all combinations are
    asked for (``make combinations``), or single tests.

    Workers that take one file after another begin with the longest, so that none begins one of
    these when the others have nothing left to do.
    """
    if not WHOLE and not any("::" in word for word in config.args):
        kept = [*filter(is_in_turn, items)]
        config.hook.pytest_deselected(items=[*{*items} - {*kept}])
        items[:] = kept
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
    parser.addoption(
        "--guarded",
        choices=[side.value for side in Side],
        help="have arrays end at pages that nobody may touch, flush with this side of them",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture
def own_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered in this test is known in no other."""
    from routing.network import strategy

    monkeypatch.setattr(strategy, "_STRATEGIES", dict(strategy._STRATEGIES))
