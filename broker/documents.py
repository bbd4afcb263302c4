"""Texts and TOML documents, read whole, with errors that name the file.

Law: a running broker reads files anew at SIGHUP, and waits for none of them. What is no file of at
most ``BYTES_MAX``, a pipe that nobody writes or a device without end, is refused unread.
"""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from broker.errors import ConfigurationError

BYTES_MAX = 4 * 2**20


def document_of(file: Path, what: str = "") -> dict[str, Any]:
    """The tables of a TOML file. ConfigurationError for one that cannot be read, or is no TOML;
    its message begins with ``what`` the file is for, where that is said.
    """
    return parsed(text_of(file, what), file, what)


def text_of(file: Path, what: str = "") -> str:
    """The text of a file. ConfigurationError, as ``document_of``."""
    try:
        return _bytes_of(file).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfigurationError(f"{_place(file, what)}: {error.strerror}") from None
    except ValueError as error:  # no text, or no name of a file
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def _bytes_of(file: Path) -> bytes:
    """The bytes of a file. Raises OSError, and ValueError for what is none, or too long."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("expected a file, found a pipe or a device")
        found = opened.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise ValueError(f"expected at most {BYTES_MAX >> 20} MiB")
    return found


def parsed(text: str, file: Path, what: str = "") -> dict[str, Any]:
    """The tables of the text of a file. ConfigurationError, as ``document_of``."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError alone
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def _place(file: Path, what: str) -> str:
    return f"{what}: {file}" if what else str(file)
