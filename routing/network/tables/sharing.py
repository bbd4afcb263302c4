"""Events that go up several trees over one link: each of them once (thesis 7.3.2, 7.3.6).

Law 1: what is to go over a link for several trees leaves together, with each event once and with
what each tree gets of them. An event that has gone over the link for one tree, and is selected for
another later on, is named by its number.

Law 2: both ends of a link number its events in the order in which they go over it, and remember
the batches with the last ``REMEMBERED_MAX`` of them by the same rule, so that a number that one end
writes is known to the other. What begins with number 0 begins anew; whoever has lost count asks for
that when it opens trees, and takes nothing else until then.

Law 3: an event is known by its type, its source, its id and its sequence number: two that are the
same in all of these are the same to whoever gets them.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from matcher.model import EventBatch, Int64s
from matcher.single import Single
from routing.errors import ProtocolError
from routing.messages import Code, Flow, Forward, Part, Shared
from routing.partition.asking import Answers
from routing.wire.extent import BATCHES_AT_ONCE, EVENTS_AT_ONCE, EXTENT_MAX, extent, extent_of

REMEMBERED_MAX = 16_384
"""Events that both ends of a link remember, and the rest of the batch that the first is in."""

GIVEN_BACK_AT_ONCE = 512
"""Batches; a list that loses its first items moves all others."""

ForTree = tuple[str, int, Forward | Flow]
"""A message up a tree: the tree's root, the mark that it has to bear, and the message."""


class EventNumbers:
    """The numbers of the events that went over a link last (Law 2)."""

    def __init__(self) -> None:
        self.next = 0
        self._ends: deque[int] = deque()
        """Of each batch that is remembered, the number after its last event."""

    @property
    def remembered(self) -> int:
        """How many events there are behind the first batch that is remembered."""
        return self.next - self._ends[0] if self._ends else 0

    def add(self, count: int) -> None:
        """A batch of so many events goes over the link."""
        self.next += count
        self._ends.append(self.next)

    def forget(self) -> int:
        """Forget what is too long ago; how many batches that are."""
        gone = 0
        while self._ends and self._ends[0] <= self.next - REMEMBERED_MAX:
            self._ends.popleft()
            gone += 1
        return gone


class Sharer:
    """The sending end of a link."""

    def __init__(self) -> None:
        self._numbers = EventNumbers()
        self._known: dict[Hashable, int] = {}
        self._keys: deque[list[Hashable]] = deque()
        """Of each batch that is remembered."""

    @property
    def numbers(self) -> EventNumbers:
        """The numbers of the events that have gone over the link."""
        return self._numbers

    def share(self, messages: Iterable[ForTree]) -> Iterator[Shared]:
        """Give what is to go over the link for these messages, in their order."""
        waiting = _Waiting(self._numbers.next)
        for root, mark, message in messages:
            if not waiting.has_room_for(message.batches):
                yield self._closed(waiting)
                waiting = _Waiting(self._numbers.next)
            picks = tuple([self._pick(batch, waiting) for batch in message.batches])
            if isinstance(message, Forward) and (message.answers or message.came is not None):
                waiting.pulled.append((len(waiting.parts), message.answers, message.came))
            waiting.parts.append(_part(root, mark, message, picks))
        if waiting.parts:
            yield self._closed(waiting)

    def _pick(self, batch: EventBatch, waiting: _Waiting) -> int | bytes:
        """How one batch of a tree is said: as one that goes now, or by numbers."""
        keys = keys_of(batch)
        numbers = [self._known.get(key, -1) for key in keys]
        new = [place for place, number in enumerate(numbers) if number < 0]
        if new:
            sent = batch if len(new) == len(batch) else batch.take(np.array(new))
            first = self._numbers.next
            for number, place in enumerate(new, start=first):
                numbers[place] = self._known[keys[place]] = number
            self._numbers.add(len(sent))
            self._keys.append([keys[place] for place in new])
            waiting.add(sent, first)
        return waiting.pick(numbers)

    def _closed(self, waiting: _Waiting) -> Shared:
        for _ in range(self._numbers.forget()):
            for key in self._keys.popleft():
                self._known.pop(key, None)
        batches, parts, pulled = waiting.batches, waiting.parts, waiting.pulled
        return Shared(waiting.first, tuple(batches), tuple(parts), tuple(pulled))


