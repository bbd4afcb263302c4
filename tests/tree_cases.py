"""Random trees with random rules, sources and events, all from one seed."""

from collections import deque
from random import Random

from agreement import row
from cases import Deploy, Push, random_case
from engines import make
from msgspec import structs
from processing_tree import ProcessingTree, Source
from rule_texts import SCHEMAS
from timeline import batches

import rules
from matcher.model import MICROSECONDS, Event
from routing.partition.forwarder import Forwarder
from routing.partition.masters import masters_of
from routing.partition.placement import NOTHING_PULLED, Tree
from rules.pattern import RuleSet


class TreeCase:
    """Everything about one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        case = random_case(seed, long=random.random() < 0.3)
        texts = [text for step in case.steps if isinstance(step, Deploy) for text in step.rules]
        once = {text.name: str(text) for text in texts}
        self.rules: RuleSet = rules.load("\n\n".join(once.values()), known=SCHEMAS)
        events = [event for step in case.steps if isinstance(step, Push) for event in step.events]
        events.sort(key=lambda event: event.time)
        if random.random() < 0.6:  # spread them, so that windows part them
            events = [structs.replace(event, time=4 * event.time) for event in events]
        self.tree = random_tree(random)
        self.types = {event.type for event in events}
        defined = {rule.defines.name for rule in self.rules.rules}
        used = {type_.name for rule in self.rules.rules for type_ in rule.used_types}
        self.types |= used - defined - {"Timer"}
        self.events = self._housed(events)
        self.since = min(event.time for event in events)
        self.end = max(event.time for event in events) + 3 * MICROSECONDS

    def _housed(self, events: list[Event]) -> dict[str, list[Event]]:
        """The events by node."""
        random, nodes = self.random, sorted(self.tree.depths)
        self.homes = self._homes()
        housed: dict[str, list[Event]] = {node: [] for node in nodes}
        for event in events:
            home = random.choice(self.homes[event.type])
            number = len(housed[home]) + 1
            name = f"n{number}" if event.id.startswith("n") else str(number)
            housed[home].append(structs.replace(event, source=home, sequence=number, id=name))
        return housed

    def _homes(self) -> dict[str, list[str]]:
        """Each type comes from one node, or from two."""
        random, nodes = self.random, sorted(self.tree.depths)
        return {
            name: [random.choice(nodes) for _ in range(random.choice((1, 1, 1, 2)))]
            for name in sorted(self.types)
        }

    def sources(self) -> list[Source]:
        found = []
        for node, events in self.events.items():
            types = frozenset(name for name, homes in self.homes.items() if node in homes)
            if types:
                found.append(Source(node, types, deque(events)))
        return found

    def centralised(self) -> list[Event]:
        engine = make("naive")
        engine.deploy(self.rules, since=self.since)
        for events in self.events.values():
            for batch in batches(events, SCHEMAS.values()):
                engine.push(batch)
        return list(engine.advance(self.end).events())

    def distributed(
        self,
        forwarder: type = Forwarder,
        engine: str = "naive",
        kind: type[ProcessingTree] = ProcessingTree,
        pulled: bool = False,
    ) -> ProcessingTree:
        return kind(
            self.random,
            self.tree,
            self.sources(),
            self.rules,
            SCHEMAS,
            engine=engine,
            since=self.since,
            end=self.end,
            forwarder=forwarder,
            masters=self.masters() if pulled else NOTHING_PULLED,
        )

    def masters(self) -> dict[str, int]:
        """A master for most of the rules, any that may be."""
        random = Random(f"masters {self}")
        defined = {rule.defines.name for rule in self.rules.rules}
        found = {rule.name: masters_of(rule, defined) for rule in self.rules.rules}
        return {
            name: random.choice(numbers)
            for name, numbers in found.items()
            if numbers and random.random() < 0.9
        }

    @property
    def hops(self) -> int:
        """How many events cross links if every event of a type in use goes to the root."""
        used = {type_.name for rule in self.rules.rules for type_ in rule.used_types}
        return sum(
            self.tree.depths[node]
            for node, events in self.events.items()
            for event in events
            if event.type in used
        )

    def __str__(self) -> str:
        lines = [f"{rule.name}: {rule.text}" for rule in self.rules.rules]
        lines += [f"tree {dict(self.tree.children)}", f"homes {self.homes}"]
        lines += [str(event) for events in self.events.values() for event in events]
        return "\n".join(lines)


def random_tree(random: Random) -> Tree:
    count = random.randint(2, 12) if random.random() < 0.9 else 1
    names = [f"k{number}" for number in random.sample(range(20), count)]
    children: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names[1:], start=1):
        # Now and then a chain, so that fragments are cut from fragments.
        father = names[place - 1] if random.random() < 0.4 else random.choice(names[:place])
        children[father] = (*children.get(father, ()), name)
    return Tree(names[0], children)


def rows(events: list[Event]) -> list[tuple]:
    return sorted(map(row, events))
