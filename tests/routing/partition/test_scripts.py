"""The examples of thesis 7.3.5 as scripts, one file a rule: ``testdata/*.txt``.

Commands: ``rules`` takes TESLA; ``tree`` takes lines ``1 -> 2 3`` (a node and its children, the
root's first) and ``3: A B`` (what a node's sources publish), and prints where rules are evaluated
and what is forwarded for them; ``change`` takes the same for another tree, and prints what differs
at each node (what brokers make of that: tests/simulator/test_redeployment.py); ``events`` takes a
history, and prints what each node sends, what is detected, and whether one engine detects the same.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import datadriven
import pytest
from datadriven import Case
from engines import make
from msgspec import structs
from processing_tree import ProcessingTree, Source
from timeline import history, push, written

import rules
from matcher.model import TIME_MIN, Event
from routing.partition.fragment import Fragment
from routing.partition.fragment_text import tell_fragment
from routing.partition.placement import Partition, Tree, partition
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
        return "\n".join(self._whole())

    def do_change(self, case: Case) -> str:
        before = self.divided
        self._read(case.body)
        nodes = {*before.places.values(), *self.divided.places.values()}
        nodes |= before.fragments.keys() | self.divided.fragments.keys()
        return "\n".join(line for node in sorted(nodes) for line in self._another(node, before))

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

    def _whole(self) -> Iterator[str]:
        """Where every rule is evaluated, and every fragment by node."""
        for name, place in sorted(self.divided.places.items()):
            absent = ", ".join(sorted(self.divided.waiting.get(name, ())))
            waits = f", and waits for {absent}" if absent else ""
            yield f"{name} is evaluated at {place}{waits}"
        for node, fragments in sorted(self.divided.fragments.items()):
            yield from self._told(node, fragments)

    def _another(self, node: str, before: Partition) -> Iterator[str]:
        """What differs at a node from a partition before."""
        after = self.divided
        old, new = ({n for n, at in one.places.items() if at == node} for one in (before, after))
        yield from (f"{node} evaluates {name}" for name in sorted(new - old))
        yield from (f"{node} evaluates {name} no more" for name in sorted(old - new))
        was, now = (one.fragments.get(node, {}) for one in (before, after))
        yield from self._told(node, {n: one for n, one in now.items() if was.get(n) != one})
        for name in sorted(was.keys() - now.keys()):
            yield f"{node} forwards nothing more for {name}"

    def _told(self, node: str, fragments: Mapping[str, Fragment]) -> Iterator[str]:
        for name, fragment in sorted(fragments.items()):
            for line in tell_fragment(self._rules[name], fragment):
                yield f"{node}, for {name}: {line}"

    def _network(self, events: list[Event]) -> ProcessingTree:
        sources = []
        left = list(events)  # an event comes from the first node that advertises its type
        for node, types in self.homes.items():
            own = [structs.replace(one, source=node) for one in left if one.type in types]
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
