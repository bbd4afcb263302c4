"""What brokers do when rules, sources and sinks come and go: what changed is deployed, and only
that (tree_evaluator.follow; planner, Law 2; trees).

A line of five brokers, n0 to n4; n2 is the centre. Three rules stand from the beginning; then,
every four seconds, something comes or goes. ``testdata/redeployment.txt`` has for each strategy
what engines and fragments were asked meanwhile, tree by tree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import datadriven
import pytest
from datadriven import Case

import rules.engine
from matcher.identity import plain_name
from matcher.model import MICROSECONDS, EventBatch
from routing.evaluation import tree_evaluator
from routing.evaluation.tree_evaluator import TreeEvaluator
from routing.network import strategy
from routing.network.brokers import measurements
from routing.network.strategy import WHOLE, Choice
from routing.partition.forwarder import Forwarder
from routing.partition.fragment import Fragment
from rules.engine.engine import Detections, Detector
from rules.pattern import RuleSet
from simulator import scenario
from simulator.checkers import check
from simulator.experiment import Experiment, Outcome
from simulator.oracle import delivered

RULES = """
rule near: define X() from A() as a and last B() within 60 s from a
rule wide: define Y() from D() as d and last C() within 60 s from d
rule eater: define W() from E() as e and last X() as x within 60 s from e consuming x
"""
MORE = "rule more: define Z() from A() as a and last C() within {} s from a"
NETWORK = """
seed = 5
engine = "naive"
rules = "rules.tesla"
broker = [{name = "n0"}, {name = "n1"}, {name = "n2"}, {name = "n3"}, {name = "n4"}]
link = [
    {between = ["n0", "n1"]},
    {between = ["n1", "n2"]},
    {between = ["n2", "n3"]},
    {between = ["n3", "n4"]},
]
source = [
    {name = "A0", broker = "n0", events = "A0.jsonl"},
    {name = "B0", broker = "n0", events = "B0.jsonl"},
    {name = "C1", broker = "n1", events = "C1.jsonl"},
    {name = "D4", broker = "n4", events = "D4.jsonl"},
    {name = "E3", broker = "n3", events = "E3.jsonl"},
    {name = "D3", broker = "n3", events = "D3.jsonl", at_s = 16.0},
    {name = "B4", broker = "n4", events = "B4.jsonl", at_s = 32.0},
]
sink = [
    {name = "k1", broker = "n1", subscribe = ["X", "Y", "Z"]},
    {name = "k3", broker = "n3", subscribe = ["Y"]},
    {name = "k4", broker = "n4", subscribe = ["W"]},
    {name = "k0", broker = "n0", subscribe = ["X"], at_s = 24.0, for_s = 4.0},
]
change = [
    {at_s = 4.0, broker = "n1", rules = "added.tesla"},
    {at_s = 8.0, broker = "n4", rules = "replaced.tesla"},
    {at_s = 12.0, broker = "n3", remove = "more"},
]
[protocol]
heartbeat_s = 20.0
lead_s = 10.0
"""
TIMES = {
    "A0": range(40),
    "B0": range(3),  # what near remembers of them it would find in no other way
    "C1": range(0, 40, 2),
    "D4": range(0, 40, 3),
    "E3": range(1, 40, 5),
    "D3": range(17, 20),
    "B4": range(33, 36),
}
STEP_S = 4.0
STEPS = {
    "in the beginning": {"near", "wide", "eater"},
    "more is added": {"more"},
    "more is replaced": {"more"},
    "more is removed": {"more"},
    "a source of D comes to n3": {"wide"},
    "it goes": set[str](),
    "a sink of X comes to n0": {"near"},
    "it goes again": {"near"},
    "a source of B comes to n4": {"near"},
}
"""What happens, and the rules that have to do with that."""
CHOSEN = Choice(candidate="distributed-mt")
Trees = Mapping[str, Mapping[str, tuple["NotingEngine", "NotingForwarder"]]]
"""By the roots of trees, "" for the single one, and by brokers."""


class NotingEngine:
    """An engine that writes down what it is asked."""

    def __init__(self, engine: Detector) -> None:
        self._engine = engine
        self.asked: list[tuple[str, str]] = []
        self.got: Counter[str] = Counter()
        """How often it has got each event."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def fresh(self) -> NotingEngine:
        return NotingEngine(self._engine.fresh())

    def deploy(self, rules: RuleSet, *, since: int | None = None, version: int = 0) -> None:
        self.asked += [("deploys", one.name) for one in rules.rules]
        self._engine.deploy(rules, since=since, version=version)

    def remove(self, name: str) -> None:
        self.asked.append(("removes", name))
        self._engine.remove(name)

    def push(self, batch: EventBatch) -> None:
        self.got.update(f"{one.source}#{one.id}" for one in batch.events())
        self._engine.push(batch)

    def advance(self, marks: int | Mapping[str, int]) -> Detections:
        return self._engine.advance(marks)


