"""How far before its terminator each event of an ordinary rule can be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from rules.pattern import Negated, Rule, Selected, uses_of
from rules.terms import Aggregate, Within

Use: TypeAlias = Selected | Negated | Aggregate


def depths_of(rule: Rule) -> Iterator[tuple[Use, int]]:
    """The uses of an ordinary rule, each with how long, in microseconds, before the terminator its
    events can be. An event is introduced within a window from another, so the windows from the
    terminator down add up.
    """
    depths = [0]  # of the numbered events
    for clause in rule.selected:
        depths.append(depths[clause.window.anchor] + clause.window.duration)
    for use in uses_of(rule):
        if isinstance(use.window, Within):
            yield use, depths[use.window.anchor] + use.window.duration
        else:
            yield use, depths[use.window.earlier]


def reach_of(rule: Rule) -> int:
    """How far back from its terminator an ordinary rule can look, in microseconds."""
    return max((depth for _, depth in depths_of(rule)), default=0)
