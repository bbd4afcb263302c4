"""What follows from which rules use and define which types: whom a mark bears on, and what ends."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set
from typing import Protocol

from rules.pattern import TIMER

Uses = Mapping[str, frozenset[str]]
"""By rule, the types that it uses."""
Defining = Mapping[str, Sequence[str]]
"""By type, the rules that define it."""


class Closings(Protocol):
    """What is said of the types of which nothing is published any more."""

    @property
    def marks(self) -> Mapping[str, int]:
        """The types of which something is said."""
        ...

    @property
    def closed(self) -> Set[str]:
        """Those of which nothing is published any more."""
        ...

    @property
    def closings(self) -> int:
        """How often these have changed."""
        ...


class Ends:
    """The types of which nothing more will come, from sources or from rules."""

    def __init__(self) -> None:
        self.types: frozenset[str] = frozenset()
        self.rules: frozenset[str] = frozenset()
        """The rules all of whose types have ended."""
        self._uses: Uses = {}
        self._defining: Defining = {}
        self._looked_at: tuple[int, bool] | None = None
        """The closings that were looked at last, and whether the clock counted."""

    def arrange(self, uses: Uses, defining: Defining) -> None:
        """There are these rules from now on."""
        self._uses, self._defining, self._looked_at = uses, defining, None

    def look(self, said: Closings, moved: set[str], *, is_timed: bool) -> Collection[str]:
        """See what has ended, if that may have changed. Adds types that have ended, or have not any
        more, to ``moved``; gives such rules. ``is_timed``: the clock counts.
        """
        closings = said.closings, is_timed
        if self._looked_at == closings:
            return ()
        self._looked_at = closings
        defining = self._defining
        names = said.marks.keys() | defining.keys()
        gone = said.closed | (defining.keys() - said.marks.keys())
        types, rules = ended(gone, self._uses, defining, is_timed=is_timed)
        moved |= (types ^ self.types) & names
        changed = (rules ^ self.rules).intersection(self._uses)
        self.types, self.rules = types, rules
        return changed


def users_of(uses: Uses, defining: Defining) -> dict[str, list[str]]:
    """By type, the rules whose marks it bears on: those that use it, and those above them."""
    users: dict[str, list[str]] = {}
    for rule in uses:
        reached = {rule: None}
        waiting = [rule]
        while waiting:
            for name in uses[waiting.pop()]:
                below = [one for one in defining.get(name, ()) if one not in reached]
                reached.update(dict.fromkeys(below))
                waiting += below
        for name in sorted(frozenset[str]().union(*(uses[one] for one in reached))):
            users.setdefault(name, []).append(rule)
    return users


def ended(
    names: Iterable[str], uses: Uses, defining: Defining, *, is_timed: bool
) -> tuple[frozenset[str], frozenset[str]]:
    """Of which of these types nothing more will come, and the rules all of whose types those are.

    ``names``: the types that nobody publishes; ``is_timed``: the clock counts.
    """
    gone = set(names)
    while True:  # all rules might be over, but for those that are found not to be
        over = {
            rule
            for rule, used in uses.items()
            if all(_is_over(name, gone, is_timed) for name in used)
        }
        running = {name for name in gone if not over.issuperset(defining.get(name, ()))}
        if not running:
            return frozenset(gone), frozenset(over)
        gone -= running


def _is_over(used: str, ended: Container[str], is_timed: bool) -> bool:
    return not is_timed if used == TIMER.name else used in ended
