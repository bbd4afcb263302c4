"""Folders of files of events, and columns in their names (``day=2024-06-01/``), as Hive has them.

A folder stands for the files of events below it. A folder of the form ``NAME=VALUE`` on the way to
a file is a column with that value in each of its rows. Values are read as CSV's are; ``%2F`` and
its like stand for signs that no name of a folder can have, and HIVE_NULL for null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from matcher.errors import EventError
from matcher.formats.files import form_of
from matcher.formats.inputs import FolderColumn, InputFile
from matcher.model import Datum, Kind

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_INT = re.compile(r"-?\d{1,18}", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLS = {"true": True, "false": False}


def expanded(given: InputFile) -> Iterator[InputFile]:
    """The file itself, or the files of events in the folder, in the order of their paths.

    Hidden names, and those that begin with ``_``, are passed over, as files of other forms are.
    EventError where there is none.
    """
    if not given.path.is_dir():
        yield given
        return
    count = 0
    for path in sorted(given.path.rglob("*")):
        parts = path.relative_to(given.path).parts
        is_hidden = any(part.startswith((".", "_")) for part in parts)
        if not is_hidden and path.is_file() and _is_of_events(path):
            count += 1
            yield InputFile(path, given.type_name, (*given.columns, *_columns(parts[:-1])))
    if not count:
        raise EventError(f"{given.path}: a folder without files of events")


def _is_of_events(path: Path) -> bool:
    try:
        form_of(path)
    except EventError:
        return False
    return True


def _columns(folders: Sequence[str]) -> Iterator[FolderColumn]:
    for folder in folders:
        name, sign, text = folder.partition("=")
        if sign and name:
            yield unquote(name), None if text == HIVE_NULL else unquote(text)


def datum_of(text: str | None, kind: Kind | None) -> Datum:
    """The value of a column from a name, as the kind that is declared, or else as it looks; a text
    that is none of the kind stays one.
    """
    if text is None or kind is Kind.STRING:
        return text
    if kind in (None, Kind.INT) and _INT.fullmatch(text):
        return int(text)
    if kind is Kind.FLOAT and _FLOAT.fullmatch(text):
        return float(text)
    return _BOOLS.get(text, text) if kind is Kind.BOOL else text
