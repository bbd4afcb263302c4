"""Events as the page is sent them: plain data for JSON, called ``source#id``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from matcher.model import Event

EXACT = 2**53
"""Whole numbers beyond this are sent as texts: scripts would round them."""
CHARACTERS_MAX = 1 << 20
"""Characters, about, of the rows that are sent together. A text of 8 MB that many events bear is
kept once, and would be sent once an event."""


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


def bounded(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows as far as CHARACTERS_MAX reach, the first in any case; of those behind, the names."""
    left = CHARACTERS_MAX
    for place, one in enumerate(rows):
        left -= sum(map(len, filter(_is_text, one["data"].values())))
        left -= sum(map(len, one["cause"]))
        yield one if left > 0 or not place else unknown(one["name"])


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def unknown(name: str) -> dict[str, Any]:
    """An event of which nothing but its name is known."""
    return {"name": name, "type": None, "time": None, "data": {}, "cause": []}
