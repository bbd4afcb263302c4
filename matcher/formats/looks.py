"""How files of events are read, for people: what was guessed, and the option that says it.

Each option is called in Python as the field of :class:`matcher.formats.layout.Layout` with its
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import msgspec

from matcher.formats import csvfiles
from matcher.formats.files import EventFile, form_read, opened
from matcher.formats.intake import Intake
from matcher.formats.jsondata import REFUSED
from matcher.formats.layout import COLUMNS_SHOWN, ID, SEQUENCE, SOURCE, TIME, TYPE
from matcher.formats.wallclock import undecided_text

_SIGNS = {"\t": "tabs", ",": "commas"}
_ROLES = {TIME: "time", TYPE: "type", SOURCE: "source", ID: "id", SEQUENCE: "sequence"}


class Look(NamedTuple):
    """A look at a file: its form, the sign between its columns (CSV), and their names."""

    form: str
    delimiter: str | None
    columns: Sequence[str]


def look_at(file: EventFile) -> Look:
    """A look at the beginning of a file."""
    with opened(file.path, file.copy) as (form, stream):
        form = form_read(form, file.layout)
        if form in (".csv", ".tsv"):
            return Look(form, *csvfiles.heading(stream, file.layout, form))
        return Look(form, None, _names(form, stream))


def _names(form: str, stream: BinaryIO) -> Sequence[str]:
    if form == ".parquet":
        import pyarrow.parquet as pq

        return list(pq.read_schema(stream).names)
    if form == ".jsonl":
        try:
            return list(msgspec.json.decode(stream.readline(), type=dict[str, msgspec.Raw]))
        except REFUSED:
            return ()
    return ()


def told(file: EventFile, intake: Intake, rows: int) -> Iterator[str]:
    """Lines about a file of so many rows, of which ``intake`` has learnt the types."""
    look, layout = look_at(file), file.layout
    unit = "line" if look.form == ".jsonl" else "row"
    yield f"{file.name}: {look.form[1:]}, {rows} {unit}{'' if rows == 1 else 's'}"
    if look.delimiter is not None:
        sign = _SIGNS.get(look.delimiter, repr(look.delimiter))
        yield f"  columns between {sign} ({_said(layout.delimiter is not None)} --delimiter)"
    names = [*look.columns, *(name for name, _ in file.columns)]
    if names:
        more = ", ..." if len(names) > COLUMNS_SHOWN else ""
        yield f"  columns: {', '.join(map(repr, names[:COLUMNS_SHOWN]))}{more}"
    for role, word in _ROLES.items():
        column = layout.role_columns(file.type_name).get(role)
        if column in names and role != SEQUENCE:
            yield f"  {word}: {column!r} ({_said(layout.named(role) is not None)} --{role}-column)"
        elif role == TYPE and file.type_name is not None:
            yield f"  type: {file.type_name} (said by --type)"
        elif role == SOURCE and names:
            yield f"  source: {file.source}, the name of the file (--source-column)"
        elif role == ID and names:
            yield "  id: the number of the row (--id-column)"
    if file.name in intake.without_zone:
        yield "  times without a zone: taken for UTC (guessed; --time-zone)"
    if count := intake.undecided.get(file.name):
        yield f"  {undecided_text(count, layout.times.zone)}"


def schemas_told(intake: Intake) -> Iterator[str]:
    """A line about each type whose schema is guessed."""
    for name, event_type in intake.schemas.items():
        if intake.is_inferred(name):
            yield f"event {event_type} (guessed; declare it to say it)"


def _said(is_said: bool) -> str:
    return "said by" if is_said else "guessed;"
