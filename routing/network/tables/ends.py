"""What follows from which rules use and define which types: whom a mark bears on, and what ends."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from rules.pattern import TIMER

Uses = Mapping[str, frozenset[str]]
"""By rule, the types that it uses."""
Defining = Mapping[str, Sequence[str]]
"""By type, the rules that define it."""


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
