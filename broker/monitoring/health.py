"""Health and readiness of a broker, as its status tells them.

A broker is healthy when it answers, and ready when clients find all that they expect of it: when
the network that it belongs to has settled, its rules could go on by what it has heard since its
start, and its store takes what they publish. So ``b2``, which has just been started and knows no
tree yet, is not ready; nor while rules wait for ``s``, of which it knows by its store alone, and
which may have gone to another broker; nor while its disk is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AWAITED_MAX = 5
"""Sources and types that are named as a reason."""


def blocked(problem: str) -> str:
    """The words for a store that takes nothing more."""
    return f"the store takes nothing more: {problem}"


def reasons_unready(status: Mapping[str, Any]) -> list[str]:
    """The reasons for which a broker that answers is not ready for clients; none if it is."""
    network = status["network"]
    reasons = []
    if status["draining"] is not None:
        reasons.append("; ".join(["the broker drains", *status["draining"]]))
    if problem := status.get("store_problem"):
        reasons.append(blocked(problem))
    if not network["root"]:
        reasons.append("the network has no root yet")
    if not network["settled"]:
        reasons.append("the network has not settled")
    elif not status.get("planned", True):
        reasons.append("the network has no plan yet")
    others = [one for one in network["brokers"] if one["reachable"]]
    awaited = status.get("awaited", ())
    if awaited and len(others) > 1:  # else sources can come back to this broker alone
        told = ", ".join(awaited[:AWAITED_MAX])
        reasons.append(f"rules wait for what was published here before it was started: {told}")
    return reasons
