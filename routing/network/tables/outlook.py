"""How far ahead it is certain that a rule will find nothing more.

A composite event has the time of its terminator (tesla.md, before S1; with ``all``, X1, that of the
latest event). So a rule that has been evaluated up to its mark, the least of those of all its
types, finds nothing before the first event of its terminator's type that has come and has not been
evaluated, nor before the mark of that type. That is its *outlook*, and sinks wait no longer than
for that.

Law 1: a rule's outlook is never before its mark, and never goes back.

Law 2: events that wait to be evaluated are remembered by the extents of their batches, of a type
at most ``EXTENTS_MAX``; beyond that the last extent grows. A rule whose mark lies within an extent
has no outlook beyond its mark, as any event of the batch may be next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matcher.model import TIME_MIN, EventBatch
from routing.order import greatest_time, least_time
from rules.pattern import Rule

EXTENTS_MAX = 64


class Outlook:
    """Owner of what waits to be evaluated, and of the outlooks of some rules."""

    def __init__(self) -> None:
        self.opening: dict[str, tuple[str, ...]] = {}
        """By rule, the types of its terminators."""
        self._waiting: dict[str, list[tuple[int, int]]] = {}
        """By type of terminators, the least and the greatest time of batches that have come."""
        self._opened: dict[str, list[str]] = {}
        """By type, the rules whose terminators are of it."""
        self._marks: dict[str, int] = {}
        self.marks: dict[str, int] = {}
        """The outlooks, of rules that ``rise`` was called for."""

    def arrange(self, rules: Mapping[str, Rule]) -> None:
        """These are the rules from now on; their marks are to be told anew."""
        self.opening = {name: tuple(one.name for one in r.opening) for name, r in rules.items()}
        self._opened = {}
        for rule, names in self.opening.items():
            for name in names:
                self._opened.setdefault(name, []).append(rule)
        self._waiting = {name: self._waiting.get(name, []) for name in self._opened}
        self._marks = dict.fromkeys(rules, TIME_MIN)
        self.marks = {}

    def forget(self) -> None:
        """What has come counts no more."""
        self._waiting = {name: [] for name in self._opened}

    def see(self, batch: EventBatch) -> None:
        """Events have come that may be terminators."""
        waiting = self._waiting.get(batch.type.name)
        if waiting is None:
            return
        extent = least_time(batch), greatest_time(batch)
        if len(waiting) >= EXTENTS_MAX:
            self._let_go(batch.type.name)
            waiting = self._waiting[batch.type.name]
        if len(waiting) >= EXTENTS_MAX:
            least, greatest = waiting.pop()
            extent = min(least, extent[0]), max(greatest, extent[1])
        waiting.append(extent)

    def concerned(self, risen: Iterable[str], moved: Iterable[str]) -> set[str]:
        """The rules that may have another outlook once the marks of these rules have risen, and
        those of these types are others.
        """
        opened = self._opened
        return {*risen, *[rule for name in moved for rule in opened.get(name, ())]}

    def rise(self, rule: str, mark: int, types: Mapping[str, int]) -> bool:
        """A rule has been evaluated up to a mark; whether its outlook is another by that.

        ``types``: the marks of the types of its terminators.
        """
        self._marks[rule] = mark
        bound = min([types.get(name, TIME_MIN) for name in self.opening[rule]])
        for name in self.opening[rule] if bound > mark else ():
            self._let_go(name)
            for least, greatest in self._waiting[name]:
                if greatest >= mark:
                    bound = min(bound, max(least, mark))
        before = self.marks.get(rule)
        found = self.marks[rule] = max(mark, bound, TIME_MIN if before is None else before)
        return found != before

    def _let_go(self, name: str) -> None:
        """Forget what all rules have evaluated."""
        waiting = self._waiting[name]
        if waiting:
            passed = min([self._marks[rule] for rule in self._opened[name]])
            self._waiting[name] = [extent for extent in waiting if extent[1] >= passed]
