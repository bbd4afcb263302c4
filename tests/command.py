"""A command in this process, its standard streams being files, as a child's would be.

A process of its own costs a second or two of imports; it is for tests of what a process is or
has: signals, streams that are closed, a shell's pipes, what is imported, how it ends.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any
from unittest.mock import patch

from broker.cli import main

NAMES = ("stdin", "stdout", "stderr")
PIPE_BYTES = 65_536
"""What a pipe holds."""
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    *words: object,
    stdin: str | bytes | Path = b"",
    append_to: Path | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """The exit status of ``rexmq`` with these words, and what it has written.

    ``stdin``: what comes through a pipe, or the file that is read. ``append_to``: the file that
    standard output goes to.
    """
    arguments = [str(word) for word in words]
    with ExitStack() as until_done, patch.dict(os.environ, environment):
        until_done.enter_context(_as_it_was())
        folder = Path(until_done.enter_context(TemporaryDirectory()))
        out, errors = append_to or folder / "out", folder / "errors"
        until_done.enter_context(_in_place(0, until_done.enter_context(_given(stdin))))
        until_done.enter_context(_in_place(1, until_done.enter_context(out.open("a"))))
        until_done.enter_context(_in_place(2, until_done.enter_context(errors.open("a"))))
        status = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        written = out.read_text(), errors.read_text()
    return subprocess.CompletedProcess(arguments, status, *written)


@contextmanager
def _given(stdin: str | bytes | Path) -> Iterator[IO[Any]]:
    """What standard input reads."""
    if isinstance(stdin, Path):
        with stdin.open("rb") as file:
            yield file
        return
    content = stdin.encode() if isinstance(stdin, str) else stdin
    assert len(content) <= PIPE_BYTES, "nobody reads while this is written"
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe:
        with open(writing, "wb") as end:
            end.write(content)
        yield pipe


@contextmanager
def _in_place(number: int, file: IO[Any]) -> Iterator[None]:
    """A file in the place of one of the standard streams."""
    kept = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        with (
            open(number, "w" if number else "r", closefd=False, encoding="utf-8") as stream,
            patch.object(sys, NAMES[number], stream),
        ):
            yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Commands choose how log lines and signals are handled, for the rest of their process."""
    logger = logging.getLogger("rexmq")
    handlers, propagate, level = logger.handlers[:], logger.propagate, logger.level
    heeded = {number: signal.getsignal(number) for number in ENDS}
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)
        for number, handler in heeded.items():
            signal.signal(number, handler)
