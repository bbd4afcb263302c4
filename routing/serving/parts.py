"""Sources that publish in parts: several clients at once, one source to everybody else.

A client named ``flights#part-3`` is a part of the source ``flights``: with a connection, sequence
numbers and a promise of its own, but its events are of ``flights`` and are known by their ids
(tesla.md E1). So who publishes which event, in which order, and how often, as when a task is run
again somewhere else, changes nothing.

Law 1: an event is taken from the first part that brings it. Ids are remembered for each source, at
least the last ``repeat_ids_max`` and at most twice as many; what comes again after that is taken
for another event, as it would be from a source that gave an id twice.

Law 2: what was brought before is a repeat, and not late, whatever has been promised since.

Law 3: the place of an event among simultaneous ones (E4) follows from its id: the number, where it
is the decimal form of one, else a hash. Numbers that parts give to their events mean nothing
outside their connection.

Law 4: an event with a cause is a recorded one: it is the event that the cause names, of that source
and with that number and id; so a recording that is published in parts has the order that it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from matcher.identity import number_of_id
from matcher.model import Causes, EventBatch, EventIds, Int64s, StringColumn
from routing.config import NodeConfig
from routing.errors import ProtocolError
from routing.messages import Code
from routing.names import name_fault

_DIGITS_MAX = 20
"""No number of 64 bits is longer, its sign included."""
_TENS = 10 ** np.arange(1, 19)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_Window: TypeAlias = tuple[str, bool]
"""A whole source, and whether it is recorded events that are remembered."""


class Parts:
    """The ids that sources in parts have published."""

    def __init__(self, config: NodeConfig) -> None:
        self._recent: dict[_Window, _Recent] = {}
        self.configure(config)

    def configure(self, config: NodeConfig) -> None:
        """Take over the limits."""
        self._ids_max = config.repeat_ids_max
        self._sources_max = config.sources_max

    @property
    def remembered(self) -> int:
        """How many ids of one source are remembered at most (Law 1)."""
        return max([one.remembered for one in self._recent.values()], default=0)

    def unseen(self, whole: str, batches: Sequence[EventBatch]) -> tuple[EventBatch, ...]:
        """The events that no part has brought before; what a message repeats itself is kept.

        Raises ProtocolError for events without ids, and for recorded ones that are not named as
        Law 4 has it.
        """
        for batch in batches:
            _check(whole, batch, is_recorded=batches[0].causes is not None)
        recent = self._recent.get(_window(whole, batches))
        if recent is None:
            return tuple(batches)
        kept = (_at(batch, recent.unseen(_names(batch))) for batch in batches)
        return tuple(batch for batch in kept if len(batch))

    def joined(self, whole: str, batches: Sequence[EventBatch]) -> tuple[EventBatch, ...]:
        """Events that ``unseen`` gave and that are taken, as those of the whole source, or as those
        that were recorded: each once, where they repeat one another. They are remembered.
        """
        if not batches:
            return ()
        window = _window(whole, batches)
        recent = self._recent.pop(window, None) or _Recent()
        self._recent[window] = recent  # at the end: the first are those not heard of the longest
        if len(self._recent) > self._sources_max:
            del self._recent[next(iter(self._recent))]
        joined, before = list[EventBatch](), set[str]()
        for batch in batches:
            names = _names(batch)
            places = None
            if recent.remember(names) < len(names):  # they repeat one another
                first = {name: place for place, name in reversed([*enumerate(names)])}
                places = sorted(place for name, place in first.items() if name not in before)
            if len(batches) > 1:
                before.update(names)
            if places != []:
                joined.append(as_known(whole, _at(batch, places)))
        recent.turn(self._ids_max)
        return tuple(joined)


def _window(whole: str, batches: Sequence[EventBatch]) -> _Window:
    return whole, bool(batches) and batches[0].causes is not None


def _check(whole: str, batch: EventBatch, *, is_recorded: bool) -> None:
    causes = batch.causes
    if (causes is not None) is not is_recorded:
        reason = "are recorded ones and others in one message"
    elif causes is None:
        reason = "need ids" if batch.ids.text is None else ""
    elif len(causes.ids) != len(batch) or causes.ids.digest is not None:
        reason = "have other causes than the one event that each was recorded as"
    else:
        faults = (name_fault(source) for source in causes.ids.source.values)
        reason = next((f"name a source that cannot be: {fault}" for fault in faults if fault), "")
    if reason:
        raise ProtocolError(Code.BAD_EVENT, f"events of a part of {whole!r} {reason}")


def _names(batch: EventBatch) -> Sequence[str]:
    """What each event is known by among those of its window."""
    if batch.causes is None:
        return _texts(batch)
    source = batch.causes.ids.source
    # With its length before it no source is the beginning of another one's events.
    sources = [f"{len(name)}:{name}" for name in source.values]
    texts = _recorded_ids(batch.causes)
    return [sources[code] + text for code, text in zip(source.codes.tolist(), texts, strict=True)]


def _texts(batch: EventBatch) -> Sequence[str]:
    column = batch.ids.text
    assert column is not None
    return column.values if _is_plain(column) else column.tolist()


def _recorded_ids(causes: Causes) -> list[str]:
    """The printed ids of events that have one cause each."""
    if causes.ids.text is not None and causes.has_text.all():
        return causes.ids.text.tolist()
    return [text for (text,) in causes.printed_rows()]


def _is_plain(column: StringColumn) -> bool:
    """Whether the dictionary is the strings themselves, as they mostly come out of a message."""
    count = len(column)
    return len(column.values) == count and bool((column.codes == np.arange(count)).all())


def _at(batch: EventBatch, places: Sequence[int] | None) -> EventBatch:
    return batch if places is None else batch.take(np.array(places, np.int64))


def as_known(whole: str, batch: EventBatch) -> EventBatch:
    """The events under the names that everybody else knows them by."""
    if batch.causes is None:
        texts = _texts(batch)
        ids = EventIds(
            StringColumn.constant(whole, len(batch)),
            numbers_of(texts),
            StringColumn(np.arange(len(texts), dtype=np.int32), tuple(texts)),
        )
    else:
        recorded, texts = batch.causes.ids, _recorded_ids(batch.causes)
        ids = EventIds(recorded.source, recorded.sequence, StringColumn.from_strings(texts))
    return EventBatch(batch.type, batch.time, ids, batch.columns)


class _Recent:
    """The last ids of one source, in two generations."""

    def __init__(self) -> None:
        self._young: set[str] = set()
        self._old: set[str] = set()

    @property
    def remembered(self) -> int:
        """How many there are."""
        return len(self._young) + len(self._old)

    def knows(self, texts: Iterable[str]) -> bool:
        """Whether any of them was seen."""
        return not (self._young.isdisjoint(texts) and self._old.isdisjoint(texts))

    def unseen(self, texts: Sequence[str]) -> list[int] | None:
        """The places of those not seen before; None when all are."""
        if not self.knows(texts):
            return None
        young, old = self._young, self._old
        return [place for place, text in enumerate(texts) if text not in young and text not in old]

    def remember(self, texts: Iterable[str]) -> int:
        """They are seen; how many of them were not among the younger."""
        before = len(self._young)
        self._young.update(texts)
        return len(self._young) - before

    def turn(self, ids_max: int) -> None:
        """Let the older go when the younger have become many."""
        if len(self._young) >= ids_max:
            self._old, self._young = self._young, set()


def numbers_of(texts: Sequence[str]) -> Int64s:
    """The place of each id among simultaneous events (Law 3): int64."""
    together = "".join(texts)
    if together.isdecimal() and together.isascii():
        try:
            numbers = np.fromiter(map(int, texts), np.int64, len(texts))
        except (ValueError, OverflowError):
            numbers = None
        # Leading zeros would make them longer than their numbers.
        if numbers is not None and len(together) == int(_digits(numbers).sum()):
            return numbers
    numbers = _hashes(texts)
    for place, text in enumerate(texts):
        if len(text) <= _DIGITS_MAX and (number := number_of_id(text)) is not None:
            numbers[place] = number
    return numbers


def _digits(numbers: Int64s) -> Int64s:
    """How many decimal digits numbers that are not negative have."""
    return np.searchsorted(_TENS, numbers, side="right") + 1


def _hashes(texts: Sequence[str]) -> Int64s:
    """Hashes of 63 bits, the same in every process: eight bytes of each text at a time."""
    encoded = np.array([text.encode() for text in texts], np.bytes_)
    width = -(-max(1, encoded.dtype.itemsize) // 8) * 8
    words = encoded.astype(f"S{width}").view(np.uint64).reshape(len(texts), width // 8)
    hashes = np.zeros(len(texts), np.uint64)
    for column in range(words.shape[1]):
        # What is beyond a text's end changes nothing, so batches of any width agree.
        word = words[:, column]
        mixed = (hashes ^ word) * _PRIME
        hashes = np.where(word == 0, hashes, mixed ^ (mixed >> np.uint64(29)))
    return (hashes >> np.uint64(1)).astype(np.int64)
