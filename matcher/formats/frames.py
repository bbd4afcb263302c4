"""Tables in memory as events: pandas, polars, DuckDB, Arrow (docs/dataframes.md).

A frame is read as the Parquet file of its rows is, piece by piece
(:mod:`matcher.formats.pieces`); only the way in differs, the PyCapsule interface of Arrow
(``__arrow_c_stream__``), by which tables come over without a copy of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

import pyarrow as pa

from matcher.errors import EventError
from matcher.formats import pieces
from matcher.formats.fields import told_in_fields
from matcher.formats.intake import Chunk, Glance, Intake, Place
from matcher.formats.layout import PLAIN, Layout
from matcher.formats.tabular import check_distinct

_INTERFACES = ("__arrow_c_stream__", "__arrow_c_array__")
FRAME = "frame"
"""The name and the source of a frame that has no type for a name."""


def is_frame(data: object) -> TypeGuard[Any]:
    """Whether data is a table that Arrow can take over."""
    return any(hasattr(data, name) for name in _INTERFACES)


def table_of(data: object, name: str) -> pa.Table:
    """A frame as a table of Arrow; EventError, with the frame's ``name``, for what is none."""
    if not is_frame(data):
        raise EventError(f"{name}: {_refusal(data)}")
    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise EventError(f"{name}: not a table that Arrow takes: {error}") from None
    check_distinct(table.schema.names, name)
    return table


def _refusal(data: object) -> str:
    kind = f"{type(data).__module__}.{type(data).__name__}"
    hint = ", collect() it first" if hasattr(data, "collect") else ""
    return (
        f"expected a frame of pandas, polars, DuckDB or Arrow (__arrow_c_stream__), "
        f"found {kind}{hint}"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A table that is read as a file of events is (:class:`matcher.formats.files.EventFile`).

    ``name``: as messages name it; ``source``, ``type_name``, ``layout``, ``by_row``: as of a file.
    ``rows_before``: the rows of earlier frames of the same source, by which the numbers of these
    go on.
    """

    name: str
    table: pa.Table
    source: str
    type_name: str | None = None
    layout: Layout = PLAIN
    by_row: bool = False
    rows_before: int = 0

    @classmethod
    def of(
        cls,
        data: object,
        type_name: str | None = None,
        *,
        layout: Layout = PLAIN,
        number: int | None = None,
    ) -> Frame:
        """The frame, called by the type of its events, if one is given, and by its ``number``
        among others.

        Raises EventError for what is no frame.
        """
        words = [str(word) for word in (FRAME, number, type_name) if word is not None]
        source = type_name if number is None and type_name is not None else "/".join(words)
        name = " ".join(words)
        return cls(name, table_of(data, name), source, type_name, layout)

    def read(self, intake: Intake) -> Iterator[Chunk]:
        """The events, in the order of the rows."""
        with told_in_fields():
            yield from pieces.read(self._pieces(), self._place, intake, self.type_name)

    def scan(self, intake: Intake) -> Iterator[Glance]:
        """The times; ``intake`` learns the schemas of the types that it does not know."""
        with told_in_fields():
            learning = pieces.learning(self._pieces(), self._place, intake, self.type_name)
            yield from pieces.glances(learning, self._place, intake)

    def place_of(self, row: int) -> str:
        """A row as messages name it."""
        return self._place.named(row)

    @property
    def _place(self) -> Place:
        return Place(self.name, self.source, self.layout, self.by_row, self.rows_before)

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        """Rows in pieces; an empty frame is one piece, by which its schema is known."""
        for first in range(0, max(1, self.table.num_rows), pieces.ROWS):
            whole = self.table.slice(first, pieces.ROWS).combine_chunks()
            columns = [column.combine_chunks() for column in whole.columns]
            yield pa.record_batch(columns, schema=whole.schema)
