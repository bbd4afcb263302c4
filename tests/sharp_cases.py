"""Random rules that put fragments to the test: every selection matters, and little else happens.

The general cases (``tests/cases.py``) have all operators, but rules that seldom fire, and several
of them, so that most events are sent anyway. Here one rule has a tree to itself, its conditions are
mostly true, its types stand together at two or three nodes, and windows are about as long as events
are apart: what a fragment leaves out wrongly is soon missed.
"""

from random import Random

from rule_texts import SCHEMAS
from tree_cases import TreeCase, random_tree

import rules
from matcher.model import MICROSECONDS, Event
from simulator.fuzzing.sharp import SharpWriter


class SharpCase(TreeCase):
    """Everything about one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        writer = SharpWriter(random)
        texts = [writer.write("r0")] + ([SharpWriter(random).write("r1")] if seed % 5 == 0 else [])
        self.rules = rules.load("\n".join(map(str, texts)), known=SCHEMAS)
        self.tree = random_tree(random)
        self.types = {type_.name for rule in self.rules.rules for type_ in rule.used_types}
        self.types -= {rule.defines.name for rule in self.rules.rules}
        events = self._events()
        self.events = self._housed(events)
        self.since = min(event.time for event in events)
        self.end = max(event.time for event in events) + 3 * MICROSECONDS

    def _homes(self) -> dict[str, list[str]]:
        """Few nodes, so that some see several types and all of them."""
        nodes = sorted(self.tree.depths)
        chosen = [self.random.choice(nodes) for _ in range(self.random.choice((2, 2, 3)))]
        return {
            name: [
                self.random.choice(chosen) for _ in range(1 if self.random.random() < 0.9 else 2)
            ]
            for name in sorted(self.types)
        }

    def _events(self) -> list[Event]:
        random = self.random
        count, seconds = random.randint(15, 60), random.choice((20, 40, 80))
        times = sorted(random.randint(0, seconds) * MICROSECONDS for _ in range(count))
        events = []
        for number, time in enumerate(times):
            name = random.choice(sorted(self.types))
            data = {one.name: _VALUES[one.name](random) for one in SCHEMAS[name].attributes}
            events.append(Event(name, time, "", str(number), data, number))
        return events


_VALUES = {
    "p": lambda random: random.randint(0, 1),
    "q": lambda random: random.randint(0, 3),
    "v": lambda random: random.randint(0, 3) / 2,
    "s": lambda random: random.choice(("a", "b")),
    "f": lambda random: random.random() < 0.5,
    "n": lambda random: random.randint(0, 3),
}
