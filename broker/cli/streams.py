"""The three standard streams of a process that may have been started without some of them.

Law: descriptors 0 to 2 are taken before anything else is opened. Otherwise the first file or
socket of a command started with ``>&-`` would get number 1, and what is printed would go into it.
"""

from __future__ import annotations

import os
import sys

_NAMES = ("stdin", "stdout", "stderr")


def occupy() -> None:
    """Let the standard streams that are closed read nothing, and write nowhere."""
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
