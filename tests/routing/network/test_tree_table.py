"""Which trees are looked at after an input (routing.network.evaluation.tree_table)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from networks import run, sharp, write
from pairs import seeds

from routing.network.evaluation.divided import DividedDetection
from routing.network.evaluation.processing_tree import ProcessingTree
from routing.network.evaluation.tree_table import TreeTable
from rules.engine.engine import Detections


@pytest.mark.parametrize("strategy", ["distributed-mt", "push-pull-mt"])
def test_a_tree_without_news_has_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    advance, passed_over, looked_at = DividedDetection.advance, [0], [0]

    def watched(detection: DividedDetection, now: float) -> Detections | None:
        found = advance(detection, now)
        news = detection.tree_table.news
        for root, tree in detection.trees.items():
            if tree in news:
                looked_at[0] += 1
                continue
            passed_over[0] += 1
            assert not (tree.is_open and tree.has_messages), (seed, root)
            if detection.is_at_work:  # else it has news again when that changes
                assert not tree.evaluator.has_news, (seed, root)
                assert not tree.take_asked(), (seed, root)
        return found

    monkeypatch.setattr(DividedDetection, "advance", watched)
    for seed in seeds(2, 4):
        if (case := sharp(seed)) is not None:
            run(write(tmp_path, seed, *case, strategy))
    assert passed_over[0] > 100, passed_over
    assert looked_at[0] > 100, looked_at


def test_fewer_trees_may_stand_while_others_have_news() -> None:
    """A plan comes with what has come of the trees before it."""
    one, two = (cast(ProcessingTree, SimpleNamespace(used=frozenset({"A"}))) for _ in range(2))
    tree_table = TreeTable()
    tree_table.replace({"b1": one, "b2": two})
    tree_table.touch_users(["A"])
    tree_table.replace({"b2": two})
    assert tree_table.news == [two]
    tree_table.replace({})
    assert tree_table.news == []
