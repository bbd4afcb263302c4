"""Composite events as tables, one for each type, for programs and for people.

The columns are those of a file of events (:mod:`matcher.formats.tabular`): ``type``, ``time``,
``source``, which names the rule, ``id``, the attributes and ``cause``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from matcher.formats.markup import html_table
from matcher.model import Event, EventBatch, EventType
from matcher.times import time_text

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_SHOWN = 10


class Table:
    """Composite events of one type, in order of time.

    ``instants`` names attributes that are known to be instants: people are shown them as such.
    """

    def __init__(
        self,
        event_type: EventType,
        batches: Iterable[EventBatch],
        instants: frozenset[str] = frozenset(),
    ) -> None:
        self.type, self._instants = event_type, instants
        self._batches = [batch for batch in batches if len(batch)]

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def events(self) -> Iterator[Event]:
        """The events as rows."""
        return (event for batch in self._batches for event in batch.events())

    def event(self, row: int) -> Event:
        """The event of a row, from 0; IndexError when there is none."""
        for batch in self._batches:
            if 0 <= row < len(batch):
                return batch.event(row)
            row -= len(batch)
        raise IndexError(f"{self.type.name} has {len(self)} rows")

    def to_arrow(self) -> pa.Table:
        """The events as a table of Arrow."""
        import pyarrow as pa

        from matcher.formats.tabular import arrow_schema, to_arrow

        tables = [to_arrow(batch, dictionaries=False) for batch in self._batches]
        schema = arrow_schema(self.type, composite=True, dictionaries=False)
        return pa.Table.from_batches(tables, schema)

    def to_pandas(self) -> Any:
        """The events as a DataFrame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The events as a DataFrame of polars."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        lines = [f"{self.type}: {_counted(len(self), 'row')}"]
        for event in islice(self.events(), ROWS_SHOWN):
            values = ", ".join(f"{name}={text}" for name, text in self._shown(event, repr))
            lines.append(f"  {time_text(event.time)}  {values}")
        if len(self) > ROWS_SHOWN:
            lines.append(f"  and {len(self) - ROWS_SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = "" if len(self) <= ROWS_SHOWN else f", the first {ROWS_SHOWN}"
        rows = (
            [time_text(event.time), *dict(self._shown(event, str)).values(), " ".join(event.cause)]
            for event in islice(self.events(), ROWS_SHOWN)
        )
        names = (attribute.name for attribute in self.type.declared)
        caption = f"{self.type.name}: {_counted(len(self), 'row')}{shown}"
        return html_table(caption, ["time", *names, "cause"], rows)

    def _shown(self, event: Event, written: Callable[[object], str]) -> Iterator[tuple[str, str]]:
        """The attributes of an event with their values as people read them."""
        for name, value in event.data.items():
            if name in self._instants and isinstance(value, int):
                yield name, time_text(value)
            else:
                yield name, written(value)


class Tables(Mapping[str, Table]):
    """Tables of composite events by their types, one for each type that the rules define."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = {table.type.name: table for table in tables}

    def __getitem__(self, name: str) -> Table:
        try:
            return self._tables[name]
        except KeyError:
            raise KeyError(f"no rule defines {name}; defined are: {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.values())) or "no tables"

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.values())


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
