"""Plain tables for people: columns as wide as what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker.escaping import escaped


def table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The rows under their columns' names; what a row lacks, or is None, shows as ``-``, and a bool
    as yes or no.
    """
    cells = [list(columns)]
    cells += [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _cell(value: Any) -> str:
    if value is None or value in ("", [], ()):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return escaped(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
