"""A processing tree of engines and forwarders, with delays on its links and no network.

Each node pushes what comes, from its sources and its children, into its engine and its forwarder;
what the engine detects goes into the forwarder too. Messages wait on their links for as long as
chance has it; on each link they keep their order.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from engines import make
from timeline import batches

from matcher.identity import RULE_SOURCE
from matcher.model import TIME_MIN, Event, EventBatch, EventType
from routing.partition.composites import numbered
from routing.partition.forwarder import Forwarder
from routing.partition.placement import Partition, Tree, partition
from rules.pattern import RuleSet


@dataclass(slots=True, eq=False)
class Source:
    """What one node's clients publish, in the order in which they do."""

    node: str
    types: frozenset[str]
    events: deque[Event]
    marks: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Message:
    batches: Sequence[EventBatch]
    marks: Mapping[str, int]


class Node:
    """An engine for the rules that are evaluated here, and a forwarder for those above."""

    def __init__(self, name: str, whole: RuleSet, divided: Partition, engine: str, since: int):
        self.name = name
        self.engine = make(engine)
        self.forwarder = Forwarder()
        self.marks: dict[str, dict[str, int]] = {}  # by type, then by who gave them
        self.rules = [rule for rule in whole.rules if divided.places[rule.name] == name]
        self.ranks = {RULE_SOURCE + rule.name: rank for rank, rule in enumerate(whole.rules)}
        self.engine.deploy(RuleSet(tuple(self.rules), whole.schemas), since=since)
        for rule, fragment in divided.fragments.get(name, {}).items():
            self.forwarder.deploy(rule, fragment)
        self.found: list[Event] = []

    def take(self, sender: str, message: Message, end: int) -> Message:
        for batch in message.batches:
            self.engine.push(batch)
            self.forwarder.push(batch)
        for name, mark in message.marks.items():
            if sender in self.marks.get(name, ()):  # or it has withdrawn since
                self.marks[name][sender] = mark
        marks = {name: min(given.values()) for name, given in self.marks.items() if given}
        detected = self.engine.advance({**marks, "Timer": end})
        self.found += detected.events()
        for batch in detected.batches:
            self.forwarder.push(numbered(batch, self.ranks))
        for rule in self.rules:
            name = rule.defines.name
            marks[name] = min(marks.get(name, end), self.engine.mark(rule.name))
        forwarded = self.forwarder.advance(marks)
        return Message(forwarded.batches, forwarded.marks)


class ProcessingTree:
    """Runs a case to its end."""

    def __init__(
        self,
        random: Random,
        tree: Tree,
        sources: Sequence[Source],
        rules: RuleSet,
        schemas: Mapping[str, EventType],
        *,
        engine: str,
        since: int,
        end: int,
        forwarder: Callable[[], Forwarder] = Forwarder,
    ):
        self.random = random
        self.tree = tree
        self.sources = list(sources)
        self.rules = rules
        self.schemas = schemas
        self.end = end
        self.partition = self.divided()
        self.nodes = {
            name: Node(name, rules, self.partition, engine, since) for name in tree.depths
        }
        self.links: dict[str, deque[Message]] = {name: deque() for name in tree.fathers}
        self.promised: dict[str, Mapping[str, int]] = {}  # by node
        self.carried = 0
        for node in self.nodes.values():
            node.forwarder = forwarder()
            for rule, fragment in self.partition.fragments.get(node.name, {}).items():
                node.forwarder.deploy(rule, fragment)
        self._expect_marks()

    def _expect_marks(self) -> None:
        for number, source in enumerate(self.sources):
            for name in source.types:
                self.nodes[source.node].marks.setdefault(name, {})[f"source {number}"] = TIME_MIN
        for child, father in self.tree.fathers.items():
            for fragment in self.partition.fragments.get(child, {}).values():
                for name in fragment.forwards:
                    self.nodes[father].marks.setdefault(name, {})[child] = TIME_MIN

    def divided(self) -> Partition:
        """What is to be evaluated and forwarded where, as things are."""
        advertised: dict[str, frozenset[str]] = {}
        for source in self.sources:
            advertised[source.node] = advertised.get(source.node, frozenset()) | source.types
        return partition(self.tree, advertised, self.rules.rules)

    def run(self) -> list[Event]:
        """The composite events that all nodes have found."""
        while moves := self._moves():
            self.random.choice(moves)()
        return [event for node in self.nodes.values() for event in node.found]

    def _moves(self) -> list[Callable[[], None]]:
        moves: list[Callable[[], None]] = [
            lambda child=child: self._deliver(child) for child, link in self.links.items() if link
        ]
        for number, source in enumerate(self.sources):
            if source.events or any(source.marks.get(name) != self.end for name in source.types):
                moves.append(lambda number=number: self._publish(number))
        return moves

    def _publish(self, number: int) -> None:
        source = self.sources[number]
        count = self.random.choice((1, 1, 2, 5, len(source.events)))
        chunk = [source.events.popleft() for _ in range(min(count, len(source.events)))]
        # It promises for some of its types only, and no more than is true.
        for name in sorted(source.types):
            if not source.events or self.random.random() < 0.8:
                left = [event.time for event in source.events if event.type == name]
                source.marks[name] = min(left, default=self.end)
        message = Message(batches(chunk, self.schemas.values()), dict(source.marks))
        self._take(source.node, f"source {number}", message)

    def _deliver(self, child: str) -> None:
        self._take(self.tree.fathers[child], child, self.links[child].popleft())

    def _take(self, name: str, sender: str, message: Message) -> None:
        sent = self.nodes[name].take(sender, message, self.end)
        if name != self.tree.root:
            self.carried += sum(map(len, sent.batches))
            self.links[name].append(sent)
            self.promised[name] = sent.marks
