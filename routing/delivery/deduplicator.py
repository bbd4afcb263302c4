"""Published events that have come to this broker for its sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from matcher.model import AnyArray, EventBatch, Int64s
from matcher.single import Single


class Deduplicator:
    """The greatest numbers that have come, by source, and the last ids.

    Each event is offered to the sinks once. When everything that may have been lost is sent again
    (brokers.md section 5), what had come before is left out: a source's events come in the order of
    their numbers, so it is those up to the greatest, which is remembered of the last ``names_max``
    sources at least. Temps 1 to 7 of s have come; 5 to 9 are sent again: sinks get 8 and 9.

    An event with an id of its own is always known by that, among the last ``ids_max`` at least: it
    may come from several brokers, and from this broker's own clients too, since a part of a source
    goes on elsewhere when its broker is lost, and sends again what it does not know that broker to
    have taken (routing.serving.parts). Of either as many again are remembered at most.
    """

    def __init__(self, ids_max: int, names_max: int) -> None:
        self._latest: dict[str, int] = {}
        self._older: dict[str, int] = {}
        """The same of sources of which nothing has come since there were ``names_max`` others."""
        self._names_max = names_max
        self._known: dict[str, int] = {}
        """As they were when everything began to be sent again."""
        self._ids = _Ids()
        self.ids_max = ids_max
        self.changed: set[str] | None = None
        """Sources of which events have come since somebody looked; None: nobody does."""

    @property
    def remembered(self) -> int:
        """How many ids are remembered."""
        return self._ids.remembered

    @property
    def sources(self) -> int:
        """Of how many sources numbers are remembered."""
        return len(self._older.keys() | self._latest.keys())

    @property
    def numbers(self) -> Mapping[str, int]:
        """The greatest numbers that have come, by source."""
        return {**self._older, **self._latest}

    def watch(self) -> None:
        """From now on note what comes, for it to be kept."""
        if self.changed is None:
            self.changed, self._ids.new = set(), []

    def take_numbers(self) -> Mapping[str, int]:
        """The greatest numbers of sources, where these are others than at the last call."""
        changed, self.changed = self.changed or set(), set()
        return {name: self._latest.get(name, self._older.get(name, 0)) for name in sorted(changed)}

    def take_ids(self) -> Sequence[tuple[str, Sequence[str]]]:
        """The ids that have come since the last call, by source."""
        new, self._ids.new = self._ids.new or [], []
        return new

    def recall(self, numbers: Mapping[str, int], ids: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Know what had come before a restart."""
        self._latest.update(numbers)
        for source, texts in ids:
            self._ids.recall(source, texts)

    @property
    def known(self) -> tuple[Mapping[str, int], Sequence[tuple[str, Sequence[str]]]]:
        """The greatest numbers of sources, and the ids, as ``recall`` takes them."""
        return self.numbers, self._ids.known

    def join(self, numbers: Mapping[str, int], ids: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Know, beside what has come here, what another broker's sink had that is here from now on:
        it may be sent again, too. All of it that is wanted here has come before.
        """
        for table in (self._latest, self._known):
            for name, number in numbers.items():
                table[name] = max(number, table.get(name, number))
        for source, texts in ids:
            self._ids.recall(source, texts)
            if self._ids.new is not None:
                self._ids.new.append((source, texts))
        if self.changed is not None:
            self.changed.update(numbers)

    def begin_anew(self) -> None:
        """From now on what has come may come again."""
        self._known = dict(self.numbers)

    def news(self, batches: tuple[EventBatch, ...]) -> tuple[EventBatch, ...]:
        """Give the events that have not come before."""
        if len(batches) == 1:  # common
            (event,) = batches
            if isinstance(event, Single) and event.row.text is None:
                return batches if self._is_new(event.row.source, event.row.sequence) else ()
        found = tuple(self._news(batches))
        self._ids.turn(self.ids_max)
        return found

    def _news(self, batches: Sequence[EventBatch]) -> Iterator[EventBatch]:
        for batch in batches:
            if isinstance(batch, Single) and batch.row.text is None:
                new = self._is_new(batch.row.source, batch.row.sequence)
            else:
                batch = _at(batch, self.places(batch))
                new = len(batch) > 0
            if new:
                yield batch

    def places(self, batch: EventBatch) -> AnyArray | None:
        """The places of events that have not come before; None: of all."""
        return self._unknown(batch) if batch.ids.text is None else self._ids.unseen(batch)

    def _is_new(self, name: str, number: int) -> bool:
        if number <= self._known.get(name, -1):
            return False
        self._note(name, number)
        return True

    def _note(self, name: str, number: int) -> None:
        before = self._latest.get(name)
        if before is None:
            before = self._older.get(name, number)
            if len(self._latest) >= self._names_max:
                self._older, self._latest = self._latest, {}
        self._latest[name] = max(number, before)
        if self.changed is not None:
            self.changed.add(name)

    def _unknown(self, batch: EventBatch) -> AnyArray | None:
        """The places of numbered events that are new; None: of all."""
        ids = batch.ids
        for code, name in enumerate(ids.source.values):
            own = ids.sequence[ids.source.codes == code]
            if len(own):
                self._note(name, int(own.max()))
        if not self._known:
            return None
        known = np.array([self._known.get(name, -1) for name in ids.source.values], np.int64)
        new = ids.sequence > known[ids.source.codes]
        return None if new.all() else np.flatnonzero(new)


class _Ids:
    """The last ids of all sources together, in two generations."""

    def __init__(self) -> None:
        self._young: dict[str, set[str]] = {}
        self._old: dict[str, set[str]] = {}
        self._count = 0  # of the young ones
        self.new: list[tuple[str, Sequence[str]]] | None = None
        """Ids that are new since somebody looked; None: nobody does."""

    @property
    def remembered(self) -> int:
        """How many there are."""
        return self._count + sum(map(len, self._old.values()))

    @property
    def known(self) -> Sequence[tuple[str, Sequence[str]]]:
        """All that are remembered, by source."""
        return [
            (source, sorted(texts))
            for table in (self._old, self._young)
            for source, texts in table.items()
        ]

    def unseen(self, batch: EventBatch) -> AnyArray | None:
        """The places of events whose ids are new, which they are no more; None: of all."""
        ids = batch.ids
        assert ids.text is not None
        texts = ids.text.tolist()
        if len(ids.source.values) == 1:
            return self._unseen(ids.source.values[0], texts)
        found: list[Int64s] = [np.empty(0, np.int64)]
        for code, name in enumerate(ids.source.values):
            places = np.flatnonzero(ids.source.codes == code)
            new = self._unseen(name, [texts[place] for place in places.tolist()])
            found.append(places if new is None else places[new])
        return np.sort(np.concatenate(found))

    def _unseen(self, source: str, texts: Sequence[str]) -> AnyArray | None:
        young, old = self._young.setdefault(source, set()), self._old.get(source, set())
        before, distinct = len(young), set(texts)
        if len(distinct) == len(texts) and young.isdisjoint(distinct) and old.isdisjoint(distinct):
            young |= distinct
            self._count += len(distinct)
            if self.new is not None:
                self.new.append((source, texts))
            return None
        new = []
        for place, text in enumerate(texts):
            if text not in young and text not in old:
                young.add(text)
                new.append(place)
        self._count += len(young) - before
        if self.new is not None and new:
            self.new.append((source, [texts[place] for place in new]))
        return np.array(new, np.int64)

    def recall(self, source: str, texts: Sequence[str]) -> None:
        """Remember these, which had come before."""
        young = self._young.setdefault(source, set())
        before = len(young)
        young.update(texts)
        self._count += len(young) - before

    def turn(self, ids_max: int) -> None:
        """Let the older go when the younger have become many."""
        if self._count >= ids_max:
            self._old, self._young, self._count = self._young, {}, 0


def _at(batch: EventBatch, places: AnyArray | None) -> EventBatch:
    return batch if places is None else batch.take(places)
