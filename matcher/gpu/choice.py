"""Choice of the processor or the device for each batch, by their costs on this machine.

The thesis's translator switches by thresholds on the number of constraints (4.5.4). The cost
of a batch depends on much more: the table's size, how many filters share an event's names, the
events' width, how many events come at once. So both places are tried on the events at hand, and
times tell: a device takes some time for any call and some for each event, a processor for each
event only, nearly. They are tried anew when the filters have doubled or halved in number, and when
matching has taken ``TRIAL_WORTH`` times as long as a trial does, because events change too, and one
trial may have been disturbed; with the next events that are many enough.

Example: a trial of 4,096 events over a million filters takes 5 ms, the next is due after 320 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from matcher.filters.encoded import EncodedEvents
from matcher.gpu.batched import DeviceTables
from matcher.gpu.device import Device, device
from matcher.kernels.results import look_up
from matcher.methods.choose import AutoMatcher
from matcher.methods.tabled import Found
from matcher.model import Int64s

TRIAL_EVENTS = 4_096
"""Events that both places are tried on at most. Of a device's call the greater part is the same for
a thousand events as for one, so the time of fewer says little of what more take.
"""
TRIAL_WORTH = 64
"""Trials take one part of the time in about so many."""
TRIAL_MIN = 16
"""With fewer events at hand a trial says little of what many cost: it is made anew with more."""
TRIES = 3
"""Runs of which the shortest counts."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a call: ``call_s`` for any, and ``event_s`` for each event."""

    call_s: float
    event_s: float

    @classmethod
    def of(cls, one_s: float, many_s: float, events: int) -> Cost:
        """The cost by two times: that of one event, and that of ``events`` together."""
        if events < 2:
            return cls(0.0, one_s)
        event_s = max(many_s - one_s, 0.0) / (events - 1)
        return cls(max(one_s - event_s, 0.0), event_s)

    def seconds(self, events: int) -> float:
        """The cost of so many events at once."""
        return self.call_s + events * self.event_s


def crossover(processor: Cost, device: Cost) -> int | None:
    """The least number of events at once for which the device is faster; None: never."""
    gain_s, handicap_s = processor.event_s - device.event_s, device.call_s - processor.call_s
    if handicap_s <= 0 and gain_s >= 0:
        return 1
    return int(handicap_s // gain_s) + 1 if gain_s > 0 else None


class PlacedMatcher(AutoMatcher):
    """``auto`` on the processor, or the batched matcher on the device, call by call."""

    def __init__(self, on: Device | None = None) -> None:
        super().__init__()
        self._tables = DeviceTables(self.table, on or device())
        self._from: int | None = None
        self._tried_for = self._on_device = 0
        self._trial_s = self._spent_s = 0.0
        """Seconds that a trial takes, and seconds of matching since the last one."""

    def _insert(self, slots: Int64s) -> None:
        super()._insert(slots)
        self._tables.insert(slots)

    def _delete(self, slot: int) -> None:
        super()._delete(slot)
        self._tables.delete(slot)

    def _run(self, events: EncodedEvents, begin: int, found: Found) -> tuple[int, int]:
        size_changed = not self._tried_for / 2 <= len(self) <= self._tried_for * 2
        is_due = self._spent_s >= TRIAL_WORTH * self._trial_s and len(events) >= TRIAL_MIN
        if size_changed or is_due:
            self._try(events)
        begun = perf_counter()
        if self._from is None or len(events) - begin < self._from:
            done, size = super()._run(events, begin, found)
        else:
            self._on_device += 1
            done, size = self._tables.run(events, begin, found)
            look_up(found.slots[:size], self.table.identifiers.rows)
        self._spent_s += perf_counter() - begun
        return done, size

    def _try(self, events: EncodedEvents) -> None:
        tried = events.take(slice(0, TRIAL_EVENTS))
        if len(tried) == 0:
            return
        self._tried_for, self._spent_s = len(self), 0.0
        costs = self._cost_of(super()._run, tried), self._cost_of(self._tables.run, tried)
        self._from = crossover(*costs)
        # One of few events is made anew as soon as there are more.
        seconds = TRIES * sum(cost.seconds(1) + cost.seconds(len(tried)) for cost in costs)
        self._trial_s = seconds if len(tried) >= TRIAL_MIN else 0.0

    def _cost_of(
        self,
        run: Callable[[EncodedEvents, int, Found], tuple[int, int]],
        tried: EncodedEvents,
    ) -> Cost:
        words = self.table.interfaces.size // 64 + 1
        none = np.empty(0, np.int64)

        def seconds(events: EncodedEvents) -> float:
            times = []
            for _ in range(TRIES):
                bits = np.zeros((len(events), words), np.int64)
                begun = perf_counter()
                run(events, 0, Found(bits, none, none, False))
                times.append(perf_counter() - begun)
            return min(times)

        return Cost.of(seconds(tried.take(slice(0, 1))), seconds(tried), len(tried))

    def _bytes(self) -> int:
        return super()._bytes() + self._tables.host_bytes

    @property
    def figures(self) -> Mapping[str, int | str]:
        """Figures of ``auto``, and from how many events at once the device is used."""
        return dict(super().figures) | {
            "device": self._tables.device.name,
            "device bytes": self._tables.bytes,
            "device from events": "never" if self._from is None else self._from,
            "calls on the device": self._on_device,
        }
