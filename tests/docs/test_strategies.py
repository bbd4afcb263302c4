"""The strategy that docs/strategies.md has as an example is as exact as the others."""

import re
from pathlib import Path

import pytest
from networks import run, sharp, write

from routing.network import strategy
from simulator.checkers import check

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"


@pytest.mark.usefixtures("own_strategies")
def test_the_example_detects_what_one_engine_does(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
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
