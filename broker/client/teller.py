"""Calls of a program's own function, which may raise, wait, or close its client.

Such a function is called in a thread of its own, or as a callback of the event loop: never by who
is at the connection. What it raises is printed and logged, and costs nobody anything else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias
from weakref import ref

from broker.log import log

OnAck: TypeAlias = Callable[[int], object]
"""Told the number up to which events are acknowledged."""
CLOSE_S = 5.0
"""So long a client that closes waits for its function, in seconds."""


class Acknowledged(Protocol):
    """A client with such a function; None for none."""

    on_ack: OnAck | None


def telling(client: Acknowledged) -> OnAck:
    """A function that calls the client's, as long as there is the client."""
    found = ref(client)

    def tell(number: int) -> None:
        known = found()
        if known is None or known.on_ack is None:
            return
        try:
            known.on_ack(number)
        except Exception as error:
            text = f"on_ack({number}) raised {type(error).__name__}: {error}"
            print(f"rexmq: {text}", file=sys.stderr)
            log("error", "on_ack has raised", {"number": number, "error": repr(error)}, "client")

    return tell


class Teller:
    """A thread that tells numbers."""

    def __init__(self, tell: OnAck) -> None:
        self._tell = tell
        self._numbers: SimpleQueue[int | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="rexmq on_ack", daemon=True)
        self._thread.start()

    def tell(self, number: int) -> None:
        """Tell a number soon. Of numbers that wait only the last is told: it stands for those
        before it.
        """
        self._numbers.put(number)

    def end(self) -> None:
        """End behind what is left to tell."""
        self._numbers.put(None)

    def close(self) -> None:
        """Tell what is left, and end; its own function may ask for that."""
        self.end()
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        number: int | None = 0
        while number is not None:
            number = self._numbers.get()
            last = number
            while number is not None:
                try:
                    number = self._numbers.get_nowait()
                except Empty:
                    break
                last = last if number is None else number
            if last is not None:
                self._tell(last)
