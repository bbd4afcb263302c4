"""From when on events are of use: one walk over all rules, and how far each looks back where."""

from __future__ import annotations

from rules.engine.kernels.compiled import kernel
from rules.engine.kernels.spans import back_from

TIME_GREATEST = 2**63 - 1


@kernel
def look_back(  # type: ignore[no-untyped-def]
    until: int, places, holds, groups, rules, columns, accesses, by_access, by_type
) -> None:
    """Write the times from which on events are of use into ``by_access`` and ``by_type``, int64
    each, TIME_GREATEST where no rule looks.

    The tables are those that ``rules.engine.horizons`` names; rules look at no instant before
    their marks, nor at any before ``until``.
    """
    by_access[:] = TIME_GREATEST
    by_type[:] = TIME_GREATEST
    for hold in holds:
        if hold.rule >= 0:
            rule = rules[hold.rule]
            look = min(until, max(rule.floor, groups[rule.group].mark))
            # A rule sees nothing before it holds (S15).
            look = max(back_from(look, hold.reach), rule.since)
            by_access[hold.access] = min(by_access[hold.access], look)
    for number in range(len(places)):
        if places[number].source >= 0:
            rule = rules[number]
            mark = min(until, max(rule.floor, groups[rule.group].mark))
            type_number = columns[rule.column].type
            by_type[type_number] = min(by_type[type_number], mark)
    for access in range(len(by_access)):
        type_number = columns[accesses[access].column].type
        by_type[type_number] = min(by_type[type_number], by_access[access])
