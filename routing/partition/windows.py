"""How far apart the events of one match can be: shortest paths over a rule's time constraints.

Every window says of two events that one is no later than the other and no more than so much
earlier (S1, S7). Such constraints add up along a path, in both directions: where ``B`` lies within
5 minutes from ``A`` and ``C`` within 5 minutes from ``B``, ``C`` lies within 10 minutes from ``A``;
and of two events within 5 minutes from ``A``, either may be the earlier, by up to 5 minutes. The
tightest bounds are the shortest paths of the graph of constraints (thesis 7.3.5 adds windows up
along a chain; this is the same for every pair).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matcher.model import TIME_MAX
from rules.pattern import Rule, Selected, Timed
from rules.terms import Window, Within

Matrix: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The time of one event less that of another is from ``least`` to ``most`` microseconds."""

    least: int
    most: int

    @property
    def width(self) -> int:
        """How much room there is."""
        return self.most - self.least


@dataclass(frozen=True, slots=True)
class Distances:
    """For each pair of a rule's numbered events, the most by which one is later than another.

    ``most[i][j]`` bounds t(j) - t(i) in every match.
    """

    most: Matrix

    @classmethod
    def of(cls, rule: Rule) -> Distances:
        """The distances that the selections and the timed clauses of a rule leave.

        Events that come together may be either side of one another (tesla.md X1).
        """
        count = 1 + len(rule.selected)
        if rule.together is not None:
            row = [rule.together] * count
            return cls(tuple((*row[:n], 0, *row[n + 1 :]) for n in range(count)))
        most = [[TIME_MAX] * count for _ in range(count)]
        for number in range(count):
            most[number][number] = 0
        for clause in rule.clauses:
            if isinstance(clause, Selected | Timed):
                event, anchor = clause.event, clause.window.anchor
                most[event][anchor] = min(most[event][anchor], clause.window.duration)
                most[anchor][event] = min(most[anchor][event], 0)
        for via in range(count):  # Floyd and Warshall
            for start in range(count):
                for end in range(count):
                    path = most[start][via] + most[via][end]
                    most[start][end] = min(most[start][end], path)
        return cls(tuple(map(tuple, most)))

    @property
    def longest(self) -> int:
        """No two events of a match are further apart."""
        return max(max(row) for row in self.most)

    def between(self, start: int, end: int) -> Span:
        """The bounds of t(end) - t(start)."""
        return Span(-self.most[end][start], self.most[start][end])

    def from_window(self, window: Window, event: int) -> Span:
        """The bounds of t(event) - t, for any time t inside a window of the same match."""
        if isinstance(window, Within):
            anchor = window.anchor
            return Span(-self.most[event][anchor], self.most[anchor][event] + window.duration)
        return Span(-self.most[event][window.later], self.most[window.earlier][event])


def reach(rule: Rule, distances: Distances, windows: Sequence[Window]) -> int:
    """How far apart in time may be what a rule sees at once, in microseconds.

    ``windows`` are those of its selections, negations and aggregates: what can be selected in place
    of an event of the match may be farther from it than any event of the match.
    """
    spans = [
        distances.from_window(window, event)
        for window in windows
        for event in range(1 + len(rule.selected))
    ]
    return max([distances.longest, *(max(-span.least, span.most) for span in spans)])
