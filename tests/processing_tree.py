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
from matcher.model import TIME_MAX, TIME_MIN, Event, EventBatch, EventType
from routing.order import greatest_time
from routing.partition.composites import numbered
from routing.partition.forwarder import Forwarder
from routing.partition.placement import (
    NOTHING_PULLED,
    Partition,
    Tree,
    partition,
)
from routing.partition.pulls import Pulls, roles_at
from routing.partition.questions import Answers, AskedSpans
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
    answers: Answers = ()


class Node:
    """An engine for the rules that are evaluated here, and a forwarder for those above."""

    def __init__(self, name: str, whole: RuleSet, divided: Partition, engine: str, since: int):
        self.name = name
        self.engine = make(engine)
        self.forwarder = Forwarder()
        self.pulls = Pulls()
        self.front = TIME_MIN
        self.given: dict[str, int] = {}  # the marks that engine and forwarder were given
        self.marks: dict[str, dict[str, int]] = {}  # by type, then by who gave them
        self.rules = [rule for rule in whole.rules if divided.places[rule.name] == name]
        self.ranks = {RULE_SOURCE + rule.name: rank for rank, rule in enumerate(whole.rules)}
        self.engine.deploy(RuleSet(tuple(self.rules), whole.schemas), since=since)
        for rule, fragment in divided.fragments.get(name, {}).items():
            self.forwarder.deploy(rule, fragment)
        self.found: list[Event] = []
        self.told: dict[str, int] = {}

    def take(self, sender: str, message: Message, end: int) -> Message:
        for batch in message.batches:
            self.engine.push(batch)
            self.forwarder.push(batch)
            self.pulls.see(batch)
            self.front = max(self.front, greatest_time(batch))
        for name, mark in message.marks.items():
            if sender in self.marks.get(name, ()):  # or it has withdrawn since
                self.marks[name][sender] = mark
        self.pulls.take(sender, message.answers)
        marks = {name: min(given.values()) for name, given in self.marks.items() if given}
        self.pulls.learn(marks)
        self.pulls.keep()
        for name, mark in self.pulls.limits.items():
            marks[name] = min(marks.get(name, end), mark)
        detected = self.engine.advance({**marks, "Timer": end})
        self.found += detected.events()
        for batch in detected.batches:
            self.forwarder.push(numbered(batch, self.ranks))
        for rule in self.rules:
            name = rule.defines.name
            marks[name] = min(marks.get(name, end), self.engine.mark(rule.name))
        self.given = marks
        forwarded = self.forwarder.advance(marks)
        answers = self.forwarder.answers(
            lambda name: marks.get(name, TIME_MAX), self.pulls.answered
        )
        self.told.update(forwarded.marks)
        return Message(forwarded.batches, dict(self.told), answers)

    def passed(self, rule: str) -> int:
        """Up to where a rule or its fragment has been evaluated here."""
        if rule in {one.name for one in self.rules}:
            return self.engine.mark(rule)
        types = self.forwarder.fragments[rule].types
        return min((self.given.get(name, TIME_MIN) for name in types), default=TIME_MIN)

    def hear(self, asked: AskedSpans) -> None:
        self.pulls.hear(asked)
        for name, spans, horizon in asked:
            self.forwarder.ask(name, spans, horizon)


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
        masters: Mapping[str, int] = NOTHING_PULLED,
    ):
        self.random = random
        self.tree = tree
        self.sources = list(sources)
        self.rules = rules
        self.schemas = schemas
        self.end = end
        self.masters = masters
        self.partition = self.divided()
        self.nodes = {
            name: Node(name, rules, self.partition, engine, since) for name in tree.depths
        }
        self.links: dict[str, deque[Message]] = {name: deque() for name in tree.fathers}
        self.down: dict[str, deque[AskedSpans]] = {name: deque() for name in tree.fathers}
        self.promised: dict[str, Mapping[str, int]] = {}  # by node
        self.carried = self.awakenings = 0
        for node in self.nodes.values():
            node.forwarder = forwarder()
            for rule, fragment in self.partition.fragments.get(node.name, {}).items():
                node.forwarder.deploy(rule, fragment)
        self._follow_pulls()
        self._expect_marks()

    def _expect_again(self) -> None:
        """Which child forwards what unasked has changed; what one has said stays said."""
        for child, father in self.tree.fathers.items():
            fragments = self.partition.fragments.get(child, {}).values()
            pushed = frozenset[str]().union(*(fragment.pushed for fragment in fragments))
            given = self.nodes[father].marks
            for name in pushed:
                given.setdefault(name, {}).setdefault(child, TIME_MIN)
            for name in given.keys() - pushed:
                given[name].pop(child, None)

    def _expect_marks(self) -> None:
        for number, source in enumerate(self.sources):
            for name in source.types:
                self.nodes[source.node].marks.setdefault(name, {})[f"source {number}"] = TIME_MIN
        for child, father in self.tree.fathers.items():
            for fragment in self.partition.fragments.get(child, {}).values():
                for name in fragment.pushed:
                    self.nodes[father].marks.setdefault(name, {})[child] = TIME_MIN

    def divided(self) -> Partition:
        """What is to be evaluated and forwarded where, as things are."""
        advertised: dict[str, frozenset[str]] = {}
        for source in self.sources:
            advertised[source.node] = advertised.get(source.node, frozenset()) | source.types
        rules = self.rules.rules
        return partition(self.tree, advertised, rules, self.masters)

    def _follow(self, divided: Partition) -> int:
        """Divide the rules so from now on; gives how many fragments are new or others."""
        before, self.partition = self.partition, divided
        changed = 0
        for name, node in self.nodes.items():
            old, new = (one.fragments.get(name, {}) for one in (before, divided))
            changed += sum(old.get(rule) != fragment for rule, fragment in new.items())
            node.forwarder.follow(new, {})
        return changed

    def _follow_pulls(self) -> None:
        for name, node in self.nodes.items():
            below = self.tree.children.get(name, ())
            node.pulls.follow(roles_at(name, below, self.partition), TIME_MIN)

    def run(self) -> list[Event]:
        """The composite events that all nodes have found."""
        while moves := self._moves():
            self.random.choice(moves)()
        return [event for node in self.nodes.values() for event in node.found]

    def _moves(self) -> list[Callable[[], None]]:
        moves: list[Callable[[], None]] = [
            lambda child=child: self._deliver(child) for child, link in self.links.items() if link
        ]
        moves += [lambda child=child: self._awake(child) for child in self.down if self.down[child]]
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

    def _awake(self, child: str) -> None:
        self.nodes[child].hear(self.down[child].popleft())
        self._look(child)

    def _look(self, name: str) -> None:
        """Nothing has come but what is known already."""
        self._take(name, "", Message((), {}))

    def _take(self, name: str, sender: str, message: Message) -> None:
        sent = self.nodes[name].take(sender, message, self.end)
        if name != self.tree.root:
            self.carried += sum(map(len, sent.batches))
            self.links[name].append(sent)
            self.promised[name] = sent.marks
        for child, asked in self.nodes[name].pulls.take_asked().items():
            self.down[child].append(asked)
            self.awakenings += 1
