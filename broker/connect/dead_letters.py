"""Dead letters: messages and events that go nowhere, kept in a file with the reason.

Each is a line of JSON: ``at``, ``connector``, ``topic``, ``reason``, and ``body`` as text, or
``body_base64`` if it is none. A letter is on its way to the disk before its message is
acknowledged.
"""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec


class DeadLetters:
    """The file of one connector; made when there is something to keep."""

    def __init__(self, file: Path, connector: str) -> None:
        self._file, self._connector = file, connector
        self._opened: BinaryIO | None = None
        self.count = 0

    def keep(self, topic: str, body: bytes, reason: str) -> None:
        """Write a letter. Raises OSError."""
        if self._opened is None:
            self._opened = self._file.open("ab")
        letter = {
            "at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "connector": self._connector,
            "topic": topic,
            "reason": reason,
        }
        try:
            letter["body"] = body.decode()
        except UnicodeDecodeError:
            letter["body_base64"] = base64.b64encode(body).decode()
        self._opened.write(msgspec.json.encode(letter) + b"\n")
        self._opened.flush()
        os.fsync(self._opened.fileno())
        self.count += 1

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
