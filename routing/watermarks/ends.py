"""Uses and definitions of types by rules, and what follows: whom a mark bears on, and what ends."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from matcher.model import TIME_MAX
from rules.pattern import TIMER

CLOSED = TIME_MAX
"""The mark of a type that nobody publishes any more, the promise of a source that has closed."""

Uses = Mapping[str, frozenset[str]]
"""By rule, the types that it uses."""
Defining = Mapping[str, Sequence[str]]
"""By type, the rules that define it."""
_Key = TypeVar("_Key", bound=Hashable)


def users_of(
    uses: Mapping[_Key, frozenset[str]], defining: Mapping[str, Sequence[_Key]]
) -> dict[str, list[_Key]]:
    """By type, the rules whose marks it bears on: those that use it, and those above them. A key
    stands for one, or for some that use and define the same.
    """
    users: dict[str, list[_Key]] = {}
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
    if not is_timed:
        gone.add(TIMER.name)
    while True:  # all rules might be over, but for those that are found not to be
        over = {rule for rule, used in uses.items() if used <= gone}
        running = {name for name in gone if not over.issuperset(defining.get(name, ()))}
        if not running:
            return frozenset(gone - {TIMER.name}), frozenset(over)
        gone -= running
