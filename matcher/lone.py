"""A composite event as plain values: what an engine mostly finds on a live link.

As :mod:`matcher.single` has it for primitive events, columns of length one cost more to make than
all else that is done with such an event. Fire at 40 s, caused by Smoke 7 of s1 and Temp 3 of s2: a
time, two halves of a digest, ``rule:fire``, its values, and of the causes (s1, s2) and (7, 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from matcher.model import EventType, Value

Digest = tuple[int, int]
"""An id of 128 bits: its high and its low half, each from 0."""


class Lone(Struct, frozen=True, gc=False):
    """One composite event; ``values`` has one for each attribute of the type, presences included.

    Of each cause there are its source, its sequence number and, where it has one, its digest, or
    the text of its id; no ``digests`` and no ``texts`` at all where no cause has any.
    """

    type: EventType
    time: int
    digest: Digest
    source: str
    values: tuple[Value, ...]
    sources: Sequence[str]
    sequences: Sequence[int]
    digests: Sequence[Digest | None]
    texts: Sequence[str | None]
