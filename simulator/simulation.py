"""The simulated clock, chance and trace: everything that a run may depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from random import Random
from typing import Any, TextIO

import simpy

from simulator.due import Due

PENDING_MAX = 1_000
"""Lines that are digested together, which costs less than one by one."""


class Trace:
    """One line for everything that is carried, in order: a digest of all, and a file if asked."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._digest = hashlib.sha256()
        self._pending: list[str] = []
        self._output = output
        self.lines = 0

    @property
    def digest(self) -> str:
        """The digest of all lines so far, as 64 hexadecimal digits."""
        self._add_pending()
        return self._digest.hexdigest()

    def note(self, now: float, text: str) -> None:
        """Add a line."""
        line = f"{now!r} {text}\n"
        self.lines += 1
        self._pending.append(line)
        if len(self._pending) >= PENDING_MAX:
            self._add_pending()
        if self._output is not None:
            self._output.write(line)

    def _add_pending(self) -> None:
        self._digest.update("".join(self._pending).encode())
        self._pending.clear()


class Replay(Trace):
    """A trace that is held against one that was saved: ``difference`` tells the first line that is
    not the same, None for none.
    """

    def __init__(self, saved: TextIO) -> None:
        super().__init__()
        self._saved = saved
        self._difference: str | None = None

    @property
    def difference(self) -> str | None:
        """To be asked when the run is over."""
        if self._difference is None and (rest := self._saved.readline()):
            self._difference = f"line {self.lines + 1}: nothing, where it was {rest.rstrip()!r}"
        return self._difference

    def note(self, now: float, text: str) -> None:
        """Add a line, and compare it."""
        super().note(now, text)
        if self._difference is None:
            was = self._saved.readline().rstrip("\n")
            if was != f"{now!r} {text}":
                self._difference = f"line {self.lines}: {f'{now!r} {text}'!r}, where it was {was!r}"


class Simulation:
    """One run. Times are in simulated seconds, from ``start`` on.

    A run is a function of its scenario and its seed. Callbacks of one instant run in the order in
    which they were asked for, and the trace says what was carried, byte for byte the same for the
    same seed.
    """

    def __init__(self, seed: int, start: float = 0.0, trace: Trace | None = None) -> None:
        self.seed = seed
        self.start = start
        self.trace = Trace() if trace is None else trace
        self.environment = simpy.Environment(initial_time=start)
        self.messages = 0
        """How many messages have been delivered."""

    @property
    def now(self) -> float:
        """The simulated time."""
        return self.environment._now  # beside simpy's own property, which takes a call

    def random(self, name: str) -> Random:
        """A generator of its own for whoever bears that name. What one part draws changes nothing
        for another.
        """
        return Random(f"{self.seed}/{name}")

    def after(self, delay: float, act: Callable[[Due], None], what: Any = None) -> None:
        """Call ``act`` after ``delay`` seconds with an event that bears ``what``."""
        Due(self.environment, delay, act, what)

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Call ``act`` at a moment; at once, within this instant, where it is past."""
        self.after(max(0.0, moment - self.now), _call, act)

    def run(self, until: float) -> None:
        """Let time pass."""
        if until > self.now:
            self.environment.run(until)


def _call(due: Due) -> None:
    due.what()
