"""Turns: what stands side by side in a figure is measured a little at a time, one after another.

So what disturbs one disturbs all: a neighbour that takes the memory for a second takes a hundredth
of each, and not all of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

TURN_S = 0.005
"""A turn: short beside what disturbs, and long beside the time in which data come back into the
caches."""
SECONDS_MAX = 0.15
"""With one seed, at one value, nothing is measured for longer."""


class Measuring(Protocol):
    """Something that is measured in turns."""

    def turn(self) -> bool:
        """Go on for TURN_S; False once all is done, or SECONDS_MAX are over."""
        ...


def take_turns(measured: Iterable[Measuring]) -> None:
    """Measure all of them to their ends."""
    going = list(measured)
    while going:
        going = [one for one in going if one.turn()]
