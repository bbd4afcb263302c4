"""Processor time and memory of processes, as Linux tells them, and how a benchmark is stopped."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def processor_s(process: int, *, ended: bool = False) -> float:
    """Seconds of processor time that a process has used, with those of its children that have
    ``ended`` if that is asked for. OSError once it has ended itself.
    """
    fields = fields_of(process)
    return sum(map(int, fields[11 : 15 if ended else 13])) / os.sysconf("SC_CLK_TCK")


def resident_mib(process: int) -> float:
    """The memory of a process that is resident, in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def fields_of(process: int) -> list[str]:
    """What Linux tells of a process, from its state on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def stop_children_on_sigterm() -> None:
    """End this process by an exception when it is told to, so that it stops its children."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
