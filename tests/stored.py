"""Entries of a log that are made up, each to be told from the others."""

import random

from broker.store import Entry


def entry(number: int, *, size: int = 100, source: str = "s", time: int | None = None) -> Entry:
    """The entry of event ``number`` of a source, which is what its time says, too."""
    at = number * 1_000_000 if time is None else time
    frames = random.Random(number).randbytes(size)
    return Entry(source, number, number, ("Temp",), at, at, 1, frames)


def said(entries) -> list[Entry]:
    """Entries as they were appended: without what the store adds."""
    return [Entry(*(getattr(one, name) for name in Entry.__struct_fields__[:8])) for one in entries]
