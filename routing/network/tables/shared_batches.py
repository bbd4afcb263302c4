"""Events that go up several trees over one link together: each batch once (thesis 7.3.2, 7.3.6).

Law: what is to go over a link for several trees at one moment leaves in one message. Batches of the
same events are in it once, and each tree picks its own. An event is known by its type, its source,
its id and its sequence number. Nothing is remembered from one message to the next.

Example: b3 lets Temp 1 and 2 pass for the tree of b1, each by itself, and Temp 2 for that of b2.
One message has both; the part of b1 picks batches 0 and 1, the part of b2 batch 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from matcher.model import EventBatch
from matcher.single import Single
from routing.errors import ProtocolError
from routing.messages import Code, Flow, Forward, Part, Shared
from routing.partition.questions import Answers
from routing.wire.extent import BATCHES_AT_ONCE, EVENTS_AT_ONCE, EXTENT_MAX, extent, extent_of

ForTree = tuple[str, Forward | Flow]
"""A message up a tree, behind the root of that."""


def share(messages: Iterable[ForTree]) -> Iterator[Shared]:
    """Give what is to go over a link for these messages, in their order."""
    waiting = _Waiting()
    for root, message in messages:
        if not waiting.has_room_for(message.batches):
            yield waiting.shared()
            waiting = _Waiting()
        picks = tuple([waiting.pick(batch) for batch in message.batches])
        if isinstance(message, Forward) and (message.answers or message.came is not None):
            waiting.pulled.append((len(waiting.parts), message.answers, message.came))
        waiting.parts.append(_part(root, message, picks))
    if waiting.parts:
        yield waiting.shared()


class _Waiting:
    """A message that is being made."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.pulled: list[tuple[int, Answers, bytes | None]] = []
        self._batches: list[EventBatch] = []
        self._places: dict[Hashable, int] = {}
        """By the keys of the events of a batch in the message: its place."""
        self._said = self._events = 0
        """Batches and events of all trees so far, the same ones several times."""
        self._extent = 0
        """The extent of the batches so far."""

    def has_room_for(self, batches: Sequence[EventBatch]) -> bool:
        if not self.parts:
            return True
        if self._said + len(batches) > BATCHES_AT_ONCE:
            return False
        events = self._events + sum(map(len, batches))
        return events <= EVENTS_AT_ONCE and self._extent + extent_of(batches) <= EXTENT_MAX

    def pick(self, batch: EventBatch) -> int:
        """The place of a tree's batch among those of the message."""
        self._said += 1
        self._events += len(batch)
        place = self._places.setdefault(key_of(batch), len(self._batches))
        if place == len(self._batches):
            self._batches.append(batch)
            self._extent += extent(batch)
        return place

    def shared(self) -> Shared:
        return Shared(tuple(self._batches), tuple(self.parts), tuple(self.pulled))


def messages_of(shared: Shared) -> list[ForTree]:
    """The messages for the trees; ProtocolError for numbers that make no sense."""
    messages = [_message(part, shared.batches) for part in shared.parts]
    for place, answers, came in shared.pulled:
        root, message = messages[place] if place < len(messages) else ("", Flow())
        if not isinstance(message, Forward):
            raise ProtocolError(Code.PROTOCOL, f"answers to no question, at part {place}")
        if came is not None and len(came) != 8 * sum(map(len, message.batches)):
            raise ProtocolError(Code.PROTOCOL, "other events than times at which they came")
        whole = Forward(message.batches, message.marks, 0, answers, came)
        messages[place] = root, whole
    return messages


def _message(part: Part, batches: Sequence[EventBatch]) -> ForTree:
    if part.picks and max(part.picks) >= len(batches):
        raise ProtocolError(Code.PROTOCOL, f"batch {max(part.picks)} of {len(batches)}")
    found = [batches[pick] for pick in part.picks]
    if not part.detected:
        return part.root, Forward(tuple(found), part.marks)
    order = None
    if part.order is not None:
        order = np.frombuffer(part.order, "<i4").astype(np.int64)
        if not np.array_equal(np.sort(order), np.arange(sum(map(len, found)))):
            raise ProtocolError(Code.PROTOCOL, "an order that is no permutation")
    return part.root, Flow(tuple(found), order, part.marks)


def key_of(batch: EventBatch) -> Hashable:
    """The key by which the events of a batch are known."""
    name = batch.type.name
    if isinstance(batch, Single):
        row = batch.row
        return name, row.source, row.sequence, row.text
    ids = batch.ids
    sources, sequences = tuple(ids.source.tolist()), ids.sequence.tobytes()
    digest = None if ids.digest is None else ids.digest.tobytes()
    return name, sources, sequences, digest, None if ids.text is None else tuple(ids.text.tolist())


def _part(root: str, message: Forward | Flow, picks: tuple[int, ...]) -> Part:
    if isinstance(message, Forward):
        return Part(root, picks, message.marks)
    order = None if message.order is None else message.order.astype("<i4").tobytes()
    return Part(root, picks, message.marks, True, order)
