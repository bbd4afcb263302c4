"""``rexmq simulate``: one simulated experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq simulate scenario.toml --check"
SEEDS = "0..40"
"""The random scenarios of ``--fuzz`` that nobody has chosen."""


def command(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="A scenario, in TOML.")
    ] = None,
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
    replay: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="A trace that the run has to repeat."),
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw", metavar="FILE", help="Where the network is drawn: .png, .svg, .pdf."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the centralised oracle.")
    ] = False,
    fuzz: Annotated[
        bool, typer.Option("--fuzz", help="Random scenarios, each compared with the oracle.")
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            metavar="A..B",
            help=f"With --fuzz: from A to B, B left out; else {SEEDS}.",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help="With --fuzz: these, else all there are."),
    ] = None,
) -> None:
    """Run one simulated experiment and print what came of it.

    With --check the exit status is 1 when a sink got anything but what it must get, with --replay
    when anything was carried that is not in the trace. A scenario with a sweep is run many times,
    and what comes of it is one table, runs.csv. With --fuzz there is no scenario: every seed makes
    one, and those that fail are made small and written to --out (else the folder fuzz).
    """
    from broker.cli.outcome import REFUSED, strategy_of
    from broker.errors import ConfigurationError

    if fuzz == (scenario is not None):
        raise typer.BadParameter("give either a scenario or --fuzz")
    if scenario is None:
        if check or any(one is not None for one in (seed, deliveries, trace, replay, draw)):
            raise typer.BadParameter("--fuzz takes --seeds, --strategy and --out alone")
        from simulator.fuzzing.cli import fuzz as run_campaign

        for name in strategy or ():
            strategy_of("--strategy", name)
        if run_campaign(_range(seeds or SEEDS), strategy or (), out or Path("fuzz")):
            raise typer.Exit(REFUSED)
        return
    if seeds is not None or strategy:
        raise typer.BadParameter("--seeds and --strategy go with --fuzz; a scenario has its own")
    from simulator.cli import Wanted, simulate

    wanted = Wanted(seed, out, deliveries, trace, replay, draw, check)
    if simulate(scenario, wanted, refuse=ConfigurationError):
        raise typer.Exit(REFUSED)


def _range(text: str) -> range:
    """``A..B``; BadParameter for what is none."""
    first, dots, last = text.partition("..")
    if not dots or not (first.isdecimal() and last.isdecimal()) or int(first) >= int(last):
        raise typer.BadParameter(f"--seeds: expected A..B with A below B, found {text!r}")
    return range(int(first), int(last))
