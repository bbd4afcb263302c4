"""Reports of brokers in a round, combined on their way to the root (brokers.report_collector).

Of how far anything has been evaluated the greatest counts, of how far who wants it has it the
least: b2 has fire up to 40 s and b3 up to 35 s, so all have it up to 35 s.
"""

from __future__ import annotations

from collections.abc import Iterable

from matcher.model import TIME_MIN
from routing.messages import Report
from routing.network.recovery.resume_points import Times, least
from routing.serving.accounts import put_together

ReportedNode = tuple[str, str, tuple[str, ...]]
"""A broker, its father ("" for the root), and what its sources publish or have published."""
Absent = tuple[tuple[str, tuple[str, ...]], ...]
"""Brokers out of reach, and what their sources publish or have published."""


def combined(own: Report, others: Iterable[Report]) -> Report:
    """The reports of a broker and of its children in answer to one question."""
    reports = (*others, own)
    if len(reports) == 1:
        return own
    return Report(
        own.root,
        own.epoch,
        own.number,
        nodes=tuple(node for one in reports for node in one.nodes),
        fronts=_greatest(one.fronts for one in reports),
        marks=_greatest(one.marks for one in reports),
        rules=_greatest(one.rules for one in reports),
        resume_from=_table(least(one.resume_from for one in reports)),
        sources=tuple(source for one in reports for source in one.sources),
        known=tuple(dict.fromkeys(known for one in reports for known in one.known)),
        wants=tuple(want for one in reports for want in one.wants),
        front=max(one.front for one in reports),
        ended=_table(dict(ended for one in reports for ended in one.ended)),
        promises=_table(least(one.promises for one in reports)),
        committed=_greatest(one.committed for one in reports),
        counts=_counted(count for one in reports for count in one.counts),
        found=_most(found for one in reports for found in one.found),
        logs=tuple(log for one in reports for log in one.logs),
        stays=put_together(stay for one in reports for stay in one.stays),
        lost=tuple(source for one in reports for source in one.lost),
    )


def raise_all(known: dict[str, int], said: Iterable[tuple[str, int]]) -> None:
    """Take over the greater times."""
    if known:
        said = [one for one in said if one[1] > known.get(one[0], TIME_MIN - 1)]
    known.update(said)


def _greatest(tables: Iterable[Times]) -> Times:
    found: dict[str, int] = {}
    for table in tables:
        raise_all(found, table)
    return _table(found)


def _table(times: dict[str, int]) -> Times:
    return tuple(sorted(times.items()))


def _counted(counts: Iterable[tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    """Events that were published, by type, and the greatest time of one."""
    found: dict[str, tuple[int, int]] = {}
    for name, events, front in counts:
        before, latest = found.get(name, (0, front))
        found[name] = before + events, max(latest, front)
    return tuple((name, *count) for name, count in sorted(found.items()))


def _most(found: Iterable[tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    """Bytes and batches of composite events, by rule, where most were found."""
    most: dict[str, tuple[int, int]] = {}
    for name, size, batches in found:
        most[name] = max((size, batches), most.get(name, (0, 0)))
    return tuple((name, *counts) for name, counts in sorted(most.items()))
