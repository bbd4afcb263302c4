r"""Texts from outside as they may be shown: in a log, on a terminal, as a label of a metric.

A text that came over a link or out of a file is shown by ``escaped``. Characters
that print nothing of their own, ESC and CR and those that turn a line around, stand there as JSON
has them, so they do nothing and can be read.

>>> print(escaped("ten\r\x1b[2Jfake\u202e"))
ten\r\u001b[2Jfake\u202e
"""

from __future__ import annotations

import json
import re
from typing import Any

from routing.messages.values import UNPRINTABLE

_UNPRINTABLE = re.compile(f"[{UNPRINTABLE}]")


def escaped(text: str) -> str:
    """A text on one line, in which nothing is hidden."""
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def escaped_lines(text: str) -> str:
    """The same of a text of several lines."""
    return "\n".join(map(escaped, text.split("\n")))


def escaped_json(lines: bytes) -> bytes:
    """The same of lines of JSON, which mean the same then."""
    if lines.isascii() and b"\x7f" not in lines:  # JSON escapes other controls by itself
        return lines
    return escaped_lines(lines.decode()).encode()


def escaped_in(data: Any) -> Any:
    """Plain data with all its texts escaped, keys as well."""
    if isinstance(data, str):
        return escaped(data)
    if isinstance(data, dict):
        return {escaped_in(key): escaped_in(value) for key, value in data.items()}
    return [escaped_in(one) for one in data] if isinstance(data, list | tuple) else data
