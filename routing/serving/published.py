"""Events that clients publish with ids: each is taken once, whoever brings it (tesla.md E1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from matcher.contents import marked_time, marks_of
from matcher.model import EventBatch
from matcher.recent import Judged, RecentIds
from matcher.single import Single
from matcher.times import time_text
from routing.config import NodeConfig
from routing.messages import Code, Rejected
from routing.runs import runs
from routing.serving.parts import as_known, check, names_of

_OTHERS = ""
"""The window of all sources that are not published in parts."""


class Sifted(NamedTuple):
    """Events that are to be taken; how many were ``rejected``, and what is said of those."""

    batches: tuple[EventBatch, ...]
    rejected: int = 0
    rejections: tuple[Rejected, ...] = ()


class PublishedIds:
    """The ids that clients have published.

    Ids are remembered, with a digest of what their events hold, at least the last
    ``repeat_ids_max`` and at most twice as many: of each source that is published in parts, and of
    all others together. Recorded events count among the others, whatever parts bring them: a log
    knows them by their own sources, and a broker that is started again fills its windows from it.
    What comes after that is taken for another event; it is the engine's to know that it is not.
    """

    def __init__(self, config: NodeConfig) -> None:
        self._recent: dict[str, RecentIds[bytes]] = {}
        """By whole source."""
        self.configure(config)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limits."""
        self._ids_max = config.repeat_ids_max
        self._sources_max = config.sources_max

    @property
    def remembered(self) -> int:
        """How many ids of one window are remembered at most."""
        return max(map(len, self._recent.values()), default=0)

    def sift(self, batches: Sequence[EventBatch]) -> Sifted:
        """The events of a source that are new; those with ids are remembered. An event is taken
        from the first that brings it. The same one again, from a part of its source or in a file
        that is published twice, is a duplicate: counted, and given to nobody. Another one of the
        same source and id is refused by name: id 7 of ``gate`` at 1 s with 20 degrees was taken, so
        that at 2 s with 50 is not.
        """
        return self._sift(None, batches, self._window(_OTHERS), remember=True)

    def unseen(self, whole: str | None, batches: Sequence[EventBatch]) -> Sifted:
        """The events that no part of a source has brought before, or (None) the source itself;
        nothing is remembered.

        Raises ProtocolError as ``parts.check``.
        """
        if whole is not None:
            check(whole, batches)
        recent = self._recent.get(_key(whole, batches))
        return Sifted(tuple(batches)) if recent is None else self._sift(whole, batches, recent)

    def joined(self, whole: str, batches: Sequence[EventBatch]) -> Sifted:
        """Events that ``unseen`` gave and that are taken, as those of the whole source, or as those
        that were recorded: each once, where they repeat one another. They are remembered.
        """
        if not batches:
            return Sifted(())
        found = self._sift(whole, batches, self._window(_key(whole, batches)), remember=True)
        return found._replace(batches=tuple(as_known(whole, batch) for batch in found.batches))

    def recall(self, batches: Iterable[EventBatch], wholes: Collection[str]) -> None:
        """Remember events that were taken before a restart; ``wholes``: the sources that are
        published in parts. Only a batch of recorded events has several sources.
        """
        for batch in batches:
            if have_ids((batch,)):
                source, *more = batch.ids.source.values
                whole = source if source in wholes and not more else None
                self._sift(whole, (batch,), self._window(whole or _OTHERS), remember=True)

    def _window(self, key: str) -> RecentIds[bytes]:
        recent = self._recent.pop(key, None) or RecentIds()
        self._recent[key] = recent  # at the end: the first are those not heard of the longest
        if len(self._recent) > self._sources_max:
            del self._recent[next(iter(self._recent))]
        return recent

    def _sift(
        self,
        whole: str | None,
        batches: Sequence[EventBatch],
        recent: RecentIds[bytes],
        *,
        remember: bool = False,
    ) -> Sifted:
        kept, rejected, rejections = list[EventBatch](), 0, list[Rejected]()
        for batch in batches:
            names = _names(whole, batch)
            if names is None:
                kept.append(batch)
                continue
            held = marks_of(batch)
            judged = recent.judge(names, held)
            new = batch
            if judged.new is not None:
                places = judged.new
                new = batch.take(np.array(places, np.int64))
                names, held = [names[one] for one in places], [held[one] for one in places]
            if remember:
                recent.remember(names, held, self._ids_max)
            if judged.conflicts:
                rejected += len(judged.conflicts)
                rejections.append(_rejected(whole, batch, judged))
            if len(new):
                kept.append(new)
        return Sifted(tuple(kept), rejected, tuple(rejections))


def _key(whole: str | None, batches: Sequence[EventBatch]) -> str:
    is_recorded = whole is not None and bool(batches) and batches[0].causes is not None
    return _OTHERS if whole is None or is_recorded else whole


def have_ids(batches: Sequence[EventBatch]) -> bool:
    """Whether any of these events came with an id. Others are known by their numbers alone
    (routing.serving.intake).
    """
    for batch in batches:
        text = batch.row.text if isinstance(batch, Single) else batch.ids.text
        if text is not None:
            return True
    return False


def _names(whole: str | None, batch: EventBatch) -> Sequence[str] | None:
    """The names by which events are known in their window; None where these are their numbers."""
    if whole is not None:
        return names_of(batch)
    if isinstance(batch, Single):
        row = batch.row
        return None if row.text is None else [f"{len(row.source)}:{row.source}{row.text}"]
    if batch.ids.text is None:
        return None
    before, texts = [f"{len(name)}:{name}" for name in batch.ids.source.values], batch.ids.text
    sources = batch.ids.source.codes.tolist()
    return [before[code] + text for code, text in zip(sources, texts.tolist(), strict=True)]


def _rejected(whole: str | None, batch: EventBatch, judged: Judged[bytes]) -> Rejected:
    places = np.array([place for place, _ in judged.conflicts])
    _, before = judged.conflicts[0]
    one = batch.take(places[:1])
    event = (one if whole is None else as_known(whole, one)).event(0)
    reason = (
        f"{len(places)} {event.type} with the id of another event: first id {event.id} of source "
        f"{event.source!r} at {time_text(event.time)}, which names one at "
        f"{time_text(marked_time(before))} with other contents"
    )
    return Rejected(Code.CONFLICT, runs(batch.ids.sequence[places]), reason)
