"""Last words: which rules a process was evaluating when a signal ended it.

A kernel that evaluates a rule puts the address of the rule's name into a slot, and takes it out
afterwards. The handler of the signal (:mod:`rules.engine.kernels.last_words`) writes the names to
standard error, and into these words: a host that has them in a file finds the names when it starts
again.

Invariant: a slot is 0, or the address of a name that its linker keeps (``LinkedRule.name``).
"""

from __future__ import annotations

from collections.abc import Set
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from matcher.model import Int64s
from rules.engine.kernels.layout import SLOTS, WORDS_BYTES
from runtime.memory import Array, sheltered


class LastWords:
    """Owner of the words of this process.

    ``banned`` rules, by id, have ended as soon as they are deployed. A rule that is added again has
    another id: with ``banned`` of sums, sums ends at the start of a broker, and sums@1 runs.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self.banned: Set[str] = frozenset()
        self.words: Int64s = np.zeros(WORDS_BYTES // 8, np.int64)

    def stand_in(self, memory: Any) -> None:
        """Have the words of engines to come stand in ``memory`` of WORDS_BYTES bytes."""
        self.words = np.frombuffer(memory, np.int64, WORDS_BYTES // 8)

    def slot(self) -> Array:
        """The slot of an engine, int64[1]; engines share slots if there are very many of them."""
        place = SLOTS[0] + next(self._numbers) % len(SLOTS)
        return sheltered(self.words[place : place + 1])


LAST_WORDS = LastWords()


def name_bytes(name: str) -> npt.NDArray[np.uint8]:
    """A rule's name as kernels read it: UTF-8 that ends with a zero."""
    return np.frombuffer(name.encode() + b"\0", np.uint8).copy()
