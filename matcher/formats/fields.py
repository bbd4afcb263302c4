"""Errors of reading as programs are told them: by fields of Layout, not by options of the command.

>>> in_fields("a.csv: no column 'time' (--time-column says which it is)")
"a.csv: no column 'time' (Layout(time=...) says which it is)"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from matcher.errors import BadEvent, EventError

_FIELDS: Mapping[str, str] = {
    "time-column": "Layout(time={})",
    "id-column": "Layout(id={})",
    "source-column": "Layout(source={})",
    "type-column": "Layout(type={})",
    "date-column": "Layout(date={})",
    "columns": "Layout(columns={})",
    "delimiter": "Layout(delimiter={})",
    "decimal": "Layout(decimal={})",
    "skip-lines": "Layout(skip_lines={})",
    "comment": "Layout(comment={})",
    "records": "Layout(records={})",
    "null": "Layout(nulls={})",
    "flat": "Layout(flat=True)",
    "time-unit": "TimeForm(unit={})",
    "time-zone": "TimeForm(zone={})",
    "time-format": "TimeForm(format={})",
    "time-cut": "TimeForm(cuts=True)",
    "type": "type={}",
    "skip-bad": "skip_bad=True",
}
_OPTION = re.compile(
    rf"(?<![\w-])--({'|'.join(sorted(_FIELDS, key=len, reverse=True))})\b"
    r"(?: ([^\s()]+)(?= makes| takes| reads| \(|\)|$))?"
)


def in_fields(text: str) -> str:
    """A message with fields, and arguments of functions, in the place of options."""
    return _OPTION.sub(_field, text)


def _field(option: re.Match[str]) -> str:
    name, value = option[1], option[2]
    return _FIELDS[name].format(_written(name, value) if value is not None else "...")


def _written(name: str, value: str) -> str:
    if name == "columns":
        attribute, _, column = value.partition("=")
        return repr(((attribute, column),))
    return repr((value,)) if name == "null" else repr(value)


@contextmanager
def told_in_fields() -> Iterator[None]:
    """Errors of what is done inside, in the words of programs."""
    try:
        yield
    except BadEvent as error:
        if (reason := in_fields(error.reason)) == error.reason:
            raise
        raise BadEvent(reason, error.place) from None
    except EventError as error:
        if (text := in_fields(str(error))) == str(error):
            raise
        raise type(error)(text) from None
