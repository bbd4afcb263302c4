"""Acts that are due at a moment of simulated time.

A message costs one event with one callback. A process for each would cost eight times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import NORMAL, Event


class Due(Event):
    """An act after a delay: ``act`` is called with this, which bears ``what``.

    As simpy's Timeout, which is made for processes that wait, but in one stroke.
    """

    def __init__(
        self,
        environment: simpy.Environment,
        delay: float,
        act: Callable[[Due], None],
        what: Any = None,
    ) -> None:
        if delay < 0:
            raise ValueError(f"a delay of {delay} s")
        self.env = environment
        self.callbacks = [act]
        self.what = what
        self._ok = True
        environment.schedule(self, NORMAL, delay)
