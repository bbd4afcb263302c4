"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from broker.client.endpoint import DEFAULT_ENDPOINT, ENDPOINT_VARIABLE

Endpoint = Annotated[
    str,
    typer.Option("--broker", envvar=ENDPOINT_VARIABLE, metavar="ENDPOINT", help="The broker."),
]
ENDPOINT = DEFAULT_ENDPOINT

ConnectTimeout = Annotated[
    float,
    typer.Option("--connect-timeout-s", metavar="SECONDS", help="How long to try to reach it."),
]
CONNECT_TIMEOUT_S = 3.0

TimeUnit = Annotated[
    str,
    typer.Option("--time-unit", metavar="s|ms|us|ns", help="What times that are numbers count."),
]

Rules = Annotated[
    list[Path],
    typer.Option("--rules", metavar="RULES", help="A TESLA file; several are one set of rules."),
]


def check_time_unit(unit: str) -> None:
    """Raise UsageError for what is no unit of times."""
    from broker.cli.outcome import one_of
    from matcher.times import UNITS

    one_of("--time-unit", unit, tuple(UNITS))
