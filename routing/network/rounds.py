"""What is found out while the whole tree pauses (dividing, Law 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from matcher.model import TIME_MIN
from routing.messages import Paused


@dataclass(slots=True)
class Round:
    """One pause: whose answers are awaited, and what was said so far."""

    number: int
    awaited: set[str]
    nodes: list[tuple[str, str]] = field(default_factory=list)
    fronts: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    rules: dict[str, int] = field(default_factory=dict)

    def add(self, said: Paused) -> None:
        """Take in what a child has said."""
        self.nodes += said.nodes
        raise_all(self.fronts, said.fronts)
        raise_all(self.marks, said.marks)
        raise_all(self.rules, said.rules)


def raise_all(known: dict[str, int], said: Iterable[tuple[str, int]]) -> None:
    """Take over the greater times."""
    for name, time in said:
        known[name] = max(time, known.get(name, TIME_MIN))
