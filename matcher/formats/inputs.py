"""Files that are read, by the paths that a user gives: ``-``, pipes and descriptors among them.

``-`` is standard input. ``/dev/stdin``, ``/dev/fd/63``, what a shell puts in the place of
``<(...)``, and links to these lead to descriptors of this process. Whatever is no regular file can
be read once; for readers that need more, :func:`copied` keeps all of it in a temporary file.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from matcher.errors import EventError

FolderColumn: TypeAlias = tuple[str, str | None]
"""A column of a file that the name of a folder says, and the text that all of its rows hold."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of events, or a folder of them (matcher.formats.folders).

    ``type_name``: the type of events that name none, where it is said of this file alone;
    ``columns``: those that names of folders say.
    """

    path: Path
    type_name: str | None = None
    columns: tuple[FolderColumn, ...] = ()


STANDARD = Path("-")
"""Standard input, and as a path that is written to, standard output."""
_LINKS_MAX = 40
"""So many links are followed, as the system does."""


def inputs_of(words: Sequence[Path]) -> list[InputFile]:
    """The files and folders that a command names: PATH, or TYPE=PATH if no file is called so."""
    return list(map(_input_of, words))


def _input_of(word: Path) -> InputFile:
    type_name, sign, path = str(word).partition("=")
    if not sign or not path or "/" in type_name or _status(word) is not None:
        return InputFile(word)
    return InputFile(Path(path), type_name)


def descriptor_of(path: Path, standard: int = 0) -> int | None:
    """The descriptor of this process that a path leads to, ``standard`` for ``-``; None for most.

    Found by the names of links: what a descriptor is open on may have no name, or be gone.
    """
    if path == STANDARD:
        return standard
    for _ in range(_LINKS_MAX):
        folder = os.path.realpath(path.parent)
        if folder in (f"/proc/{os.getpid()}/fd", "/dev/fd") and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, path.readlink())
    return None


def name_of(path: Path) -> str:
    """A path as messages name it."""
    return "standard input" if path == STANDARD else str(path)


def opened_input(path: Path) -> BinaryIO:
    """A file's bytes, from its beginning; OSError."""
    number = descriptor_of(path)
    if number is None:
        return path.open("rb")
    if stat.S_ISREG(os.fstat(number).st_mode):
        return open(f"/dev/fd/{number}", "rb")  # with a place in the file of its own
    return os.fdopen(os.dup(number), "rb")


def bytes_of(path: Path) -> bytes:
    """All of a file; OSError."""
    with opened_input(path) as stream:
        return stream.read()


def is_regular(path: Path) -> bool:
    """Whether a file can be read again; what does not exist counts as a file."""
    status = _status(path)
    return status is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def names_file(path: Path) -> bool:
    """Whether a path is that of a file itself, so that its name has to say the form of it."""
    return descriptor_of(path) is None and is_regular(path)


def copied(path: Path) -> BinaryIO | None:
    """A temporary copy, read up to its end, of what can be read only once; None for a file.

    Raises OSError, with the name of what could not be copied.
    """
    if is_regular(path):
        return None
    with opened_input(path) as stream:
        return copy_of(stream, path)


def copy_of(stream: BinaryIO, path: Path) -> BinaryIO:
    """A temporary file of what is left of a stream, which is gone once it is closed."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - its owner closes it
    try:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
    except OSError as error:
        copy.close()
        if error.filename is None and error.errno is not None:
            error.filename = f"the copy of {name_of(path)} in {tempfile.gettempdir()}"
        raise
    except BaseException:
        copy.close()
        raise
    return copy


def again(copy: BinaryIO) -> BinaryIO:
    """A copy from its beginning, for a reader that may close it; one at a time."""
    stream = os.fdopen(os.dup(copy.fileno()), "rb")
    stream.seek(0)
    return stream


def verify_files(inputs: Sequence[Path], outputs: Sequence[Path] = ()) -> None:
    """Check the files of a command before any is read or written.

    EventError when an input is an output too, by whatever name, or is what standard output goes
    to; or when a pipe is to be read twice.
    """
    known = [(path, status) for path in inputs if (status := _status(path)) is not None]
    pipes = Counter((one.st_dev, one.st_ino) for _, one in known if _is_pipe(one))
    for path, status in known:
        if pipes[status.st_dev, status.st_ino] > 1:
            raise EventError(f"{name_of(path)} is given twice, and a pipe can be read only once")
        for output in (*outputs, STANDARD):
            written = _status(output, 1)
            # What both come from and go to may be one terminal or one connection.
            is_file = stat.S_ISREG(status.st_mode) or (output != STANDARD and _is_pipe(status))
            if written is not None and is_file and os.path.samestat(status, written):
                what = "standard output" if output == STANDARD else output
                raise EventError(
                    f"{name_of(path)} is read and written (as {what}): "
                    f"give the results a file of their own"
                )


def _is_pipe(status: os.stat_result) -> bool:
    return stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)


def _status(path: Path, standard: int = 0) -> os.stat_result | None:
    number = descriptor_of(path, standard)
    try:
        return path.stat() if number is None else os.fstat(number)
    except OSError:
        return None  # it is reported where it is opened
