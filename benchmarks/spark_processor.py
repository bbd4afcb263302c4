"""The processor time that a session of Spark has taken, by whom it was taken; on Linux alone.

Elapsed time tells about one machine and what else it does. How much there is to do, and how much of
it is Java's, which works on while Python's workers do, tells what further cores can bring.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import fields_of, processor_s


def spent(session: Any, work: Callable[[], object]) -> dict[str, float]:
    """Seconds of processor time that Java, its workers of Python and this process take for some
    work.
    """
    java = session._jvm.java.lang.ProcessHandle.current().pid()
    before = _taken(java)
    work()
    return {name: taken - before[name] for name, taken in _taken(java).items()}


def _taken(java: int) -> dict[str, float]:
    workers = sum(processor_s(one, ended=True) for one in _below(java))
    return {"Java": processor_s(java), "workers": workers, "driver": processor_s(os.getpid())}


def _below(process: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int(fields_of(int(folder.name))[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended since
    found = [process]
    for one in found:  # which grows
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]
