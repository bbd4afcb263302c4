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
    place = f"{what}: {file}" if what else str(file)
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{place}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{place}: {error}") from None
