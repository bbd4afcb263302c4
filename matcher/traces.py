"""Trace contexts of events: the traces (W3C ``traceparent``) that an event belongs to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from matcher.model import EventBatch
from matcher.single import Single

EVENTS_MAX = 65_536
CONTEXTS_MAX = 64
TRACEPARENT = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
_CONTEXT = re.compile(TRACEPARENT)
Contexts: TypeAlias = tuple[str, ...]
Traces: TypeAlias = Sequence[tuple[int, Contexts]]
"""Places of events in batches one after another, each with its contexts; the places rise."""


def is_context(text: object) -> bool:
    """Whether this is a trace context."""
    return isinstance(text, str) and _CONTEXT.match(text) is not None


class TraceContexts:
    """Contexts of the latest events that have any.

    A context belongs to an event, known by source and id (tesla.md E1), not to its place in a
    batch: whoever cuts, joins, keeps or sends on batches needs to know nothing of it, and asks
    again by the event's name. The latest EVENTS_MAX events with contexts are remembered.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, Contexts]] = {}
        """By name of the event, its source and its contexts."""
        self._sources: Counter[str] = Counter()
        self.has_any = False
        """Whether any event has contexts."""

    def __len__(self) -> int:
        return len(self._of)

    def note(self, source: str, own_id: str, contexts: Contexts) -> bool:
        """The event of this source and id belongs to these; whether that is new."""
        name, entry = f"{source}#{own_id}", (source, contexts[:CONTEXTS_MAX])
        before = self._of.get(name)
        if before == entry:
            return False
        if before is None:
            self._sources[source] += 1
        self._of[name], self.has_any = entry, True
        if len(self._of) > EVENTS_MAX:
            gone, _ = self._of.pop(next(iter(self._of)))
            self._sources[gone] -= 1
            if not self._sources[gone]:
                del self._sources[gone]
        return True

    def take(self, batches: Sequence[EventBatch], traces: Traces) -> None:
        """Note those of events that have come together."""
        contexts, place = dict(traces), 0
        for batch in batches if contexts else ():
            own = [one for one in range(place, place + len(batch)) if one in contexts]
            if own:
                names = _ids(batch)
                for one in own:
                    self.note(*names[one - place], contexts[one])
            place += len(batch)

    def follow(self, batches: Iterable[EventBatch]) -> None:
        """Note those of composite events, by their causes; whichever of the batches has a composite
        event that is a cause of others. One belongs to the traces of its causes, and of theirs,
        CONTEXTS_MAX at most: fire's e4d1 was made of t#7 and s#2, so it belongs to the traces of
        both.
        """
        found = [one for one in batches if not isinstance(one, Single) and one.causes is not None]
        for _ in found:
            if not sum(map(self._follow, found)):
                return

    def _follow(self, batch: EventBatch) -> bool:
        """Whether any of its events has a context that was not known."""
        causes = batch.causes
        if causes is None or self._sources.keys().isdisjoint(causes.ids.source.values):
            return False
        names: list[tuple[str, str]] = []
        is_new = False
        for place, rows in enumerate(causes.printed_rows(full=True)):
            known = [self._of[name][1] for name in rows if name in self._of]
            if known:
                names = names or _ids(batch)
                contexts = tuple(dict.fromkeys(chain.from_iterable(known)))
                is_new |= self.note(*names[place], contexts)
        return is_new

    def of(self, batches: Sequence[EventBatch]) -> tuple[tuple[int, Contexts], ...]:
        """Contexts of some of the events, by their places; EVENTS_MAX contexts at most, which fit
        into a message.
        """
        self.follow(batches)
        found, count = [], 0
        for place, contexts in self._found(batches):
            count += len(contexts)
            if count > EVENTS_MAX:
                break
            found.append((place, contexts))
        return tuple(found)

    def _found(self, batches: Sequence[EventBatch]) -> Iterator[tuple[int, Contexts]]:
        start = 0
        for batch in batches:
            if self._may_have(batch):
                for place, (source, own_id) in enumerate(_ids(batch), start):
                    found = self._of.get(f"{source}#{own_id}")
                    if found is not None:
                        yield place, found[1]
            start += len(batch)

    def _may_have(self, batch: EventBatch) -> bool:
        if isinstance(batch, Single):
            return batch.row.source in self._sources
        return not self._sources.keys().isdisjoint(batch.ids.source.values)


def _ids(batch: EventBatch) -> list[tuple[str, str]]:
    """The sources and printed ids of a batch's events."""
    if isinstance(batch, Single):
        row = batch.row
        return [(row.source, str(row.sequence) if row.text is None else row.text)]
    return list(zip(batch.ids.source.tolist(), batch.ids.printed(), strict=True))
