"""Pictures of networks: what is drawn is what is there."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from pairs import some_of_each

from broker.cli import main
from simulator import scenario
from simulator.experiment import Experiment, Outcome
from simulator.picture import SINKS, TREES, Sketch, draw, sketch_of

RULES = """event A(p: int)
event B(p: int)
rule near: define X(p: int) from A() as a where p = a.p
rule far: define Y(p: int) from A() as a and last B() as b within 5 s from a where p = a.p
"""
TEXT = """strategy = "{strategy}"
engine = "naive"
rules = "rules.tesla"
[topology]
kind = "line"
brokers = 5
[[link]]
between = ["b1", "b5"]
delay_ms = 50.0
[[source]]
name = "A"
broker = "b1"
events = "A.jsonl"
[[source]]
name = "B"
broker = "b5"
events = "B.jsonl"
[[sink]]
name = "k"
broker = "b1"
subscribe = ["X", "Y"]
"""


def written(path: Path, strategy: str, sinks: Sequence[tuple[str, str]] = ()) -> Path:
    """``sinks``: further ones, each with its broker and what it wants."""
    (path / "rules.tesla").write_text(RULES)
    for name in "AB":
        lines = (
            f'{{"type": "{name}", "time": {second}, "data": {{"p": 1}}}}\n'
            for second in range(20, 40)
        )
        (path / f"{name}.jsonl").write_text("".join(lines))
    file = path / "scenario.toml"
    text = TEXT.format(strategy=strategy) + "".join(
        f'[[sink]]\nname = "k{number}"\nbroker = "{broker}"\nsubscribe = ["{name}"]\n'
        for number, (broker, name) in enumerate(sinks)
    )
    file.write_text("duration_s = 15.0\n" + text)
    return file


def run(path: Path, strategy: str, sinks: Sequence[tuple[str, str]] = ()) -> Outcome:
    return Experiment(scenario.read(written(path, strategy, sinks))).run()


def test_a_sketch_says_what_there_is(tmp_path: Path) -> None:
    sketch = sketch_of(run(tmp_path, "distributed-st"))
    assert sketch.root == "b3"
    assert sketch.tree == {("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5")}
    assert set(sketch.traffic) == sketch.tree | {("b1", "b5")}
    assert sketch.traffic["b1", "b2"] > sketch.traffic["b1", "b5"]
    assert sketch.evaluated == {"b1": 1, "b3": 1}
    assert sketch.forwarding == dict.fromkeys(("b1", "b2", "b4", "b5"), 1)
    assert sketch.sink_trees == {}
    assert sketch.clients["b1"] == "1 so, 1 si"
    assert sketch.clients["b2"] == ""


def test_all_rules_are_at_the_centre_where_they_are_not_divided(tmp_path: Path) -> None:
    sketch = sketch_of(run(tmp_path, "centralized"))
    assert sketch.evaluated == {"b3": 2}
    assert sketch.forwarding == {}
    assert sketch.sink_trees == {}


WHOLE_LINE = {("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5")}


@pytest.mark.parametrize("strategy", ["distributed-mt", "push-pull-mt"])
def test_a_sketch_has_the_trees_of_sinks_as_far_as_something_comes_along(
    tmp_path: Path, strategy: str
) -> None:
    more = [("b2", "X"), ("b4", "Y"), ("b3", "A")]  # what is published is on the single tree
    sketch = sketch_of(run(tmp_path, strategy, more))
    assert sketch.tree == WHOLE_LINE
    assert sketch.sink_trees == {
        "b1": WHOLE_LINE,  # for far; near is found where its events are published
        "b2": {("b1", "b2")},
        "b4": WHOLE_LINE,
    }
    assert sketch.evaluated == {"b1": 2, "b4": 1}
    assert sketch.forwarding == dict.fromkeys(("b1", "b2", "b3", "b4", "b5"), 1)


@pytest.mark.parametrize("strategy", ["distributed-mt", "push-pull-mt"])
def test_of_a_few_trees_of_sinks_each_has_lines_of_its_own(tmp_path: Path, strategy: str) -> None:
    pytest.importorskip("matplotlib")
    graph = line_of(5)
    outcome = run(tmp_path, strategy, [("b2", "X"), ("b4", "Y")])
    picture = drawn(sketch_of(outcome), graph, tmp_path)
    # In each colour: the links, a line with its mark in the key, and a mark at the root.
    for colour, links in zip(TREES, (4, 1, 4), strict=False):
        assert picture.count(f"stroke: {colour}; stroke-width: 1.3") == links + 1
    assert TREES[3] not in picture
    assert SINKS not in picture
    for root in ("b1", "b2", "b4"):
        assert f"tree of sinks at {root} " in picture
    assert " 1 so, 1 si, 1 fr " in picture


def test_of_many_trees_of_sinks_each_link_says_how_many_use_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    graph = line_of(5)
    sketch = sketch_of(run(tmp_path, "distributed-mt"))
    trees = {f"b{number}": frozenset([("b1", "b2")]) for number in range(10, 97)}
    trees["b1"] = frozenset([("b1", "b2"), ("b4", "b5")])
    sketch = replace(sketch, sink_trees=trees, tree=frozenset([("b1", "b2")]))
    picture = drawn(sketch, graph, tmp_path)
    assert "<!-- 88 -->" in picture
    assert "so many trees of sinks use it" in picture
    assert TREES[0] not in picture
    # A link that they alone use, two squares around numbers, and both in the key, where a square
    # is a shape and its use.
    assert picture.count(f"stroke: {SINKS}") == 1 + 2 + 1 + 2


def line_of(count: int) -> nx.Graph:
    graph = nx.path_graph([f"b{number}" for number in range(1, count + 1)])
    nx.set_edge_attributes(graph, 0.005, "delay_s")
    return graph


def drawn(sketch: Sketch, graph: nx.Graph, folder: Path) -> str:
    file = folder / "network.svg"
    draw(sketch, graph, file)
    return file.read_text()


@pytest.mark.parametrize("strategy", ["distributed-st", "distributed-mt"])
def test_a_picture_is_drawn_by_the_command(tmp_path: Path, strategy: str) -> None:
    pytest.importorskip("matplotlib")
    file, picture = written(tmp_path, strategy), tmp_path / "network.png"
    assert main(["simulate", str(file), "--draw", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "again.png"
    assert main(["simulate", str(file), "--draw", str(again)]) == 0
    assert again.read_bytes() == picture.read_bytes()


@pytest.mark.parametrize(("trees", "brokers"), some_of_each([0, 2, 9], [1, 2, 30, 70]))
def test_networks_of_any_size_are_drawn(tmp_path: Path, brokers: int, trees: int) -> None:
    pytest.importorskip("matplotlib")
    graph = nx.Graph()
    graph.add_nodes_from(f"b{number}" for number in range(brokers))
    for number in range(1, brokers):
        graph.add_edge("b0", f"b{number}", delay_s=0.005)
    file = tmp_path / "network.svg"
    links = frozenset((min(link), max(link)) for link in graph.edges)
    sketch = sketch_of(run(tmp_path, "centralized"))
    sketch = replace(sketch, sink_trees=dict.fromkeys([*graph][:trees], links))
    draw(sketch, graph, file)
    assert file.stat().st_size > 1_000
    is_numbered = "so many trees of sinks use it" in file.read_text()
    assert is_numbered == (trees == 9 and brokers == 30)  # among 70 numbers could not be read
