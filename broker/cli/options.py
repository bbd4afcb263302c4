"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.lists import without_pandas
from broker.client.endpoint import (
    DEFAULT_ENDPOINT,
    ENDPOINT_VARIABLE,
    KEY_VARIABLE,
    SERVER_KEY_VARIABLE,
)

if TYPE_CHECKING:
    from broker.client.address import Address
    from matcher.formats.layout import Layout

ConnectTimeout = Annotated[
    float,
    typer.Option("--connect-timeout-s", metavar="SECONDS", help="How long to try to reach it."),
]
CONNECT_TIMEOUT_S = 3.0

Rules = Annotated[
    list[Path],
    typer.Option("--rules", metavar="RULES", help="A TESLA file; several are one set of rules."),
]


TypeName = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="The type of events that name none."),
]


def _column(role: str, what: str) -> object:
    option = typer.Option(f"--{role}-column", metavar="COLUMN", help=f"The column of {what}.")
    return Annotated[str | None, option]


def _said(flag: str, metavar: str, text: str) -> object:
    return Annotated[str | None, typer.Option(flag, metavar=metavar, help=text)]


LAYOUT: Mapping[str, tuple[object, object]] = {
    "time_column": (_column("time", "the times, if not 'time'"), None),
    "id_column": (_column("id", "the ids, if not 'id'; '' for none"), None),
    "source_column": (_column("source", "the sources, if not 'source'; '' for none"), None),
    "type_column": (_column("type", "the types, if not 'type'; '' for none"), None),
    "columns": (_said("--columns", "ATTR=COLUMN,...", "Attributes whose columns are named."), None),
    "date_column": (_said("--date-column", "COLUMN", "The column of dates, if apart."), None),
    "delimiter": (_said("--delimiter", "CHAR", "CSV: the sign between columns, or tab."), None),
    "decimal": (
        Annotated[
            str, typer.Option("--decimal", metavar=".|,", help="CSV: the sign before decimals.")
        ],
        ".",
    ),
    "skip_lines": (
        Annotated[
            int,
            typer.Option("--skip-lines", min=0, metavar="N", help="CSV: lines before the heading."),
        ],
        0,
    ),
    "comment": (_said("--comment", "TEXT", "CSV: lines that begin with it are none."), None),
    "records": (_said("--records", "PATH", "JSON: where the array of events is."), None),
    "flat": (
        Annotated[bool, typer.Option("--flat", help="JSON: attributes stand beside the time.")],
        False,
    ),
    "null": (_said("--null", "TEXT,...", "CSV: texts that mean null."), None),
    "time_unit": (
        Annotated[
            str,
            typer.Option("--time-unit", metavar="s|ms|us|ns", help="What numbers as times count."),
        ],
        "s",
    ),
    "time_format": (_said("--time-format", "FORMAT", "How times are written (strptime)."), None),
    "time_zone": (_said("--time-zone", "ZONE", "The zone of times that bear none."), None),
    "time_cut": (
        Annotated[bool, typer.Option("--time-cut", help="Cut what is finer than a microsecond.")],
        False,
    ),
}
"""The options that say what is in files of events: annotations and defaults by parameter."""


BROKER: Mapping[str, tuple[object, object]] = {
    "broker": (
        Annotated[
            str,
            typer.Option(
                "--broker", envvar=ENDPOINT_VARIABLE, metavar="ENDPOINT", help="The broker."
            ),
        ],
        DEFAULT_ENDPOINT,
    ),
    "key": (
        Annotated[
            str | None,
            typer.Option(
                "--key", envvar=KEY_VARIABLE, metavar="FILE", help="The file of your secret key."
            ),
        ],
        None,
    ),
    "server_key": (
        Annotated[
            str | None,
            typer.Option(
                "--server-key",
                envvar=SERVER_KEY_VARIABLE,
                metavar="KEY|FILE",
                help="The broker's public key.",
            ),
        ],
        None,
    ),
}
"""The options that say where the broker is, and by which keys: annotations and defaults."""


def takes_layout(command: Callable[..., None]) -> Callable[..., None]:
    """A command with options in the place of its parameter ``layout``, which is made of them.

    UsageError where they say what cannot be.
    """
    return _with_options(command, "layout", LAYOUT, layout_of)


def takes_broker(command: Callable[..., None]) -> Callable[..., None]:
    """A command with options in the place of its parameter ``broker``, an Address."""

    def address_of(*, broker: str, key: str | None, server_key: str | None) -> Address:
        from broker.client.address import address_of

        return address_of(broker, key, server_key)

    return _with_options(command, "broker", BROKER, address_of)


def _with_options(
    command: Callable[..., None],
    parameter: str,
    options: Mapping[str, tuple[object, object]],
    make: Callable[..., object],
) -> Callable[..., None]:
    """A command with ``options`` in the place of one parameter, which ``make`` makes of them."""

    @wraps(command)
    def run(*positional: Any, **named: Any) -> None:
        said = {name: named.pop(name) for name in options}
        with without_pandas():
            command(*positional, **{parameter: make(**said)}, **named)

    parameters: list[Parameter] = []
    # The types of what is made are imported when a command runs, not before.
    types = {"Layout": object, "Address": object}
    given = signature(command, eval_str=True, locals=types)
    for one in given.parameters.values():
        if one.name != parameter:
            parameters.append(one)
            continue
        parameters += (
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        )
    run.__dict__["__signature__"] = Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


_DELIMITERS = {"tab": "\t", "\\t": "\t"}
"""Delimiters that are said by other names."""


def layout_of(
    *,
    time_column: str | None = None,
    id_column: str | None = None,
    source_column: str | None = None,
    type_column: str | None = None,
    columns: str | None = None,
    date_column: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    skip_lines: int = 0,
    comment: str | None = None,
    records: str | None = None,
    flat: bool = False,
    null: str | None = None,
    time_unit: str = "s",
    time_format: str | None = None,
    time_zone: str | None = None,
    time_cut: bool = False,
) -> Layout:
    """The layout of files of events by the options; UsageError where it cannot be."""
    from broker.cli.outcome import UsageError
    from matcher.errors import EventError
    from matcher.formats.layout import Layout, columns_of
    from matcher.formats.timeform import TimeForm

    try:
        return Layout(
            time_column,
            id_column,
            source_column,
            type_column,
            columns_of(columns or ""),
            TimeForm(time_unit, time_zone or "", time_format, time_cut),
            () if null is None else tuple(null.split(",")),
            flat,
            date_column,
            _DELIMITERS.get(delimiter or "", delimiter),
            decimal,
            skip_lines,
            comment,
            records,
        )
    except EventError as error:
        raise UsageError(str(error)) from None
