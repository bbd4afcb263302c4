"""Configured files, read whole, with errors that name the file: texts, TOML documents, secrets.

A broker reads files at its start and anew at SIGHUP, and waits for none of them. What is no file of
at most ``BYTES_MAX``, be it a pipe that nobody writes, a device without end, or what the kernel
gives when it has something to say (``/proc/kmsg``), is refused.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from broker.errors import ConfigurationError

BYTES_MAX = 4 * 2**20
KEY_PARTS_MAX = 16
"""Parts of a key, ``a.b.c``: ``tomllib`` takes a time that grows with their square."""
_SAID = re.compile(r'"(?:[^"\\]|\\.)*+"?|\'[^\']*+\'?|#.*')
"""Strings and comments in a line; strings that do not end there go to its end."""
_APART = re.compile(r"[^\w\s.-]+")


def document_of(file: Path, what: str = "") -> dict[str, Any]:
    """The tables of a TOML file. ConfigurationError for one that cannot be read, or is no TOML;
    its message begins with ``what`` the file is for, where that is said.
    """
    return parsed(text_of(file, what), file, what)


def text_of(file: Path, what: str = "") -> str:
    """The text of a file. ConfigurationError, as ``document_of``."""
    try:
        return content_of(file, what).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def content_of(file: Path, what: str = "") -> bytes:
    """The bytes of a file. ConfigurationError, as ``document_of``."""
    try:
        return _bytes_of(file)
    except OSError as error:
        raise ConfigurationError(f"{_place(file, what)}: {error.strerror}") from None
    except ValueError as error:  # no file, or no name of one
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def _bytes_of(file: Path) -> bytes:
    """The bytes of a file. Raises OSError, and ValueError for what is none, or too long."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("expected a file, found a pipe or a device")
        content: bytes | None = opened.read(BYTES_MAX + 1)
    if content is None:  # it would have to be waited for
        raise ValueError("expected a file, found a stream of the kernel")
    if len(content) > BYTES_MAX:
        raise ValueError(f"expected at most {BYTES_MAX >> 20} MiB")
    return content


def parsed(text: str, file: Path, what: str = "") -> dict[str, Any]:
    """The tables of the text of a file. ConfigurationError, as ``document_of``."""
    for number, line in enumerate(text.splitlines(), 1):
        keys = _APART.split(_SAID.sub("", line))
        if max(key.count(".") for key in keys) >= KEY_PARTS_MAX:
            reason = f"a key of more than {KEY_PARTS_MAX} parts"
            raise ConfigurationError(f"{_place(file, what)}: line {number}: {reason}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError alone
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def _place(file: Path, what: str) -> str:
    return f"{what}: {file}" if what else str(file)
