"""Events as the page is sent them: plain data for JSON, called ``source#id``."""

from __future__ import annotations

from typing import Any

from matcher.model import Event

EXACT = 2**53
"""Whole numbers beyond this are sent as texts: scripts would round them."""


def row(event: Event) -> dict[str, Any]:
    """An event for the page."""
    data = {
        name: str(value) if isinstance(value, int) and abs(value) > EXACT else value
        for name, value in event.data.items()
    }
    return {
        "name": f"{event.source}#{event.id}",
        "type": event.type,
        "time": event.time,
        "data": data,
        "cause": list(event.cause_full),
    }


def unknown(name: str) -> dict[str, Any]:
    """An event of which nothing but its name is known."""
    return {"name": name, "type": None, "time": None, "data": {}, "cause": []}
