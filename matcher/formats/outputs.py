"""Files that are written: whole, or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from matcher.formats.inputs import descriptor_of


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A sink whose bytes are at ``path`` once the block has ended well; OSError.

    A link stays, and the file that it leads to is replaced; a file keeps its permissions.

    The file at the path stays as it was if the block fails. Until then the new one stands beside
    it, as ``NAME.PID.part``; a process that is killed leaves that behind. What is no regular file
    (a pipe, a terminal, ``/dev/stdout``) is written to as it comes.
    """
    number = descriptor_of(path, standard=1)
    if number is not None:
        with os.fdopen(os.dup(number), "wb") as sink:
            yield sink
        return
    target = Path(os.path.realpath(path))
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with path.open("wb") as sink:
            yield sink
        return
    with _beside(path, target, old) as sink:
        yield sink


@contextmanager
def replaced_text(path: Path) -> Iterator[TextIO]:
    """The same for UTF-8 text, with lines that end as they are written."""
    with replaced(path) as sink, io.TextIOWrapper(sink, "utf-8", newline="") as text:
        yield text


def write_text(path: Path, text: str) -> None:
    """Replace a file by a text."""
    with replaced_text(path) as sink:
        sink.write(text)


@contextmanager
def _beside(path: Path, target: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        if old is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        part.unlink(missing_ok=True)  # another process of that number was killed
        sink = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b")
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with sink:
            if old is not None:
                _take_over(sink.fileno(), old)
            yield sink
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _take_over(number: int, old: os.stat_result) -> None:
    """Give a new file the owner and the permissions of the one whose place it takes."""
    with suppress(PermissionError):  # another's file stays readable to the same people only so far
        os.fchown(number, old.st_uid, old.st_gid)
    os.fchmod(number, stat.S_IMODE(old.st_mode))
