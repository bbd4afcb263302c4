"""When two engines are said to have detected the same."""

import math
from dataclasses import asdict
from typing import Any

from matcher.model import Event


def row(event: Event) -> tuple[Any, ...]:
    """All that engines must agree on."""
    return (
        event.time,
        event.type,
        event.source,
        event.id,
        event.cause_full,
        tuple(asdict(event)["data"].items()),
    )


def same(ours: Event, theirs: Event) -> bool:
    """Whether two events are equal, floats within 1e-9 relative (S8)."""
    *ours_rest, ours_data = row(ours)
    *theirs_rest, theirs_data = row(theirs)
    return ours_rest == theirs_rest and all(
        name == other_name and type(value) is type(other) and _close(value, other)
        for (name, value), (other_name, other) in zip(ours_data, theirs_data, strict=True)
    )


def _close(value: Any, other: Any) -> bool:
    if isinstance(value, float):
        return math.isclose(value, other, rel_tol=1e-9)
    return bool(value == other)
