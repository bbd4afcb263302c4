"""A broker's status as it is told to other brokers: less of it, and bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

ROWS_MAX = 200

PLAIN = ("broker", "uptime_s", "totals", "history", "evaluates", "store_problem", "draining")
"""Facts that are told as they are, if a broker has them."""
OF_NETWORK = ("links", "trees", "sink_trees")
PRESSING: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "sinks": lambda sink: sink["queued"] / sink["limit"],
    "sources": lambda source: source["events"],
    "types": lambda known: known["events"],
    "rules": lambda rule: rule["cost"] or 0,
}
"""The lists, and what makes a row press: the greatest first."""


def told(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """A status as other brokers hear it. Nothing is told that all brokers know by themselves: who
    is in the network, and which rules there are. Of each list ``ROWS_MAX`` rows are told at most,
    those that press most, and ``rows`` says how many there are: of 1,000 sinks those with the
    fullest queues.
    """
    network = status["network"]
    here = {*status.get("evaluates", ())}
    lists: Mapping[str, Sequence[Mapping[str, Any]]] = {
        **{kind: status[kind] for kind in PRESSING},
        "rules": [rule for rule in status["rules"] if rule["name"] in here],
    }
    return {
        **{name: status[name] for name in PLAIN if name in status},
        "network": {name: network[name] for name in OF_NETWORK if name in network},
        **{
            kind: sorted(rows, key=PRESSING[kind], reverse=True)[:ROWS_MAX]
            for kind, rows in lists.items()
        },
        "rows": {kind: len(rows) for kind, rows in lists.items()},
        "connected": len(status["clients"]),
    }
