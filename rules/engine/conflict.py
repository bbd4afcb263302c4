"""Two events of one source and id (tesla.md E1), as a value for those who tell of them."""

from __future__ import annotations

from dataclasses import dataclass

from matcher.errors import BadEvent
from matcher.times import time_text

CONFLICT_HINT = (
    "an id names one event of its source: leave out ids that name something else, and give events "
    "that are numbered apart a source of their own"
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """An event that was dropped since another one bears its source and id.

    ``type`` and ``time`` are its own, ``before`` is the time of the other; both in microseconds.
    """

    source: str
    id: str
    type: str
    time: int
    before: int

    def __str__(self) -> str:
        return (
            f"id {self.id} of source {self.source} names {self.type} at {time_text(self.time)} and "
            f"another event, at {time_text(self.before)}, with other contents"
        )


def refuse(conflict: Conflict | None) -> None:
    """Raise BadEvent for a conflict, with what to do about it, if there is one."""
    if conflict is not None:
        raise BadEvent(f"{conflict}; {CONFLICT_HINT}")
