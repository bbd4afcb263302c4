"""Events that come too late for a rule that is over.

A rule that is removed holds up to ``until``. It is over once all have what it finds before that,
and nobody is waited for who may still publish what it needs. What a source brings afterwards that
comes in mid-stream, or comes back, is late for rules that are there alone: from before ``until`` it
is taken, and that rule does not find it (protocol.md section 6). No broker says when that was.

Nobody can say whether a composite event that is found with such an event alone, or without it
alone, comes to a sink; twice it does not come. The source of Temp closes at 25 s, Smoke of 28 s is
published, and fire is removed: it has held up to there, with the Temps that there were. Temp of 27
s, from a source that is back at 40 s, makes no other Fire of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from matcher.model import Bools, EventBatch
from simulator.losses import Key, key_of
from simulator.network import Network
from simulator.oracle import Answer, Oracle, facts


@dataclass(frozen=True, slots=True)
class Ending:
    """A rule over these types that holds up to ``until``; by source, the number of the last event
    that had come when its removal was asked for.
    """

    types: frozenset[str]
    until: int
    came: Mapping[str, int]

    def late(self, source: str, batch: EventBatch) -> Bools:
        """bool[n]: which of a source's events may be too late for the rule."""
        if batch.type.name not in self.types:
            return np.zeros(len(batch), np.bool_)
        return (batch.ids.sequence > self.came.get(source, -1)) & (batch.time < self.until)


def undecided(
    network: Network, taken: Sequence[EventBatch], oracle: Oracle, returning: Collection[str]
) -> set[Key]:
    """The composite events of which nobody can say whether they come. ``taken``: all that is
    published, of which the ``oracle`` is; ``returning``: the sources that come in mid-stream, or
    come back.
    """
    names = [one.name for _, one in network.recordings for _ in one.batches]
    ended = list(_ended(network))
    masks = [
        np.any([one.late(name, batch) for one in ended if name in returning], axis=0)
        for name, batch in zip(names, taken, strict=True)
    ]
    late = sorted({name for name, mask in zip(names, masks, strict=True) if mask.any()})
    if not late:
        return set()

    def without(absent: Collection[str]) -> Oracle:
        told = zip(names, taken, masks, strict=True)
        return Oracle(
            network.book.held,
            [batch.take(~mask) if name in absent else batch for name, batch, mask in told],
        )

    some = chain.from_iterable(combinations(late, count) for count in range(1, len(late) + 1))
    types = {one.rule.defines.name for one in network.book.held}
    whole, *others = (_found(one.answer(types)) for one in (oracle, *map(without, some)))
    return {
        key
        for other in others
        for key in whole.keys() | other.keys()
        if whole.get(key) != other.get(key)
    }


def _ended(network: Network) -> Iterator[Ending]:
    """The rules that were removed or replaced. Of one whose end was told to nobody any event may
    have come later.
    """
    came = dict(_came_before(network))
    for one in network.book.held:
        if one.until is not None:
            types = frozenset(used.name for used in one.rule.used_types)
            yield Ending(types, one.until, came.get((one.rule.name, one.version), {}))


def _came_before(network: Network) -> Iterator[tuple[tuple[str, int], Mapping[str, int]]]:
    """By rule and version, what had come when its end was asked for, if that was told."""
    for manager in network.managers:
        if manager.answer is not None:
            detail = manager.answer.detail
            for told in detail.get("replaced", (detail,)):
                yield (told["name"], told["version"]), manager.came


def _found(answer: Answer) -> Mapping[Key, object]:
    return {key_of(one): facts(one) for one in answer.composite}
