"""The three standard streams of a process that may have been started without some of them."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAMES = ("stdin", "stdout", "stderr")


def occupy() -> None:
    """Let the standard streams that are closed read nothing, and write nowhere. Call this before
    anything else is opened: the first file or socket of a command started with ``>&-`` would get
    number 1, and what is printed would go into it.
    """
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is not None:
            continue
        taken = os.open(os.devnull, os.O_RDWR)
        if taken != number:  # something has been opened already, at a number below
            os.dup2(taken, number)
            os.close(taken)
        os.set_inheritable(number, True)
        mode = "r" if number == 0 else "w"
        setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115


@contextmanager
def closing_with_reader(close: Callable[[], None]) -> Iterator[None]:
    """Have ``close`` called, in a thread of its own, as soon as nobody can read what is printed
    any more (``| head`` has ended): who waits for events would notice at the next one only.
    """
    gone, left = select.poll(), os.pipe()
    gone.register(sys.stdout.fileno(), 0)  # that nobody reads it is told unasked
    gone.register(left[0], select.POLLIN)

    def watch() -> None:
        if left[0] not in [descriptor for descriptor, _ in gone.poll()]:
            close()

    watcher = threading.Thread(target=watch, name="rexmq reader", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        os.write(left[1], b"\0")
        watcher.join()
        for descriptor in left:
            os.close(descriptor)
