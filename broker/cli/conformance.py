"""``rexmq conformance``: what a client of another language gets wrong."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

EXAMPLE = "rexmq conformance source -- node publish.mjs {endpoint}"


class Role(StrEnum):
    """A part of a conversation with a broker."""

    SOURCE = "source"
    SINK = "sink"


def command(
    role: Annotated[Role, typer.Argument(help="What the client is.")],
    words: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND...", help="Starts it; {endpoint} is where the broker is."),
    ],
    one_link: Annotated[
        bool, typer.Option("--one-link", help="Do not end its link: it goes on over none.")
    ] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=1, help="Seconds until it has ended.")
    ] = 60,
) -> None:
    """Play a broker with a client, and say what that gets wrong.

    A source publishes ten events or more, a sink takes twenty; then they end. See
    docs/protocol.md, which says what is right.
    """
    from broker.conformance import examine
    from broker.errors import RefusedError
    from broker.escaping import escaped_lines

    faults = examine(role.value, words, not one_link, timeout_s)
    for fault in faults:
        print(escaped_lines(fault))
    if faults:
        raise RefusedError(f"{len(faults)} faults", "protocol")
    print("no fault")
