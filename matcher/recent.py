"""The last ids that came, and what their events held: bounded, in two generations.

Of at least the last ``ids_max`` ids it is known what they name, and of at most twice as many. Where
an id repeats, contents (:mod:`matcher.contents`) tell the same event again from another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

Held = TypeVar("Held")
"""The content of an event, so far as it tells events apart."""


class Judged(NamedTuple, Generic[Held]):
    """Places among events that were looked at: of the ``new``, None where all are; and of those in
    conflict with one of the same id that came before, with what that held. Others repeat one.
    """

    new: list[int] | None
    conflicts: list[tuple[int, Held]]


class RecentIds(Generic[Held]):
    """Recent ids of one source, or of whatever else ids are unique in."""

    def __init__(self) -> None:
        self._young: dict[str, Held] = {}
        self._old: dict[str, Held] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def judge(self, ids: Sequence[str], held: Sequence[Held]) -> Judged[Held]:
        """Judge events by their ids and their content; nothing is remembered."""
        distinct = set(ids)
        is_known = not (
            self._young.keys().isdisjoint(distinct) and self._old.keys().isdisjoint(distinct)
        )
        if not is_known and len(distinct) == len(ids):
            return Judged(None, [])
        new, conflicts, here = list[int](), list[tuple[int, Held]](), dict[str, Held]()
        for place, (one, own) in enumerate(zip(ids, held, strict=True)):
            before = self._young.get(one, self._old.get(one, here.get(one)))
            if before is None:
                here[one] = own
                new.append(place)
            elif before != own:
                conflicts.append((place, before))
        return Judged(new, conflicts)

    def remember(self, ids: Sequence[str], held: Sequence[Held], ids_max: int) -> None:
        """Events of new ids have come; the older go when the younger have become many."""
        self._young.update(zip(ids, held, strict=True))
        if len(self._young) >= ids_max:
            self._old, self._young = self._young, {}
