"""Engines that are made of others: what they know of all rules and events, whichever has them."""

from __future__ import annotations

from rules.engine.conflict import Conflict
from rules.engine.intake.duplicates import DuplicateFilter
from rules.engine.order.catalogued import Catalogued


class Composite(Catalogued):
    """The base of such a Detector."""

    def __init__(self) -> None:
        super().__init__()
        self._repeats = DuplicateFilter()

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
