"""Structured log lines on standard error: logfmt, one line an occurrence.

``time=2026-11-20T13:00:00.125Z level=info broker=b1 message=listening endpoint=tcp://127.0.0.1:7461``
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

LOGGER = logging.getLogger("rexmq")
# A program that has not asked for log lines gets none: without a handler of ours, logging would
# print them as a last resort, and without their fields.
LOGGER.addHandler(logging.NullHandler())

_NEEDS_QUOTES = frozenset(' "=\n\t\r')


def start_logging(level: str, **always: str) -> None:
    """Send this process's log lines of ``level`` and above to standard error.

    ``always``: fields of every line.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Logfmt(always))
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    set_level(level)


def set_level(level: str) -> None:
    """Write lines of ``level`` and above from now on."""
    LOGGER.setLevel(level.upper())


def log(level: str, message: str, fields: Mapping[str, object] | None = None) -> None:
    """Write one line: a constant message, and what it is about as fields."""
    LOGGER.log(logging.getLevelNamesMapping()[level.upper()], message, extra={"fields": fields})


class Logfmt(logging.Formatter):
    """``key=value`` pairs; a value with blanks, quotes or line ends is quoted."""

    def __init__(self, always: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._always = dict(always or {})

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        moment = datetime.fromtimestamp(record.created, UTC)
        pairs: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **self._always,
            "message": record.getMessage(),
            **(getattr(record, "fields", None) or {}),
        }
        line = " ".join(f"{key}={_value(value)}" for key, value in pairs.items())
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _value(value: object) -> str:
    text = str(value)
    if text and not _NEEDS_QUOTES & set(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
