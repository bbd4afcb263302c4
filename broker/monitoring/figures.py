"""Rates and orders of what a broker's status lists, from two looks at it.

A rate is what has come between the two looks; of what was not there at the first one it is 0. A
sink that has 20 events delivered at the first look, and 80 at the second, 2 s later, has 30 a
second; one that came between has 0, though it was given 50 meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from matcher.model import MICROSECONDS

Row: TypeAlias = dict[str, Any]

HELD_MAX = 3
"""Names of those that hold a rule up which a row has."""


def tables(
    before: Mapping[str, Any], after: Mapping[str, Any], seconds: float, clock: int
) -> dict[str, list[Row]]:
    """The rows of each table, in no order."""
    return {
        "sinks": [
            {
                **sink,
                "full_%": round(100 * sink["queued"] / sink["limit"]),
                "events/s": _rate(sink, was, "delivered", seconds),
                "dropped/s": _rate(sink, was, "dropped", seconds),
            }
            for sink, was in _paired(before["sinks"], after["sinks"])
        ],
        "rules": list(_rules(before, after, seconds, clock)),
        "users": [
            {**user, "work_%": round(100 * _rate(user, was, "work_s", seconds))}
            for user, was in _paired(before.get("users", ()), after.get("users", ()))
        ],
        "types": [
            {
                **one,
                "events/s": _rate(one, was, "events", seconds),
                "behind_s": _behind(one, clock),
                "sources": len(one["sources"]),
            }
            for one, was in _paired(before["types"], after["types"])
        ],
        "sources": [
            {
                **source,
                "events/s": _rate(source, was, "events", seconds),
                "late/s": _rate(source, was, "late", seconds),
            }
            for source, was in _paired(before["sources"], after["sources"])
            if not source.get("home")  # else the broker whose client it is tells of it
        ],
        "links": [
            {
                "name": link["neighbour"],
                "waiting": link["buffered"],
                "sent/s": _rate(link, was, "sent", seconds),
                "received/s": _rate(link, was, "received", seconds),
            }
            for link, was in _paired(
                before["network"]["links"], after["network"]["links"], "neighbour"
            )
        ],
    }


def ordered(rows: Sequence[Row], column: str, *, reverse: bool = False) -> list[Row]:
    """Rows by one column: the greatest numbers first, texts by the alphabet; ``reverse``: the other
    way round. None is last either way, and equal rows stay in their order.
    """

    def rank(row: Row) -> tuple[int, float, str]:
        value = row[column]
        return (0, -value, "") if isinstance(value, int | float) else (1, 0.0, str(value))

    known = [row for row in rows if row.get(column) is not None]
    unknown = [row for row in rows if row.get(column) is None]
    return [*sorted(known, key=rank, reverse=reverse), *unknown]


def _paired(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], by: str = "name"
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Rows of the second look, each with itself in the first one: the next there that has the same
    under ``by``.
    """
    left: dict[str, list[Mapping[str, Any]]] = {}
    for one in before:
        left.setdefault(one[by], []).append(one)
    for one in after:
        found = left.get(one[by])
        yield one, found.pop(0) if found else one


def _rules(
    before: Mapping[str, Any], after: Mapping[str, Any], seconds: float, clock: int
) -> Iterator[Row]:
    """Rules, each with its share of the time in which this broker has evaluated rules, and the rate
    of what it defines; None where that is not known.
    """
    spent = [(rule, _spent(rule, was)) for rule, was in _paired(before["rules"], after["rules"])]
    total = sum(cost for _, cost in spent if cost is not None)
    rates = {
        one["name"]: _rate(one, was, "events", seconds)
        for one, was in _paired(before["types"], after["types"])
    }
    counts = {one["name"]: one["events"] for one in after["types"]}
    for rule, cost in spent:
        share = None if cost is None or not total else round(100 * cost / total, 1)
        memory = rule.get("memory")
        yield {
            **rule,
            "cost_%": share,
            "memory_kB": None if memory is None else round(memory / 1000),
            "events/s": rates.get(rule["type"]),
            "events": counts.get(rule["type"]),
            "behind_s": _behind(rule, clock),
            "held_up_by": list(map(holder, rule.get("held_by", ())))[:HELD_MAX],
        }


def holder(one: Mapping[str, Any]) -> str:
    """The source or broker that holds a mark; of clients that may come back, that they are gone."""
    name: str = one["source"] or one["broker"] or one["standing"]
    return name


def _spent(rule: Mapping[str, Any], was: Mapping[str, Any]) -> int | None:
    cost, before = rule.get("cost"), was.get("cost")
    return None if cost is None else max(0, cost - (before or 0))


def _rate(now: Mapping[str, Any], was: Mapping[str, Any], of: str, seconds: float) -> float:
    change: int = now[of] - was[of]
    return round(max(0, change) / seconds, 1)


def _behind(one: Mapping[str, Any], clock: int) -> float | None:
    """Seconds from the mark of a rule or a type to the clock; None without a mark."""
    return None if one["mark"] is None else round((clock - one["mark"]) / MICROSECONDS, 1)
