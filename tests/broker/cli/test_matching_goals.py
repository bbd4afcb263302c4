"""The goals of matching: each stands beside a figure that ``rexmq bench matching`` measures."""

from dataclasses import replace

import pytest

from benchmarks import matching
from benchmarks.matching import GOALS, SCENARIOS, beside_its_goal, measure
from benchmarks.report import Row


def test_every_goal_has_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "THREAD_ROUNDS", 1)
    monkeypatch.setattr(matching, "THREAD_SECONDS", 0.001)
    wanted = {goal.partition("/")[0] for goal in GOALS}
    names = set[str]()
    for scenario in SCENARIOS:
        if scenario.name in wanted:
            rows = measure(replace(scenario, constraints=1_000), 64)
            names.update(row.name for row in map(beside_its_goal, rows) if "goal: at " in row.note)
    assert names == {f"matching/{goal}" for goal in GOALS}


@pytest.mark.parametrize(
    ("row", "note"),
    [
        (Row("matching/1M/auto", 1.0, "events/s", note="index"), "index; goal: at least 1,500,000"),
        (Row("matching/1M/deployment", 1.0, "s"), "goal: at most 0.25"),
        (Row("matching/1M/index", 1.0, "events/s"), ""),
    ],
)
def test_a_figure_is_noted_with_its_goal(row: Row, note: str) -> None:
    assert beside_its_goal(row).note == note
