r"""The lines of a TOML file: where each table begins and each of its keys stands.

``tomllib`` gives values without places. Headers and keys that begin a line are found here by their
looks, for messages alone: the access file that says ``publish = ["Temp"]`` in its third line is
told to be wrong in line 3.

>>> lines_of('[user.alice]\nkey = "alice.key"\npublish = ["Temp"]')["user.alice", "publish"]
3
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_KEY = re.compile(r"""\s*["']?([\w-]+)["']?\s*=""")


def lines_of(text: str) -> Mapping[tuple[str, str], int]:
    """The line of each table, with "" for its key, and of each key of it."""
    found: dict[tuple[str, str], int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = ".".join(part.strip().strip("\"'") for part in header[1].split("."))
            found.setdefault((table, ""), number)
        elif key := _KEY.match(line):
            found.setdefault((table, key[1]), number)
    return found
