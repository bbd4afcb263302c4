"""Objects that stay in a broker are kept out of the collector's way, so that no message waits for
it.

Python walks through everything that it holds whenever that has grown by a quarter: with some
thousand rules for a twentieth of a second, in the midst of whatever happens to be done.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Literal

WALKS = 2
"""After so many collections of young objects those that are left are frozen."""


class Ageing:
    """Owner of what the process has frozen, from ``begin`` to ``end``.

    ``tell`` is called, between any two steps of the program, when ``take`` has something to do.

    What has outlived collections of young objects is walked through once more, while it is little,
    between two messages, and then frozen: the collector never looks at it again. What nothing
    refers to any more goes all the same; only rings of objects would stay. Once as much is frozen
    as there was at first, all is thawed and walked through: so rings that were frozen take no more
    room than everything else.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._walks = 0
        self._first = self._since = 0  # objects frozen at first, or when thawed last, and since

    def begin(self) -> None:
        """Freeze what is there by now."""
        self._first, self._since = self._freeze(), 0
        gc.callbacks.append(self._note)

    def take(self) -> None:
        """Freeze what has outlived some collections, if there were."""
        if self._walks < WALKS:
            return
        if self._since > self._first:
            gc.unfreeze()
            self._first, self._since = self._freeze(), 0
        else:
            self._since += self._freeze()

    def end(self) -> None:
        """Freeze no more; what is frozen stays so, for the process is about to end."""
        gc.callbacks.remove(self._note)

    def _freeze(self) -> int:
        """Freeze what is no garbage; how many objects that is."""
        gc.collect()
        count = len(gc.get_objects())
        gc.freeze()
        self._walks = 0
        return count

    def _note(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        """Count the collections of more than the youngest objects."""
        if phase == "stop" and info["generation"] > 0:
            self._walks += 1
            if self._walks == WALKS:
                self._tell()