class _Waiting:
    """A message that is being made; ``first`` is the number of its first event."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.batches: list[EventBatch] = []
        self.parts: list[Part] = []
        self.pulled: list[tuple[int, Answers, bytes | None]] = []
        self._places: dict[int, tuple[int, int]] = {}
        """By the number of its first event: the place of a batch, and how many events it has."""
        self._said = 0
        """Events and batches of all trees so far, the same ones several times."""
        self._events = 0
        self._extent = 0
        """The extent of the batches so far."""

    def has_room_for(self, batches: Sequence[EventBatch]) -> bool:
        if not self.parts:
            return True
        if self._said + len(batches) > BATCHES_AT_ONCE:
            return False
        events = self._events + sum(map(len, batches))
        return events <= EVENTS_AT_ONCE and self._extent + extent_of(batches) <= EXTENT_MAX

    def add(self, batch: EventBatch, first: int) -> None:
        self._places[first] = len(self.batches), len(batch)
        self.batches.append(batch)
        self._extent += extent(batch)

    def pick(self, numbers: list[int]) -> int | bytes:
        self._said += 1
        self._events += len(numbers)
        place, count = self._places.get(numbers[0], (0, 0))
        if count == len(numbers) and numbers[-1] - numbers[0] == count - 1 and _rises(numbers):
            return place
        return (np.array(numbers) - self.first).astype("<i4").tobytes()


class Keeper:
    """The receiving end of a link."""

    def __init__(self) -> None:
        self._numbers = EventNumbers()
        self._firsts: list[int] = []
        self._batches: list[EventBatch] = []
        self._gone = 0
        """So many of the first of both are forgotten, and given back together (``_forget``)."""

    @property
    def numbers(self) -> EventNumbers:
        """The numbers of the events that have come over the link."""
        return self._numbers

    @property
    def is_new(self) -> bool:
        """Whether no event has gone over the link yet."""
        return self._numbers.next == 0

    def take(self, shared: Shared) -> list[ForTree]:
        """The messages for the trees; ProtocolError for numbers that are not known."""
        base = self._numbers.next
        if shared.first != base:
            raise ProtocolError(Code.PROTOCOL, f"events from number {shared.first} on, not {base}")
        for batch in shared.batches:
            self._firsts.append(self._numbers.next)
            self._batches.append(batch)
            self._numbers.add(len(batch))
        try:
            messages = [self._message(part, shared.batches, base) for part in shared.parts]
        finally:
            self._forget()
        for place, answers, came in shared.pulled:
            root, mark, message = messages[place] if place < len(messages) else ("", 0, Flow())
            if not isinstance(message, Forward):
                raise ProtocolError(Code.PROTOCOL, f"answers to no question, at part {place}")
            if came is not None and len(came) != 8 * sum(map(len, message.batches)):
                raise ProtocolError(Code.PROTOCOL, "other events than times at which they came")
            whole = Forward(message.batches, message.marks, 0, answers, came)
            messages[place] = root, mark, whole
        return messages

    def _forget(self) -> None:
        self._gone += self._numbers.forget()
        if self._gone >= GIVEN_BACK_AT_ONCE:
            del self._firsts[: self._gone], self._batches[: self._gone]
            self._gone = 0

    def _message(self, part: Part, batches: Sequence[EventBatch], base: int) -> ForTree:
        found: list[EventBatch] = []
        for pick in part.picks:
            if isinstance(pick, bytes):
                found += self._picked(np.frombuffer(pick, "<i4").astype(np.int64) + base)
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

    def _picked(self, numbers: Int64s) -> Iterator[EventBatch]:
        """The events of these numbers, in their order, in as many batches as they come from."""
        firsts, gone, wanted = self._firsts, self._gone, numbers.tolist()
        if not wanted or gone == len(firsts) or min(wanted) < firsts[gone]:
            raise ProtocolError(Code.PROTOCOL, "events that are not remembered")
        if max(wanted) >= self._numbers.next:
            raise ProtocolError(Code.PROTOCOL, "events that have not come")
        places = [bisect_right(firsts, number, gone) - 1 for number in wanted]
        start = 0
        for end in range(1, len(places) + 1):
            place = places[start]
            if end == len(places) or places[end] != place:
                batch = self._batches[place]
                # What came alone stays what it is, which is far sooner worked with than columns.
                is_alone = len(batch) == 1 == end - start
                yield batch if is_alone else batch.take(numbers[start:end] - firsts[place])
                start = end


def keys_of(batch: EventBatch) -> list[Hashable]:
    """The keys by which events are known (Law 3)."""
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
