"""Events and marks for a broker's father in a tree, in parts that fit into messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from matcher.model import TIME_MIN, EventBatch
from routing.messages import Forward
from routing.partition.forwarder import Forwarded
from routing.partition.questions import Answers
from routing.wire.extent import BATCHES_AT_ONCE, EVENTS_AT_ONCE, EXTENT_MAX, extent, fitting


class Outbox:
    """Owner of what waits to be sent, and of what was told of marks."""

    def __init__(self) -> None:
        self.waiting: list[Forward] = []
        """Messages that ``take`` would give."""
        self._told: dict[str, int] = {}
        """The marks of types that were last told."""

    def post(
        self, forwarded: Forwarded, marks: tuple[tuple[str, int], ...] = (), answers: Answers = ()
    ) -> None:
        """Have these events sent to the father, and then the marks and the answers."""
        first_sent = tuple(fitting(forwarded.fresh)) if forwarded.fresh else ()
        late = tuple(fitting(forwarded.late)) if forwarded.late else ()
        batches, fresh = first_sent + late, len(first_sent)
        if len(batches) <= 1 and not forwarded.waited:  # common
            if batches or marks or answers:
                self.waiting.append(Forward(batches, marks, fresh, answers))
            return
        for part in message_sized(batches):
            first = min(fresh, len(part))
            self.waiting.append(Forward(part, (), first))
            fresh -= first
        self.waiting += _waited(forwarded)
        if marks or answers:
            last = self.waiting.pop() if batches or forwarded.waited else Forward()
            self.waiting.append(Forward(last.batches, marks, last.fresh, answers, last.came))

    def news(self, marks: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """Give the marks that are greater than was told; they are told by that."""
        told, news = self._told, []
        for name, mark in marks.items():
            if mark > told.get(name, TIME_MIN):
                told[name] = mark
                news.append((name, mark))
        return tuple(sorted(news))

    def begin_anew(self) -> None:
        """There is another plan: what was told of marks counts no more."""
        self._told = {}

    def take(self) -> list[Forward]:
        """Give the messages to send, in order."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def clear(self) -> None:
        """Send nothing of it."""
        self.waiting.clear()


def _waited(forwarded: Forwarded) -> Iterator[Forward]:
    came = b"".join(times.astype("<i8").tobytes() for _, times in forwarded.waited)
    first = 0
    for part in message_sized(fitting(batch for batch, _ in forwarded.waited)):
        last = first + 8 * sum(map(len, part))
        yield Forward(part, came=came[first:last])
        first = last


def message_sized(batches: Iterable[EventBatch]) -> Iterator[tuple[EventBatch, ...]]:
    """Batches, each of which fits into a message, in parts that do."""
    part: list[EventBatch] = []
    events = size = 0
    for batch in batches:
        own = extent(batch)
        if part and size + own > EXTENT_MAX:
            yield tuple(part)
            part, events, size = [], 0, 0
        part.append(batch)
        events += len(batch)
        size += own
        if len(part) == BATCHES_AT_ONCE or events >= EVENTS_AT_ONCE:
            yield tuple(part)
            part, events, size = [], 0, 0
    if part:
        yield tuple(part)
