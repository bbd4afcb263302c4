"""One part of :mod:`studies.bench_gpu`, in a process of its own.

Each row is kept before the next is measured; a measure that fails has a row that says so, and the
process ends with status 0: what it could do is done. It ends, with those that it has started, when
its standard input does: whoever started it is no more then.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from pathlib import Path
from threading import Thread

from benchmarks.report import attempted, table
from studies.bench_gpu import keep


def end_with_input() -> None:
    """Wait for the end of the standard input, and end the whole group of processes."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run the part that the command line names."""
    parser = argparse.ArgumentParser(prog="studies.device.part")
    parser.add_argument("name")
    parser.add_argument("module")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if os.getpgrp() == os.getpid():  # as studies.bench_gpu starts it
        Thread(target=end_with_input, daemon=True).start()

    def rows():  # type: ignore[no-untyped-def]
        return importlib.import_module(options.module).run(options.quick)

    for row in attempted(options.name, rows):
        keep(options.rows, options.name, options.device, row, quick=options.quick)
        print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
