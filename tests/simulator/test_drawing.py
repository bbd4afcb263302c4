"""Pictures of networks: what is drawn is what is there."""

from pathlib import Path

import networkx as nx
import pytest

from broker.cli import main
from simulator import scenario
from simulator.drawing import draw, sketch_of
from simulator.experiment import Experiment, Outcome

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


def written(path: Path, strategy: str) -> Path:
    (path / "rules.tesla").write_text(RULES)
    for name in "AB":
        lines = (
            f'{{"type": "{name}", "time": {second}, "data": {{"p": 1}}}}\n'
            for second in range(20, 40)
        )
        (path / f"{name}.jsonl").write_text("".join(lines))
    file = path / "scenario.toml"
    file.write_text("duration_s = 15.0\n" + TEXT.format(strategy=strategy))
    return file


def run(path: Path, strategy: str) -> Outcome:
    return Experiment(scenario.read(written(path, strategy))).run()


def test_a_sketch_says_what_there_is(tmp_path: Path) -> None:
    sketch = sketch_of(run(tmp_path, "distributed-st"))
    assert sketch.root == "b3"
    assert sketch.tree == {("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5")}
    assert set(sketch.traffic) == sketch.tree | {("b1", "b5")}
    assert sketch.traffic["b1", "b2"] > sketch.traffic["b1", "b5"]
    assert sketch.evaluated == {"b1": 1, "b3": 1}
    assert sketch.forwarding == {"b1", "b2", "b4", "b5"}
    assert sketch.clients["b1"] == "1 so, 1 si"
    assert sketch.clients["b2"] == ""


def test_all_rules_are_at_the_centre_where_they_are_not_divided(tmp_path: Path) -> None:
    sketch = sketch_of(run(tmp_path, "centralized"))
    assert sketch.evaluated == {"b3": 2}
    assert sketch.forwarding == frozenset()


def test_a_picture_is_drawn_by_the_command(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file, picture = written(tmp_path, "distributed-st"), tmp_path / "network.png"
    assert main(["simulate", str(file), "--draw", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = tmp_path / "again.png"
    assert main(["simulate", str(file), "--draw", str(again)]) == 0
    assert again.read_bytes() == picture.read_bytes()


@pytest.mark.parametrize("brokers", [1, 2, 70])
def test_networks_of_any_size_are_drawn(tmp_path: Path, brokers: int) -> None:
    pytest.importorskip("matplotlib")
    graph = nx.Graph()
    graph.add_nodes_from(f"b{number}" for number in range(brokers))
    for number in range(1, brokers):
        graph.add_edge("b0", f"b{number}", delay_s=0.005)
    file = tmp_path / "network.svg"
    sketch = sketch_of(run(tmp_path, "centralized"))
    draw(sketch, graph, file)
    assert file.stat().st_size > 1_000
