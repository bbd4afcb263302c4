"""When two engines are said to have detected the same."""

from typing import Any

from matcher.model import Event


def row(event: Event) -> tuple[Any, ...]:
    """All that engines must agree on: values to the last bit, which their texts tell apart (S8)."""
    return (
        event.time,
        event.type,
        event.source,
        event.id,
        event.cause_full,
        tuple((name, repr(value)) for name, value in event.data.items()),
    )
