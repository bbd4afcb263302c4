"""Which published events have come to this broker for its sinks.

Law: each of them is offered to the sinks once. When everything that may have been lost is sent
again (architecture.md 4.3), what had come before is left out: a source's events come in the order
of their numbers, so it is those up to the greatest; or they have ids of their own, and may come
from several brokers (routing.parts), so it is those of the last ``RECENT_MAX`` whose ids are known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from matcher.model import Bools, EventBatch, EventIds
from matcher.single import Single

RECENT_MAX = 65_536
"""Events with ids of their own that are remembered."""


class Arrivals:
    """The greatest numbers that have come, by source, and the last ids."""

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        self._recent: deque[EventIds] = deque()
        self._remembered = 0
        self._known: dict[str, int] = {}
        self._known_ids: set[tuple[str, str]] = set()
        """Both as they were when everything began to be sent again."""

    def begin_anew(self) -> None:
        """From now on what has come may come again."""
        self._known = dict(self._latest)
        self._known_ids = {
            pair
            for ids in self._recent
            if ids.text is not None
            for pair in zip(ids.source.tolist(), ids.text.tolist(), strict=True)
        }

    def news(self, batches: Sequence[EventBatch]) -> tuple[EventBatch, ...]:
        """Those of the events that have not come before."""
        found = tuple(batches)
        if self._known or self._known_ids:
            found = tuple(self._unknown(batches))
        for batch in found:
            self._note(batch)
        return found

    def _note(self, batch: EventBatch) -> None:
        if isinstance(batch, Single) and batch.row.text is None:
            name, number = batch.row.source, batch.row.sequence
            self._latest[name] = max(number, self._latest.get(name, number))
            return
        ids = batch.ids
        if ids.text is not None:
            self._recent.append(ids)
            self._remembered += len(ids)
            while self._remembered > RECENT_MAX and len(self._recent) > 1:
                self._remembered -= len(self._recent.popleft())
            return
        for code, name in enumerate(ids.source.values):
            own = ids.sequence[ids.source.codes == code]
            if len(own):
                number = int(own.max())
                self._latest[name] = max(number, self._latest.get(name, number))

    def _unknown(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        for batch in batches:
            new = self._is_new(batch.ids)
            if new.all():
                yield batch
            elif new.any():
                yield batch.take(new)

    def _is_new(self, ids: EventIds) -> Bools:
        if ids.text is not None:
            pairs = zip(ids.source.tolist(), ids.text.tolist(), strict=True)
            return np.array([pair not in self._known_ids for pair in pairs], np.bool_)
        known = np.array([self._known.get(name, -1) for name in ids.source.values], np.int64)
        new: Bools = ids.sequence > known[ids.source.codes]
        return new
