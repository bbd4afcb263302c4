"""Sources that publish in parts: several clients at once, one source to everybody else.

A client named ``flights#part-3`` is a part of the source ``flights``: with a connection, sequence
numbers and a promise of its own, but its events are of ``flights`` and are known by their ids
(tesla.md E1). So who publishes which event, in which order, and how often, as when a task is run
again somewhere else, changes nothing.

An event is taken from the first part that brings it (:mod:`routing.serving.published`); ids are
remembered for each source. What was brought before is a repeat, and not late, whatever has been
promised since.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matcher.identity import number_of_id, numbers_of_ids
from matcher.model import Causes, EventBatch, EventIds, Int64s, StringColumn
from routing.errors import ProtocolError
from routing.messages import Code
from routing.names import name_fault

_DIGITS_MAX = 20
"""No number of 64 bits is longer, its sign included."""
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def check(whole: str, batches: Sequence[EventBatch]) -> None:
    """ProtocolError for events without ids, and for recorded ones that are not named as their
    causes. An event with a cause is a recorded one: it is the event that the cause names, of that
    source and with that number and id; so a recording that is published in parts has the order that
    it had.
    """
    for batch in batches:
        _check(whole, batch, is_recorded=batches[0].causes is not None)


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


def names_of(batch: EventBatch) -> Sequence[str]:
    """The names by which events are known among those of their window."""
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


def numbers_of(texts: Sequence[str]) -> Int64s:
    """The place of each id among simultaneous events (E4): int64. The place is the number of which
    the id is the decimal form, if it is one, else a hash. Numbers that parts give to their events
    mean nothing outside their connection.
    """
    known = numbers_of_ids(texts)
    if known is not None:
        return known
    numbers = _hashes(texts)
    for place, text in enumerate(texts):
        if len(text) <= _DIGITS_MAX and (number := number_of_id(text)) is not None:
            numbers[place] = number
    return numbers


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
