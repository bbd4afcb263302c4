"""``rexmq`` on a machine whose clock is set: the wall clock is off by what a file says.

    python -m benchmarks.clocked FILE broker --name b1 ...

The file holds seconds, one float of eight bytes, and is looked at whenever the time is asked for.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path

SECONDS = struct.Struct("d")


def set_clock(path: Path, seconds: float) -> None:
    """Have the processes that were started with this file be off by so much from now on."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(SECONDS.pack(seconds))


def main(path: str, *arguments: str) -> int:
    """Run a command of ``rexmq``; its exit status."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as said:
        true_s, true_ns = time.time, time.time_ns

        def shifted_s() -> float:
            return true_s() + SECONDS.unpack_from(said)[0]

        def shifted_ns() -> int:
            return true_ns() + round(SECONDS.unpack_from(said)[0] * 1e9)

        time.time, time.time_ns = shifted_s, shifted_ns

        from broker.cli import main as command

        try:
            return command(list(arguments))
        finally:
            time.time, time.time_ns = true_s, true_ns


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
