"""What a log has and a replay buffer has no more is read slice by slice (durability.past)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from brokers import SCHEMAS
from conversation import batches_of

from matcher.model import MICROSECONDS, TIME_MIN, EventBatch
from matcher.traces import TraceContexts
from routing.errors import Refusal
from routing.evaluation.replay import Replay
from routing.messages import Code
from routing.network.recovery import past as pasts
from routing.network.recovery.past import PAST_GONE, Past, noted, past_of
from routing.network.recovery.replay_buffer import ReplayBuffer
from routing.order import greatest_time, least_time
from routing.storage import Entry, Stretch

STRETCH = 3


@pytest.fixture(autouse=True)
def few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "READ_ENTRIES", STRETCH)


class Log:
    """A log of messages, of which some may be gone; counts the entries that are read."""

    whole_from = TIME_MIN

    def __init__(self) -> None:
        self.messages: list[list[EventBatch]] = []
        self.gone = 0
        self.looked_at = self.read = 0

    def stretches(self, since: int) -> Iterator[Stretch]:
        return self._stretches(len(self.messages), since)

    def _stretches(self, last: int, since: int) -> Iterator[Stretch]:
        for low in range(1, last + 1, STRETCH):
            self.looked_at += 1
            positions = range(low, min(low + STRETCH, last + 1))
            kept = [one for at in positions for one in self.messages[at - 1]]
            some = [one for one in kept if greatest_time(one) >= since]
            least = min(map(least_time, some), default=0)
            yield Stretch(low, positions[-1] if some else low - 1, least)

    def events(self, stretch: Stretch, since: int) -> Iterator[Entry]:
        for position in range(stretch.first, stretch.last + 1):
            if position <= self.gone:
                raise Refusal(Code.TRIMMED, f"{position} is kept no more")
            batches = self.messages[position - 1]
            self.read += 1
            if any(greatest_time(one) >= since for one in batches):
                yield position, batches, ()


def temp(second: float, number: int) -> list[EventBatch]:
    (batch,) = batches_of(f'Temp@{second}("a", 1)', SCHEMAS)
    sequence = np.array([number], np.int64)
    return [replace(batch, ids=replace(batch.ids, sequence=sequence))]


def log_of(*seconds: float) -> Log:
    log = Log()
    log.messages = [temp(second, number) for number, second in enumerate(seconds, 1)]
    return log


def past(log: Log, since: float, let_go: float, kept: int = 0) -> Past:
    """A buffer has the last events of a log, and has let go of some before that time."""
    buffer = ReplayBuffer(1_000, 1)
    for batches in log.messages[len(log.messages) - kept :]:
        buffer.add(batches)
    buffer.let_go["Temp"] = round(let_go * MICROSECONDS)
    found = past_of(buffer, log, {"Temp": round(since * MICROSECONDS)}, SCHEMAS)
    assert found is not None
    return found


def slices(one: Past, log: Log) -> Iterator[tuple[list[float], float, int]]:
    """The times of each slice, the bound before it, and how many entries were read for it."""
    while one:
        bound, before = one.bounds["Temp"] / MICROSECONDS, log.read
        found = [time for some in one.take() for batch in some for time in batch.time.tolist()]
        yield [time / MICROSECONDS for time in found], bound, log.read - before


def test_it_is_read_a_slice_at_a_time_without_what_the_buffer_has() -> None:
    log = log_of(*range(1, 21))
    one = past(log, since=5, let_go=17, kept=4)
    log.messages.append(temp(21, 21))
    found = list(slices(one, log))
    assert [time for times, _, _ in found for time in times] == list(range(5, 17))
    assert max(read for _, _, read in found) <= STRETCH + 1, "one may have nothing that is wanted"
    assert log.read <= 18, "what is before has no events that are wanted"


def test_no_bound_is_beyond_what_is_unread() -> None:
    log = log_of(9, 1, 8, 7, 12, 14, 13, 6, 15, 16, 20, 19)
    found = list(slices(past(log, since=5, let_go=30), log))
    unread = [time for times, _, _ in found for time in times]
    bounds = []
    for times, bound, _ in found:
        assert all(time >= bound for time in unread)
        unread = unread[len(times) :]
        bounds.append(bound)
    assert bounds == sorted(bounds)
    assert bounds[-1] > 6, "windows that are complete are let go while the rest is read"


def test_a_long_log_is_looked_at_some_stretches_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasts, "LOOKED_AT", 2)
    monkeypatch.setattr(pasts, "NOTED", 2)
    log = log_of(*range(1, 31))
    one, looked = past(log, since=5, let_go=17, kept=4), []
    while not log.read:
        before = log.looked_at
        assert one.bounds == {"Temp": 5 * MICROSECONDS}
        assert not one.take() or log.read
        looked.append(log.looked_at - before)
    assert looked[:2] == [0, 0], "the messages of the buffer come first"
    assert max(looked) <= 2
    assert sum(looked) == 10


def test_it_goes_before_all_that_waits_and_for_rules_alone() -> None:
    log, waiting = log_of(*range(1, 8)), Replay()
    waiting.begin_with(past(log, since=2, let_go=9))
    waiting.add(temp(3, 8))
    marks = {"Temp": 50 * MICROSECONDS, "Smoke": 60 * MICROSECONDS}
    found = []
    while waiting:
        bound = waiting.bounded(marks)
        assert bound["Smoke"] == 60 * MICROSECONDS
        parts, is_fresh = waiting.take()
        times = [time // MICROSECONDS for part in parts for one in part for time in one.time]
        assert all(time * MICROSECONDS >= bound["Temp"] for time in times)
        found.append((times, is_fresh))
    assert [(times, fresh) for times, fresh in found if times] == [
        ([2, 3, 4], False),
        ([5, 6, 7], False),
        ([3], True),
    ]
    assert waiting.bounded(marks) is marks


def test_where_the_buffer_has_all_nothing_is_read() -> None:
    buffer, log = ReplayBuffer(1_000, 1), log_of(1, 2)
    assert past_of(buffer, log, {"Temp": 5}, SCHEMAS) is None
    buffer.let_go_before = 9
    assert past_of(buffer, None, {"Temp": 5}, SCHEMAS) is None
    assert past_of(buffer, log, {}, SCHEMAS) is None
    assert past_of(buffer, log, {"Temp": 5}, SCHEMAS) is not None


def test_what_goes_while_it_is_read_is_told() -> None:
    log, told = log_of(*range(1, 10)), []
    kept = noted(log, TraceContexts(), lambda *words, **fields: told.append((words, fields)))
    assert kept is not None
    one = Past(kept, {"Temp": 0}, (), SCHEMAS)
    log.gone = 3
    times = [time // MICROSECONDS for times, _, _ in slices(one, log) for time in times]
    assert len(times) == 6
    assert told == [(("warning", PAST_GONE), {"reason": "1 is kept no more"})]
