"""Structured log lines on standard error, one an occurrence: logfmt, or JSON where that is asked.

``time=2026-11-20T13:00:00.125Z level=info broker=b1 message=listening endpoint=tcp://127.0.0.1:7461``

Lines come of parts (``broker.keys.PARTS``), each of which may have a level of its own. With
``info,routing=warning`` nothing is said of clients that come and go, and all else is as ever.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO

from broker.escaping import escaped, escaped_lines
from broker.keys import PARTS

LOGGER = logging.getLogger("rexmq")
# A program that has not asked for log lines gets none: without a handler of ours, logging would
# print them as a last resort, and without their fields.
LOGGER.addHandler(logging.NullHandler())

ALIKE_MAX = 10
"""Lines alike that are written in one second."""
WINDOW_S = 1.0
_NEEDS_QUOTES = frozenset(' "=')


def start_logging(level: str, form: str = "text", **always: str) -> None:
    """Send this process's log lines of ``level`` and above to standard error.

    ``form``: a key of ``FORMS``. ``always``: fields of every line.
    """
    handler = Bounded(sys.stderr)
    handler.setFormatter(Fields(FORMS[form], always))
    LOGGER.handlers[:] = [handler]
    LOGGER.propagate = False
    set_level(level)


def set_level(level: str) -> None:
    """Write lines of ``level`` and above from now on: ``info``, or with levels of parts that have
    others, ``info,routing=warning``.
    """
    general, _, others = level.partition(",")
    own = dict(pair.split("=") for pair in others.split(",") if pair)
    LOGGER.setLevel(general.upper())
    for part in PARTS:
        LOGGER.getChild(part).setLevel(own.get(part, "notset").upper())


def log(
    level: str,
    message: str,
    fields: Mapping[str, object] | None = None,
    part: str = "broker",
) -> None:
    """Write one line: a constant message, and what it is about as fields."""
    logger, number = LOGGER.getChild(part), logging.getLevelNamesMapping()[level.upper()]
    logger.log(number, message, extra={"fields": fields})


@dataclass(slots=True)
class _Window:
    """The lines alike since ``start``: how many were written, how many were not."""

    start: float
    written: int = 0
    left_out: int = 0


class Bounded(logging.StreamHandler[TextIO]):
    """Writes lines, so that crowds do not fill the log. Lines of one level and message are alike,
    whoever they are about: of those that come within a second the first ``ALIKE_MAX`` are written
    as they come, the others are counted in one line when the second is over: ``message=closed
    more_in_the_last_second=312``.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._windows: dict[tuple[int, str], _Window] = {}
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record's line, or count it."""
        now = time.monotonic()
        self._end_windows(now - WINDOW_S)
        window = self._windows.setdefault((record.levelno, record.getMessage()), _Window(now))
        if window.written < ALIKE_MAX:
            window.written += 1
            if self.stream.closed:  # a program has put another in its place
                self.stream = sys.stderr
            super().emit(record)
            return
        window.left_out += 1
        if self._timer is None:  # nothing else may come and have the count written
            self._timer = threading.Timer(WINDOW_S, self._tell)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Write the counts that are left, and end."""
        if self._timer is not None:
            self._timer.cancel()
        self._tell()
        super().close()

    def _tell(self) -> None:
        self.acquire()
        try:
            self._timer = None
            self._end_windows(time.monotonic())
        finally:
            self.release()

    def _end_windows(self, until: float) -> None:
        """Forget the windows that began by then, and write what each has left out."""
        over = [alike for alike, window in list(self._windows.items()) if window.start <= until]
        for level, message in over:
            window = self._windows.pop((level, message), None)
            if window is not None and window.left_out:
                count = logging.LogRecord(LOGGER.name, level, "", 0, message, (), None)
                count.fields = {"more_in_the_last_second": window.left_out}
                super().emit(count)


class Fields(logging.Formatter):
    """Records as fields in order, which ``write`` makes a line of."""

    def __init__(
        self,
        write: Callable[[Mapping[str, object]], str],
        always: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self._write = write
        self._always = dict(always or {})

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        moment = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **self._always,
            "message": record.getMessage(),
            **(getattr(record, "fields", None) or {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return self._write(fields)


def logfmt(fields: Mapping[str, object]) -> str:
    """``key=value`` pairs; a value with blanks, quotes or line ends is quoted, and what cannot be
    printed is escaped. An exception stands in lines of its own.
    """
    pairs = dict(fields)
    exception = pairs.pop("exception", None)
    line = " ".join(f"{key}={_value(value)}" for key, value in pairs.items())
    return line if exception is None else f"{line}\n{escaped_lines(str(exception))}"


def json_line(fields: Mapping[str, object]) -> str:
    """One JSON object; what JSON has no form for is written as text."""
    return escaped(json.dumps(fields, default=str, ensure_ascii=False))


FORMS: Mapping[str, Callable[[Mapping[str, object]], str]] = {"text": logfmt, "json": json_line}
"""Ways to write a line."""


def _value(value: object) -> str:
    text = str(value)
    if text and escaped(text) == text and not _NEEDS_QUOTES & set(text):
        return text
    quoted = escaped(text.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{quoted}"'