class NotingForwarder(Forwarder):
    """A forwarder that does."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.got: Counter[str] = Counter()

    def follow(self, fragments: Mapping[str, Fragment], since: Mapping[str, int]) -> None:
        gone = self._evaluations.keys() - fragments.keys()
        self.asked += [("forwards nothing more for", name) for name in sorted(gone)]
        super().follow(fragments, since)

    def _put(self, name: str, fragment: Fragment, since: int) -> frozenset[str]:
        self.asked.append(("forwards for", name))
        return super()._put(name, fragment, since)

    def push(self, batch: EventBatch, *, fresh: bool = True) -> None:
        self.got.update(f"{one.source}#{one.id}" for one in batch.events())
        super().push(batch, fresh=fresh)


class Notes:
    """What has happened in each tree, step by step.

    Where a tree goes on nothing is asked but of the rules that a step is about, and nothing that
    has come comes again.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.lines: list[str] = []
        self._experiment = experiment
        self._before: Trees = {}
        self._steps = iter(STEPS.items())
        for number in range(len(STEPS)):
            experiment.simulation.at((number + 1) * STEP_S - 0.1, self._turn)

    def _turn(self) -> None:
        """A step is over."""
        told, concerned = next(self._steps)
        trees, lines = self._trees(), []
        for root, brokers in sorted(trees.items()):
            kept = self._kept(root, brokers)
            asked = {name: [*one.asked, *two.asked] for name, (one, two) in brokers.items()}
            if kept:
                named = {plain_name(rule) for own in asked.values() for _, rule in own}
                assert named <= {*concerned, WHOLE}
            words = "; ".join(line for name in asked for line in words_of(name, asked[name]))
            tree = f"the tree of {root}" if root else "the single tree"
            if words or not kept:
                lines.append(f"  {tree}{'' if kept else ' begins anew'}: {words or 'nothing'}")
            for parts in brokers.values():
                for part in parts:
                    assert max(part.got.values(), default=1) == 1, "something was sent again"
                    part.asked = []
        lines += [f"  there is no tree of {gone}" for gone in self._before.keys() - trees.keys()]
        self.lines += [f"{told}{'' if lines else ', and nothing is asked'}", *lines]
        self._before = trees

    def _trees(self) -> Trees:
        found: dict[str, dict[str, tuple[NotingEngine, NotingForwarder]]] = defaultdict(dict)
        for name, host in self._experiment.brokers.items():
            detection = host.broker._detection
            evaluators: dict[str, TreeEvaluator] = {"": detection.evaluator}
            evaluators |= {root: tree.evaluator for root, tree in detection.trees.items()}
            for root, one in evaluators.items():
                engine = one.engine._engine  # within its intervals
                found[root][name] = engine, one.forwarder  # type: ignore[assignment]
        return found

    def _kept(self, root: str, brokers: Mapping[str, Sequence[object]]) -> bool:
        """Whether all brokers of a tree go on with the engines and fragments that they had; else
        none of them may.
        """
        before = self._before.get(root, {})
        kept = {before.get(name) == parts for name, parts in brokers.items()}
        assert len(kept) == 1
        return kept.pop()


def words_of(broker: str, asked: Sequence[tuple[str, str]]) -> Iterator[str]:
    for verb in dict.fromkeys(verb for verb, _ in asked):
        names = (name or "everybody" for one, name in asked if one == verb)
        yield f"{broker} {verb} {', '.join(names)}"


def written(folder: Path, name: str) -> Experiment:
    texts = {"rules": RULES, "added": MORE.format(60), "replaced": MORE.format(50)}
    declared = "".join(f"event {type_name}(p: int)\n" for type_name in "ABCDE")
    for file, text in texts.items():
        (folder / f"{file}.tesla").write_text(declared + text)
    for source, times in TIMES.items():
        event = f'{{{{"type": "{source[0]}", "time": {{}}, "source": "{source}"'
        lines = (event.format(time) + ', "data": {"p": 1}}\n' for time in times)
        (folder / f"{source}.jsonl").write_text("".join(lines))
    (folder / "scenario.toml").write_text(NETWORK)
    return Experiment(replace(scenario.read(folder / "scenario.toml"), strategy=name))


def noted(folder: Path, name: str, *, chosen: bool) -> tuple[Outcome, list[str]]:
    """What comes of it, and what was written down. ``chosen``: ``adaptive`` has made its CHOSEN,
    and stays with it; else nobody adapts to rates.
    """
    make = rules.engine.make
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules.engine, "make", lambda kind, **more: NotingEngine(make(kind, **more)))
        patch.setattr(tree_evaluator, "Forwarder", NotingForwarder)
        patch.setattr(measurements, "ADAPT_AFTER_S", 0.5 if chosen else 1e6)
        patch.setattr(measurements, "preferred", lambda costs, now: CHOSEN)
        experiment = written(folder, name)
        notes = Notes(experiment)
        return experiment.run(), notes.lines


def test_what_changed_is_deployed_and_only_that(tmp_path: Path, rewrite: bool) -> None:
    """And k1 gets all that there is, with what was remembered from the first three seconds."""

    def perform(case: Case) -> str:
        outcome, lines = noted(tmp_path, case.command, chosen="chosen" in case.arguments)
        assert check(outcome) == []
        found = delivered(outcome.experiment.sinks["k1"].arrivals).composite
        times = [one.time // MICROSECONDS for one in found if one.type == "X"]
        assert times == list(range(40))
        return "\n".join(lines)

    path = Path(__file__).parent / "testdata" / "redeployment.txt"
    assert {case.command for case in datadriven.parse(path.read_text())} == {*strategy.names()}
    datadriven.run(path, perform, rewrite=rewrite)
