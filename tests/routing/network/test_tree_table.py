"""Which trees are looked at after an input (routing.network.evaluation.tree_table)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from brokers import SCHEMAS, Network
from networks import run, sharp, write
from pairs import seeds

from matcher.matching import ON_PROCESSOR
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


def test_a_tree_is_of_brokers_in_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its root asked for a plan once it heard again of who had been out of reach, which another
    root made anew at once.
    """
    monkeypatch.setattr(Network, "strategy", "push-pull-mt")
    network = Network(3)
    network.link("b1", "b3")
    for name, broker, kind in (("t", "b2", "Temp"), ("s", "b3", "Smoke")):
        network.connect(name, broker).advertise([SCHEMAS[kind]])
    network.connect("m", "b1").deploy(
        "rule hot: define Hot() from Smoke() and last Temp() within 5 s from Smoke"
    )
    network.connect("k", "b1").subscribe("Hot()")
    network.run(1)
    trees = network.brokers["b1"].context.detection.trees
    assert trees["b1"].children == {"b2", "b3"}
    for wire in (*network.both_ways("b1", "b3"), *network.both_ways("b2", "b3")):
        wire.cut = True
    network.run(10)
    tree = network.brokers["b1"].context.detection.trees["b1"]
    assert tree.division.fathers == {"b2": "b1", "b3": "b1"}
    assert tree.children == {"b2"}
    assert not tree.has_link("b1", "b3")


def test_fewer_trees_may_stand_while_others_have_news() -> None:
    """A plan comes with what has come of the trees before it."""
    one, two = (cast(ProcessingTree, SimpleNamespace(used=frozenset({"A"}))) for _ in range(2))
    tree_table = TreeTable("b1", ON_PROCESSOR, lambda: pytest.fail("no tree begins"))
    tree_table.replace({"b1": one, "b2": two})
    tree_table.touch_users(["A"])
    tree_table.replace({"b2": two})
    assert tree_table.news == [two]
    tree_table.replace({})
    assert tree_table.news == []
