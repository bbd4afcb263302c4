"""The strategy that docs/strategies.md has as an example is as exact as the others."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import command
import pytest
from forked import forked_brokers
from networks import run, sharp, write

from broker.keys import is_strategy
from routing.installed import load_installed
from routing.network import strategy
from simulator.checkers import check
from simulator.scenario import ScenarioError

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"


def example(language: str) -> str:
    """The page's one piece in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return str(found)


@pytest.mark.usefixtures("own_strategies")
def test_the_example_detects_what_one_engine_does(tmp_path: Path) -> None:
    code = example("python")
    made: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), made)
    strategy.register(made["SiftedCentre"])
    for seed in (1, 2, 3, 4, 6, 8):
        found = sharp(seed)
        if found is None:
            continue
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = run(write(folder, seed, *found, "sifted-centre"))
        assert check(outcome) == [], f"seed {seed}"
        for host in outcome.experiment.brokers.values():
            facts = host.broker.status(outcome.ended_at)
            assert bool(facts["evaluates"]) == (facts["father"] is None)


def test_the_page_has_all_strategies() -> None:
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)) - {"strategy"}
    assert listed == set(strategy.names())


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Lets a package be there with the page's entry points, and this code in its module."""

    def write_package(code: str) -> None:
        (tmp_path / "sifted.py").write_text(code)
        information = tmp_path / "sifted-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: sifted\nVersion: 1.0\n")
        points = tomllib.loads(example("toml"))["project"]["entry-points"]["rexmq.strategies"]
        lines = "".join(f"{name} = {place}\n" for name, place in points.items())
        (information / "entry_points.txt").write_text(f"[rexmq.strategies]\n{lines}")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    yield write_package
    sys.modules.pop("sifted", None)


@pytest.mark.usefixtures("own_strategies")
def test_a_package_brings_its_strategies(bring, tmp_path: Path) -> None:
    bring(example("python"))
    assert "sifted-centre" not in strategy.names()
    assert is_strategy("sifted-centre")
    found = sharp(1)
    assert found is not None
    assert check(run(write(tmp_path, 1, *found, "sifted-centre"))) == []
    assert "sifted-centre" in strategy.names()
    load_installed()  # once more is as good as once


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.timeout(600)
def test_brokers_of_a_network_run_it(bring) -> None:
    """The demo's three brokers are processes of their own, and find what one finds."""
    bring(example("python"))
    words = "demo", "--from", "2013-02-08", "--days", "1"
    three = subprocess.run(
        [sys.executable, "-m", "broker", *words, "--brokers", "3", "--strategy", "sifted-centre"],
        capture_output=True,
        text=True,
        check=True,
    )
    with forked_brokers():
        one = command.run(*words)
    assert composites(three.stdout) == composites(one.stdout) != []


def composites(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(" 8 Feb")]


@pytest.mark.usefixtures("own_strategies")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_the_kind", "cannot be loaded: ModuleNotFoundError"),
        ("class SiftedCentre:\n    name = 'other'", "a class whose name is that, found 'other'"),
        ("SiftedCentre = 3", "a class whose name is that, found None"),
    ],
)
def test_a_package_that_brings_none_is_named(
    bring, tmp_path: Path, code: str, message: str
) -> None:
    bring(code)
    found = sharp(1)
    assert found is not None
    with pytest.raises(ScenarioError) as caught:
        run(write(tmp_path, 1, *found, "sifted-centre"))
    assert "the strategy 'sifted-centre' of sifted:SiftedCentre" in str(caught.value)
    assert message in str(caught.value)
