"""``rexmq simulate``: one simulated experiment."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLE = "rexmq simulate scenario.toml --check"


def command(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario, in TOML.")],
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Instead of the scenario's seed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where tables are written, as CSV.")
    ] = None,
    deliveries: Annotated[
        Path | None,
        typer.Option("--deliveries", metavar="FILE", help="Where deliveries are written."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Where every carried message is noted."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the centralised oracle.")
    ] = False,
) -> None:
    """Run one simulated experiment and print what came of it.

    With --check the exit status is 1 when a sink got anything but what it must get.
    """
    from broker.cli.outcome import REFUSED
    from broker.errors import ConfigurationError

    found = _simulator().simulate(
        scenario,
        seed=seed,
        out=out,
        deliveries=deliveries,
        trace=trace,
        checked=check,
        refuse=ConfigurationError,
    )
    if found:
        raise typer.Exit(REFUSED)


def _simulator() -> Any:
    # By name: the two hosts of the protocols know nothing of one another, but they are started
    # by one command.
    return importlib.import_module("simulator.cli")
