"""Text files that commands are given."""

from __future__ import annotations

from pathlib import Path

from broker.errors import ConfigurationError


def text_of(file: Path) -> str:
    """The text of a UTF-8 file; ConfigurationError names the byte that is none."""
    from matcher.formats.inputs import bytes_of, name_of

    try:
        return bytes_of(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name_of(file)}: not UTF-8 at byte {error.start}") from None
