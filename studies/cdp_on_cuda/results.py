"""Composite events from the rows that the device has found (tesla.md section 4, E4).

Whatever order atomics gave them, matches are sorted here by their causes. Within a column events
have numbers in the order of E4, so a match stands where the numbers of its events do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matcher.identity import RULE_SOURCE
from matcher.model import (
    AnyArray,
    Bools,
    Causes,
    Column,
    EventBatch,
    EventIds,
    Int64s,
    Kind,
    StringColumn,
    UInt64s,
)
from rules.engine.engine import NOTHING, Detections
from rules.engine.linking.interner import Interner
from rules.engine.order.catalogue import Deployed
from studies.cdp_on_cuda.events import (
    IS_DIGEST,
    IS_TEXT,
    Sources,
    composite_keys,
)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The matches of a rule at one terminator, in order: IDENTITY[n] of the events of each number,
    terminator first, and the words of the composite events' values, int64[n, values].
    """

    deployed: Deployed
    time: int
    events: tuple[AnyArray, ...]
    values: Int64s

    def __len__(self) -> int:
        return len(self.values)


def detections(found: Sequence[Found], sources: Sources, strings: Interner) -> Detections:
    """The detections of an advance; one rule's terminators must come in their order."""
    if not found:
        return NOTHING
    ordered = sorted(found, key=lambda one: (one.time, one.deployed.place))
    of_type: dict[str, list[int]] = {}
    for place, one in enumerate(ordered):
        of_type.setdefault(one.deployed.rule.defines.name, []).append(place)
    starts = np.cumsum([0, *map(len, ordered)])
    places, batches = [], []
    for name in sorted(of_type):
        batches.append(_batch([ordered[place] for place in of_type[name]], sources, strings))
        places += [np.arange(starts[place], starts[place + 1]) for place in of_type[name]]
    return Detections(tuple(batches), np.argsort(np.concatenate(places)))


def _batch(found: Sequence[Found], sources: Sources, strings: Interner) -> EventBatch:
    """Composite events of one type."""
    schema = found[0].deployed.rule.defines
    names = [RULE_SOURCE + one.deployed.rule.name for one in found]
    lengths = [len(one) for one in found]
    source = StringColumn.from_strings(names).take(np.repeat(np.arange(len(found)), lengths))
    digest: UInt64s = np.concatenate(
        [composite_keys(one.deployed.key, one.events) for one in found]
    )
    values = np.concatenate([one.values for one in found])
    return EventBatch(
        schema,
        np.repeat(np.array([one.time for one in found], np.int64), lengths),
        EventIds(source, np.zeros(len(values), np.int64), None, digest),
        tuple(
            _column(attribute.kind, values[:, place], strings)
            for place, attribute in enumerate(schema.attributes)
        ),
        _causes(found, lengths, sources),
    )


def _causes(found: Sequence[Found], lengths: Sequence[int], sources: Sources) -> Causes:
    counts = np.repeat([len(one.events) for one in found], lengths)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # Of each terminator's matches: the events of the first match, of the second, and so on.
    events = np.concatenate([np.stack(one.events, axis=1).ravel() for one in found])
    is_digest, has_text = events["form"] == IS_DIGEST, events["form"] == IS_TEXT
    texts, digest = None, None
    if has_text.any():
        texts = StringColumn.from_strings([text or "" for text in events["text"].tolist()])
    if is_digest.any():
        digest = np.stack([events["high"], events["low"]], axis=1)
    named, codes = np.unique(events["source"], return_inverse=True)
    source = StringColumn(
        codes.astype(np.int32), tuple(sources.names[number] for number in named.tolist())
    )
    ids = EventIds(source, events["sequence"], texts, digest)
    return Causes(offsets, ids, is_digest, has_text)


def _column(kind: Kind, words: Int64s, strings: Interner) -> Column:
    match kind:
        case Kind.STRING:
            used, codes = np.unique(words, return_inverse=True)
            return StringColumn(codes.astype(np.int32), tuple(map(strings.text, used.tolist())))
        case Kind.FLOAT:
            return np.ascontiguousarray(words).view(np.float64)
        case Kind.BOOL:
            truths: Bools = words != 0
            return truths
    return np.ascontiguousarray(words)
