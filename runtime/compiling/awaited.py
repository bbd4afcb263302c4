"""A word to whoever waits while kernels are compiled, which is once after an installation.

It knows nothing of kernels, so that a program can set it before it imports what takes long.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

Told = Callable[[str | None], None]
"""Called with the name of a kernel when it begins to be compiled, and with None when it is."""


def nobody(_name: str | None) -> None:
    """Tell nobody: what a library does."""


class Line:
    """Tells it on standard error: a line that goes when it is over on a terminal, one line for all
    anywhere else.
    """

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, name: str | None) -> None:
        """Show that a kernel is being compiled, or that it is."""
        is_seen = sys.stderr.isatty()
        if name is None:
            if is_seen:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            return
        self._count += 1
        text = "rexmq: compiling what the rules need, once after an installation"
        if is_seen:
            print(f"\r\033[K{text}: {self._count}, {name}", end="", file=sys.stderr, flush=True)
        elif self._count == 1:
            print(text, file=sys.stderr, flush=True)


tell: Told = nobody
