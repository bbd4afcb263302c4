"""Tables of a network, gathered from the statuses of its brokers, for ``top`` and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from broker.monitoring.figures import Row, ordered, tables
from broker.monitoring.health import blocked

Facts: TypeAlias = Mapping[str, Any]

SHOWN = {
    "sinks": "full_%",
    "rules": "cost_%",
    "users": "work_%",
    "types": "events/s",
    "sources": "events/s",
    "links": "waiting",
}
"""The tables, and the columns that they are sorted by."""


@dataclass(frozen=True, slots=True)
class Look:
    """Two statuses of a broker, ``seconds`` apart; without an earlier one they are the same, and
    nothing is known of rates.
    """

    before: Facts
    after: Facts
    seconds: float

    @property
    def is_rated(self) -> bool:
        """Whether there is an earlier status to tell rates by."""
        return self.before is not self.after

    @property
    def rates(self) -> Row | None:
        """Rates of what has come, by kind; None where they are not known."""
        if not self.is_rated:
            return None
        before, after = self.before["totals"], self.after["totals"]
        return {
            name: round(max(0, count - before[name]) / self.seconds, 1)
            for name, count in after.items()
        }


def connected(status: Facts) -> int:
    """How many clients a broker has, by its own status or as others are told of it."""
    told: int | None = status.get("connected")
    return len(status["clients"]) if told is None else told


def gathered(looks: Mapping[str, Look], own: str, clock: int) -> dict[str, list[Row]]:
    """The tables of all brokers that are known, each row with its broker, the most pressing first.
    ``own``: the broker whose list of rules counts. ``clock`` is in microseconds.

    What only a broker itself knows, its sinks, sources and rates, is there for those whose status
    is. With b1's status alone ``fire``, which b2 evaluates, is there by its name and its place, and
    without a rate.
    """
    found = {name: tables(one.before, one.after, one.seconds, clock) for name, one in looks.items()}
    every = {
        kind: [{**row, "broker": name} for name, one in found.items() for row in one[kind]]
        for kind in SHOWN
    }
    every["rules"] = _rules(found, own)
    return {kind: ordered(rows, SHOWN[kind]) for kind, rows in every.items()}


def _rules(found: Mapping[str, Mapping[str, list[Row]]], own: str) -> list[Row]:
    """The rules of the network, each as the broker tells of it that evaluates it, if it is known;
    else without a rate.
    """
    told = {name: {row["name"]: row for row in one["rules"]} for name, one in found.items()}
    rows = []
    for rule in told[own].values():
        place = rule["place"] or (own if rule["state"] in ("running", "stalled") else None)
        best = told.get(place or own, {}).get(rule["name"], rule)
        known = {} if (place or own) in told else {"events/s": None, "events": None}
        rows.append({**best, **known, "place": place, "told_by": place in told})
    return rows


def blocked_stores(looks: Mapping[str, Look]) -> Iterator[str]:
    """A sentence for each broker whose store takes nothing more."""
    for name, look in looks.items():
        if problem := look.after.get("store_problem"):
            yield f"{name}: {blocked(problem)}"


def broker_rows(looks: Mapping[str, Look], own: str) -> Iterator[Row]:
    """The brokers of the network by name, with what is known of each."""
    network = looks[own].after["network"]
    reachable = {one["name"]: one["reachable"] for one in network["brokers"]}
    for name in sorted({own, *reachable, *looks}):
        look = looks.get(name)
        rates = {} if look is None else look.rates or {}
        yield {
            "name": name,
            "reachable": reachable.get(name, True),
            "clients": None if look is None else connected(look.after),
            **{f"{kind}/s": rates.get(kind) for kind in ("received", "detected", "delivered")},
        }
