"""Random rules that put fragments to the test: every selection matters, and little else happens.

The general cases (``tests/cases.py``) have all operators, but rules that seldom fire, and several
of them, so that most events are sent anyway. Here one rule has a tree to itself, its conditions are
mostly true, its types stand together at two or three nodes, and windows are about as long as events
are apart: what a fragment leaves out wrongly is soon missed.
"""

from dataclasses import dataclass
from random import Random

from rule_texts import SCHEMAS
from tree_cases import TreeCase, random_tree

import rules
from matcher.model import MICROSECONDS, Event

LETTERS = "ABCD"


class SharpCase(TreeCase):
    """Everything about one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        writer = _Writer(random)
        texts = [writer.write("r0")] + ([_Writer(random).write("r1")] if seed % 5 == 0 else [])
        self.rules = rules.load("\n".join(texts), known=SCHEMAS)
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


@dataclass(slots=True)
class _Writer:
    """Writes one rule of two to five events."""

    random: Random

    def write(self, name: str) -> str:
        random = self.random
        count = random.choice((2, 3, 3, 3, 4, 5))
        types = [random.choice(LETTERS) for _ in range(count)]
        if random.random() < 0.6:  # mostly of types of their own
            types = random.sample(LETTERS, min(count, 4))
        clauses = []
        for number, type_ in enumerate(types):
            conditions = self._conditions(number, types)
            event = f"{type_}({conditions}) as e{number}"
            if number == 0:
                clauses.append(event)
                continue
            anchor = random.choice((number - 1, number - 1, random.randrange(number)))
            policy = random.choice(("last", "last", "first", "2-last", "2-first", "each"))
            clauses.append(f"{policy} {event} within {random.randint(2, 6)} s from e{anchor}")
            if random.random() < 0.1:
                clauses.append(f"e{number} within {random.randint(2, 6)} s from e0")
        if random.random() < 0.4:
            clauses.append(self._negation(types))
        if random.random() < 0.2:
            clauses.append(self._aggregate(len(types)))
        if random.random() < 0.15 and len(types) > 1:
            clauses.append(f"e0.{_NUMBER[types[0]]} <= e1.{_NUMBER[types[1]]} + 1")
        consuming = random.choice(
            ("", "", "", "", "", f"\nconsuming e{random.randrange(len(types))}")
        )
        return f"rule {name}: define Z()\nfrom " + "\n and ".join(clauses) + consuming

    def _conditions(self, number: int, types: list[str]) -> str:
        random = self.random
        own = _NUMBER[types[number]]
        if random.random() < 0.15:
            return f"{own} > 0"
        if number and random.random() < 0.4:
            other = random.randrange(number)
            relation = "=" if random.random() < 0.7 else random.choice(("<=", ">=", "!="))
            key, its = _KEY[types[number]], _KEY[types[other]]
            return f"{key} {relation} e{other}.{its}"
        return ""

    def _negation(self, types: list[str]) -> str:
        random = self.random
        negated = random.choice(LETTERS)
        condition = random.choice(("", "", f"{_NUMBER[negated]} > 0"))
        if random.random() < 0.2:
            condition = f"{_KEY[negated]} = e0.{_KEY[types[0]]}"
        if random.random() < 0.5 or len(types) < 2:
            anchor = random.randrange(len(types))
            return f"not {negated}({condition}) within {random.randint(1, 3)} s from e{anchor}"
        # e0 is at the end of every chain of anchors.
        return f"not {negated}({condition}) between e{random.randrange(1, len(types))} and e0"

    def _aggregate(self, count: int) -> str:
        random = self.random
        type_ = random.choice(LETTERS)
        window = f"within {random.randint(1, 4)} s from e{random.randrange(count)}"
        return f"Count({type_}() {window}) {random.choice(('<', '<=', '>', '!='))} 1"


_NUMBER = {"A": "v", "B": "q", "C": "v", "D": "q"}
_KEY = {"A": "p", "B": "p", "C": "p", "D": "q"}
