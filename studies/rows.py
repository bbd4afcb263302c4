"""Files of rows, JSON lines. Those in ``studies/results`` are compressed (``.xz``): the pages of
``docs/reproduction`` are written by them.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

RESULTS = Path(__file__).resolve().parent / "results"


def text_of(file: Path) -> str:
    """The lines of a file."""
    with _opened(file, "rt") as lines:
        return lines.read()


def add(file: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a file: a line, or a stream of its own if the file is compressed."""
    with _opened(file, "at") as output:
        output.write(json.dumps(row) + "\n")


def _opened(file: Path, mode: str) -> IO[str]:
    if file.suffix == ".xz":
        return lzma.open(file, mode, encoding="utf-8")
    return file.open(mode, encoding="utf-8")
