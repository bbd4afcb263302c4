"""The examples of thesis 7.3.5 as scripts, one file a rule: ``testdata/*.txt``.

Commands: ``rules`` takes TESLA; ``tree`` takes lines ``1 -> 2 3`` (a node and its children, the
root's first) and ``3: A B`` (what a node's sources publish), and prints where rules are evaluated
and what is forwarded for them; ``change`` takes the same for another tree, and prints what each
node has to change; ``events`` takes a history, and prints what each node sends, what is detected,
and whether one engine detects the same.
"""

from collections import deque
from dataclasses import replace
from pathlib import Path
from random import Random

import datadriven
import pytest
from datadriven import Case
from engines import make
from processing_tree import ProcessingTree, Source
from timeline import history, push, written

import rules
from matcher.model import TIME_MIN, Event
from routing.partition.placement import Change, Partition, Tree, changes, partition
from routing.partition.telling import tell_fragment, tell_partition
from rules.pattern import RuleSet

SCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))
MINUTE = 60


class Script:
    """What the commands of one script act on."""

    ruleset: RuleSet
    tree: Tree
    homes: dict[str, frozenset[str]]
    divided: Partition

    def perform(self, case: Case) -> str:
        return getattr(self, f"do_{case.command}")(case)

    def do_rules(self, case: Case) -> str:
        self.ruleset = rules.load(case.body)
        return ""

    def do_tree(self, case: Case) -> str:
        self._read(case.body)
        return "\n".join(tell_partition(self.divided, self._rules))

    def do_change(self, case: Case) -> str:
        before = self.divided
        self._read(case.body)
        return "\n".join(
            line
            for node, change in changes(before, self.divided).items()
            for line in self._told(node, change)
        )

    def do_events(self, case: Case) -> str:
        events = history(case.body, self.ruleset, unit=MINUTE)
        names = {event.id: f"{event.type}@{event.time / MINUTE / 1e6:g}" for event in events}
        network = self._network(events)
        sent: dict[str, list[str]] = {}
        for node in network.nodes.values():
            node.forwarder = _Noting(node.forwarder, sent.setdefault(node.name, []))
        found = written(sorted(network.run(), key=lambda event: event.time), unit=MINUTE)
        engine = make("naive")
        engine.deploy(self.ruleset)
        push(engine, events, self.ruleset)
        expected = written(engine.advance(network.end).events(), unit=MINUTE)
        lines = [
            f"{node} sends {' '.join(names.get(one, one) for one in some)}"
            for node, some in sorted(sent.items())
            if some
        ]
        assert found == expected, f"{found} is not what one engine detects: {expected}"
        return "\n".join([*lines, *(found or ["nothing is detected"])])

    @property
    def _rules(self):
        return {rule.name: rule for rule in self.ruleset.rules}

    def _read(self, body: str) -> None:
        children, self.homes = {}, {}
        for line in body.splitlines():
            if "->" in line:
                node, below = line.split("->")
                children[node.strip()] = tuple(below.split())
            else:
                node, types = line.split(":")
                self.homes[node.strip()] = frozenset(types.split())
        self.tree = Tree(next(iter(children)), children)
        self.divided = partition(self.tree, self.homes, self.ruleset.rules)

    def _told(self, node: str, change: Change):
        for name in change.evaluate:
            yield f"{node} evaluates {name}"
        for name in change.cease:
            yield f"{node} evaluates {name} no more"
        for name, fragment in change.deploy.items():
            for line in tell_fragment(self._rules[name], fragment):
                yield f"{node}, for {name}: {line}"
        for name in change.remove:
            yield f"{node} forwards nothing more for {name}"

    def _network(self, events: list[Event]) -> ProcessingTree:
        sources = []
        left = list(events)  # an event comes from the first node that advertises its type
        for node, types in self.homes.items():
            own = [replace(one, source=node) for one in left if one.type in types]
            left = [one for one in left if one.type not in types]
            own.sort(key=lambda event: event.time)
            sources.append(Source(node, types, deque(own)))
        end = max(event.time for event in events) + 1
        return ProcessingTree(
            Random(7),
            self.tree,
            sources,
            self.ruleset,
            self.ruleset.schemas,
            engine="naive",
            since=TIME_MIN,
            end=end,
        )


class _Noting:
    """A forwarder that writes down what it forwards."""

    def __init__(self, forwarder, sent: list[str]) -> None:
        self._forwarder = forwarder
        self._sent = sent
        self.push = forwarder.push
        self.answers = forwarder.answers

    def advance(self, marks):
        forwarded = self._forwarder.advance(marks)
        self._sent += [event.id for batch in forwarded.batches for event in batch.events()]
        return forwarded


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path, rewrite: bool):
    datadriven.run(path, Script().perform, rewrite=rewrite)


def test_there_are_scripts():
    assert SCRIPTS
