"""What the paper prints, and the engine does not do, for the simulated multicore.

- ``purge``: items are let go of as others come (``Store``), and between slices, too, as if events
  came no faster than they are worked off. Matches that this loses are counted (``lost``).
- ``caps``: no more event workers of an agent than ``m W / p``, no more match workers than
  ``e W / p`` (IV-A): ``p`` are the evaluations that a worker makes from one item to the next.
  Workers beyond one cap go to the other group; beyond both they are idle, and counted (``idle``).
- ``choice``: a worker whose own agent has nothing takes from the input of another where it last
  found something, else it tries those of all others at random (VI-A). The engine's looks first
  where it found something last, be that its own, and at the others in a row from a random one.

These are flags of the simulation alone: the engine would have another way through its kernels for
each, of which one loses matches and another idles threads.

Law: ``caps`` and ``choice`` change when a pair is tried, never whether.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Printed:
    """Which of it is as printed."""

    purge: bool = False
    caps: bool = False
    choice: bool = False


AS_BUILT = Printed()


def capped(inputs: Sequence[Sequence[int]], busy: Sequence[float]) -> list[list[int]]:
    """The inputs of workers, of roles ``static`` or ``state``, within the caps of their agents.

    ``busy``: how many workers the pairs of each agent, from place 1 on, would keep at work. That is
    the cap of both groups: ``m W / p`` event workers, with ``p`` the time between two events by
    that of a pair, are ``e m W`` pairs a second by the time of a pair; and so are ``e W / p`` match
    workers with the time between two matches. (With that between two events, as the letter of the
    text has it, the second would be a cap on events by events.) At least one worker stays.
    """
    counts: Counter[tuple[frozenset[int], int]] = Counter()
    found: list[list[int]] = []
    for one in inputs:
        places = frozenset(source >> 1 for source in one)
        cap = max(1, math.ceil(sum(busy[place - 1] for place in places)))
        first = one[0] & 1
        groups = [group for group in (first, 1 - first) if counts[places, group] < cap]
        if not groups:
            found.append([])
            continue
        counts[places, groups[0]] += 1
        found.append(list(one) if groups[0] == first else _turned(one))
    return found


def _turned(inputs: Sequence[int]) -> list[int]:
    """The inputs of a worker of the other group: of one that has both, in the other order."""
    return [source ^ 1 for source in inputs]


def others_as_printed(inputs: Sequence[int], saved: int, chance: Random) -> Iterator[int]:
    """The order in which a worker tries its inputs: its own two, that of another agent where it
    found something last, and those of all others at random.
    """
    own, others = inputs[:2], inputs[2:]
    yield from own
    if saved in others:
        yield saved
    yield from chance.sample(others, len(others))
