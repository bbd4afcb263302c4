"""CSV files with tabs in the place of commas (docs/files.md)."""

from __future__ import annotations

import functools

from matcher.formats import csvfiles

_TAB = "\t"

read = functools.partial(csvfiles.read, delimiter=_TAB)
scan = functools.partial(csvfiles.scan, delimiter=_TAB)


class Writer(csvfiles.Writer):
    """Writes events of one type; see csvfiles."""

    delimiter = _TAB
