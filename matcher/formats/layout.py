"""Layouts: the meaning of a table's columns, or of a JSON object's members, for an event.

One :class:`Layout` says it for all files that are read together, whatever their forms: options of
the command line, of Python and of Spark are made into it, and every reader takes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from matcher.errors import EventError, SchemaError
from matcher.formats.timeform import RFC_3339, TimeForm

TYPE, TIME, SOURCE, SEQUENCE, ID, CAUSE = "type", "time", "source", "sequence", "id", "cause"
DATE = "date"
"""The role of the column of dates, which no column has unless an option names it."""
RESERVED = (TYPE, TIME, SOURCE, SEQUENCE, ID, CAUSE)
"""Columns that are no attributes, where no option says otherwise."""
NONE = ""
"""In the place of a column's name: no column has that role."""

COLUMNS_SHOWN = 12
"""So many names of columns are told."""
_PAIR = re.compile(r'\s*([^=,"]+?)\s*=\s*(?:"((?:[^"]|"")+)"|([^,"\s][^,]*))\s*(?:,|$)')


class Roles(NamedTuple):
    """Columns by role, and by attribute; ``guessed`` are the attributes of a type that is not
    declared.
    """

    roles: Mapping[str, str]
    attributes: Mapping[str, str]
    guessed: Collection[str]


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaning of columns.

    ``time``, ``id``, ``source``, ``type``: the column with that role; None is the one of that name,
    if there is one, and NONE ("") is none. ``columns``: pairs of an attribute and the column that
    holds it, or its path in JSON. ``times``: how times are written. ``nulls``: texts of CSV that
    mean null. ``flat``: whether the attributes of JSON objects stand beside their type and time.
    ``date``: the column of dates, if that of times holds times of the day alone.

    Of CSV: ``delimiter`` is the sign between columns (None: it is guessed), ``decimal`` that of
    decimals; the first ``skip_lines`` lines are passed over, and so are all that begin with
    ``comment``. Of one document of JSON: ``records`` is the path to its array of events.
    """

    time: str | None = None
    id: str | None = None
    source: str | None = None
    type: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    times: TimeForm = RFC_3339
    nulls: tuple[str, ...] = ()
    flat: bool = False
    date: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    skip_lines: int = 0
    comment: str | None = None
    records: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            raise EventError(f"--delimiter: expected one character, found {self.delimiter!r}")
        if self.decimal not in (".", ","):
            raise EventError(f"--decimal: expected . or , and found {self.decimal!r}")
        if self.skip_lines < 0:
            raise EventError(f"--skip-lines: expected 0 or more, found {self.skip_lines}")
        if self.time == NONE:
            raise EventError("--time-column: events have a time; name the column that holds it")
        names = [name for name, _ in self.columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise EventError(f"--columns: attribute {twice[0]} is given twice")

    def in_unit(self, unit: str) -> Layout:
        """The same where numbers among the times count ``unit``."""
        return replace(self, times=replace(self.times, unit=unit))

    @property
    def time_column(self) -> str:
        """The column of the times."""
        return TIME if self.time is None else self.time

    @property
    def moment_columns(self) -> Mapping[str, str]:
        """The columns that say the times, by role."""
        date = {} if self.date is None else {DATE: self.date}
        return {TIME: self.time_column} | date

    @property
    def renamed(self) -> Mapping[str, str]:
        """The columns that hold attributes of other names, by attribute."""
        return dict(self.columns)

    @property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """The attributes that are found in JSON by a path from the whole event: ``.data.room``."""
        return {
            name: tuple(column.split(".")[1:])
            for name, column in self.columns
            if column.startswith(".")
        }

    def named(self, role: str) -> str | None:
        """The column that an option gives a role; None where it says nothing."""
        said: str | None = getattr(self, role, None)
        return said

    def role_columns(self, type_name: str | None) -> dict[str, str]:
        """The column of each role that may have one, rows being of ``type_name`` where it is said:
        a column ``type`` is an attribute then, unless an option names it.
        """
        columns = {}
        for role in (TIME, SOURCE, SEQUENCE, ID, TYPE):
            column = self.named(role)
            if column is None:
                if role in self.renamed.values() or (role == TYPE and type_name is not None):
                    continue
                column = role
            if column != NONE:
                columns[role] = column
        return columns if self.date is None else columns | {DATE: self.date}

    def unsaid(self, type_name: str | None) -> frozenset[str]:
        """The columns that are no attributes: those with a role of which no option speaks."""
        roles = self.role_columns(type_name)
        return frozenset(column for role, column in roles.items() if self.named(role) is None)

    def roles(self, names: Sequence[str], file: str, type_name: str | None) -> Roles:
        """The roles of columns of these names.

        Raises SchemaError for a column that is named and not there, and where none holds times.

        A column has a *role*, to say when, who or of which type an event is, because an option
        names it, or because it is called ``time``, ``id``, ``source``, ``type`` or ``sequence`` and
        no option says otherwise. All other columns are attributes; one with a role by an option is
        an attribute too where the event is declared with it, or ``columns`` names it.
        """
        renamed = self.renamed
        for attribute, column in renamed.items():
            if column not in names:
                turned = " (--columns is ATTRIBUTE=COLUMN)" if attribute in names else ""
                raise _lacks(column, "--columns", names, file, turned)
        roles = self.role_columns(type_name)
        for role, column in [*roles.items()]:
            if column not in names:
                if self.named(role) is not None:
                    raise _lacks(column, f"--{role}-column", names, file)
                del roles[role]
        if TIME not in roles:
            raise _lacks(TIME, None, names, file)
        unsaid, taken = self.unsaid(type_name), set(roles.values())
        own = [name for name in names if name not in unsaid and name not in renamed.values()]
        attributes = {name: name for name in own} | dict(renamed)
        guessed = [
            name
            for name, column in attributes.items()
            if name in renamed or not (column in taken or column == CAUSE)
        ]
        return Roles(roles, attributes, guessed)

    def hint(self, name: str) -> str:
        """How an attribute is read that has the name of a column with a role."""
        return f"--columns {name}={name} makes it an attribute"


PLAIN = Layout()
"""The layout where none is said."""


def columns_of(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of ``--columns attribute=column,...``; a column may stand in double quotes.

    Raises EventError.
    """
    pairs, place = [], 0
    while place < len(text):
        found = _PAIR.match(text, place)
        if found is None:
            raise EventError(
                f"--columns: expected ATTRIBUTE=COLUMN,..., as in area=Station,temp='Temp (C)', "
                f"found {text!r}"
            )
        name, quoted, plain = found.groups()
        column = plain.strip() if quoted is None else quoted.replace('""', '"')
        pairs.append((name, column))
        place = found.end()
    return tuple(pairs)


def _lacks(
    column: str, option: str | None, names: Sequence[str], file: str, hint: str = ""
) -> SchemaError:
    shown = ", ".join(map(repr, names[:COLUMNS_SHOWN])) or "none"
    more = ", ..." if len(names) > COLUMNS_SHOWN else ""
    if option is None:
        hint = f" (--{column}-column says which it is)"
    named = f", which {option} names" if option else ""
    return SchemaError(f"{file}: no column {column!r}{named}; the columns are {shown}{more}{hint}")
