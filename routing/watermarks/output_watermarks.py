"""How far ahead it is certain that a rule will find nothing more.

A composite event has the time of its terminator (tesla.md, before S1; with ``all``, X1, that of the
latest event). So a rule that has been evaluated up to its mark, the least of those of all its
types, finds nothing before the first event of its terminator's type that has come and has not been
evaluated, nor before the mark of that type. That is its *output watermark*, and sinks wait no
longer than for that.

Law 1: a rule's output watermark is never before its mark, and never goes back, whatever plans there
are, until the rule begins anew: sinks have been told it, though a type that moved it may be gone.
fire is at 40 s, the next Smoke at 45 s: its output watermark is 45 s, and stays so.

Law 2: events that wait to be evaluated are remembered by the extents of their batches, of a type at
most ``EXTENTS_MAX``; beyond that the last extent grows. A rule whose mark lies within an extent has
no output watermark beyond its mark, as any event of the batch may be next. Smokes of 40 s to 50 s
come at once, fire is at 45 s: so is its output watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from matcher.model import TIME_MIN
from rules.pattern import Wiring

EXTENTS_MAX = 64


class OutputWatermarks:
    """Owner of what waits to be evaluated, and of the output watermarks of some rules. ``mark``: up
    to where a rule has been evaluated.
    """

    def __init__(self, mark: Callable[[str], int]) -> None:
        self._mark = mark
        self._found: dict[str, int] = {}
        """By rule, its output watermark, where ``rise`` was called for it."""
        self.types: dict[str, _Type] = {}
        """The types of terminators."""

    def of(self, rule: str) -> int:
        """The output watermark of a rule; TIME_MIN for one that ``rise`` was not called for."""
        return self._found.get(rule, TIME_MIN)

    def arrange(self, alike: Mapping[Wiring, Sequence[str]], stay: Collection[str]) -> None:
        """Replace the rules by these, by wiring; their marks are to be told anew. ``stay``: those
        that were there before, and are no others.
        """
        for name in self._found.keys() - stay:
            del self._found[name]
        before, self.types = self.types, {}
        for wiring, names in alike.items():
            for used in wiring.opening:
                if used not in self.types:
                    self.types[used] = _Type(before[used].waiting if used in before else [])
                self.types[used].rules += names

    def forget(self, mark: Callable[[str], int]) -> None:
        """Forget what has come: rules begin anew, and this is how far they have been evaluated."""
        self._mark, self._found = mark, {}
        for one in self.types.values():
            one.waiting = []

    def see(self, name: str, least: int, greatest: int) -> None:
        """Events of one of ``types`` have come, which may be terminators (Law 2)."""
        one = self.types[name]
        if len(one.waiting) >= min(8 + len(one.rules), EXTENTS_MAX):
            passed = min(map(self._mark, one.rules))
            one.waiting = [extent for extent in one.waiting if extent[1] >= passed]
        if len(one.waiting) >= EXTENTS_MAX:
            first, last = one.waiting.pop()
            least, greatest = min(first, least), max(last, greatest)
        one.waiting.append((least, greatest))

    def rise(self, rule: str, opening: Iterable[str], mark: int, bound: int) -> int:
        """A rule has been evaluated up to a mark; gives its output watermark.

        ``opening``: the types of its terminators; ``bound``: the least mark of these.
        """
        if bound > mark:
            for name in opening:
                for least, greatest in self.types[name].waiting:
                    if greatest >= mark:
                        bound = min(bound, max(least, mark))
        found = self._found[rule] = max(bound, mark, self._found.get(rule, TIME_MIN))
        return found


class _Type:
    """A type of terminators: the least and the greatest time of batches that have come."""

    def __init__(self, waiting: list[tuple[int, int]]) -> None:
        self.waiting = waiting
        self.rules: list[str] = []
        """Rules whose terminators are of it."""
