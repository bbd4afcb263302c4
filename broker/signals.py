"""The signals of a broker, heard from its first moment on: kernels may load for a minute.

SIGTERM and SIGINT stop it. While nobody is served yet they end what it is at, and the process with
the status that a broker always ends with. SIGHUP has it read its configuration again, once it
serves, and SIGUSR1 has it drain.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from broker.log import log

STOPS = (signal.SIGTERM, signal.SIGINT)


class Stopped(SystemExit):
    """The broker was told to stop before it served anybody. Its exit status is 0."""


class Signals:
    """Handlers of the signals of this process. Made in its main thread."""

    def __init__(self) -> None:
        self.reload_wanted = False
        """Whether SIGHUP has come since this was set to False last."""
        self.drain_wanted = False
        """Whether SIGUSR1 has come since this was set to False last."""
        self._stopping = False
        self._stop: Callable[[], None] | None = None
        self._before: dict[int, Any] = {
            number: signal.signal(number, self._handle_stop) for number in STOPS
        }
        self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._handle_reload)
        self._before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self._handle_drain)

    def serve(self, stop: Callable[[], None], descriptor: int) -> None:
        """From now on ``stop`` is called for a signal to stop, and each signal is written to
        ``descriptor``. Raises Stopped if one has come and what it interrupted was not ended by it.
        """
        if self._stopping:
            raise Stopped(0)
        self._stop = stop
        # The byte that a signal writes wakes the host out of its poll, which Python resumes.
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)

    def ignore(self) -> None:
        """Hear no more: whoever tells it once more to stop finds nothing to wake."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)

    def restore(self) -> None:
        """Leave the signals to those that handled them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle_stop(self, number: int, frame: FrameType | None) -> None:
        if self._stop is not None:
            log("info", "stopping", {"signal": signal.Signals(number).name})
            self._stop()
        elif not self._stopping:
            log("info", "stopping", {"signal": signal.Signals(number).name})
            self._stopping = True
            raise Stopped(0)

    def _handle_reload(self, number: int, frame: FrameType | None) -> None:
        self.reload_wanted = True

    def _handle_drain(self, number: int, frame: FrameType | None) -> None:
        self.drain_wanted = True
