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

from collections.abc import Callable, Iterable, Mapping, Sequence

from matcher.model import TIME_MIN
from rules.pattern import Rule, Wiring

EXTENTS_MAX = 64


class OutputWatermarks:
    """Owner of what waits to be evaluated, and of the output watermarks of some rules. ``mark``: up
    to where a rule has been evaluated.
    """

    def __init__(self, mark: Callable[[str], int]) -> None:
        self._mark = mark
        self._rules: dict[str, _Rule] = {}
        self._types: dict[str, _Type] = {}
        """The types of terminators."""

    def of(self, rule: str) -> int | None:
        """The output watermark of a rule; None for one that ``rise`` was not called for."""
        found = self._rules.get(rule)
        return found.output_watermark if found is not None and found.is_known else None

    def arrange(
        self, rules: Mapping[str, Rule], alike: Mapping[Wiring, Sequence[str]], new: Iterable[str]
    ) -> None:
        """Replace the rules by these; their marks are to be told anew. ``alike``: them by wiring;
        ``new``: those that were not there, or were others.
        """
        for name in self._rules.keys() - rules.keys():
            del self._rules[name]
        self._types = {
            name: self._types.get(name, _Type()) for wiring in alike for name in wiring.opening
        }
        for name in new:
            types = [self._types[one] for one in rules[name].wiring.opening]
            self._rules[name] = _Rule(types)
        for one in self._types.values():
            one.rules = []
        for wiring, names in alike.items():
            for name in wiring.opening:
                self._types[name].rules += names

    def forget(self) -> None:
        """Forget what has come: rules begin anew."""
        self._rules = {}
        for one in self._types.values():
            one.waiting = []

    def see(self, name: str, least: int, greatest: int) -> None:
        """Events of a type have come that may be terminators (Law 2)."""
        one = self._types.get(name)
        if one is None:
            return
        if len(one.waiting) >= min(8 + len(one.rules), EXTENTS_MAX):
            passed = min(map(self._mark, one.rules))
            one.waiting = [extent for extent in one.waiting if extent[1] >= passed]
        if len(one.waiting) >= EXTENTS_MAX:
            first, last = one.waiting.pop()
            least, greatest = min(first, least), max(last, greatest)
        one.waiting.append((least, greatest))

    def rise(self, rule: str, mark: int, bound: int) -> int:
        """A rule has been evaluated up to a mark; gives its output watermark.

        ``bound``: the least mark of the types of its terminators.
        """
        one = self._rules[rule]
        if bound > mark:
            for opened in one.opening:
                for least, greatest in opened.waiting:
                    if greatest >= mark:
                        bound = min(bound, max(least, mark))
        bound = max(bound, mark)
        if not one.is_known or bound > one.output_watermark:
            one.output_watermark, one.is_known = bound, True
        return one.output_watermark


class _Rule:
    """One rule: the types of its terminators, and its output watermark."""

    def __init__(self, opening: list[_Type]) -> None:
        self.opening = opening
        self.output_watermark = TIME_MIN
        self.is_known = False


class _Type:
    """A type of terminators: the least and the greatest time of batches that have come."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int]] = []
        self.rules: list[str] = []
        """Rules whose terminators are of it."""
