"""Health and readiness of a broker, as its status tells them.

A broker is healthy when it answers, and ready when clients find all that they expect of it: when
the network that it belongs to has settled, and its store takes what they publish. ``b2``, which
has just been started and knows no tree yet, is not ready, nor is one whose disk is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


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
    return reasons
