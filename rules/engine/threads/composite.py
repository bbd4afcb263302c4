"""Engines that are made of others: what they know of all rules and events, whichever has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rules.engine.conflict import Conflict
from rules.engine.intake.duplicates import DuplicateFilter
from rules.engine.order.catalogue import Catalogue
from rules.overrun import Overrun


class Composite:
    """The base of such a Detector."""

    def __init__(self) -> None:
        self._catalogue = Catalogue()
        self._repeats = DuplicateFilter()
        self._overruns: list[Overrun] = []

    @property
    def marks(self) -> Mapping[str, int]:
        """Each deployed rule's mark, by name: all instants before it have been evaluated."""
        return self._catalogue.marks

    def mark(self, name: str) -> int:
        """One rule's mark; KeyError when no rule has that name."""
        return self._catalogue.mark(name)

    @property
    def duplicates(self) -> int:
        """How many pushed events were dropped as repeats (E1)."""
        return self._repeats.dropped

    @property
    def conflicts(self) -> int:
        """How many of these were other events than those that bear their ids (E1)."""
        return self._repeats.conflicts

    def take_conflict(self) -> Conflict | None:
        """The first conflict since the last call, if there was one."""
        return self._repeats.take_conflict()

    def take_overruns(self) -> Sequence[Overrun]:
        """The rules that have ended since the last call, each with its last instant."""
        overruns, self._overruns = self._overruns, []
        return overruns
