"""Trimming a log by hand, whether its broker runs or not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from broker.store import schema
from broker.store.folder import existing
from broker.store.reader import Reader, damage_told
from broker.store.retention import trim_step
from broker.store.values import Sync


class Trimmed(NamedTuple):
    """How many entries went, and the first that stayed though it is earlier, since rules need it
    (None: there is none).
    """

    entries: int
    needed: int | None


def trim(directory: Path, before_time: int) -> Trimmed:
    """Let the first entries go whose events are all earlier than a time, and which no rule needs.

    Some go at a time, between what the broker writes. The file keeps its length, and what is free
    in it is used again.
    """
    file = existing(directory)
    with Reader.open(directory) as reader:
        reach = reader.fact("reach")
        gone = 0
        with damage_told(directory), closing(schema.connect(file)) as connection:
            schema.set_up(connection, Sync.FULL)
            has_more = True
            while has_more:
                connection.execute("BEGIN IMMEDIATE")
                step = trim_step(connection, reach, lambda _, __, last: last < before_time)
                connection.execute("COMMIT")
                gone, has_more = gone + step.entries, step.has_more
        first = next(reader.outlines(), None)
        is_needed = first is not None and first.last_time < before_time
        return Trimmed(gone, first.position if first is not None and is_needed else None)
