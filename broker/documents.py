"""TOML documents, read whole, with errors that name the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from broker.errors import ConfigurationError


def document_of(file: Path, what: str = "") -> dict[str, Any]:
    """The tables of a TOML file. ConfigurationError for one that cannot be read, or is no TOML;
    its message begins with ``what`` the file is for, where that is said.
    """
    return parsed(text_of(file, what), file, what)


def text_of(file: Path, what: str = "") -> str:
    """The text of a file. ConfigurationError, as ``document_of``."""
    try:
        return file.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{_place(file, what)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def parsed(text: str, file: Path, what: str = "") -> dict[str, Any]:
    """The tables of the text of a file. ConfigurationError, as ``document_of``."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{_place(file, what)}: {error}") from None


def _place(file: Path, what: str) -> str:
    return f"{what}: {file}" if what else str(file)
