"""Lanes carry bytes: one for each direction of a link.

A lane sends one message after another at its bandwidth, and each arrives ``delay_s`` after it was
sent, in order. What faults do lies below the protocols: a lane may lose, repeat and reorder
messages, be slower for a while, or be cut. Its queue is bounded; what does not fit is lost, as in
any network, and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from routing.wire import MAGIC
from simulator.due import Due
from simulator.simulation import Simulation

Frames: TypeAlias = list[bytes]
_KIND = 3
"""Where a frame that begins a message says of what kind that is."""


@dataclass(frozen=True, slots=True)
class Quality:
    """A lane's delay, rate and faults. Raises ValueError naming what makes no sense.

    ``bandwidth``: bytes per second, None for any number; ``queue_s_max``: the longest that a
    message waits to be sent; ``loss`` and ``repeats``: shares of the messages; ``jitter_s``: up to
    so many seconds are added to each message's delay, so that they overtake one another.
    """

    delay_s: float = 0.005
    bandwidth: float | None = None
    queue_s_max: float = 60.0
    loss: float = 0.0
    repeats: float = 0.0
    jitter_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("delay_s", "queue_s_max", "jitter_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is negative: {getattr(self, name)}")
        for name in ("loss", "repeats"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.bandwidth is not None and self.bandwidth <= 0:
            raise ValueError(f"bandwidth must be positive, not {self.bandwidth}")


class Lane:
    """One direction of a link; ``deliver`` gets the frames that arrive."""

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        quality: Quality,
        deliver: Callable[[Frames], None],
    ) -> None:
        self.name = name
        self.quality = quality
        self.is_cut = False
        self.messages = 0
        self.bytes = 0
        self.lost = 0
        self._simulation = simulation
        self._deliver = deliver
        self._random = simulation.random(f"lane {name}")
        self._free_at = simulation.start
        self._last_arrival = simulation.start

    @property
    def waits_s(self) -> float:
        """For how long a message would have to wait now for those that were sent before it."""
        return max(self._free_at - self._simulation.now, 0.0)

    def count_anew(self) -> None:
        """Leave the bytes sent so far out of the count."""
        self.messages = self.bytes = self.lost = 0

    def send(self, frames: Frames) -> None:
        """Send a message; its frames must not be changed afterwards."""
        size = sum(map(len, frames))
        self.messages += 1
        self.bytes += size
        quality, now = self.quality, self._simulation.now
        begins = now if now > self._free_at else self._free_at
        full = begins - now > quality.queue_s_max
        if self.is_cut or full or (quality.loss and self._random.random() < quality.loss):
            self.lost += 1
            return
        if quality.bandwidth is not None:
            begins = self._free_at = begins + size / quality.bandwidth
        self._carry(frames, size, begins + quality.delay_s)
        if quality.repeats and self._random.random() < quality.repeats:
            self._carry(frames, size, begins + quality.delay_s)

    def _carry(self, frames: Frames, size: int, arrival: float) -> None:
        if self.quality.jitter_s:
            arrival += self._random.random() * self.quality.jitter_s
        elif arrival > self._last_arrival:
            self._last_arrival = arrival
        else:
            arrival = self._last_arrival
        simulation = self._simulation
        Due(simulation.environment, arrival - simulation.now, self._arrive, (frames, size))

    def _arrive(self, due: Due) -> None:
        if self.is_cut:
            self.lost += 1
            return
        frames, size = due.what
        simulation = self._simulation
        simulation.messages += 1
        first = frames[0]
        if len(frames) > 1 and frames[1].startswith(MAGIC):  # what a packet holds
            text = f"{self.name} {first[_KIND]}+{frames[1][_KIND]} {size}"
        else:
            text = f"{self.name} {first[_KIND]} {size}"
        simulation.trace.note(simulation.now, text)
        self._deliver(frames)
