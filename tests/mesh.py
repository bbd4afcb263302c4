"""State machines under a clock of their own, over links that lose, repeat and reorder.

A harness for the protocols between brokers: whatever has ``take_effects``, ``handle_timer`` and
``next_timer`` is a party; a wire carries encoded frames from one to another after a delay.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from routing import wire
from routing.effects import Effect, Send


class Party(Protocol):
    def handle_timer(self, now: float) -> None: ...
    def next_timer(self) -> float | None: ...
    def take_effects(self) -> list[Effect]: ...


@dataclass
class Wire:
    """One direction of a link. ``delays`` in seconds; a list of two reorders."""

    deliver: Callable[[list[bytes], float], None]
    delay_s: float = 0.005
    jitter_s: float = 0.0
    loss: float = 0.0
    repeats: float = 0.0
    cut: bool = False
    carried: int = 0
    bytes: int = 0


class Mesh:
    """Parties by name, wires by (sender, peer), and simulated time."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.parties: dict[str, Party] = {}
        self.wires: dict[tuple[str, bytes], Wire] = {}
        self.after: Callable[[str], None] = lambda name: None
        self.log: list[Effect] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (max(moment, self.now), next(self._numbers), act))

    def settle(self, names: Iterable[str] | None = None) -> None:
        """Carry out effects; nothing arrives in the same instant."""
        for name in list(self.parties) if names is None else names:
            for effect in self.parties[name].take_effects():
                if isinstance(effect, Send):
                    self._send(name, effect)
                else:
                    self.log.append(effect)
            self.after(name)

    def run(self, until: float) -> None:
        """Let time pass."""
        self.settle()
        while True:
            timers = [
                (due, name)
                for name, one in self.parties.items()
                if (due := one.next_timer()) is not None
            ]
            due, name = min(timers, default=(until, ""))
            moment = min(due, self._queue[0][0] if self._queue else until)
            if moment >= until:
                self.now = until
                return
            self.now = max(self.now, moment)
            if self._queue and self._queue[0][0] <= moment:
                heapq.heappop(self._queue)[2]()
                self.settle()
            else:
                self.parties[name].handle_timer(self.now)
                self.settle([name])

    def _send(self, name: str, effect: Send) -> None:
        wire_of = self.wires.get((name, effect.peer))
        frames = wire.encode(effect.message)
        if wire_of is None or wire_of.cut or self.random.random() < wire_of.loss:
            return
        copies = 2 if self.random.random() < wire_of.repeats else 1
        for _ in range(copies):
            delay = wire_of.delay_s + self.random.random() * wire_of.jitter_s
            self.at(self.now + delay, lambda: self._arrive(wire_of, frames))

    def _arrive(self, one: Wire, frames: list[bytes]) -> None:
        if not one.cut:
            one.carried += 1
            one.bytes += sum(map(len, frames))
            one.deliver(frames, self.now)


def decoded(receive: Callable[[Any, float], None]) -> Callable[[list[bytes], float], None]:
    """A wire's end that takes messages."""
    return lambda frames, now: receive(wire.decode(frames), now)
