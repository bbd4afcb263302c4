"""A composite event as plain values: what an engine mostly finds on a live link.

As :mod:`matcher.single` has it for primitive events, columns of length one cost more to make than
all else that is done with such an event. Fire at 40 s, caused by Smoke 7 of s1 and Temp 3 of s2: a
time, two halves of a digest, ``rule:fire``, its values, and of the causes (s1, s2) and (7, 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from matcher.model import Event, EventType, Value

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

    def event(self) -> Event:
        """The event as a row of the event model."""
        high, low = self.digest
        causes = self._names_of_causes()
        return Event(
            self.type.name,
            self.time,
            self.source,
            f"{high:016x}{low:016x}",
            self.type.data(self.values),
            0,
            tuple(causes),
            tuple(map("{}#{}".format, self.sources, causes)),
        )

    def _names_of_causes(self) -> list[str]:
        if not self.digests:
            return [*map(str, self.sequences)]
        names = zip(self.sequences, self.digests, self.texts, strict=True)
        return [
            f"{digest[0]:016x}{digest[1]:016x}"
            if digest
            else str(sequence)
            if text is None
            else text
            for sequence, digest, text in names
        ]


def _name(sequence: int, digest: Digest | None, text: str | None) -> str:
    if digest is not None:
        return f"{digest[0]:016x}{digest[1]:016x}"
    return str(sequence) if text is None else text
