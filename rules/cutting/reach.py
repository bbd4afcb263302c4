"""How far back in time a rule looks: sums of windows along its chains, through hierarchies too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rules.pattern import Rule
from rules.planning.depths import depths_of
from rules.planning.variants import variants


def reach_through(rule: Rule, defining: Mapping[str, Sequence[Rule]]) -> int | None:
    """How far back what a rule finds can depend on events, in microseconds; None without bound.

    ``defining`` are all rules by the type that they define. Those below the rule, through which
    composite events come, look back in turn. An event is introduced within a window from another,
    so the windows from the terminator down add up; an event that is itself composite brings the
    reach of the rules that define it (tesla.md S12). Only consumption (S11) and recursion know no
    bound.
    """
    return _Reaches(defining).of_rule(rule)


class _Reaches:
    """Reaches by type, each computed once. A type is being looked at while None stands for it."""

    def __init__(self, defining: Mapping[str, Sequence[Rule]]) -> None:
        self._defining = defining
        self._of_types: dict[str, int | None] = {}

    def of_rule(self, rule: Rule) -> int | None:
        if rule.consuming:
            return None
        greatest = 0
        for ordinary in variants(rule):
            uses = ((use.type.name, depth) for use, depth in depths_of(ordinary))
            for name, depth in ((ordinary.terminator.name, 0), *uses):
                below = self._of_type(name)
                if below is None:
                    return None
                greatest = max(greatest, depth + below)
        return greatest

    def _of_type(self, name: str) -> int | None:
        if name not in self._of_types:
            self._of_types[name] = None  # what leads back to it is recursion
            reaches = [self.of_rule(rule) for rule in self._defining.get(name, ())]
            known = [reach for reach in reaches if reach is not None]
            self._of_types[name] = max(known, default=0) if known == reaches else None
        return self._of_types[name]
