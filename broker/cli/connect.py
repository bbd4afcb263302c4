"""``rexmq connect``: messages of other systems to events, and events to messages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "rexmq connect plant.toml"


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file of sources and sinks.")],
    check: Annotated[
        bool, typer.Option("--check", help="Say what is wrong with the file, and do nothing.")
    ] = False,
) -> None:
    """Connect other systems to a broker until SIGTERM or Ctrl-C.

    Each [[source]] of the file publishes messages as events, each [[sink]] gives a system the
    events of a durable subscription. At the end it prints what each has done.
    """
    from broker.connect.configuration import connectors_of
    from broker.connect.run import run
    from broker.log import start_logging

    connectors = connectors_of(file)
    if check:
        print(f"{file}: {len(connectors.sources)} sources, {len(connectors.sinks)} sinks")
        return
    start_logging("warning")
    try:
        run(connectors)
    finally:
        for what, pumps in (("source", connectors.sources), ("sink", connectors.sinks)):
            for pump in pumps:
                text = f"{pump.count} messages, {pump.letters.count} dead letters"
                print(f"{what} {pump.name}: {text}", file=sys.stderr)
