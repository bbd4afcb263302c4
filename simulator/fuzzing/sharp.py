"""Random rules that put fragments to the test: every selection matters, and little else happens.

The general rules (``writer``) have all operators, but seldom fire. Here conditions are mostly
true, and windows are about as long as events are apart: what a fragment leaves out wrongly is soon
missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from simulator.fuzzing.world import Piece, RuleText

LETTERS = "ABCD"


@dataclass(slots=True)
class SharpWriter:
    """Writes one rule of two to five events, which defines ``Z``."""

    random: Random

    def write(self, name: str) -> RuleText:
        """A rule of that name."""
        random = self.random
        count = random.choice((2, 3, 3, 3, 4, 5))
        types = [random.choice(LETTERS) for _ in range(count)]
        if random.random() < 0.6:  # mostly of types of their own
            types = random.sample(LETTERS, min(count, 4))
        clauses: list[Piece] = []
        for number, type_ in enumerate(types):
            conditions = self._conditions(number, types)
            if number == 0:
                clauses.append(Piece(type_, conditions, " as e0"))
                continue
            anchor = random.choice((number - 1, number - 1, random.randrange(number)))
            policy = random.choice(("last", "last", "first", "2-last", "2-first", "each"))
            tail = f" as e{number} within {random.randint(2, 6)} s from e{anchor}"
            clauses.append(Piece(f"{policy} {type_}", conditions, tail))
            if random.random() < 0.1:
                clauses.append(Piece(f"e{number} within {random.randint(2, 6)} s from e0"))
        if random.random() < 0.4:
            clauses.append(Piece(self._negation(types)))
        if random.random() < 0.2:
            clauses.append(Piece(self._aggregate(len(types))))
        if random.random() < 0.15 and len(types) > 1:
            clauses.append(Piece(f"e0.{_NUMBER[types[0]]} <= e1.{_NUMBER[types[1]]} + 1"))
        consumed = f"e{random.randrange(len(types))}"
        consuming = random.choice(((), (), (), (), (), (consumed,)))
        return RuleText(name, "Z", tuple(clauses), (), consuming)

    def _conditions(self, number: int, types: list[str]) -> tuple[str, ...]:
        random = self.random
        own = _NUMBER[types[number]]
        if random.random() < 0.15:
            return (f"{own} > 0",)
        if number and random.random() < 0.4:
            other = random.randrange(number)
            relation = "=" if random.random() < 0.7 else random.choice(("<=", ">=", "!="))
            key, its = _KEY[types[number]], _KEY[types[other]]
            return (f"{key} {relation} e{other}.{its}",)
        return ()

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
