"""Events that go up several trees over one link together: each of them once (thesis 7.3.2, 7.3.6).

Law: what is to go over a link for several trees at one moment leaves in one message, with each
event once and with the picks of each tree. An event is known by its type, its source, its id and
its sequence number. Nothing is remembered from one message to the next.

Example: b3 lets Temp 1 and 2 pass for the tree of b1, and Temp 2 for that of b2. One message has
both; the part of b1 picks batch 0, the part of b2 the event with number 1.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from matcher.model import EventBatch, Int64s
from matcher.single import Single
from routing.errors import ProtocolError
from routing.messages import Code, Flow, Forward, Part, Shared
from routing.partition.asking import Answers
from routing.wire.extent import BATCHES_AT_ONCE, EVENTS_AT_ONCE, EXTENT_MAX, extent, extent_of

ForTree = tuple[str, int, Forward | Flow]
"""A message up a tree: the tree's root, the mark that it has to bear, and the message."""


def share(messages: Iterable[ForTree]) -> Iterator[Shared]:
    """Give what is to go over a link for these messages, in their order."""
    waiting = _Waiting()
    for root, mark, message in messages:
        if not waiting.has_room_for(message.batches):
            yield waiting.shared()
            waiting = _Waiting()
        picks = tuple([waiting.pick(batch) for batch in message.batches])
        if isinstance(message, Forward) and (message.answers or message.came is not None):
            waiting.pulled.append((len(waiting.parts), message.answers, message.came))
        waiting.parts.append(_part(root, mark, message, picks))
    if waiting.parts:
        yield waiting.shared()


class _Waiting:
    """A message that is being made."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.pulled: list[tuple[int, Answers, bytes | None]] = []
        self._batches: list[EventBatch] = []
        self._numbers: dict[Hashable, int] = {}
        """By the key of an event in the message: its number."""
        self._count = 0
        self._places: dict[int, tuple[int, int]] = {}
        """By the number of its first event: the place of a batch, and how many events it has."""
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

    def pick(self, batch: EventBatch) -> int | bytes:
        """How one batch of a tree is said: as a whole batch of the message, or by numbers."""
        keys, known = keys_of(batch), self._numbers
        new = [place for place, key in enumerate(keys) if key not in known]
        if new:
            known.update((keys[place], number) for number, place in enumerate(new, self._count))
            self._add(batch if len(new) == len(batch) else batch.take(np.array(new)))
        self._said += 1
        self._events += len(batch)
        numbers = [known[key] for key in keys]
        place, count = self._places.get(numbers[0], (0, 0))
        if count == len(numbers) and _rises(numbers):
            return place
        return np.array(numbers, "<i4").tobytes()

    def _add(self, batch: EventBatch) -> None:
        self._places[self._count] = len(self._batches), len(batch)
        self._batches.append(batch)
        self._count += len(batch)
        self._extent += extent(batch)

    def shared(self) -> Shared:
        return Shared(tuple(self._batches), tuple(self.parts), tuple(self.pulled))


def messages_of(shared: Shared) -> list[ForTree]:
    """The messages for the trees; ProtocolError for numbers that make no sense."""
    firsts = list(itertools.accumulate(map(len, shared.batches), initial=0))
    messages = [_message(part, shared.batches, firsts) for part in shared.parts]
    for place, answers, came in shared.pulled:
        root, mark, message = messages[place] if place < len(messages) else ("", 0, Flow())
        if not isinstance(message, Forward):
            raise ProtocolError(Code.PROTOCOL, f"answers to no question, at part {place}")
        if came is not None and len(came) != 8 * sum(map(len, message.batches)):
            raise ProtocolError(Code.PROTOCOL, "other events than times at which they came")
        whole = Forward(message.batches, message.marks, 0, answers, came)
        messages[place] = root, mark, whole
    return messages


def _message(part: Part, batches: Sequence[EventBatch], firsts: Sequence[int]) -> ForTree:
    found: list[EventBatch] = []
    for pick in part.picks:
        if isinstance(pick, bytes):
            found += _picked(np.frombuffer(pick, "<i4").astype(np.int64), batches, firsts)
        elif pick < len(batches):
            found.append(batches[pick])
        else:
            raise ProtocolError(Code.PROTOCOL, f"batch {pick} of {len(batches)}")
    if not part.detected:
        return part.root, part.mark, Forward(tuple(found), part.marks)
    order = None
    if part.order is not None:
        order = np.frombuffer(part.order, "<i4").astype(np.int64)
        if not np.array_equal(np.sort(order), np.arange(sum(map(len, found)))):
            raise ProtocolError(Code.PROTOCOL, "an order that is no permutation")
    return part.root, part.mark, Flow(tuple(found), order, (), part.marks)


def _picked(
    picked: Int64s, batches: Sequence[EventBatch], firsts: Sequence[int]
) -> Iterator[EventBatch]:
    """The events of these numbers, in their order, in as many batches as they come from.

    ``firsts``: the number of each batch's first event, and how many events there are.
    """
    numbers = picked.tolist()
    if not numbers or min(numbers) < 0 or max(numbers) >= firsts[-1]:
        raise ProtocolError(Code.PROTOCOL, f"numbers of events that are none of {firsts[-1]}")
    places = [bisect_right(firsts, number) - 1 for number in numbers]
    start = 0
    for end in range(1, len(places) + 1):
        place = places[start]
        if end == len(places) or places[end] != place:
            batch = batches[place]
            # What came alone stays what it is, which is far sooner worked with than columns.
            is_alone = len(batch) == 1 == end - start
            yield batch if is_alone else batch.take(picked[start:end] - firsts[place])
            start = end


def keys_of(batch: EventBatch) -> list[Hashable]:
    """The keys by which events are known."""
    name = batch.type.name
    if isinstance(batch, Single):
        row = batch.row
        return [(name, row.source, row.sequence, row.text)]
    ids = batch.ids
    sources, sequences = ids.source.tolist(), ids.sequence.tolist()
    if ids.digest is not None:
        others: Iterable[Hashable] = map(tuple, ids.digest.tolist())
    elif ids.text is not None:
        others = ids.text.tolist()
    else:
        others = [None] * len(batch)
    return list(zip([name] * len(batch), sources, sequences, others, strict=True))


def _part(root: str, mark: int, message: Forward | Flow, picks: tuple[int | bytes, ...]) -> Part:
    if isinstance(message, Forward):
        return Part(root, mark, picks, message.marks)
    order = None if message.order is None else message.order.astype("<i4").tobytes()
    return Part(root, mark, picks, message.marks, True, order)


def _rises(numbers: Sequence[int]) -> bool:
    return all(later == number + 1 for number, later in itertools.pairwise(numbers))
