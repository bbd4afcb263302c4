"""Wakes whoever polls a descriptor: a counter of the kernel's, rung by any thread."""

from __future__ import annotations

import contextlib
import os


class Bell:
    """``descriptor`` is readable from ``ring`` until ``hush``, however often it was rung."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def ring(self) -> None:
        """Let who polls the descriptor wake."""
        os.eventfd_write(self.descriptor, 1)

    def hush(self) -> None:
        """Make it silent again."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)

    def __del__(self) -> None:
        # With the last who knows it: closed any sooner, it could be rung or polled under a number
        # that is another file's by then.
        os.close(self.descriptor)
